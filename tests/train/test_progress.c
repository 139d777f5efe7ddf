#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "experiments/train/trainer.h"

/* A pseudo-terminal. `shown`: the bytes that a user would see. */
struct terminal {
    int master;
    FILE *stream;
    char shown[8192];
};

static void terminal_open(struct terminal *terminal, unsigned short columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    terminal->master = posix_openpt(O_RDWR | O_NOCTTY);
    cr_assert(terminal->master >= 0 && grantpt(terminal->master) == 0 &&
              unlockpt(terminal->master) == 0);
    int slave = open(ptsname(terminal->master), O_RDWR | O_NOCTTY);
    cr_assert(slave >= 0);
    terminal->stream = fdopen(slave, "r+");
    cr_assert(terminal->stream != NULL);
    cr_assert(ioctl(fileno(terminal->stream), TIOCSWINSZ, &size) == 0);
}

/*
 * Reads the bytes written since the last call into terminal->shown. The kernel passes bytes on with
 * a delay. The function writes a mark behind them and reads up to the mark, so all have arrived.
 */
static const char *terminal_read(struct terminal *terminal)
{
    enum { MARK = '#' };
    size_t used = 0;
    fputc(MARK, terminal->stream);
    fflush(terminal->stream);
    do {
        cr_assert(used < sizeof terminal->shown);
        cr_assert(read(terminal->master, terminal->shown + used, 1) == 1);
    } while (terminal->shown[used++] != MARK);
    terminal->shown[used - 1] = '\0';
    return terminal->shown;
}

static void terminal_close(struct terminal *terminal)
{
    fclose(terminal->stream);
    close(terminal->master);
}

static struct progress_options options_of(FILE *stream, size_t rank)
{
    return (struct progress_options){.stream = stream,
                                     .rank = rank,
                                     .epochs = 2,
                                     .steps_per_epoch = 400,
                                     .images_per_step = 256};
}

Test(progress, formats_the_line)
{
    char line[160];
    struct progress_view view = {.epoch = 2,
                                 .epochs = 12,
                                 .step = 18,
                                 .steps_per_epoch = 468,
                                 .loss = 0.14234,
                                 .images_per_s = 8412.4,
                                 .eta_s = 185};
    progress_format(&view, line, sizeof line);
    cr_assert_str_eq(line, "epoch 2/12  step  18/468  loss 0.1423  8,412 images/s  ETA 3:05");
    view.images_per_s = 1234567;
    view.eta_s = 7384;
    progress_format(&view, line, sizeof line);
    cr_assert_str_eq(line,
                     "epoch 2/12  step  18/468  loss 0.1423  1,234,567 images/s  ETA 2:03:04");
    view.images_per_s = 0;
    view.eta_s = -1;
    progress_format(&view, line, sizeof line);
    cr_assert_str_eq(line, "epoch 2/12  step  18/468  loss 0.1423  - images/s  ETA -");
    view.loss = NAN;
    progress_format(&view, line, sizeof line);
    cr_assert_str_eq(line, "epoch 2/12  step  18/468  - images/s  ETA -");
    progress_format(&view, line, 8);
    cr_assert_str_eq(line, "epoch 2");
}

/* Steps of 10 ms by the test's clock: a redraw every tenth step, and at the end. */
Test(progress, redraws_at_most_ten_times_a_second)
{
    struct terminal terminal;
    struct progress progress;
    terminal_open(&terminal, 100);
    struct progress_options options = options_of(terminal.stream, 0);
    progress_init(&progress, &options);
    size_t redraws = 0;
    int64_t now_ns = 5 * NS_PER_S;
    for (uint64_t step = 0; step < 400; step++, now_ns += 10 * NS_PER_MS) {
        progress_update(&progress, now_ns, 1, step, 0.5);
        redraws += terminal_read(&terminal)[0] != '\0';
    }
    cr_assert(redraws == 41, "%zu redraws", redraws);
    /* 256 images in 10 ms; the last redraw was the run's last step. */
    cr_assert_str_eq(terminal.shown,
                     "\repoch 2/2  step 400/400  loss 0.5000  25,600 images/s  ETA 0:00\033[K");
    progress_clear(&progress);
    cr_assert_str_eq(terminal_read(&terminal), "\r\033[K");
    progress_clear(&progress);
    cr_assert_str_eq(terminal_read(&terminal), "");
    terminal_close(&terminal);
}

/* An evaluation of 60 s between two steps does not count as a slow step. */
Test(progress, a_pause_is_not_in_the_rate)
{
    struct terminal terminal;
    struct progress progress;
    terminal_open(&terminal, 100);
    struct progress_options options = options_of(terminal.stream, 0);
    progress_init(&progress, &options);
    int64_t now_ns = 5 * NS_PER_S;
    for (uint64_t step = 0; step < 200; step++, now_ns += 10 * NS_PER_MS) {
        if (step == 100) {
            progress_clear(&progress);
            now_ns += 60 * NS_PER_S;
        }
        progress_update(&progress, now_ns, 0, step, 0.5);
    }
    progress_update(&progress, now_ns + 90 * NS_PER_MS, 0, 209, 0.5);
    (void)terminal_read(&terminal);
    cr_assert(progress.step_s > 0.0099 && progress.step_s < 0.0101, "%g s a step", progress.step_s);
    cr_assert(strstr(terminal.shown, "ETA 0:06") != NULL, "%s", terminal.shown);
    terminal_close(&terminal);
}

Test(progress, a_narrow_terminal_gets_a_line_that_fits)
{
    struct terminal terminal;
    struct progress progress;
    terminal_open(&terminal, 20);
    struct progress_options options = options_of(terminal.stream, 0);
    progress_init(&progress, &options);
    progress_update(&progress, NS_PER_S, 0, 0, 2.3);
    cr_assert_str_eq(terminal_read(&terminal), "\repoch 1/2  step   1\033[K");
    terminal_close(&terminal);
}

Test(progress, is_quiet_elsewhere)
{
    struct terminal terminal;
    struct progress progress;
    terminal_open(&terminal, 100);
    struct progress_options options = options_of(terminal.stream, 1);
    progress_init(&progress, &options);
    progress_update(&progress, NS_PER_S, 0, 0, 2.3);
    progress_clear(&progress);
    cr_assert_str_eq(terminal_read(&terminal), "");
    terminal_close(&terminal);

    FILE *file = tmpfile();
    cr_assert(file != NULL);
    options = options_of(file, 0);
    progress_init(&progress, &options);
    progress_update(&progress, NS_PER_S, 0, 0, 2.3);
    progress_clear(&progress);
    cr_assert(ftell(file) == 0);
    fclose(file);
}
