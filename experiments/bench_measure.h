/* One size of the benchmark: times all-reduces, checks their results and collects their bytes. */
#ifndef PSRING_EXPERIMENTS_BENCH_MEASURE_H
#define PSRING_EXPERIMENTS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/comm.h"
#include "common/net/topology.h"
#include "common/net/world.h"
#include "experiments/cost.h"

struct bench_plan {
    const struct backend *backend;
    struct comm_options options; /* scale and buckets are filled in here */
    size_t count;                /* float32 elements */
    int64_t iters, warmup;       /* iters >= 1 */
};

/* What one rank moved per operation: payload, counted by its transport. */
struct bench_rank_traffic {
    struct cost_traffic worker, server; /* zeros where the rank hosts none */
};

struct bench_measurement {
    struct topology topology;
    double *times_us;                 /* (iters): the slowest worker's, in order of iteration */
    struct bench_rank_traffic *ranks; /* (world size) */
    struct cost_traffic worker_most;  /* maxima over the ranks, sent and received apart */
    struct cost_traffic server_most;
    bool wire_known;              /* see wire_open */
    uint64_t wire_sent_bytes_max; /* per operation and host: all that the kernel sent, between the
                                     first warm-up operation and the end, barriers included */
    uint64_t wrong;               /* elements, over all operations and workers */
};

/*
 * Collective over the world: opens a comm with one bucket, runs warmup + iters operations, gathers.
 * `measurement` is whole on every worker; servers have no times. The caller frees it. An operation
 * is timed between a barrier and the return of comm_wait; filling and checking lie outside. Errors:
 * logged; STATUS_USAGE is met by all ranks alike, after any other one this rank's peers still wait
 * for it (world_abort).
 */
enum status bench_measure(struct bench_measurement *measurement, struct world *world,
                          const struct bench_plan *plan);

void bench_measurement_free(struct bench_measurement *measurement);

#endif
