#include "ring/halving/halving_cost.h"

#include "common/comm/elements/compress.h"
#include "ring/halving/doubling.h"
#include "ring/halving/halving_schedule.h"

/* Bytes of chunks first .. first+size-1. */
static uint64_t chunks_bytes(const struct cost_shape *shape, int first, int size)
{
    uint64_t bytes = 0;
    for (int i = first; i < first + size; i++)
        bytes += cost_part_bytes(shape, shape->topology.workers, i);
    return bytes;
}

static int least_factor(int n)
{
    for (int p = 2; p * p <= n; p++) {
        if (n % p == 0)
            return p;
    }
    return n;
}

/*
 * What a rank is given while its group of `size` is cut into 2 parts, or as many as divide it,
 * again and again, until it is alone: the chunks of its new group, by one rank of every other part.
 */
static uint64_t halving_received(const struct cost_shape *shape, int rank)
{
    uint64_t bytes = 0;
    int first = 0, size = shape->topology.workers;
    while (size > 1) {
        int parts = least_factor(size);
        size /= parts;
        first += (rank - first) / size * size;
        bytes += (uint64_t)(parts - 1) * chunks_bytes(shape, first, size);
    }
    return bytes;
}

/* K: a short vector in one slice is not halved (doubling.h). */
static size_t halving_pipeline(const struct topology *topology, size_t count,
                               const struct comm_options *options)
{
    return halving_slices(topology->workers, count,
                          compress_float_bytes(options->compress, options->segment_bytes));
}

static bool is_whole(const struct cost_shape *shape)
{
    return shape->element_bytes == sizeof(float) && shape->count > 0 &&
           doubling_is_short(shape->topology.workers, shape->pipeline,
                             cost_bytes(shape, shape->count));
}

/* While halving, a rank gives away every chunk but its own; while doubling, it gives back what it
 * was given and gets back what it gave. */
static struct cost_traffic halving_traffic(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    if (is_whole(shape)) {
        uint64_t all = (uint64_t)doubling_steps(workers) * cost_bytes(shape, shape->count);
        return (struct cost_traffic){all, all};
    }
    uint64_t given = cost_bytes(shape, shape->count) - cost_part_bytes(shape, workers, rank);
    uint64_t bytes = given + halving_received(shape, rank);
    return (struct cost_traffic){bytes, bytes};
}

/* With how many ranks on other hosts a rank exchanges in this step: one of every other part. */
static int partners_apart(const struct cost_shape *shape, int rank, int size, int parts)
{
    int part = size / parts, place = rank % size, apart = 0;
    for (int other = place % part; other < size; other += part)
        apart += !cost_same_host(shape, rank, rank - place + other);
    return apart;
}

/* What a rank sends to other hosts, of M; both ways there and back. */
static double share_apart(const struct cost_shape *shape, int rank)
{
    double share = 0;
    int workers = shape->topology.workers;
    for (int size = workers; size > 1;) {
        int parts = least_factor(size);
        share += 2.0 * partners_apart(shape, rank, size, parts) * (size / parts) / workers;
        size /= parts;
    }
    return share;
}

/* What the busiest host's link carries each way, of M. */
static double busiest_link(const struct cost_shape *shape)
{
    struct cost_shape links = cost_with_links(shape);
    double most = 0;
    if (!links.hosts) /* each worker has a link, and all carry as much */
        return share_apart(&links, 0);
    for (int first = 0; first < shape->topology.workers; first++) {
        double share = 0;
        for (int rank = 0; rank < shape->topology.workers; rank++)
            share += cost_same_host(&links, first, rank) ? share_apart(&links, rank) : 0;
        most = share > most ? share : most;
    }
    return most;
}

/* Every step moves, and adds, all. */
static double doubling_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    double bytes = (double)cost_bytes(shape, shape->count);
    return doubling_steps(shape->topology.workers) *
           (link->latency_s + bytes / link->bytes_per_s + bytes * link->reduce_s_per_byte);
}

/* One step for each prime factor, there and back. */
static double halving_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    if (is_whole(shape))
        return doubling_time_s(shape, link);
    int steps = 0;
    double workers = shape->topology.workers, bytes = (double)cost_bytes(shape, shape->count);
    for (int size = shape->topology.workers; size > 1; size /= least_factor(size))
        steps += 2;
    return steps * link->latency_s + busiest_link(shape) * bytes / link->bytes_per_s +
           (workers - 1) / workers * bytes * link->reduce_s_per_byte;
}

/* A slice, to one worker of every other part, at each step there and back. */
static struct cost_messages halving_messages(const struct topology *topology, size_t count,
                                             const struct comm_options *options)
{
    size_t slices = halving_pipeline(topology, count, options);
    const struct cost_shape shape = {.topology = *topology,
                                     .count = count,
                                     .element_bytes = compress_element_bytes(options->compress),
                                     .pipeline = slices};
    double each = 0;
    for (int size = topology->workers; size > 1; size /= least_factor(size))
        each += 2.0 * (least_factor(size) - 1) * (double)slices;
    if (is_whole(&shape))
        each = doubling_steps(topology->workers);
    return (struct cost_messages){each, each * topology->workers};
}

const struct cost_formula halving_cost = {
    .traffic = halving_traffic,
    .time_s = halving_time_s,
    .pipeline = halving_pipeline,
    .messages = halving_messages,
};
