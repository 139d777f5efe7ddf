#include "experiments/bench/bench_describe.h"

#include <math.h>
#include <stdlib.h>

#include "ring/vendor/library.h"

/* Of every bucket of the plan. */
static struct cost_shape *shapes_of(const struct bench_connection *connection,
                                    const struct bench_plan *plan, size_t count)
{
    struct comm *comm = connection->comm;
    struct cost_shape *shapes = calloc(count, sizeof *shapes);
    for (size_t s = 0; shapes && s < count; s++)
        shapes[s] = cost_shape_of(connection->backend->cost, comm_topology(comm), comm_hosts(comm),
                                  plan->buckets ? plan->buckets->counts[s] : plan->count,
                                  &connection->options);
    return shapes;
}

/* The model's time on this link from bytes alone: latency and reduction cost nothing. */
static double theory_time_us(const struct cost_formula *formula, const struct cost_shape *shapes,
                             size_t shape_count, double link_bytes_per_s)
{
    const struct cost_link link = {.bytes_per_s = link_bytes_per_s};
    double time_s = 0;
    if (link_bytes_per_s <= 0)
        return (double)NAN;
    for (size_t s = 0; s < shape_count; s++)
        time_s += cost_time_s(formula, &shapes[s], &link);
    return time_s * 1e6;
}

enum status bench_describe(struct bench_row *row, const struct config *config,
                           const struct bench_link *link, const struct bench_connection *connection,
                           const struct bench_plan *plan, struct bench_measurement *measured)
{
    const struct backend *backend = connection->backend;
    const struct comm_options *options = &connection->options;
    const struct cost_formula *formula = backend->cost;
    size_t shape_count = plan->buckets ? plan->buckets->number : 1;
    struct cost_shape *shapes = shapes_of(connection, plan, shape_count);
    if (!shapes) {
        log_error("bench: no memory for the shapes of %zu buckets", shape_count);
        return STATUS_NO_MEMORY;
    }
    double link_bytes_per_s = link->probed > 0 ? link->probed : link->nominal;
    *row = (struct bench_row){
        .backend = backend->name,
        .transport = config_transport_name(config, backend),
        .device = config_device_name(config),
        .network = config->network,
        .placement = config_placement_name(config),
        .compress = compress_names[options->compress],
        .error_feedback = config_error_feedback_name(config),
        .element_bytes = shapes->element_bytes,
        .workers = shapes->topology.workers,
        .servers = (int)config->servers,
        .hosts = cost_hosts(shapes),
        .neighbours_apart = cost_neighbours_apart(shapes),
        .bytes = plan->count * sizeof(float),
        .iters = (uint64_t)measured->iters,
        .warmup = (uint64_t)plan->warmup,
        .link_bytes_per_s = link_bytes_per_s,
        .nominal_link_bytes_per_s = link->nominal,
        .link_source = link->probed > 0    ? "probe"
                       : link->nominal > 0 ? "nominal"
                                           : NULL,
        .cpu_busy = measured->cpu_busy,
        .cpu_other = measured->cpu_other,
        .rest_us_median = measured->rest_us,
        .skew_ms = plan->skew_ms,
        .cpu_s = measured->cpu_s,
        .bytes_known = backend->counts_bytes && cost_bytes_known(formula),
        .worker = measured->worker_most,
        .server = measured->server_most,
        .rank = measured->rank_most,
        .theory_worker = cost_role_traffic(formula, shapes, shape_count, NODE_WORKER),
        .theory_server = cost_role_traffic(formula, shapes, shape_count, NODE_SERVER),
        .theory_rank = cost_rank_traffic(formula, shapes, shape_count),
        .wire_known = measured->wire_known,
        .wire_sent_bytes_max = measured->wire_sent_bytes_max,
        .wrong = measured->wrong,
        .nccl_algorithm = measured->algorithm[0] ? measured->algorithm : NULL,
        .mpi_algorithm = backend->takes_mpi_algorithm ? library_algorithm_used() : NULL,
        .limits = link->machine,
        .library = plan->library,
        .theory_time_us = theory_time_us(formula, shapes, shape_count, link_bytes_per_s),
    };
    size_t times = (size_t)measured->iters;
    stats_summarise(measured->times_us, times, &row->time_us);
    row->exposed_us_median = row->time_us.median;
    stats_median_interval(measured->times_us, times, &row->time_us_median_low,
                          &row->time_us_median_high);
    free(shapes);
    return STATUS_OK;
}
