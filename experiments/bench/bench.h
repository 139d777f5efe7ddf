/*
 * psring bench: times one all-reduce by size, checks every element of every result against the
 * exact sum, and holds times and bytes against theory. Nothing is computed meanwhile: all of the
 * time is exposed communication. With --overlap every size is measured a second time, on a comm
 * with a thread of its own, while the caller waits, as if it computed, for as long as the
 * all-reduce took alone; what the all-reduce adds to that is exposed, the rest hidden (as in OSU's
 * osu_iallreduce). With --via-library every size is measured once more through common/psring.h.
 * With
 * --model-gradients a model's gradients are exchanged instead, as train does (model_gradients.h).
 */
#ifndef PSRING_EXPERIMENTS_BENCH_BENCH_H
#define PSRING_EXPERIMENTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"

/*
 * Collective over the world. Rank 0 prints the table to stdout and writes --csv (appended) and
 * --json row by row, so that what is finished stays if the run is interrupted. STATUS_PROTOCOL on
 * all ranks if any element was wrong or bytes differ from theory, after the whole sweep. Errors:
 * logged; the caller then ends all ranks.
 */
/* With --backend auto, sizes have their own picks, and those of one after the other that are alike
 * one connection. */
enum status bench_run(struct config *config, struct world *world);

/*
 * The sizes of a sweep are whole float32 elements: -b and -e are rounded up to a multiple of 4, and
 * so is every size between, which is `factor` times the one before and at least one element more.
 */
uint64_t bench_whole_bytes(uint64_t bytes);
uint64_t bench_next_bytes(uint64_t bytes, double factor);

/* The size after `bytes`, the one of number `index`; false after the last. */
bool bench_size(const struct config *config, size_t index, uint64_t *bytes);

#endif
