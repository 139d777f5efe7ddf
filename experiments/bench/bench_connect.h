/*
 * What the benchmark measures: the all-reduce of a comm, and the same one as others have it, by
 * libpsring's header and nothing else. The latter's ranks meet by themselves and have connections
 * of their own; barriers and the exchange of results go through the comm and the world for both.
 */
#ifndef PSRING_EXPERIMENTS_BENCH_CONNECT_H
#define PSRING_EXPERIMENTS_BENCH_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/bucket.h"
#include "common/net/world/world.h"
#include "common/psring.h"
#include "experiments/bench/bench_start.h"

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
 * on a thread of the comm's own: those of an exchange (experiments/step/exchange.h), borrowed. */
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
    double skew_ms; /* the most that a worker starts late, see bench_start.h; 0: all together */
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
