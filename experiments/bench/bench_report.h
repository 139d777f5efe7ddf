/* What every rank tells all others about its operations of one size, and what follows from all. */
#ifndef PSRING_EXPERIMENTS_BENCH_REPORT_H
#define PSRING_EXPERIMENTS_BENCH_REPORT_H

#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/comm.h"
#include "common/net/world/world.h"
#include "experiments/bench/bench_measure.h"

struct bench_report {
    struct comm_counters counters;
    uint64_t wire_bytes;
    uint64_t wire_known;
    uint64_t wrong;
    int64_t iters; /* 0: a server, which does not know */
    double cpu_busy;
    double cpu_s;     /* a worker's: of its timed operations; a server's: of all, warm-up as well */
    double process_s; /* the same, with all else that the process does meanwhile */
    /* Of the rank that watches its machine's CPUs: seconds of all of them together in its loop, and
     * those that processes had. */
    double loop_total_s, loop_processes_s;
    int64_t loop_known;
    int64_t machine; /* see struct world */
};

/* Collective over the world: fills in what all ranks together say, on every rank. Bytes are per
 * operation, and STATUS_PROTOCOL where operations differ in them. Errors: logged. */
enum status bench_report_gather(struct bench_measurement *measurement, struct world *world,
                                int64_t warmup, const struct bench_report *mine);

#endif
