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
#ifndef PSRING_EXPERIMENTS_BENCH_CONNECT_H
#define PSRING_EXPERIMENTS_BENCH_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/bucket.h"
#include "common/net/world.h"
#include "common/psring.h"

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

/*
 * What the benchmark measures: the all-reduce of a comm, and the same one as others have it, by
 * libpsring's header and nothing else. The latter's ranks meet by themselves and have connections
 * of their own; barriers and the exchange of results go through the comm and the world for both.
 */

/* The connections of a whole sweep. */
struct bench_connection {
    struct world *world;
    const struct backend *backend;
    struct comm_options options; /* as given; device: that has the vectors, NULL: the host */
    struct comm *comm;
    struct bench_start start; /* of a worker */

    struct psring *library; /* NULL: not connected */
    struct psring_handle *handle;
    struct psring_statistics counted; /* by earlier bench_counters */
};

/* Collective over the world. For vectors of at most `count_most` elements. Borrows world, backend
 * and what the options point to. From here on the world's collective calls time out as the comm
 * does. Errors: logged. */
enum status bench_connect(struct bench_connection *connection, struct world *world,
                          const struct backend *backend, const struct comm_options *options,
                          size_t count_most);
/* The library, too, with the same backend and transport. Collective over the world. */
enum status bench_connect_library(struct bench_connection *connection);
/* Ends both; the library waits for all ranks, unless an operation of it has failed. */
void bench_disconnect(struct bench_connection *connection);
/* After an error, which others may not have met: ends the comm and leaves the library as it is,
 * because it would wait for them, and they for this process to end. No operation is under way. */
void bench_abandon(struct bench_connection *connection);

/* The buckets that a vector is averaged in, all of them started before the first one is waited for,
 * on a thread of the comm's own: those of an exchange (experiments/train/gradient_sync.h),
 * borrowed. */
struct bench_buckets {
    const struct bucket *list; /* (number) */
    const size_t *counts;      /* (number): elements of each */
    const size_t *order;       /* (number), or NULL: as in a comm_layout */
    size_t number;
};

struct bench_plan {
    size_t count;                        /* float32 elements */
    const struct bench_buckets *buckets; /* NULL: one */
    int64_t iters;                       /* timed; 0: bench_auto_iters decides */
    int64_t warmup;                      /* operations before them */
    bool library; /* by libpsring; bench_connect_library has been called, vectors are the host's */
    /* Each operation goes on while the caller computes, which is a wait of `compute_us`. */
    bool overlap;
    double compute_us;
    double
        skew_ms; /* the most that a worker starts late, see struct bench_start; 0: all together */
};

/* One sum of `data`, as the plan says. Errors: logged. */
enum status bench_operation_start(struct bench_connection *connection,
                                  const struct bench_plan *plan, float *data);
enum status bench_operation_wait(struct bench_connection *connection,
                                 const struct bench_plan *plan);

/* What this rank has moved: since comm_plan, or by the library since the last call. */
enum status bench_counters(struct bench_connection *connection, const struct bench_plan *plan,
                           struct comm_counters *counters);

#endif
