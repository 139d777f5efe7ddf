/*
 * The start of a timed operation. Workers leave a barrier at different times, each at its next
 * poll. If ranks outnumber cores, polls sleep and the difference is up to 0.3 ms. That is a tenth
 * of the time of 64 KB on a link of 200 Mbit/s, and the slowest worker's time would include it.
 *
 * In that case the workers agree on an instant in the near future and begin then. All ranks of one
 * kernel read the same clock. The distance of the instant follows from earlier delays. A worker
 * without a free core still begins late, by tens of microseconds, or more on a shared machine.
 * Therefore an operation lasts from the start of the last worker to the end of the slowest.
 *
 * Ranks that each have a core poll without a pause. They leave a barrier within little more than
 * the time of a message. They begin when they leave it, and each worker's time counts from there.
 * Sleeping until an instant would cost more than it saves: a core that has slept begins slowly (two
 * ranks on loopback, 256 KB: 2.3 times the time). Ranks on several machines begin in the same way,
 * because they have no common clock.
 *
 * In programs, ranks rarely come to an operation at the same time. With a skew of S, rank r starts
 * operation i late by a random time, uniform from 0 to S. It depends on r and i alone. An
 * operation then lasts from the last start to the end of the slowest worker. Workers without a
 * common clock count from the moment at which each of them leaves the barrier. Source: Faraj,
 * Patarasuk, Yuan 2008, "A study of process arrival patterns for MPI collective operations". They
 * measure such patterns and show that the patterns decide which algorithm is fast.
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
    struct world *world;       /* borrowed */
    const struct group *group; /* the workers; borrowed */
    bool common_clock;         /* start at an instant; else after a barrier */
    int64_t ahead_ns;          /* distance of the next instant */
    int64_t late_ns;           /* delay of this worker at the last one; 0: in time */
};

/* Collective over the group. Decides whether workers start at an instant. Two conditions: ranks
 * outnumber cores, and all ranks of the world read one clock. One clock means: one kernel, and no
 * clock shows a time before a moment that has already passed on another one. */
enum status bench_start_init(struct bench_start *start, struct world *world,
                             const struct group *group);

/* Collective over the group. Agrees on an instant and returns shortly before it, which leaves the
 * caller about 50 us. Without a common clock it returns after a barrier. */
enum status bench_start_agree(struct bench_start *start, int64_t *instant_ns);

/* Waits until the instant, and returns the time. Returns at once if the instant has passed or the
 * workers agreed on none. */
int64_t bench_start_wait(struct bench_start *start, int64_t instant_ns);

/* How late worker `rank` starts operation `round`: 0 to most_ms. */
int64_t bench_start_skew_ns(double most_ms, size_t rank, uint64_t round);

/* Sleeps until `delay_ns` after `from_ns`, where bench_start_wait returned. */
void bench_start_delay(int64_t from_ns, int64_t delay_ns);

/*
 * The benchmark measures the all-reduce of a comm, and the same one through the public header of
 * libpsring. The ranks of libpsring meet separately and have separate connections. Barriers and the
 * exchange of results use the comm and the world in both cases.
 */

/* The connections of a whole sweep. */
struct bench_connection {
    struct world *world;
    const struct backend *backend;
    struct comm_options options; /* as given; its device holds the vectors (NULL: host memory) */
    struct comm *comm;
    struct bench_start start; /* of a worker */

    struct psring *library; /* NULL: not connected */
    struct psring_handle *handle;
    struct psring_statistics counted; /* totals at the last bench_counters */
};

/* Collective over the world. Vectors may have at most `count_most` elements. Borrows world, backend
 * and everything that the options point to. Afterwards the world's collective calls have the
 * comm's time-out. Errors: logged. */
enum status bench_connect(struct bench_connection *connection, struct world *world,
                          const struct backend *backend, const struct comm_options *options,
                          size_t count_most);
/* Collective over the world. Connects the library, with the same backend and transport. */
enum status bench_connect_library(struct bench_connection *connection, const char *secure);
/* Closes both. The library waits for all ranks, unless one of its operations has failed. It may
 * report an error that it has noticed only now. */
enum status bench_disconnect(struct bench_connection *connection);
/* Closes the comm after an error that other ranks may not have. Leaves the library open: it would
 * wait for those ranks, and they wait for this process to end. No operation is under way. */
void bench_abandon(struct bench_connection *connection);

/* The buckets of one vector, borrowed from an exchange (experiments/train/gradient_sync.h). The
 * caller starts all of them before it waits for the first; the comm's thread averages them. */
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
    /* Operations of a series, back to back (measure.h); `iters` then counts series. 0 or 1: each
     * operation begins after a barrier. Not with buckets, overlap or skew. */
    int64_t series;
    bool library; /* use libpsring; requires bench_connect_library and vectors in host memory */
    /* The caller computes (waits for `compute_us`) during each operation. */
    bool overlap;
    double compute_us;
    double skew_ms; /* largest delay of a worker's start, see the head of this file; 0: no skew */
};

/* One all-reduce of `data`, as the plan says. Errors: logged. */
enum status bench_operation_start(struct bench_connection *connection,
                                  const struct bench_plan *plan, float *data);
enum status bench_operation_wait(struct bench_connection *connection,
                                 const struct bench_plan *plan);

/* The traffic of this rank: since comm_plan, or for the library since the last call. */
enum status bench_counters(struct bench_connection *connection, const struct bench_plan *plan,
                           struct comm_counters *counters);

#endif
