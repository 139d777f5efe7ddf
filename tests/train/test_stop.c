#include <criterion/criterion.h>

#include "experiments/train/stop.h"

static volatile sig_atomic_t heard;

static void on_earlier(int number)
{
    heard = number;
}

/* Installs the process's handlers before stop_init: they record the signal and do not end the
 * process. */
static void expect_earlier(void)
{
    const struct sigaction action = {.sa_handler = on_earlier};
    heard = 0;
    for (int i = 0; i < STOP_SIGNALS; i++)
        sigaction((const int[]){SIGTERM, SIGINT, SIGUSR1}[i], &action, NULL);
}

/* The ranks stopped because another rank got the signal; this rank's own comes when training has
 * ended. It must not end the process, because the exit code says that the run was saved. */
Test(stop, a_signal_after_the_agreement_is_ignored)
{
    struct stop stop;
    expect_earlier();
    stop_init(&stop, true);
    stop.agreed = true;
    stop_fini(&stop);
    for (int i = 0; i < STOP_SIGNALS; i++)
        raise((const int[]){SIGTERM, SIGINT, SIGUSR1}[i]);
    cr_expect(heard == 0, "signal %d reached the earlier handler", (int)heard);
}

Test(stop, without_a_request_the_earlier_handlers_come_back)
{
    struct stop stop;
    expect_earlier();
    stop_init(&stop, true);
    stop_fini(&stop);
    raise(SIGUSR1);
    cr_expect(heard == SIGUSR1);
    cr_expect_not(stop_requested());
}

Test(stop, a_request_is_kept_and_a_repeat_of_it_ignored)
{
    struct stop stop;
    expect_earlier();
    stop_init(&stop, true);
    raise(SIGUSR1);
    raise(SIGUSR1);
    cr_expect(stop_signal() == SIGUSR1);
    stop_fini(&stop);
    raise(SIGUSR1);
    cr_expect(heard == 0);
}
