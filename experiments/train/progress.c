#include "experiments/train/trainer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/text.h"

#define REDRAW_INTERVAL_NS (100 * NS_PER_MS)

/* Half of the smoothed rate's weight is on the last few redraws. */
static const double newest_weight = 0.2;

enum { LINE_BYTES = 160, COLUMNS_DEFAULT = 80 };

void progress_init(struct progress *progress, const struct progress_options *options)
{
    *progress = (struct progress){.options = *options};
    progress->enabled = options->rank == 0 && isatty(fileno(options->stream));
}

/* 185 -> "3:05", 7384 -> "2:03:04". */
static void format_duration(char *text, size_t size, double seconds)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s >= 3600)
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

void progress_format(const struct progress_view *view, char *line, size_t size)
{
    char rate[48] = "-", eta[64] = "-", loss[32] = "", steps[24];
    if (view->images_per_s > 0 && view->images_per_s < 1e15)
        text_grouped(view->images_per_s, rate, sizeof rate);
    if (view->eta_s >= 0 && view->eta_s < 1e9)
        format_duration(eta, sizeof eta, view->eta_s);
    /* Pads the step to its final width, so that the text after it does not move. */
    int width = snprintf(steps, sizeof steps, "%" PRIu64, view->steps_per_epoch);
    if (isfinite(view->loss))
        snprintf(loss, sizeof loss, "  loss %.4f", view->loss);
    snprintf(line, size,
             "epoch %" PRIu64 "/%" PRIu64 "  step %*" PRIu64 "/%s%s  %s images/s  ETA %s",
             view->epoch, view->epochs, width, view->step, steps, loss, rate, eta);
}

static size_t terminal_columns(FILE *stream)
{
    struct winsize window;
    if (ioctl(fileno(stream), TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        return window.ws_col;
    return COLUMNS_DEFAULT;
}

static void draw(struct progress *progress, const struct progress_view *view)
{
    char line[LINE_BYTES];
    progress_format(view, line, sizeof line);
    /* A wrapped line could not be overwritten by the next line. */
    size_t columns = terminal_columns(progress->options.stream);
    if (strlen(line) >= columns)
        line[columns - 1] = '\0';
    fprintf(progress->options.stream, "\r%s\033[K", line); /* erase a longer old line */
    fflush(progress->options.stream);
    progress->drawn = true;
}

/* Adds the rate since the last mark to the smoothed rate. */
static void mark(struct progress *progress, int64_t now_ns, uint64_t steps_done)
{
    if (progress->marked_at_ns && steps_done > progress->marked_step) {
        double step_s = (double)(now_ns - progress->marked_at_ns) / (double)NS_PER_S /
                        (double)(steps_done - progress->marked_step);
        progress->step_s = progress->step_s > 0
                               ? newest_weight * step_s + (1 - newest_weight) * progress->step_s
                               : step_s;
    }
    progress->marked_at_ns = now_ns;
    progress->marked_step = steps_done;
}

void progress_update(struct progress *progress, int64_t now_ns, uint64_t epoch, uint64_t step,
                     double loss)
{
    const struct progress_options *options = &progress->options;
    if (!progress->enabled)
        return;
    uint64_t steps_done = epoch * options->steps_per_epoch + step + 1;
    uint64_t steps_all = options->epochs * options->steps_per_epoch;
    bool is_last = steps_done == steps_all;
    bool is_due = !progress->drawn || now_ns - progress->drawn_at_ns >= REDRAW_INTERVAL_NS;
    if (!progress->marked_at_ns)
        mark(progress, now_ns, steps_done);
    if (!is_due && !is_last)
        return;
    if (now_ns - progress->marked_at_ns >= REDRAW_INTERVAL_NS || is_last)
        mark(progress, now_ns, steps_done);
    double step_s = progress->step_s;
    struct progress_view view = {
        .epoch = epoch + 1,
        .epochs = options->epochs,
        .step = step + 1,
        .steps_per_epoch = options->steps_per_epoch,
        .loss = loss,
        .images_per_s = step_s > 0 ? (double)options->images_per_step / step_s : 0,
        .eta_s =
            step_s > 0 && steps_all >= steps_done ? step_s * (double)(steps_all - steps_done) : -1,
    };
    draw(progress, &view);
    progress->drawn_at_ns = now_ns;
}

void progress_clear(struct progress *progress)
{
    progress->marked_at_ns = 0;
    if (!progress->drawn)
        return;
    fputs("\r\033[K", progress->options.stream);
    fflush(progress->options.stream);
    progress->drawn = false;
}
