#include "tests/lib/allreduce_lib.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "ring/halving_schedule.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "tests/lib/send_memory.h"
#include "tests/lib/spawn.h"

struct allreduce_setup allreduce_setup(const struct shape *shape, const size_t *counts,
                                       size_t buckets, float scale)
{
    struct allreduce_setup setup = {
        .options = {.transport = shape->transport,
                    .servers = shape->servers,
                    .placement = shape->placement,
                    .segment_bytes = shape->segment_bytes,
                    .radix = shape->radix,
                    .compress = shape->compress,
                    .error_feedback = shape->feedback,
                    .timeout_ms = 20000},
        .layout = {.counts = counts, .buckets = buckets, .scale = scale}};
    for (size_t b = 0; b < buckets; b++) {
        if (counts[b] > setup.options.bucket_counts_max)
            setup.options.bucket_counts_max = counts[b];
    }
    return setup;
}

void allreduce_play_hosts(struct world *world, const struct shape *shape)
{
    int hosts = world->size / shape->locals;
    for (int rank = 0; rank < world->size; rank++)
        world->host_numbers[rank] =
            shape->dealt_out ? rank % hosts : rank / shape->locals * shape->locals;
}

void allreduce_open(struct comm **comm, struct world *world, const struct shape *shape,
                    const struct allreduce_setup *setup)
{
    rank_assert_ok(comm_open(comm, world, shape->backend, &setup->options));
    send_memory_watch(*comm);
    rank_assert_ok(comm_plan(*comm, &setup->layout));
}

/* -------- data -------------------------------------------------------------------------------- */

/* Repeats after 251 elements, a prime, so that a misplaced chunk shows. */
float allreduce_element(int worker, size_t i, int operation)
{
    size_t at = (i * 7 + (size_t)worker * 13 + (size_t)operation * 5 + 1) % 251;
    return (float)(at % 61) - 30;
}

static float rough(int worker, size_t i)
{
    return 1.0f / (float)(1 + (i * 31 + (size_t)worker * 17) % 1009);
}

void allreduce_fill_rough(float *data, int worker, size_t count)
{
    for (size_t i = 0; i < count; i++)
        data[i] = rough(worker, i);
}

double allreduce_rough_sum(int workers, size_t i)
{
    double sum = 0;
    for (int w = 0; w < workers; w++)
        sum += (double)rough(w, i);
    return sum;
}

void allreduce_average(struct comm *comm, size_t bucket, float *data)
{
    rank_assert_ok(comm_start(comm, bucket, data));
    rank_assert_ok(comm_wait(comm, bucket));
}

void allreduce_check_exact(struct comm *comm, size_t bucket, float *data, size_t count, float scale,
                           int operation)
{
    int workers = comm_workers(comm), rank = comm_rank(comm);
    for (size_t i = 0; i < count; i++)
        data[i] = allreduce_element(rank, i, operation);
    allreduce_average(comm, bucket, data);
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int w = 0; w < workers; w++)
            sum += allreduce_element(w, i, operation);
        rank_assert_eq(data[i], sum * scale, "worker %d element %zu of %zu: %g, expected %g", rank,
                       i, count, (double)data[i], (double)(sum * scale));
    }
}

void allreduce_check_same(struct comm *comm, const float *data, size_t count)
{
    float *first = calloc(count + 1, sizeof *first);
    memcpy(first, data, count * sizeof *first);
    rank_assert_ok(comm_broadcast(comm, first, count)); /* the data of worker 0 */
    rank_assert_same(data, first, count * sizeof *first);
    free(first);
}

/* -------- bytes ------------------------------------------------------------------------------- */

/* All chunks except one, twice. Reduce-scatter omits chunk rank+1 (sent) or rank (received),
 * all-gather omits rank+2 or rank+1. */
static size_t ring_elements(int workers, int rank, size_t count, bool sent)
{
    size_t n = (size_t)workers, first = (size_t)rank + sent;
    if (workers == 1)
        return 0;
    return 2 * count - chunk_of(count, n, first % n).count -
           chunk_of(count, n, (first + 1) % n).count;
}

/* The parts of a cut: of the numbers that divide n, the last one up to the radix, or the first. */
static size_t parts_of(size_t n, int radix)
{
    size_t parts = 0;
    for (size_t p = 2; p <= n && (parts == 0 || p <= (size_t)radix); p++)
        parts = n % p == 0 ? p : parts;
    return parts;
}

/* Halving-doubling: the workers are dealt out to 2 parts (or 3, 5, ...), and each part again. Each
 * part has a run of chunks. In reduce-scatter a worker sends every chunk except its own, and at
 * each cut receives the chunks of its part from every other part. All-gather does the reverse. */
static size_t halving_elements(int workers, int radix, int rank, size_t count)
{
    size_t n = (size_t)workers, place = (size_t)rank, first = 0, size = n, elements = count;
    while (size > 1) {
        size_t parts = parts_of(size, radix);
        size /= parts;
        first += place % parts * size;
        place /= parts;
        for (size_t c = first; c < first + size; c++)
            elements += (parts - 1) * chunk_of(count, n, c).count;
    }
    return elements - chunk_of(count, n, first).count;
}

/* The neighbours of a place in the tree of places first .. end-1. Every second place is an inner
 * node, and the middle one of these is the top of the tree. */
static size_t tree_neighbours(int place, int first, int end, bool has_parent)
{
    int top = end - first == 1 ? first : first + (end - first) / 2 / 2 * 2 + 1;
    if (place < top)
        return tree_neighbours(place, first, top, true);
    if (place > top)
        return tree_neighbours(place, top + 1, end, true);
    return (size_t)(has_parent + (first < top) + (top + 1 < end));
}

/* Half 0 over tree 0, and half 1 over tree 1, in which places are in reverse or one further. Each
 * neighbour gets the half once and sends it once. */
static size_t tree_elements(int workers, int rank, size_t count)
{
    int other = workers % 2 ? (rank + workers - 1) % workers : workers - 1 - rank;
    return (count + 1) / 2 * tree_neighbours(rank, 0, workers, false) +
           count / 2 * tree_neighbours(other, 0, workers, false);
}

/* A worker's part of a hierarchical all-reduce: the chunks of its local rank, one for each host.
 * They go round the hosts as in a ring. Chunks that must end at their starting host make one more
 * hop before they are complete. */
static size_t hierarchical_elements(const struct shape *shape, int workers, int rank, size_t count,
                                    bool sent)
{
    int locals = shape->locals, hosts = workers / locals;
    int host = shape->dealt_out ? rank % hosts : rank / locals;
    int local = shape->dealt_out ? rank / hosts : rank % locals;
    bool returns = local > 0 && !shape->any_order;
    size_t elements = 0;
    for (int hop = 0; hosts > 1 && hop < 2 * (hosts - 1) + returns; hop++) {
        int chunk = (host - hop - !sent + 3 * hosts) % hosts;
        elements += chunk_of(count, (size_t)workers, (size_t)(chunk * locals + local)).count;
    }
    return elements;
}

/* A short, uncompressed vector of 2, 4, 8, ... workers, whose half is no longer than a segment, if
 * no radix cuts four workers at once. */
static bool is_doubled(const struct shape *shape, int workers, size_t count)
{
    size_t segment = (shape->segment_bytes + sizeof(float) - 1) / sizeof(float);
    return workers > 1 && (workers & (workers - 1)) == 0 && (workers == 2 || shape->radix < 4) &&
           shape->compress == COMPRESS_NONE && count * sizeof(float) <= DOUBLING_BYTES_MAX &&
           (segment == 0 || count <= 2 * segment);
}

/* The whole vector, once for each time that the workers can be halved. */
static size_t doubling_elements(int workers, size_t count)
{
    size_t elements = 0;
    for (int size = workers; size > 1; size /= 2)
        elements += count;
    return elements;
}

/* With mixed placement `shape->servers` are spare servers; each worker has a server as well. */
static int servers_of(const struct shape *shape, int workers)
{
    return shape->servers + (shape->placement == PLACEMENT_MIXED ? workers : 0);
}

/* BytePS, with n workers and k spare servers: each worker's server has (n-k)/(n^2 + kn - 2k). The
 * spare servers share the remainder. */
static size_t shard_elements(const struct shape *shape, int workers, int server, size_t count)
{
    size_t n = (size_t)workers, k = (size_t)shape->servers, s = (size_t)server;
    if (shape->placement != PLACEMENT_MIXED)
        return chunk_of(count, k, s).count;
    size_t beside = k < n ? count * n * (n - k) / (n * n + k * n - 2 * k) : 0;
    return s < n ? chunk_of(beside, n, s).count : chunk_of(count - beside, k, s - n).count;
}

static size_t worker_elements(const struct shape *shape, int workers, int rank, size_t count,
                              bool sent)
{
    size_t elements = 0;
    if (shape->backend == &backend_ring)
        return ring_elements(workers, rank, count, sent);
    if (shape->backend == &backend_rhd && is_doubled(shape, workers, count))
        return doubling_elements(workers, count);
    if (shape->backend == &backend_rhd)
        return halving_elements(workers, shape->radix, rank, count);
    if (shape->backend == &backend_tree)
        return tree_elements(workers, rank, count);
    if (shape->backend == &backend_hierarchical)
        return hierarchical_elements(shape, workers, rank, count, sent);
    for (int s = 0; s < servers_of(shape, workers); s++) {
        bool local = shape->placement != PLACEMENT_DEDICATED && s == rank;
        elements += local ? 0 : shard_elements(shape, workers, s, count);
    }
    return elements;
}

static size_t server_elements(const struct shape *shape, int workers, int server, size_t count)
{
    bool beside = shape->placement != PLACEMENT_DEDICATED && server < workers;
    if (!shape->backend->uses_servers || server < 0 || server >= servers_of(shape, workers))
        return 0;
    return shard_elements(shape, workers, server, count) * ((size_t)workers - beside);
}

static void check_moved(const char *who, int rank, const struct transport_counters *found,
                        uint64_t sent, uint64_t received)
{
    rank_assert(found->sent_bytes == sent && found->received_bytes == received,
                "rank %d's %s: sent %ju and received %ju bytes, expected %ju and %ju", rank, who,
                (uintmax_t)found->sent_bytes, (uintmax_t)found->received_bytes, (uintmax_t)sent,
                (uintmax_t)received);
}

void allreduce_check_bytes(const struct shape *shape, struct comm *comm, const struct world *world,
                           size_t count, int operations)
{
    struct comm_counters found;
    size_t sent = 0, received = 0;
    int workers = comm_workers(comm);
    int server = shape->placement == PLACEMENT_DEDICATED ? world->rank - workers : world->rank;
    uint64_t bytes = (uint64_t)operations * compress_element_bytes(shape->compress);
    if (!shape->backend->uses_transport)
        return;
    comm_counters(comm, &found);
    if (!comm_is_server(comm)) {
        sent = worker_elements(shape, workers, comm_rank(comm), count, true);
        received = worker_elements(shape, workers, comm_rank(comm), count, false);
    }
    check_moved("worker", world->rank, &found.worker, bytes * sent, bytes * received);
    sent = bytes * server_elements(shape, workers, server, count);
    check_moved("server", world->rank, &found.server, sent, sent);
}
