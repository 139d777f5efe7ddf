#include "experiments/train/stop.h"

#include <math.h>
#include <unistd.h>

#include "common/base/clock.h"

static const int numbers[STOP_SIGNALS] = {SIGTERM, SIGINT, SIGUSR1};

const char *stop_signal_name(int number)
{
    return number == SIGTERM ? "SIGTERM" : number == SIGINT ? "SIGINT" : "SIGUSR1";
}

/* Written by the handlers. */
static volatile sig_atomic_t requested;
static volatile int64_t requested_ns;
static struct stop *current;

/* A scheduler may signal every process, and a launcher may pass on its own signal. The same request
 * then comes twice within a short time. */
static void on_signal(int number)
{
    if (requested && clock_now_ns() - requested_ns < STOP_TWICE_MS * NS_PER_MS)
        return;
    if (requested) { /* a second request: act as if this handler did not exist */
        for (int i = 0; i < STOP_SIGNALS; i++)
            sigaction(numbers[i], &current->before[i], NULL);
        raise(number);
        return;
    }
    requested_ns = clock_now_ns();
    requested = number;
}

static void on_useless_signal(int number)
{
    static const char text[] = "\n"
                               "psring: warning: SIGUSR1: nothing can be saved without "
                               "--checkpoint DIR; training continues\n";
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    (void)number;
}

void stop_init(struct stop *stop, bool saves)
{
    *stop = (struct stop){.saves = saves};
    requested = 0;
    current = stop;
    for (int i = 0; i < STOP_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = saves ? on_signal : on_useless_signal,
                                   .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        bool takes = saves || numbers[i] == SIGUSR1;
        sigaction(numbers[i], takes ? &action : NULL, &stop->before[i]);
    }
}

/* A fulfilled request may come again, or may come late to a worker that has already stopped with
 * the other workers. It must not change the exit code. */
void stop_fini(struct stop *stop)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (int i = 0; i < STOP_SIGNALS; i++)
        sigaction(numbers[i], requested || stop->agreed ? &ignore : &stop->before[i], NULL);
}

/* The number of steps until the ranks ask each other again, if a step takes `step_ns`. */
static uint64_t steps_until(double step_ns)
{
    double steps = (double)STOP_INTERVAL_MS * (double)NS_PER_MS / (step_ns > 1 ? step_ns : 1);
    return steps < 1 ? 1 : (uint64_t)steps;
}

enum status stop_ask(struct stop *stop, struct world *world, const struct group *group,
                     uint64_t step, double *largest)
{
    enum status status = STATUS_OK;
    int64_t now_ns = clock_now_ns();
    double mine = *largest;
    *largest = -INFINITY;
    if (step < stop->next_step)
        return STATUS_OK;
    /* The first time, the duration of a step is not known: ask again after the next step. */
    double step_ns = (double)STOP_INTERVAL_MS * (double)NS_PER_MS;
    if (stop->asked_ns > 0)
        step_ns = (double)(now_ns - stop->asked_ns) / (double)(step - stop->asked_step);
    double most[2] = {mine, step_ns};
    TRY(world_max(world, group, most, 2));
    *largest = most[0];
    stop->asked_step = step;
    stop->asked_ns = now_ns;
    stop->next_step = step + steps_until(most[1]);
out:
    return status;
}

enum status stop_agree(struct stop *stop, struct world *world, const struct group *group,
                       uint64_t step, int *number)
{
    enum status status = STATUS_OK;
    double largest = requested;
    *number = 0;
    if (!stop->saves)
        return STATUS_OK;
    if (world->size > 1)
        TRY(stop_ask(stop, world, group, step, &largest));
    *number = largest > 0 ? (int)largest : 0;
    stop->agreed = *number > 0;
out:
    return status;
}

bool stop_requested(void)
{
    return requested != 0;
}

int stop_signal(void)
{
    return requested;
}
