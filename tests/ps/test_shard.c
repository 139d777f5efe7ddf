/* The parameter server's shards: every element is in exactly one chunk of one shard, and windows
 * stay within bounds. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "ps/shard.h"

static struct topology servers_of(int workers, int servers, enum placement placement)
{
    return (struct topology){workers, servers, placement};
}

/* A chunk is due with the same part of the longest shard. A window from any place on has at most
 * `window` chunks. */
static void expect_due(const struct shard_plan *plan, size_t chunks, size_t most)
{
    size_t window = (size_t)plan->window;
    for (size_t i = 0; i < chunks; i++) {
        size_t due = shard_due(i, chunks, most);
        cr_assert(due * chunks < (i + 1) * most && (due + 1) * chunks > i * most);
        cr_assert(chunks < most || due == i);
        cr_assert(i + window >= chunks || shard_due(i + window, chunks, most) >= due + window);
    }
}

static void expect_cover(const struct shard_plan *plan, size_t count)
{
    size_t at = 0, most = 0;
    for (int s = 0; s < plan->topology.servers; s++) {
        struct chunk shard = shard_of(&plan->topology, count, s);
        size_t chunks = shard_chunks(plan, count, s);
        cr_assert_eq(shard.offset, at);
        for (size_t i = 0; i < chunks; i++) {
            struct chunk chunk = shard_chunk(shard, chunks, i);
            cr_assert_eq(chunk.offset, at);
            cr_assert_gt(chunk.count, 0);
            cr_assert_leq(chunk.count, plan->chunk_count);
            size_t inside = chunk.offset - shard.offset;
            cr_assert_eq(chunk_holding(shard.count, chunks, inside), i);
            cr_assert_eq(chunk_holding(shard.count, chunks, inside + chunk.count - 1), i);
            at += chunk.count;
        }
        most = chunks > most ? chunks : most;
    }
    cr_assert_eq(at, count);
    cr_assert_eq(most, shard_chunks_most(plan, count));
    for (int s = 0; s < plan->topology.servers; s++)
        expect_due(plan, shard_chunks(plan, count, s), most);
}

Test(shard, chunks_cover_every_element_once)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 100, 2048, 2049, 65537, 1199882};
    static const size_t chunk_bytes[] = {0, 4, 1000, 65536};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int servers = 1; servers <= 8; servers++) {
            for (size_t b = 0; b < sizeof chunk_bytes / sizeof *chunk_bytes; b++) {
                struct comm_options options = {.segment_bytes = chunk_bytes[b]};
                struct topology equal = servers_of(4, servers, PLACEMENT_DEDICATED);
                struct topology mixed = servers_of(4, 4 + servers - 1, PLACEMENT_MIXED);
                struct shard_plan plan = shard_plan(&equal, counts[c], &options);
                expect_cover(&plan, counts[c]);
                expect_cover(&plan, counts[c] / 3); /* a smaller bucket with the same plan */
                plan = shard_plan(&mixed, counts[c], &options);
                expect_cover(&plan, counts[c]);
                expect_cover(&plan, counts[c] / 3);
            }
        }
    }
}

/* n workers, k spare servers: the shares of Jiang et al., exactly if they are whole. */
Test(shard, mixed_shards_are_the_optimum)
{
    for (size_t n = 1; n <= 9; n++) {
        for (size_t k = 0; k <= n + 2; k++) {
            size_t all = k < n ? n * n + k * n - 2 * k : k;
            size_t beside = k < n ? n - k : 0, spare = k < n ? 2 * (n - 1) : 1;
            struct topology mixed = servers_of((int)n, (int)(n + k), PLACEMENT_MIXED);
            for (size_t s = 0; s < n + k; s++)
                cr_assert_eq(shard_of(&mixed, 1000 * all, (int)s).count,
                             1000 * (s < n ? beside : spare), "%zu workers, %zu spare", n, k);
        }
    }
    /* Four workers, one spare server. 18 elements: 3 each, 6 for the spare. 20: rounded. */
    struct topology mixed = servers_of(4, 5, PLACEMENT_MIXED);
    static const size_t shards[] = {4, 3, 3, 3, 7};
    for (int s = 0; s < 5; s++)
        cr_expect_eq(shard_of(&mixed, 20, s).count, shards[s]);
}

/* Shards shorter than the longest have fewer chunks, here half as long, not as many small ones. */
Test(shard, short_shards_have_fewer_chunks)
{
    struct topology mixed = servers_of(8, 12, PLACEMENT_MIXED);
    struct comm_options options = {.segment_bytes = 16 << 10};
    struct shard_plan plan = shard_plan(&mixed, 22 * 4096, &options); /* 8 of 4096, 4 of 14336 */
    cr_expect_eq(shard_chunks(&plan, 22 * 4096, 11), 4);
    cr_expect_eq(shard_chunks(&plan, 22 * 4096, 0), 2);
    cr_expect_eq(shard_due(0, 2, 4), 1);
    cr_expect_eq(shard_due(1, 2, 4), 3);
}

Test(shard, no_spare_is_colocated)
{
    struct topology mixed = servers_of(5, 5, PLACEMENT_MIXED);
    struct topology colocated = servers_of(5, 5, PLACEMENT_COLOCATED);
    for (size_t count = 0; count < 23; count++) {
        for (int s = 0; s < 5; s++) {
            struct chunk a = shard_of(&mixed, count, s), b = shard_of(&colocated, count, s);
            cr_expect(a.offset == b.offset && a.count == b.count);
        }
    }
}

/* The elements of server `s`'s shard that are due in a window from `first` on. */
static size_t due_in_window(const struct shard_plan *plan, size_t count, int s, size_t first)
{
    size_t chunks = shard_chunks(plan, count, s), most = shard_chunks_most(plan, count), sum = 0;
    for (size_t i = 0; i < chunks; i++) {
        size_t due = shard_due(i, chunks, most);
        if (due >= first && due < first + (size_t)plan->window)
            sum += shard_chunk(shard_of(&plan->topology, count, s), chunks, i).count;
    }
    return sum;
}

/* The most bytes under way from all workers to one server, or from one worker to all servers. */
static size_t bytes_on_the_way(const struct shard_plan *plan, size_t count)
{
    enum { FIRST_END = 100 }; /* tries this many first chunks; later ones repeat */
    size_t most = shard_chunks_most(plan, count);
    size_t in_flight = most < (size_t)plan->window ? most : (size_t)plan->window;
    size_t to_server = (size_t)plan->topology.workers * plan->chunk_count * in_flight;
    size_t highest = to_server;
    for (size_t first = 0; plan->topology.servers > 1 && first < most && first < FIRST_END;
         first++) {
        size_t to_all = 0;
        for (int s = 0; s < plan->topology.servers; s++)
            to_all += due_in_window(plan, count, s, first);
        highest = to_all > highest ? to_all : highest;
    }
    return highest * sizeof(float);
}

/* Incast: the bytes under way from all workers to one server fit in a switch port's queue. */
Test(shard, windows_stay_below_a_ports_queue)
{
    static const double rates[] = {0, 1e6, 25e6, 1e9, 1e12};
    for (int workers = 1; workers <= 700; workers += 1 + workers / 8) {
        for (size_t count = 1; count < (64u << 20); count *= 3) {
            for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
                struct comm_options options = {.link_bytes_per_s = rates[r]};
                struct topology one = servers_of(workers, 1, PLACEMENT_DEDICATED);
                struct shard_plan plan = shard_plan(&one, count, &options);
                cr_assert_geq(plan.window, 2);
                cr_assert_leq(bytes_on_the_way(&plan, count), 1536u << 10,
                              "%d workers, %zu elements", workers, count);
            }
        }
    }
}

/* In the switch no link of the server's carries the chunks of all workers: the chunks and windows
 * are those of one worker's link. */
Test(shard, a_server_in_the_switch_has_no_link)
{
    const struct comm_options options = {.link_bytes_per_s = 25e6};
    for (int workers = 1; workers <= 64; workers *= 4) {
        struct topology beside = servers_of(workers, 1, PLACEMENT_DEDICATED), in = beside;
        in.placement = PLACEMENT_SWITCH;
        struct shard_plan one = shard_plan(&in, 1 << 20, &options);
        cr_expect_eq(one.chunk_count * sizeof(float) * (size_t)one.window, 4 * 62500u);
        cr_expect_eq(one.chunk_count == shard_plan(&beside, 1 << 20, &options).chunk_count,
                     workers == 1);
    }
}

/* A window is 10 ms of a link, but at least four messages of at least 16 KB, for any element size.
 * With fewer messages, pushes and answers would alternate on the links. */
Test(shard, windows_fill_a_known_link)
{
    static const size_t count = 1199882; /* 4.8 MB */
    for (int workers = 2; workers <= 8; workers++) {
        for (int spare = 0; spare <= workers; spare++) {
            struct topology topologies[] = {
                servers_of(workers, spare > 0 ? spare : workers,
                           spare > 0 ? PLACEMENT_DEDICATED : PLACEMENT_COLOCATED),
                servers_of(workers, workers + spare, PLACEMENT_MIXED)};
            for (size_t t = 0; t < 4; t++) {
                enum compress compress = t < 2 ? COMPRESS_NONE : COMPRESS_FP16;
                size_t element = compress_element_bytes(compress);
                struct comm_options options = {.link_bytes_per_s = 25e6, .compress = compress};
                struct shard_plan plan = shard_plan(&topologies[t % 2], count, &options);
                size_t on_the_way = bytes_on_the_way(&plan, count) / sizeof(float) * element;
                cr_expect_leq(on_the_way, 4 * 8 * (16 << 10) + 8192);
                cr_expect_geq(plan.window, shard_chunks_most(&plan, count) >= 40 ? 4 : 2);
                cr_expect_geq(on_the_way, 100000, "%d workers, %d spare, %zu bytes an element: %zu",
                              workers, spare, element, on_the_way);
            }
        }
    }
}

/* The table of chunks and windows for 4.8 MB: bytes of a chunk, chunks of a window. A round trip
 * below a millisecond changes nothing. From there on, the windows of all senders together hold rate
 * x round trip more than without distance, in chunks of the same length. An unknown rate counts as
 * 157 MB/s. A short vector's window ends with its chunks. */
Test(shard, windows_cover_the_distance)
{
    static const double round_trips[] = {0, 0.9e-3, 1e-3, 10e-3, 50e-3, 100e-3};
    enum { TRIPS = sizeof round_trips / sizeof *round_trips };
    static const struct {
        int workers, servers;
        enum placement placement;
        size_t bytes;
        double link_bytes_per_s;
        size_t chunk_bytes;
        int windows[TRIPS];
    } cases[] = {
        {4, 1, PLACEMENT_DEDICATED, 4800000, 25e6, 15624, {4, 4, 5, 9, 25, 45}},
        {4, 1, PLACEMENT_DEDICATED, 65536, 25e6, 4096, {2, 2, 4, 16, 16, 16}},
        {4, 4, PLACEMENT_COLOCATED, 4800000, 25e6, 15624, {4, 4, 5, 9, 25, 45}},
        {4, 1, PLACEMENT_DEDICATED, 4800000, 125e6, 65536, {4, 4, 5, 9, 28, 52}},
        {4, 1, PLACEMENT_DEDICATED, 4800000, 0, 65536, {6, 6, 7, 12, 36, 66}},
        {16, 4, PLACEMENT_DEDICATED, 25600000, 125e6, 19528, {4, 4, 5, 9, 25, 45}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct topology topology =
            servers_of(cases[c].workers, cases[c].servers, cases[c].placement);
        size_t count = cases[c].bytes / sizeof(float);
        for (int t = 0; t < TRIPS; t++) {
            const struct comm_options options = {.link_bytes_per_s = cases[c].link_bytes_per_s,
                                                 .round_trip_s = round_trips[t]};
            struct shard_plan plan = shard_plan(&topology, count, &options);
            cr_expect_eq(plan.chunk_count * sizeof(float), cases[c].chunk_bytes, "case %zu", c);
            cr_expect_eq(plan.window, cases[c].windows[t], "case %zu, round trip %g s: window %d",
                         c, round_trips[t], plan.window);
        }
    }
}

struct fast_case {
    int workers, servers;
    size_t bytes;
    double link_bytes_per_s;
    size_t chunk_bytes;
    int window;
};

static void expect_chunks(enum placement placement, const struct fast_case *cases, size_t count)
{
    for (size_t c = 0; c < count; c++) {
        const struct comm_options options = {.link_bytes_per_s = cases[c].link_bytes_per_s};
        struct topology topology = servers_of(cases[c].workers, cases[c].servers, placement);
        struct shard_plan plan = shard_plan(&topology, cases[c].bytes / sizeof(float), &options);
        cr_expect_eq(plan.chunk_count * sizeof(float), cases[c].chunk_bytes, "case %zu: %zu bytes",
                     c, plan.chunk_count * sizeof(float));
        cr_expect_eq(plan.window, cases[c].window, "case %zu: window %d", c, plan.window);
    }
}

/* Up to 1 Gbit/s the table is that of slow links. Beyond, a chunk has sqrt(L B c) bytes of a shard
 * of L, as the port's queue allows. On one host there is no queue, and 512 KB is the most. */
Test(shard, fast_links_get_few_long_chunks)
{
    static const struct fast_case cases[] = {
        {4, 1, 65536, 125e6, 4096, 2},          {4, 1, 1048576, 125e6, 32768, 3},
        {4, 1, 65536, 1250e6, 65536, 2},        {4, 1, 1048576, 1250e6, 149800, 2},
        {4, 1, 4800000, 1250e6, 196608, 2},     {4, 4, 1048576, 1250e6, 87384, 2},
        {4, 4, 4800000, 3125e6, 196608, 2},     {16, 4, 25600000, 3125e6, 49152, 2},
        {4, 1, 65536, INFINITY, 65536, 2},      {4, 1, 1048576, INFINITY, 524288, 2},
        {4, 1, 25600000, INFINITY, 524288, 2},  {4, 4, 1048576, INFINITY, 262144, 2},
        {16, 4, 25600000, INFINITY, 524288, 2},
    };
    expect_chunks(PLACEMENT_DEDICATED, cases, sizeof cases / sizeof *cases);
}

/* Inside a worker's process a message costs more. A whole shard may be in flight. */
Test(shard, a_server_inside_a_worker_gets_fewer_chunks)
{
    static const struct fast_case cases[] = {
        {2, 2, 1048576, 1250e6, 174768, 2},
        {2, 2, 1048576, 3125e6, 524288, 2},
        {2, 2, 4800000, 3125e6, 393216, 2},
        {2, 2, 1048576, INFINITY, 524288, 2},
    };
    expect_chunks(PLACEMENT_COLOCATED, cases, sizeof cases / sizeof *cases);
}

/* The messages of one element are a case that only --segment-bytes makes: more chunks than an int
 * can count. */
Test(shard, a_window_is_positive)
{
    const struct comm_options options = {
        .link_bytes_per_s = 50e9, .round_trip_s = 1, .segment_bytes = sizeof(float)};
    struct topology topology = servers_of(4, 1, PLACEMENT_DEDICATED);
    cr_expect_gt(shard_plan(&topology, (size_t)3 << 30, &options).window, 0);
}

/* Servers that own the parameters answer with float32, for any type of gradient. */
Test(shard, an_answer_is_no_longer_than_a_segment)
{
    struct topology topology = servers_of(4, 2, PLACEMENT_DEDICATED);
    struct comm_options options = {.segment_bytes = 4096, .compress = COMPRESS_FP16};
    cr_expect_eq(shard_plan(&topology, 1 << 20, &options).chunk_count, 2048);
    options.consistency.kind = CONSISTENCY_ASYNC;
    cr_expect_eq(shard_plan(&topology, 1 << 20, &options).chunk_count, 1024);
    options.segment_bytes = 0;
    topology.servers = 1;
    for (topology.workers = 2; topology.workers <= 300; topology.workers *= 2) {
        struct shard_plan plan = shard_plan(&topology, 16 << 20, &options);
        cr_expect_leq(bytes_on_the_way(&plan, 16 << 20), 1536u << 10, "%d workers",
                      topology.workers);
    }
}

/* If a worker has servers for many messages, its chunks grow with the shard, from 8,000 bytes to 15
 * KB, but not on a slow link. A shard that is hardly longer than 8,000 bytes is one chunk. */
Test(shard, many_servers_have_longer_chunks)
{
    static const struct {
        size_t servers, shard_bytes, chunk_bytes;
        double link_bytes_per_s;
    } cases[] = {{8, 8 << 10, 8 << 10, 25e6},     {4, 26 << 10, 4 << 10, 25e6},
                 {4, 256 << 10, 8000, 25e6},      {5, 26 << 10, 8000, 25e6},
                 {10, 26 << 10, 8000, 25e6},      {10, 96 << 10, 12 << 10, 25e6},
                 {10, 256 << 10, 15 << 10, 25e6}, {10, 640 << 10, 15 << 10, 25e6},
                 {10, 256 << 10, 8000, 12.5e6},   {10, 640 << 10, 15 << 10, 12.5e6},
                 {10, 256 << 10, 15 << 10, 0}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct comm_options options = {.link_bytes_per_s = cases[c].link_bytes_per_s};
        struct topology topology = servers_of(10, (int)cases[c].servers, PLACEMENT_DEDICATED);
        size_t count = cases[c].servers * cases[c].shard_bytes / sizeof(float);
        size_t chunk = shard_plan(&topology, count, &options).chunk_count * sizeof(float);
        cr_expect_eq(chunk, cases[c].chunk_bytes, "case %zu: %zu bytes", c, chunk);
    }
}

/* Servers take turns on slow links, but not on fast or unknown links, nor with few servers. */
Test(shard, many_servers_take_turns)
{
    static const struct {
        int servers;
        double link_bytes_per_s;
        bool by_turns;
    } cases[] = {
        {5, 12.5e6, true}, {5, 25e6, true}, {4, 12.5e6, false}, {5, 125e6, false}, {5, 0, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct comm_options options = {.link_bytes_per_s = cases[c].link_bytes_per_s};
        struct topology topology = servers_of(5, cases[c].servers, PLACEMENT_DEDICATED);
        cr_expect_eq(shard_plan(&topology, 16384, &options).by_turns, cases[c].by_turns, "case %zu",
                     c);
    }
}

Test(shard, what_is_asked_for_is_taken)
{
    struct topology topology = servers_of(4, 2, PLACEMENT_DEDICATED);
    struct comm_options options = {.segment_bytes = 4096, .window = 3, .link_bytes_per_s = 1e6};
    struct shard_plan plan = shard_plan(&topology, 1 << 20, &options);
    cr_assert_eq(plan.chunk_count, 1024);
    cr_assert_eq(plan.window, 3);
}

/* Answers come from the servers in any order. In the end everything is pushed and answered. Never
 * is more than a window under way to a server. */
Test(shard, an_exchange_ends)
{
    enum { SERVERS_MOST = 16 };
    uint32_t random = 1;
    for (int n = 1; n <= 8; n++) {
        for (int k = 0; k <= 8; k++) {
            struct topology mixed = servers_of(n, n + k, PLACEMENT_MIXED);
            struct comm_options options = {.segment_bytes = 4000};
            struct shard_plan plan = shard_plan(&mixed, 30011, &options);
            struct shard_pushes with[SERVERS_MOST];
            size_t left = shard_pushes_begin(with, &plan, 30011);
            while (left > 0) {
                const struct push_window window = push_window(with, &plan);
                size_t on_the_way = 0;
                cr_assert_eq(window.most, shard_chunks_most(&plan, 30011));
                for (int s = 0; s < n + k; s++) {
                    for (; push_window_has(window, &with[s]); with[s].pushed++)
                        ;
                    on_the_way += with[s].pushed - with[s].answered;
                    cr_assert_leq(with[s].pushed - with[s].answered, (size_t)plan.window);
                }
                cr_assert_gt(on_the_way, 0u);
                random = random * 1664525 + 1013904223;
                int s = (int)((random >> 16) % (uint32_t)(n + k));
                while (with[s].answered == with[s].pushed)
                    s = (s + 1) % (n + k);
                with[s].answered++;
                left--;
            }
            for (int s = 0; s < n + k; s++)
                cr_assert_eq(with[s].answered, with[s].chunks);
        }
    }
}
