#include "experiments/bench/cost.h"

#include <math.h>
#include <string.h>

#include "common/base/check.h"
#include "common/base/chunk.h"
#include "ps/shard.h"

enum cost_algorithm cost_algorithm_of(const char *backend)
{
    if (strcmp(backend, "ring") == 0 || strcmp(backend, "nccl") == 0)
        return COST_RING;
    if (strcmp(backend, "rhd") == 0)
        return COST_HALVING;
    if (strcmp(backend, "ps") == 0)
        return COST_PS;
    return strcmp(backend, "none") == 0 ? COST_NOTHING : COST_LIBRARY;
}

bool cost_bytes_known(const struct cost_shape *shape)
{
    return shape->algorithm != COST_LIBRARY;
}

static uint64_t bytes_of(const struct cost_shape *shape, size_t count)
{
    CHECK(shape->element_bytes > 0);
    return (uint64_t)count * shape->element_bytes;
}

static uint64_t message_bytes(const struct cost_shape *shape)
{
    return bytes_of(shape, shape->count);
}

/* Bytes of part `index` of `parts` of the message; `index` is taken modulo `parts`. */
static uint64_t part_bytes(const struct cost_shape *shape, int parts, int index)
{
    struct chunk part = chunk_of(shape->count, (size_t)parts, (size_t)(index % parts));
    return bytes_of(shape, part.count);
}

/*
 * Reduce-scatter: chunk c starts at rank c and ends, complete, at rank c-1, so rank r sends every
 * chunk but the one that ends with it, r+1. All-gather: chunk r+1 sets out from rank r and ends at
 * rank r-1, so rank r sends every chunk but r+2. What it receives is what rank r-1 sends.
 */
static struct cost_traffic ring_traffic(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    if (workers == 1)
        return (struct cost_traffic){0};
    uint64_t both_phases = 2 * message_bytes(shape);
    uint64_t own = part_bytes(shape, workers, rank);
    uint64_t next = part_bytes(shape, workers, rank + 1);
    uint64_t second = part_bytes(shape, workers, rank + 2);
    return (struct cost_traffic){both_phases - next - second, both_phases - own - next};
}

/* Bytes of parts first .. first+size-1 of as many as there are workers. */
static uint64_t parts_bytes(const struct cost_shape *shape, int first, int size)
{
    uint64_t bytes = 0;
    for (int i = first; i < first + size; i++)
        bytes += part_bytes(shape, shape->topology.workers, i);
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
        bytes += (uint64_t)(parts - 1) * parts_bytes(shape, first, size);
    }
    return bytes;
}

/* One step for each prime factor, there and back. */
static double halving_steps(int workers)
{
    int steps = 0;
    for (int size = workers; size > 1; size /= least_factor(size))
        steps += 2;
    return steps;
}

/* While halving, a rank gives away every chunk but its own; while doubling, it gives back what it
 * was given and gets back what it gave. */
static struct cost_traffic halving_traffic(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    uint64_t given = parts_bytes(shape, 0, workers) - part_bytes(shape, workers, rank);
    uint64_t bytes = given + halving_received(shape, rank);
    return (struct cost_traffic){bytes, bytes};
}

/* The process that hosts worker and server alike; -1 if the server has one of its own. */
static int worker_beside(const struct topology *topology, int server)
{
    return server < topology->servers - topology_spare(topology) ? server : -1;
}

static uint64_t shard_bytes(const struct cost_shape *shape, int server)
{
    return bytes_of(shape, shard_of(&shape->topology, shape->count, server).count);
}

static struct cost_traffic ps_traffic(const struct cost_shape *shape, int node)
{
    const struct topology *topology = &shape->topology;
    uint64_t bytes;
    if (topology_role(topology, node) == NODE_SERVER) {
        int server = node - topology->workers;
        int remote_workers = topology->workers - (worker_beside(topology, server) >= 0);
        bytes = (uint64_t)remote_workers * shard_bytes(shape, server);
    } else {
        bool shares_process = node < topology->servers && worker_beside(topology, node) >= 0;
        bytes = message_bytes(shape);
        if (shares_process)
            bytes -= shard_bytes(shape, node);
    }
    return (struct cost_traffic){bytes, bytes};
}

struct cost_traffic cost_node_traffic(const struct cost_shape *shape, int node)
{
    CHECK(node >= 0 && node < topology_nodes(&shape->topology));
    switch (shape->algorithm) {
    case COST_RING:
        return ring_traffic(shape, node);
    case COST_HALVING:
        return halving_traffic(shape, node);
    case COST_PS:
        return ps_traffic(shape, node);
    case COST_NOTHING:
    case COST_LIBRARY:
        break;
    }
    return (struct cost_traffic){0};
}

static void keep_most(struct cost_traffic *most, struct cost_traffic traffic)
{
    if (traffic.sent_bytes > most->sent_bytes)
        most->sent_bytes = traffic.sent_bytes;
    if (traffic.received_bytes > most->received_bytes)
        most->received_bytes = traffic.received_bytes;
}

struct cost_traffic cost_role_traffic(const struct cost_shape *shape, enum node_role role)
{
    struct cost_traffic most = {0};
    for (int node = 0; node < topology_nodes(&shape->topology); node++) {
        if (topology_role(&shape->topology, node) == role)
            keep_most(&most, cost_node_traffic(shape, node));
    }
    return most;
}

struct cost_traffic cost_rank_traffic(const struct cost_shape *shape)
{
    const struct topology *topology = &shape->topology;
    struct cost_traffic most = {0};
    for (int rank = 0; rank < topology->workers + topology_spare(topology); rank++) {
        struct cost_traffic sum = {0};
        for (enum node_role role = NODE_WORKER; role <= NODE_SERVER; role++) {
            int node = topology_node(topology, rank, role);
            struct cost_traffic part = {0};
            if (node >= 0)
                part = cost_node_traffic(shape, node);
            sum.sent_bytes += part.sent_bytes;
            sum.received_bytes += part.received_bytes;
        }
        keep_most(&most, sum);
    }
    return most;
}

/* The bytes of the lower bound, in `steps` steps one after the other. */
static double optimal_time_s(double workers, double steps, double bytes,
                             const struct cost_link *link)
{
    double share = (workers - 1) / workers;
    return steps * link->latency_s + 2 * share * bytes / link->bytes_per_s +
           share * bytes * link->reduce_s_per_byte;
}

/* What the busiest host's link carries, in units of M: p and q of the header. Shares of the shards
 * in real numbers, so that the prediction is smooth in `count`. */
struct load {
    double pushing; /* the busier direction, while nothing is answered yet */
    double both;    /* each direction, pushes and answers together */
    double share;   /* the largest shard */
};

static struct load ps_load(const struct topology *topology)
{
    double n = topology->workers, servers = topology->servers, k = topology_spare(topology);
    double inside = servers - k, beside = inside > 0 ? 1 / servers : 0, spare = k > 0 ? 1 / k : 0;
    if (topology->placement == PLACEMENT_MIXED) {
        double all = n * n + k * n - 2 * k;
        beside = k < n ? (n - k) / all : 0;
        spare = k == 0 ? 0 : k < n ? 2 * (n - 1) / all : 1 / k;
    }
    /* A worker with a server beside it, one without, a spare server. */
    double one_pushes = inside > 0 ? fmax(1 - beside, (n - 1) * beside) : 0;
    double one_both = inside > 0 ? 1 - beside + (n - 1) * beside : 0;
    double alone = inside < n ? 1 : 0;
    return (struct load){.pushing = fmax(fmax(one_pushes, alone), n * spare),
                         .both = fmax(fmax(one_both, alone), n * spare),
                         .share = fmax(beside, spare)};
}

static double ps_time_s(const struct topology *topology, double bytes, const struct cost_link *link)
{
    struct load load = ps_load(topology);
    if (load.both == 0) /* one worker and its own server */
        return 0;
    double links = load.both + (2 * load.pushing - load.both) / link->pipeline_chunks;
    return 2 * link->latency_s + links * bytes / link->bytes_per_s +
           (topology->workers - 1) * load.share * bytes * link->reduce_s_per_byte;
}

double cost_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    double workers = shape->topology.workers, bytes = (double)message_bytes(shape);
    CHECK(link->pipeline_chunks >= 1 && link->bytes_per_s > 0);
    switch (shape->algorithm) {
    case COST_NOTHING:
        return 0;
    case COST_RING:
        return optimal_time_s(workers, 2 * (workers - 1), bytes, link);
    case COST_HALVING:
        return optimal_time_s(workers, halving_steps(shape->topology.workers), bytes, link);
    case COST_PS:
        return ps_time_s(&shape->topology, bytes, link);
    case COST_LIBRARY:
        break;
    }
    return (double)NAN;
}

double cost_bound_s(int workers, size_t count, double bytes_per_s)
{
    double bytes = (double)count * sizeof(float);
    return 2.0 * (workers - 1) / workers * bytes / bytes_per_s;
}
