/*
 * A team of threads shares numbered items of work. Any thread may take any item. Therefore an
 * item's result must depend on its number alone, and sums over items are taken afterwards in item
 * order. Results then do not depend on the number of threads.
 */
#ifndef PSRING_COMMON_DEVICE_CPU_TEAM_H
#define PSRING_COMMON_DEVICE_CPU_TEAM_H

#include <stddef.h>

#include "common/base/status.h"

struct team;

/* Does item `item`. It may use the scratch memory of `thread`, in [0, threads). */
typedef void team_work(void *context, size_t item, int thread);

/* `threads` >= 1 in all. The caller of team_run works as thread 0; this call starts all other
 * threads. With 1 it starts none and team_run is a loop. */
enum status team_new(struct team **team, int threads);
void team_free(struct team **team);
int team_threads(const struct team *team);

/* Does items [0, count) and returns when all are done. One caller at a time. */
void team_run(struct team *team, size_t count, team_work *work, void *context);

#endif
