/*
 * --backend auto: rank 0 reads the model (--cost-model) and chooses, tells all others, and says
 * what, why, and what that rests on. So the file is needed on rank 0's host alone, and all ranks
 * have the same choice whatever the others' files say.
 */
#ifndef PSRING_EXPERIMENTS_AUTO_H
#define PSRING_EXPERIMENTS_AUTO_H

#include "common/net/world/world.h"
#include "experiments/auto/choose.h"
#include "experiments/config/config.h"

/*
 * For struct config's `choose`: fills in its picks; of bench's sweep one for each size, else one.
 * Collective over the world. STATUS_USAGE, on all ranks, logged by rank 0: no model in the file, or
 * none of this network; or no such ranks for the servers. Prints lines to stdout on rank 0.
 */
enum status auto_choose(struct config *config, struct world *world);

/* A line in words, without its end: what, how long, what else, what it rests on. */
void auto_describe(const struct auto_job *job, const struct auto_choice *choice, char *text,
                   size_t size);

#endif
