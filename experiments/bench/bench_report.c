#include "experiments/bench/bench_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* Bytes per operation; every operation moves the same, or the count would say nothing about one. */
static enum status per_operation(const struct world *world, int rank, const char *role,
                                 const struct transport_counters *counters, uint64_t operations,
                                 struct cost_traffic *traffic)
{
    if (counters->sent_bytes % operations || counters->received_bytes % operations) {
        if (world->rank == 0)
            log_error("bench: rank %d's %s sent %" PRIu64 " and received %" PRIu64
                      " payload bytes in %" PRIu64 " operations; expected the same in each",
                      rank, role, counters->sent_bytes, counters->received_bytes, operations);
        return STATUS_PROTOCOL;
    }
    *traffic = (struct cost_traffic){counters->sent_bytes / operations,
                                     counters->received_bytes / operations};
    return STATUS_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A server cannot tell which operations are timed: of its time, their share. */
static double timed_share(const struct bench_report *report, int64_t iters, uint64_t operations)
{
    bool server = report->iters == 0;
    return server ? (double)iters / (double)operations : 1;
}

/* Of the CPUs that rank `watch` watched, what was no rank's; -1: not known. */
static double other_share(const struct bench_report *all, int size, int watch, uint64_t operations)
{
    const struct bench_report *seen = &all[watch];
    double others_s = seen->loop_processes_s;
    if (!seen->loop_known)
        return -1;
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].machine == seen->machine)
            others_s -= all[rank].process_s * timed_share(&all[rank], all[0].iters, operations);
    }
    return fmin(fmax(others_s / seen->loop_total_s, 0), 1);
}

enum status bench_report_gather(struct bench_measurement *measurement, struct world *world,
                                int64_t warmup, const struct bench_report *mine)
{
    enum status status;
    struct bench_report *all = NULL;
    size_t size = (size_t)world->size;
    all = calloc(size, sizeof *all);
    measurement->ranks = calloc(size, sizeof *measurement->ranks);
    if (!all || !measurement->ranks) {
        log_error("bench: no memory for the reports of %d ranks", world->size);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    TRY(world_gather(world, NULL, mine, sizeof *mine, all));
    measurement->iters = all[0].iters; /* rank 0 is always a worker */
    measurement->cpu_busy = measurement->cpu_other = -1;
    measurement->wire_known = true;
    uint64_t operations = (uint64_t)(measurement->iters + warmup);
    for (int rank = 0; rank < world->size; rank++) {
        struct bench_rank_traffic *traffic = &measurement->ranks[rank];
        const struct comm_counters *counters = &all[rank].counters;
        TRY(per_operation(world, rank, "worker", &counters->worker, operations, &traffic->worker));
        TRY(per_operation(world, rank, "server", &counters->server, operations, &traffic->server));
        cost_keep_most(&measurement->worker_most, traffic->worker);
        cost_keep_most(&measurement->server_most, traffic->server);
        cost_keep_most(
            &measurement->rank_most,
            (struct cost_traffic){traffic->worker.sent_bytes + traffic->server.sent_bytes,
                                  traffic->worker.received_bytes + traffic->server.received_bytes});
        measurement->wrong += all[rank].wrong;
        measurement->cpu_s +=
            all[rank].cpu_s * timed_share(&all[rank], measurement->iters, operations);
        if (all[rank].cpu_busy > measurement->cpu_busy) {
            measurement->cpu_busy = all[rank].cpu_busy;
            measurement->cpu_other = other_share(all, world->size, rank, operations);
        }
        measurement->wire_known = measurement->wire_known && all[rank].wire_known;
        measurement->wire_sent_bytes_max =
            larger(measurement->wire_sent_bytes_max, all[rank].wire_bytes / operations);
    }
out:
    free(all);
    return status;
}
