/*
 * A team of threads that share out numbered items of work. Which thread does which item is left to
 * chance; so an item's result must depend on its number alone, and sums over items are taken
 * afterwards in the items' order. Then results do not depend on the number of threads.
 */
#ifndef PSRING_COMMON_DEVICE_CPU_TEAM_H
#define PSRING_COMMON_DEVICE_CPU_TEAM_H

#include <stddef.h>

#include "common/base/status.h"

struct team;

/* Does item `item`; `thread` in [0, threads) says whose scratch memory may be used. */
typedef void team_work(void *context, size_t item, int thread);

/* `threads` >= 1 in all: the caller of team_run works too, as thread 0, and `threads` - 1 are
 * started here. With 1 nothing is started and team_run is a loop. */
enum status team_new(struct team **team, int threads);
void team_free(struct team **team);
int team_threads(const struct team *team);

/* Does items [0, count) and returns when all are done. Called by one thread at a time. */
void team_run(struct team *team, size_t count, team_work *work, void *context);

#endif
