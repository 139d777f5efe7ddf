/*
 * Ends a training run early, with a consistent checkpoint. SIGTERM, SIGINT or SIGUSR1 to any worker
 * asks all workers to end after the same step, so that its checkpoint can be written.
 *
 *     stop_init(&stop, saves)         early: from here on the signals do not end the process
 *     stop_agree(&stop, world, group, step, &number)                        after each step
 *     stop_fini(&stop)                late: after a request, signals are ignored
 *
 * A second signal, at least STOP_TWICE_MS later, does what it did before stop_init. If nothing can
 * be saved, SIGTERM and SIGINT keep their effect, and SIGUSR1 is ignored with a warning. A
 * dedicated server ends when the workers end: after any signal it waits for them.
 *
 * Cost: one world_max of two numbers about every STOP_INTERVAL_MS. All ranks derive the next such
 * step from the same measured times. Other steps send no message. A run that cannot save and a run
 * of one process send none at all.
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
    bool agreed; /* all ranks end now */
    struct sigaction before[STOP_SIGNALS];
    uint64_t asked_step; /* the step after which the ranks last asked each other */
    int64_t asked_ns;    /* the time of that; 0: not yet */
    uint64_t next_step;
};

/* Only one at a time in a process. */
void stop_init(struct stop *stop, bool saves);
void stop_fini(struct stop *stop);

/* "SIGTERM" */
const char *stop_signal_name(int number);

/*
 * Collective over `group`, after `step` steps; gradients may be in flight. *number, the same on all
 * ranks: the signal because of which all ranks end now. 0: no signal has come, or it is not yet
 * time to ask.
 */
enum status stop_agree(struct stop *stop, struct world *world, const struct group *group,
                       uint64_t step, int *number);

/* The exchange behind stop_agree: *largest becomes the maximum of all ranks' values, the same on
 * all ranks. -INFINITY: it is not yet time to ask. */
enum status stop_ask(struct stop *stop, struct world *world, const struct group *group,
                     uint64_t step, double *largest);

/* Whether a signal has come to this process. / Its number; 0: none. Any thread. */
bool stop_requested(void);
int stop_signal(void);

#endif
