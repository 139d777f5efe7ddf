/* One size of the benchmark: times all-reduces, checks their results and collects their bytes. */
#ifndef PSRING_EXPERIMENTS_BENCH_MEASURE_H
#define PSRING_EXPERIMENTS_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/net/world/topology.h"
#include "common/net/world/world.h"
#include "experiments/bench/bench_connect.h"

/* What one rank moved per operation: payload, counted by its transport. */
struct bench_rank_traffic {
    struct cost_traffic worker, server; /* zeros where the rank hosts none */
};

struct bench_measurement {
    int64_t iters;    /* how many were timed */
    double *times_us; /* (iters): the slowest worker's, in order of iteration; with overlap, what
                         the operation adds to compute_us: exposed communication */
    double rest_us;   /* median: from an operation's end to the next one's beginning, of the worker
                         with the shortest; how long all links rested. 0: not known */
    struct bench_rank_traffic *ranks; /* (world size) */
    struct cost_traffic worker_most;  /* maxima over the ranks, sent and received apart */
    struct cost_traffic server_most;
    struct cost_traffic rank_most; /* a rank's worker and server together */
    bool wire_known;               /* see wire_open */
    uint64_t wire_sent_bytes_max;  /* per operation and host: all that the kernel sent, between the
                                      first warm-up operation and the end, barriers included */
    uint64_t wrong;                /* elements, over all operations and workers */
    char algorithm[COMM_ALGORITHM_BYTES]; /* see comm_algorithm; on rank 0 */
    double cpu_busy;  /* share of a machine's CPUs, see cpu_share.h, the most of any;
                         -1: not known */
    double cpu_other; /* share of the same machine's CPUs that processes other than the ranks had
                         from the first timed operation to the last; -1: not known */
    double cpu_s;     /* processor seconds of all ranks, over the timed operations; see cpu_time.h.
                         A server's are its mean over all operations, warm-up as well, times iters */
};

/*
 * How many operations to time if the first BENCH_ITERS_LEAST took `time_us` each: 20, or as many
 * more as take 0.1 s, but no more than take 2 s. The result is 6 to 1000. Fewer values have no 95%
 * interval.
 */
int64_t bench_auto_iters(double time_us);
enum { BENCH_ITERS_LEAST = 6, BENCH_ITERS_MOST = 1000 };

/*
 * Collective over the world: plans the bucket, or buckets, runs warmup + iters operations, gathers.
 * All workers run the same number, also where it follows from the first times.
 * `measurement` is whole on every worker; servers have no times (zeros). The caller frees it. An
 * operation is timed from an instant at which all workers begin (bench_start.h) to the return of
 * comm_wait, and of device_sync where a device has the vector; filling and checking lie outside.
 * With a skew, workers begin late by parts of it, and the last of them is the beginning.
 * With overlap the wait lies between comm_start and comm_wait, from the return of the former, so
 * that a comm that cannot overlap hides nothing. Errors: logged; STATUS_USAGE is met by all ranks
 * alike, after any other one this rank's peers still wait for it (world_abort). After
 * any error the connection is closed: nothing of it uses the vector any more.
 */
enum status bench_measure(struct bench_measurement *measurement,
                          struct bench_connection *connection, const struct bench_plan *plan);

void bench_measurement_free(struct bench_measurement *measurement);

#endif
