/*
 * Ending a training run early, and whole. SIGTERM, SIGINT or SIGUSR1 to any worker asks all of them
 * to end after the same step, so that a checkpoint of it can be written.
 *
 *     stop_init(&stop, saves)                      early: the signals no longer end the process
 *     after each step: stop_agree(&stop, world, group, step, &number)
 *     stop_fini(&stop)                             late: after a request they are ignored
 *
 * A signal that comes again, at least STOP_TWICE_MS later, does what it did before stop_init. Where
 * nothing can be saved, SIGTERM and SIGINT are left alone, and SIGUSR1 is ignored with a warning. A
 * dedicated server ends when the workers do: it waits for them, whatever signal it gets first.
 *
 * Cost: one world_max of two numbers about every STOP_INTERVAL_MS, after a step whose number
 * follows from what all ranks measured: no message in the other steps, none at all in a run that
 * cannot save, and none in a run of one process.
 */
#ifndef PSRING_EXPERIMENTS_TRAIN_STOP_H
#define PSRING_EXPERIMENTS_TRAIN_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"

enum { STOP_INTERVAL_MS = 250, STOP_TWICE_MS = 500, STOP_SIGNALS = 3 };

struct stop {
    bool saves;
    bool agreed; /* all ranks end now, whichever of them got the signal */
    struct sigaction before[STOP_SIGNALS];
    uint64_t asked_step; /* after which the ranks last asked each other */
    int64_t asked_ns;    /* and when; 0: not yet */
    uint64_t next_step;
};

/* One at a time in a process. */
void stop_init(struct stop *stop, bool saves);
void stop_fini(struct stop *stop);

/* "SIGTERM" */
const char *stop_signal_name(int number);

/*
 * Collective over `group`, after `step` steps; gradients may be on their way meanwhile. *number is
 * the signal for which all ranks are to end now, the same on all of them; 0: none has come, or it
 * is not yet time to ask.
 */
enum status stop_agree(struct stop *stop, struct world *world, const struct group *group,
                       uint64_t step, int *number);

/* The question behind it: *largest becomes the largest of what the ranks have there, the same on
 * all of them; -INFINITY: it is not yet time to ask. */
enum status stop_ask(struct stop *stop, struct world *world, const struct group *group,
                     uint64_t step, double *largest);

/* Whether a signal has come to this process, and which; 0: none. Any thread. */
bool stop_requested(void);
int stop_signal(void);

#endif
