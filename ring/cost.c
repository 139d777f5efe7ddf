/*
 * Bytes and time of the all-reduces of this folder: the ring, halving-doubling, the double binary
 * tree, hierarchical.
 */
#include <math.h>
#include <stdlib.h>

#include "common/comm/compress.h"
#include "ring/halving_schedule.h"
#include "ring/hierarchical.h"
#include "ring/ring.h"
#include "ring/schedule.h"

/* -------- the ring ---------------------------------------------------------------------------- */

/*
 *     rank r of W sends   2M - L[r+1] - L[r+2]     and receives   2M - L[r] - L[r+1]
 *
 * L[i] is the bytes of chunk i mod W, and M is their sum: about 2(W-1)/W M. Reduce-scatter sends M
 * - L[r+1] and receives M - L[r]. All-gather moves the remaining bytes.
 *
 *     time = 2(W-1) t + a + (2W-3) max(0, a + t/K - t) + (W-1)/W M g,   t = M/(W B)
 *          =      M/B + a + M g    two workers, short vector (pair.c)
 *
 * A chunk travels in K segments. A chunk that takes longer than a segment and its latency hides the
 * latency of its step, so a distant ring needs 2(W-1)/W M/B and one latency. A shorter chunk leaves
 * the link idle: the time of one segment is 2(W-1)(a + t).
 *
 * Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
 * workstations", section 3.
 */

/* Chunk c starts at rank c and is complete at rank c-1. Rank r therefore sends every chunk but r+1,
 * which ends at rank r. It receives what rank r-1 sends. */
static struct cost_traffic reduce_scatter_traffic(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    uint64_t all = cost_bytes(shape, shape->count);
    if (workers == 1)
        return (struct cost_traffic){0};
    return (struct cost_traffic){all - cost_part_bytes(shape, workers, rank + 1),
                                 all - cost_part_bytes(shape, workers, rank)};
}

/* In the all-gather chunk r+1 starts at rank r and ends at rank r-1. Rank r therefore sends every
 * chunk but r+2, like rank r+1 before. */
static struct cost_traffic ring_traffic(const struct cost_shape *shape, int rank)
{
    struct cost_traffic scatter = reduce_scatter_traffic(shape, rank);
    struct cost_traffic gather = reduce_scatter_traffic(shape, rank + 1);
    return (struct cost_traffic){scatter.sent_bytes + gather.sent_bytes,
                                 scatter.received_bytes + gather.received_bytes};
}

static void ring_flows(const struct cost_shape *shape, cost_flow *flow, void *context)
{
    int workers = shape->topology.workers;
    for (int rank = 0; workers > 1 && rank < workers; rank++)
        flow(context, rank, (rank + 1) % workers, ring_traffic(shape, rank).sent_bytes);
}

/* With pair.c the pieces are those of the vector, which travels in two steps. */
double ring_cost_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    double workers = shape->topology.workers, bytes = (double)cost_bytes(shape, shape->count);
    double steps = 2 * (workers - 1), pieces = (double)shape->pipeline / (workers == 2 ? 2 : 1);
    return cost_pipelined_time_s(steps, steps / workers * bytes / link->bytes_per_s,
                                 fmax(pieces, 1), link->latency_s) +
           (workers - 1) / workers * bytes * link->reduce_s_per_byte;
}

static struct schedule ring_schedule(const struct topology *topology, size_t count,
                                     const struct comm_options *options)
{
    struct schedule schedule;
    schedule_init(&schedule, topology->workers, 0, count,
                  schedule_segment_bytes(topology->workers, count, options, NULL), NULL);
    return schedule;
}

/* K: segments of a chunk. Two workers cut the vector into pieces instead, and with few of them they
 * swap whole vectors in one step (pair.c). */
static size_t ring_pipeline(const struct topology *topology, size_t count,
                            const struct comm_options *options)
{
    struct schedule schedule = ring_schedule(topology, count, options);
    return schedule.pieces > 0 ? schedule.pieces : schedule.segments;
}

/* A long vector is cut into slices of two pieces (pair.c). */
static double pair_messages(const struct schedule *schedule)
{
    size_t pieces = schedule->pieces;
    if (pieces > PAIR_WHOLE)
        pieces = size_smaller(2 * size_divide_up(pieces, 2), schedule->count);
    return (double)pieces;
}

/* Segments without elements do not travel. */
static double segments_sent(const struct schedule *schedule, int chunk)
{
    size_t count = schedule_chunk(schedule, chunk % schedule->workers).count;
    return (double)size_smaller(schedule->segments, count);
}

/* Adds the messages of all workers of a ring. In each step they send all chunks. Worker r never
 * sends chunk r+1 while it is summed. It never sends the sum of chunk r+2, unless chunks return:
 * then that of r+1. */
static void add_ring_messages(struct cost_messages *messages, const struct schedule *schedule)
{
    double step = 0, least = INFINITY;
    for (int chunk = 0; chunk < schedule->workers; chunk++) {
        double unsent = segments_sent(schedule, chunk);
        step += unsent;
        if (!schedule->part.returns)
            unsent += segments_sent(schedule, chunk + 1);
        least = fmin(least, unsent);
    }
    messages->busiest = fmax(messages->busiest, 2 * step - least);
    messages->all += step * (double)schedule_steps(schedule);
}

/* One message for each segment of the 2(W-1) steps that has elements. With pair.c: one for each
 * piece. */
static struct cost_messages ring_messages(const struct topology *topology, const int *hosts,
                                          size_t count, const struct comm_options *options)
{
    struct schedule schedule = ring_schedule(topology, count, options);
    (void)hosts;
    struct cost_messages messages = {0};
    if (schedule.pieces > 0 && options->compress == COMPRESS_NONE)
        return (struct cost_messages){pair_messages(&schedule), 2 * pair_messages(&schedule)};
    add_ring_messages(&messages, &schedule);
    return messages;
}

static double ring_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    struct cost_link share = *link;
    double workers = shape->topology.workers;
    if (shape->hosts && workers > 1) /* ranks of one host share its link */
        share.bytes_per_s /= cost_host_load(&ring_cost, shape) / (2 * (workers - 1) / workers);
    double bytes = (double)cost_bytes(shape, shape->count);
    bool whole = shape->topology.workers == 2 && shape->pipeline <= PAIR_WHOLE &&
                 shape->element_bytes == sizeof(float);
    if (whole && shape->count > 0)
        return share.latency_s + bytes / share.bytes_per_s + bytes * share.reduce_s_per_byte;
    return ring_cost_time_s(shape, &share);
}

const struct cost_formula ring_cost = {
    .traffic = ring_traffic,
    .flows = ring_flows,
    .time_s = ring_time_s,
    .pipeline = ring_pipeline,
    .messages = ring_messages,
};

/* -------- halving-doubling -------------------------------------------------------------------- */

/*
 *     rank r sends   M - L[c] + R[r]   and receives as much
 *
 * L[i] is the bytes of chunk i of W, M is their sum, and c is halving_chunk of rank r. R[r] is the
 * bytes that rank r receives while halving (halving_schedule.h). In every step, each partner sends
 * the chunks of rank r's new half (third, ...). If all chunks are equal, R[r] is (W-1)/W M. A rank
 * thus sends about 2(W-1)/W M.
 *
 *     time = 2(W-1)/W M/B + a + sum over steps but the last of max(0, a + t/K - t) + (W-1)/W M g
 *
 * A step of t seconds moves K slices. It hides the latency if it takes longer than a slice and its
 * latency: slices in other steps are sent meanwhile (halving_under_way). Near workers have only few
 * slices under way, so on fast links they need more time. One slice pays 2 F a. F is the number of
 * cuts. For radix 2 it is the number of W's prime factors: lg W for a power of two, less for other
 * W. It is log_R W for a power of the radix R, and 1 if R is at least W. If ranks share hosts, the
 * load of the busiest host's link replaces 2(W-1)/W. A step in which groups become groups of n
 * loads it with n/W for every two partners on different hosts. The way back loads it as much. A
 * short vector among 2, 4, 8, ... workers (halving.c) makes every rank send and receive lg W M, and
 *
 *     time = lg W (a + M/B + M g)
 *
 * Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations
 * in MPICH", section 4.
 */

/* Bytes of chunks first .. first+size-1. */
static uint64_t chunks_bytes(const struct cost_shape *shape, int first, int size)
{
    size_t workers = (size_t)shape->topology.workers;
    struct chunk head = chunk_of(shape->count, workers, (size_t)first);
    struct chunk tail = chunk_of(shape->count, workers, (size_t)(first + size - 1));
    return cost_bytes(shape, tail.offset + tail.count - head.offset);
}

/*
 * Bytes that a rank receives while halving. Its group of `size` is cut into p parts (halving_parts)
 * until the rank is alone. In each cut one rank of every other part sends the chunks of the rank's
 * new group.
 */
static uint64_t halving_received(const struct cost_shape *shape, int rank)
{
    uint64_t bytes = 0;
    int radix = shape->radix, first = 0, size = shape->topology.workers;
    int chunk = halving_chunk(size, radix, rank);
    while (size > 1) {
        int parts = halving_parts(size, radix);
        size /= parts;
        first += (chunk - first) / size * size;
        bytes += (uint64_t)(parts - 1) * chunks_bytes(shape, first, size);
    }
    return bytes;
}

/* K. A short vector in one slice is not halved (halving.c). */
static size_t halving_pipeline(const struct topology *topology, size_t count,
                               const struct comm_options *options)
{
    return halving_slices(topology->workers, options->radix, count,
                          halving_segment_bytes(topology->workers, count, options));
}

static bool is_whole(const struct cost_shape *shape)
{
    return shape->element_bytes == sizeof(float) && shape->count > 0 &&
           doubling_is_short(shape->topology.workers, shape->radix, shape->pipeline,
                             cost_bytes(shape, shape->count));
}

/* While halving, a rank sends every chunk but its own. While doubling, it sends back what it
 * received and receives what it sent. */
static struct cost_traffic halving_traffic(const struct cost_shape *shape, int rank)
{
    int workers = shape->topology.workers;
    if (is_whole(shape)) {
        uint64_t all = (uint64_t)doubling_steps(workers) * cost_bytes(shape, shape->count);
        return (struct cost_traffic){all, all};
    }
    uint64_t given = cost_bytes(shape, shape->count) -
                     cost_part_bytes(shape, workers, halving_chunk(workers, shape->radix, rank));
    uint64_t bytes = given + halving_received(shape, rank);
    return (struct cost_traffic){bytes, bytes};
}

/* While halving, a rank sends each partner the chunks of the partner's new group. While doubling,
 * it sends those of its own group. */
static void halving_flows_of(const struct cost_shape *shape, int rank, cost_flow *flow,
                             void *context)
{
    int workers = shape->topology.workers, first = 0;
    for (int size = workers; size > 1;) {
        int parts = halving_parts(size, shape->radix), stride = workers / size;
        int part = rank / stride % parts;
        size /= parts;
        uint64_t own = chunks_bytes(shape, first + part * size, size);
        for (int other = 0; other < parts; other++) {
            int partner = rank + (other - part) * stride;
            if (other == part)
                continue;
            flow(context, rank, partner, chunks_bytes(shape, first + other * size, size));
            flow(context, rank, partner, own);
        }
        first += part * size;
    }
}

static void halving_flows(const struct cost_shape *shape, cost_flow *flow, void *context)
{
    int workers = shape->topology.workers;
    for (int rank = 0; rank < workers; rank++) {
        for (int apart = 1; is_whole(shape) && apart < workers; apart *= 2)
            flow(context, rank, rank ^ apart, cost_bytes(shape, shape->count));
        if (!is_whole(shape))
            halving_flows_of(shape, rank, flow, context);
    }
}

/* Every step moves and adds the whole vector. */
static double doubling_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    double bytes = (double)cost_bytes(shape, shape->count);
    return doubling_steps(shape->topology.workers) *
           (link->latency_s + bytes / link->bytes_per_s + bytes * link->reduce_s_per_byte);
}

/* The latencies that slices in other steps do not hide. A step while halving has a mirror of equal
 * length while doubling, and the mirror of the first is the last. */
static double halving_waits_s(const struct cost_shape *shape, double link_s, double latency_s)
{
    double waits_s = latency_s, pieces = fmax((double)shape->pipeline, 1);
    int workers = shape->topology.workers;
    for (int size = workers; size > 1;) {
        int parts = halving_parts(size, shape->radix), mirrors = size == workers ? 1 : 2;
        size /= parts;
        double step_s = link_s * (parts - 1) * size / (2 * (workers - 1));
        waits_s += mirrors * fmax(0, latency_s + step_s / pieces - step_s);
    }
    return waits_s;
}

/* One step for each cut while halving, and one while doubling. */
static double halving_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    if (is_whole(shape))
        return doubling_time_s(shape, link);
    double workers = shape->topology.workers, bytes = (double)cost_bytes(shape, shape->count);
    double load = shape->hosts ? cost_host_load(&halving_cost, shape) : 2 * (workers - 1) / workers;
    double link_s = load * bytes / link->bytes_per_s;
    return workers == 1 ? 0
                        : link_s + halving_waits_s(shape, link_s, link->latency_s) +
                              (workers - 1) / workers * bytes * link->reduce_s_per_byte;
}

/* Messages without elements do not exist. */
static void count_message(void *context, int from, int to, uint64_t bytes)
{
    (void)from;
    (void)to;
    *(double *)context += bytes > 0;
}

/* The flows of one slice are its messages: as many from each worker, if it has an element for each.
 * Only the last slice can be shorter than the others. */
static struct cost_messages halving_messages(const struct topology *topology, const int *hosts,
                                             size_t count, const struct comm_options *options)
{
    (void)hosts;
    const struct cost_shape shape = cost_shape_of(&halving_cost, topology, NULL, count, options);
    size_t slice_count =
        halving_slice_count(topology->workers, options->radix, count,
                            halving_segment_bytes(topology->workers, count, options));
    size_t whole_slices = count / slice_count;
    struct cost_messages messages = {0};
    struct cost_shape slice = shape, last = shape;
    slice.count = slice_count;
    last.count = count % slice_count;
    double whole = 0;
    halving_flows_of(&slice, 0, count_message, &whole);
    for (int rank = 0; rank < topology->workers; rank++) {
        double each = 0;
        if (last.count >= (size_t)topology->workers)
            each = whole;
        else if (last.count > 0)
            halving_flows_of(&last, rank, count_message, &each);
        each += (double)whole_slices * whole;
        if (is_whole(&shape))
            each = doubling_steps(topology->workers);
        messages.all += each;
        messages.busiest = fmax(messages.busiest, each);
    }
    return messages;
}

const struct cost_formula halving_cost = {
    .traffic = halving_traffic,
    .flows = halving_flows,
    .time_s = halving_time_s,
    .pipeline = halving_pipeline,
    .messages = halving_messages,
};

/* -------- the double binary tree -------------------------------------------------------------- */

/*
 *     rank r sends   E[0,r] L[0] + E[1,r] L[1]   and receives as much
 *
 * L[t] is the bytes of half t, and E[t,r] is the number of r's neighbours in tree t: its children,
 * and its parent if it has one (tree.c). A rank thus sends at most 2 M.
 *
 *     time = 2h a + ((K-1) Q + F)/K M/B + (K-1) max(0, a/s - Q/K M/B) + C M g
 *
 * h is lg W rounded down. Q M is the load of the busiest host's link: 2 M from 4 workers on. C M is
 * what the busiest rank adds: M if it has two children. The first segments take F/K M/B to pass the
 * trees. F is 2h if all inner nodes have two children (W = 3, 7, 15, ...). It is about 2h-1 for
 * other W, because there a node with one child is on the way. Each further segment crosses the
 * busiest link Q times. The last term with K: a rank sends and receives a segment over each of its
 * edges in a step. A segment passes an edge in s steps (tree_stride). If they take less than a, the
 * link waits, because leaves send no more segments ahead. It is an estimate. The s of distant
 * workers is large enough, or K: all segments leave at once, and none waits.
 *
 * Source: Sanders, Speck, Traeff 2009, "Two-tree algorithms for full bandwidth broadcast, reduction
 * and scan", section 3. The terms with K are ours, fitted to simulations (simulate.sh).
 */

static int tree_neighbours(const struct cost_shape *shape, int tree, int rank)
{
    struct tree_place place = tree_place_of(shape->topology.workers, tree, rank);
    return (place.parent >= 0) + place.child_count;
}

static struct cost_traffic tree_traffic(const struct cost_shape *shape, int rank)
{
    uint64_t bytes = 0;
    for (int tree = 0; tree < TREES; tree++)
        bytes += (uint64_t)tree_neighbours(shape, tree, rank) * cost_part_bytes(shape, TREES, tree);
    return (struct cost_traffic){bytes, bytes};
}

static void tree_flows(const struct cost_shape *shape, cost_flow *flow, void *context)
{
    for (int tree = 0; tree < TREES; tree++) {
        uint64_t half = cost_part_bytes(shape, TREES, tree);
        for (int rank = 0; rank < shape->topology.workers; rank++) {
            int parent = tree_place_of(shape->topology.workers, tree, rank).parent;
            if (parent >= 0) {
                flow(context, rank, parent, half);
                flow(context, parent, rank, half);
            }
        }
    }
}

/* Bytes that the busiest rank adds, in units of M. */
static double tree_share_added(const struct cost_shape *shape)
{
    int most = 0;
    for (int rank = 0; rank < shape->topology.workers; rank++) {
        int children = 0;
        for (int tree = 0; tree < TREES; tree++)
            children += tree_place_of(shape->topology.workers, tree, rank).child_count;
        most = children > most ? children : most;
    }
    return (double)most / TREES;
}

static size_t tree_pipeline(const struct topology *topology, size_t count,
                            const struct comm_options *options)
{
    (void)topology;
    return tree_segments(count, compress_float_bytes(options->compress, options->segment_bytes));
}

/* Segments of a tree that a leaf has under way. */
static size_t tree_window(const struct topology *topology, size_t count,
                          const struct comm_options *options)
{
    size_t stride = tree_stride(topology->workers, count, options);
    return 2 * (size_t)tree_height(topology->workers) * stride + TREE_SEGMENTS_UNDER_WAY;
}

static double tree_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    int workers = shape->topology.workers, steps = 2 * tree_height(workers);
    double bytes = (double)cost_bytes(shape, shape->count), pieces = (double)shape->pipeline;
    double link_s = cost_host_load(&tree_cost, shape) * bytes / link->bytes_per_s;
    bool is_full = (workers & (workers + 1)) == 0;
    double first_s = (steps - !is_full) * bytes / link->bytes_per_s, stall_s = 0;
    if (workers == 1)
        return 0;
    if (shape->window > 0) {
        double stride = ((double)shape->window - TREE_SEGMENTS_UNDER_WAY) / steps;
        if (stride >= pieces)
            stride = INFINITY; /* all segments leave at once */
        stall_s = (pieces - 1) * fmax(0, link->latency_s / stride - link_s / pieces);
    }
    double links_s = link_s > 0 ? ((pieces - 1) * link_s + first_s) / pieces : 0;
    return steps * link->latency_s + links_s + stall_s +
           tree_share_added(shape) * bytes * link->reduce_s_per_byte;
}

/* Up and down, one message a segment for each neighbour. A vector of one element has no second
 * half. */
static struct cost_messages tree_messages(const struct topology *topology, const int *hosts,
                                          size_t count, const struct comm_options *options)
{
    (void)hosts;
    const struct cost_shape shape = {.topology = *topology, .count = count, .element_bytes = 1};
    struct cost_messages messages = {0};
    size_t segments = tree_pipeline(topology, count, options);
    for (int rank = 0; rank < topology->workers; rank++) {
        double each = 0;
        for (int tree = 0; tree < TREES; tree++)
            each += tree_neighbours(&shape, tree, rank) *
                    (double)size_smaller(segments, cost_part_bytes(&shape, TREES, tree));
        messages.all += each;
        messages.busiest = fmax(messages.busiest, each);
    }
    return messages;
}

const struct cost_formula tree_cost = {
    .traffic = tree_traffic,
    .flows = tree_flows,
    .time_s = tree_time_s,
    .pipeline = tree_pipeline,
    .window = tree_window,
    .messages = tree_messages,
};

/* -------- hierarchical ------------------------------------------------------------------------ */

/*
 * Bytes and time exclude what goes through shared memory.
 *
 * There are H hosts of L workers. Worker l of host h runs a ring with the workers l of the other
 * hosts. The chunks of that ring are l, L + l, 2L + l, .. of H L. Let C[i] be the bytes of the i-th
 * of these chunks (i mod H), and P their sum. Then
 *
 *     it sends   2P - C[h+1] - C[h+2]     and receives   2P - C[h] - C[h+1]
 *
 * A worker thus sends about 2(H-1)/H M/L, and a host of L workers 2(H-1)/H M. In the ring's order
 * (--reduce-order ring), a worker with l > 0 sends 2P - C[h+1] and receives 2P - C[h]. A host then
 * sends (2(H-1) + (L-1)/L)/H M.
 *
 * With one worker a host the time is that of the ring. Otherwise
 *
 *     time = 2(H-1) t + a + (2H-3) max(0, a + t/(K L) - t) + (W-1)/W M g,   t = M/(H B)
 *
 * as in a ring of H workers. The L rings take turns on a host's link: while a chunk of one ring is
 * on its way, the link carries another ring's. A step thus has K L pieces. In order 2H-1 steps
 * share the bytes of 2(H-1) + (L-1)/L.
 *
 * No all-reduce among workers that share a link is faster than 2(H-1)/H M/B. To a network, the
 * workers of a host together are like one worker (Patarasuk and Yuan 2009, section 3).
 */

/* The workers' places, freed by the caller, and the workers on each host. 0: the numbers differ. */
static struct hosts_place *places_of(const struct cost_shape *shape, int *locals)
{
    int workers = shape->topology.workers, hosts = 0;
    struct hosts_place *places = hosts_places(shape->hosts, workers);
    *locals = 0;
    for (int worker = 0; places && worker < workers; worker++) {
        *locals = places[worker].local >= *locals ? places[worker].local + 1 : *locals;
        hosts = places[worker].across >= hosts ? places[worker].across + 1 : hosts;
    }
    if (*locals * hosts != workers)
        *locals = 0;
    return places;
}

static struct cost_traffic traffic_at(const struct cost_shape *shape, struct hosts_place at,
                                      int locals)
{
    int workers = shape->topology.workers, hosts = locals > 0 ? workers / locals : 1;
    if (hosts == 1)
        return (struct cost_traffic){0};
    uint64_t all = 0, chunk[3]; /* our chunk and the next two */
    for (int i = 0; i < hosts; i++)
        all += cost_part_bytes(shape, workers, i * locals + at.local);
    for (int i = 0; i < 3; i++)
        chunk[i] = cost_part_bytes(shape, workers, (at.across + i) % hosts * locals + at.local);
    struct cost_traffic traffic = {2 * all - chunk[1], 2 * all - chunk[0]};
    if (shape->order == REDUCE_ORDER_ANY || at.local == 0) {
        traffic.sent_bytes -= chunk[2];
        traffic.received_bytes -= chunk[1];
    }
    return traffic;
}

static struct cost_traffic hierarchical_traffic(const struct cost_shape *shape, int worker)
{
    int locals;
    struct hosts_place *places = places_of(shape, &locals), none = {0};
    struct cost_traffic traffic = traffic_at(shape, places ? places[worker] : none, locals);
    free(places);
    return traffic;
}

/* To the worker with the same local number on the next host. */
static void hierarchical_flows(const struct cost_shape *shape, cost_flow *flow, void *context)
{
    int locals, workers = shape->topology.workers;
    struct hosts_place *places = places_of(shape, &locals);
    for (int worker = 0; locals > 0 && locals < workers && worker < workers; worker++) {
        int next = (worker + 1) % workers;
        while (places[next].local != places[worker].local)
            next = (next + 1) % workers;
        flow(context, worker, next, traffic_at(shape, places[worker], locals).sent_bytes);
    }
    free(places);
}

static double hierarchical_time_s(const struct cost_shape *shape, const struct cost_link *link)
{
    int locals;
    free(places_of(shape, &locals));
    if (locals == 0)
        return (double)NAN;
    if (locals == 1)
        return ring_time_s(shape, link);
    double workers = shape->topology.workers, hosts = workers / locals;
    double bytes = (double)cost_bytes(shape, shape->count);
    double hops = 2 * (hosts - 1), steps = hops;
    if (shape->order == REDUCE_ORDER_RING && hosts > 1) {
        hops += (locals - 1.0) / locals;
        steps++;
    }
    return cost_pipelined_time_s(steps, hops / hosts * bytes / link->bytes_per_s,
                                 (double)shape->pipeline * locals, link->latency_s) +
           (workers - 1) / workers * bytes * link->reduce_s_per_byte;
}

/* Those of a ring of H workers. In order, all but a host's first worker return what they get. */
static struct cost_messages hierarchical_messages(const struct topology *topology, const int *hosts,
                                                  size_t count, const struct comm_options *options)
{
    int workers = topology->workers, locals = hosts_locals(hosts, workers, 0);
    struct cost_messages messages = {0};
    struct schedule schedule;
    if (locals == 1)
        return ring_messages(topology, hosts, count, options);
    for (int local = 0; local < locals && locals < workers; local++) {
        const struct schedule_part part = {
            locals, local, .returns = options->reduce_order == REDUCE_ORDER_RING && local > 0};
        const int across = workers / locals;
        schedule_init(&schedule, across, 0, count,
                      schedule_segment_bytes(across, count, options, &part), &part);
        add_ring_messages(&messages, &schedule);
    }
    return messages;
}

/* With one worker a host it is the ring, with the ring's pipeline. */
const struct cost_formula hierarchical_cost = {.traffic = hierarchical_traffic,
                                               .flows = hierarchical_flows,
                                               .time_s = hierarchical_time_s,
                                               .pipeline = ring_pipeline,
                                               .messages = hierarchical_messages};
