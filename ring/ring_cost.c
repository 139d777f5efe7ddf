#include "ring/ring_cost.h"

#include "common/comm/elements/compress.h"
#include "ring/pair.h"
#include "ring/schedule.h"

/* Chunk c starts at rank c and ends, complete, at rank c-1: rank r sends every chunk but the one
 * that ends with it, r+1. What it receives is what rank r-1 sends. */
struct cost_traffic ring_cost_reduce_scatter(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    uint64_t all = cost_bytes(shape, shape->count);
    if (workers == 1)
        return (struct cost_traffic){0};
    return (struct cost_traffic){all - cost_part_bytes(shape, workers, rank + 1),
                                 all - cost_part_bytes(shape, workers, rank)};
}

/* Chunk r+1 sets out from rank r and ends at rank r-1: rank r sends every chunk but r+2. */
struct cost_traffic ring_cost_all_gather(const struct cost_shape *shape, int rank)
{
    return ring_cost_reduce_scatter(shape, rank + 1);
}

static struct cost_traffic ring_traffic(const struct cost_shape *shape, int rank)
{
    struct cost_traffic scatter = ring_cost_reduce_scatter(shape, rank);
    struct cost_traffic gather = ring_cost_all_gather(shape, rank);
    return (struct cost_traffic){scatter.sent_bytes + gather.sent_bytes,
                                 scatter.received_bytes + gather.received_bytes};
}

double ring_cost_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    return cost_optimal_time_s(shape, 2.0 * (shape->topology.workers - 1), link);
}

/* Ranks of one host share its link: as many as there send to another host, at the host with the
 * most. On one host alone there is none; then each rank counts as having one. */
static int ranks_a_link(const struct cost_shape *shape)
{
    int workers = shape->topology.workers, most = 1;
    for (int first = 0; shape->hosts && first < workers; first++) {
        int sharing = 0;
        for (int worker = 0; worker < workers; worker++)
            sharing += cost_same_host(shape, first, worker) &&
                       !cost_same_host(shape, worker, (worker + 1) % workers);
        most = sharing > most ? sharing : most;
    }
    return most;
}

/* K: with few pieces, two workers swap whole vectors in one step (pair.h). */
static size_t ring_pipeline(const struct topology *topology, size_t count,
                            const struct comm_options *options)
{
    struct schedule schedule;
    schedule_init(&schedule, topology->workers, 0, count,
                  compress_float_bytes(options->compress, options->segment_bytes), NULL);
    return schedule.pieces;
}

/* A segment each of 2(W-1) steps; the pieces where two workers go by pair.h. */
static struct cost_messages ring_messages(const struct topology *topology, size_t count,
                                          const struct comm_options *options)
{
    struct schedule schedule;
    schedule_init(&schedule, topology->workers, 0, count,
                  compress_float_bytes(options->compress, options->segment_bytes), NULL);
    bool pair = schedule.pieces > 0 && options->compress == COMPRESS_NONE;
    double each = (double)(pair ? schedule.pieces : schedule_items(&schedule));
    return (struct cost_messages){each, each * topology->workers};
}

static double ring_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    struct cost_link share = *link;
    share.bytes_per_s /= ranks_a_link(shape);
    double bytes = (double)cost_bytes(shape, shape->count);
    bool whole = shape->topology.workers == 2 && shape->pipeline <= PAIR_WHOLE &&
                 shape->element_bytes == sizeof(float);
    if (whole && shape->count > 0)
        return share.latency_s + bytes / share.bytes_per_s + bytes * share.reduce_s_per_byte;
    return ring_cost_time_s(shape, &share);
}

const struct cost_formula ring_cost = {
    .traffic = ring_traffic,
    .time_s = ring_time_s,
    .pipeline = ring_pipeline,
    .messages = ring_messages,
};
