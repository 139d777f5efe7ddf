/*
 * When the workers begin an operation that is timed. They leave a barrier apart, each at its next
 * poll: up to 0.3 ms where ranks outnumber cores and polls sleep, a tenth of what 64 KB take on a
 * link of 200 Mbit/s; and the slowest worker's time counts, which then has the others' delay in it.
 *
 * There they agree on an instant in the near future and begin then, on a clock that all of them
 * have: all ranks on one kernel read the same one. How far ahead the instant is follows from how
 * late they came so far. A worker that finds no free core then begins late all the same, by tens of
 * microseconds, or by more where others use the machine: so an operation lasts from the beginning
 * of the last worker to the end of the slowest.
 *
 * Ranks with cores of their own poll without a pause, and leave a barrier apart by little more than
 * a message takes: they begin when they leave it, and every worker's time counts from there. To
 * sleep until an instant would cost them more than it saves: cores that have slept begin slowly
 * (two ranks on loopback, 256 KB: 2.3 times the time). So do ranks on several machines, which have
 * no clock in common.
 *
 * In programs, ranks rarely come to an operation at the same time. With a skew of S, rank r starts
 * operation i late by a part of S, uniform from 0 to S: a fixed random number of r and i alone. An
 * operation then lasts from the last start to the end of the slowest
 * worker. Workers without a common clock count from the moment at which each of them leaves the
 * barrier. Source: Faraj, Patarasuk, Yuan 2008, "A study of process arrival patterns for MPI
 * collective operations", which measures such patterns and shows that they decide which algorithm
 * is fast.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_START_H
#define PSRING_EXPERIMENTS_BENCH_START_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world/world.h"

struct bench_start {
    struct world *world; /* borrowed, as the group of the workers */
    const struct group *group;
    bool common_clock; /* and so an instant; else a barrier */
    int64_t ahead_ns;  /* of the next instant */
    int64_t late_ns;   /* this worker's, for the last one; 0: in time */
};

/* Collective over the group. Finds out whether an instant is wanted, because ranks outnumber cores,
 * and its clocks are one: all ranks of the world are on one kernel, and no clock shows a time
 * before a moment that had passed on another one. */
enum status bench_start_init(struct bench_start *start, struct world *world,
                             const struct group *group);

/* Collective over the group: agrees on an instant, and returns shortly before it, with time for
 * some 50 us of the caller's own; else: once all have come. */
enum status bench_start_agree(struct bench_start *start, int64_t *instant_ns);

/* Returns at the instant, or at once if it has passed or none was agreed on: the time then.
 */
int64_t bench_start_wait(struct bench_start *start, int64_t instant_ns);

/* How late worker `rank` starts operation `round`: 0 to most_ms. */
int64_t bench_start_skew_ns(double most_ms, size_t rank, uint64_t round);

/* Sleeps until `delay_ns` after `from_ns`, where bench_start_wait returned. */
void bench_start_delay(int64_t from_ns, int64_t delay_ns);

#endif
