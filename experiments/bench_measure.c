#include "experiments/bench_measure.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "experiments/bench_data.h"
#include "experiments/wire.h"

/* What every rank tells all others at the end. */
struct report {
    struct comm_counters counters;
    uint64_t wire_bytes;
    uint64_t wire_known;
    uint64_t wrong;
};

/* Zeroed; never NULL for a count of 0. Logs where memory is short. */
static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        log_error("bench: no memory for %zu elements of %zu bytes; choose a smaller last size, -e",
                  count, size);
    return memory;
}

static enum status allocated(const void *memory)
{
    return memory ? STATUS_OK : STATUS_NO_MEMORY;
}

/* One operation: `round` numbers it from 0, warm-up included. */
static enum status run_round(struct comm *comm, float *data, size_t count, uint64_t round,
                             double *time_us, uint64_t *wrong)
{
    enum status status;
    bench_fill(data, count, comm_rank(comm), round);
    TRY(comm_barrier(comm));
    int64_t start_ns = clock_now_ns();
    TRY(comm_start(comm, 0, data));
    TRY(comm_wait(comm, 0));
    *time_us = (double)(clock_now_ns() - start_ns) / (double)NS_PER_US;
    *wrong += bench_count_wrong(data, count, comm_workers(comm), round);
out:
    return status;
}

static enum status run_worker(struct comm *comm, const struct bench_plan *plan, float *data,
                              double *times_us, uint64_t *wrong)
{
    enum status status = STATUS_OK;
    for (int64_t i = -plan->warmup; i < plan->iters; i++) {
        double untimed;
        uint64_t round = (uint64_t)(i + plan->warmup);
        TRY(run_round(comm, data, plan->count, round, i < 0 ? &untimed : &times_us[i], wrong));
    }
    TRY(comm_finish(comm));
out:
    return status;
}

/* The bytes that the interface sends from before the first operation to after the last. */
static enum status run_role(struct comm *comm, struct world *world, const struct bench_plan *plan,
                            float *data, double *times_us, struct report *report)
{
    enum status status;
    struct wire wire;
    uint64_t before = 0, after = 0;
    TRY(wire_open(&wire, plan->options.subnet, world->local_size == world->size));
    TRY(world_barrier(world, NULL));
    bool known = wire_sent_bytes(&wire, &before);
    if (comm_is_server(comm))
        TRY(comm_serve(comm));
    else
        TRY(run_worker(comm, plan, data, times_us, &report->wrong));
    TRY(world_barrier(world, NULL));
    report->wire_known = known && wire_sent_bytes(&wire, &after);
    report->wire_bytes = after - before;
    comm_counters(comm, &report->counters);
out:
    return status;
}

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

static void keep_most(struct cost_traffic *most, const struct cost_traffic *traffic)
{
    most->sent_bytes = larger(most->sent_bytes, traffic->sent_bytes);
    most->received_bytes = larger(most->received_bytes, traffic->received_bytes);
}

static enum status collect(struct bench_measurement *measurement, struct world *world,
                           uint64_t operations, const struct report *mine)
{
    enum status status;
    struct report *all = NULL;
    size_t size = (size_t)world->size;
    TRY(allocated(all = allocate(size, sizeof *all)));
    TRY(allocated(measurement->ranks = allocate(size, sizeof *measurement->ranks)));
    TRY(world_gather(world, NULL, mine, sizeof *mine, all));
    measurement->wire_known = true;
    for (int rank = 0; rank < world->size; rank++) {
        struct bench_rank_traffic *traffic = &measurement->ranks[rank];
        const struct comm_counters *counters = &all[rank].counters;
        TRY(per_operation(world, rank, "worker", &counters->worker, operations, &traffic->worker));
        TRY(per_operation(world, rank, "server", &counters->server, operations, &traffic->server));
        keep_most(&measurement->worker_most, &traffic->worker);
        keep_most(&measurement->server_most, &traffic->server);
        measurement->wrong += all[rank].wrong;
        measurement->wire_known = measurement->wire_known && all[rank].wire_known;
        measurement->wire_sent_bytes_max =
            larger(measurement->wire_sent_bytes_max, all[rank].wire_bytes / operations);
    }
out:
    free(all);
    return status;
}

enum status bench_measure(struct bench_measurement *measurement, struct world *world,
                          const struct bench_plan *plan)
{
    enum status status;
    struct comm *comm = NULL;
    struct comm_options options = plan->options;
    struct report report = {0};
    float *data = NULL;
    *measurement = (struct bench_measurement){0};
    CHECK(plan->iters >= 1 && plan->warmup >= 0);
    options.scale = 1; /* the sum itself: exact */
    options.bucket_counts = &plan->count;
    options.buckets = 1;
    TRY(topology_init(&measurement->topology, world->size,
                      plan->backend->uses_servers ? options.servers : 0, options.placement));
    TRY(allocated(data = allocate(plan->count, sizeof *data)));
    TRY(allocated(measurement->times_us = allocate((size_t)plan->iters, sizeof(double))));
    TRY(comm_open(&comm, world, plan->backend, &options));
    TRY(run_role(comm, world, plan, data, measurement->times_us, &report));
    if (!comm_is_server(comm))
        TRY(world_max(world, comm_group(comm), measurement->times_us, (size_t)plan->iters));
    TRY(collect(measurement, world, (uint64_t)(plan->iters + plan->warmup), &report));
out:
    comm_close(&comm);
    free(data);
    if (status != STATUS_OK)
        bench_measurement_free(measurement);
    return status;
}

void bench_measurement_free(struct bench_measurement *measurement)
{
    free(measurement->times_us);
    free(measurement->ranks);
    *measurement = (struct bench_measurement){0};
}
