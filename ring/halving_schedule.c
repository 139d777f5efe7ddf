#include "ring/halving_schedule.h"

#include <stdlib.h>

#include "common/base/status.h"
#include "common/base/util.h"

/*
 * Bounds of the longest message of a slice. Short messages keep the links busy from the first step
 * to the last. At 200 Mbit/s eight workers average 4.8 MB in 0.38 s with 32 KB and in 0.46 s with
 * 256 KB. On a link of gigabytes a second the fixed cost of a message shows. Two workers took 46 ms
 * for 64 MB with 32 KB, and 26 ms with 256 KB.
 */
enum { SEGMENT_BYTES_MIN = 32 << 10, SEGMENT_BYTES_MAX = 256 << 10, SLICES_WANTED = 128 };

/* The longest message if a fast link gets several slices. Longer ones were slower: four workers on
 * one host, 4.8 and 25.6 MB. */
enum { FAST_SEGMENT_BYTES_MAX = 128 << 10 };

/* `size` workers, each `stride` after the one before, and as many chunks in a run. */
struct halving_group {
    int first, stride, size;
    int chunk;
};

int halving_parts(int n, int radix)
{
    for (int p = radix < n ? radix : n; p >= 2; p--) {
        if (n % p == 0)
            return p;
    }
    for (int p = 2; p * p <= n; p++) {
        if (n % p == 0)
            return p;
    }
    return n;
}

int halving_steps(int workers, int radix)
{
    int steps = 0;
    for (int size = workers; size > 1; size /= halving_parts(size, radix))
        steps += 2;
    return steps;
}

int halving_chunk(int workers, int radix, int rank)
{
    int chunk = 0;
    for (int size = workers; size > 1;) {
        int parts = halving_parts(size, radix);
        size /= parts;
        chunk += rank % parts * size;
        rank /= parts;
    }
    return chunk;
}

/* -------- groups and exchanges ---------------------------------------------------------------- */

enum { CUTS_MAX = 31 }; /* an int has no more prime factors */

/* A step of reduce-scatter and its counterpart of all-gather, from one worker's view. */
struct halving_cut {
    struct halving_group group;         /* before the cut */
    int parts;                          /* number of subgroups */
    int part;                           /* index of our subgroup */
    struct halving_exchange *exchanges; /* (parts - 1): [d - 1] goes to subgroup part + d */
};

/* Neighbours in a group are in different subgroups. Its chunks are dealt out in runs. */
static struct halving_group subgroup(const struct halving_cut *cut, int part)
{
    const struct halving_group *group = &cut->group;
    int size = group->size / cut->parts;
    part %= cut->parts;
    return (struct halving_group){group->first + part * group->stride, group->stride * cut->parts,
                                  size, group->chunk + part * size};
}

static size_t count_exchanges(int workers, int radix)
{
    size_t exchanges = 0;
    for (int size = workers; size > 1; size /= halving_parts(size, radix))
        exchanges += (size_t)halving_parts(size, radix) - 1;
    return exchanges;
}

static void cut_groups(struct halving_schedule *schedule, struct halving_cut cuts[CUTS_MAX])
{
    struct halving_group group = {0, 1, schedule->workers, 0};
    struct halving_exchange *exchange = schedule->exchanges;
    for (struct halving_cut *cut = cuts; group.size > 1; cut++) {
        int parts = halving_parts(group.size, schedule->radix);
        int at = (schedule->rank - group.first) / group.stride;
        *cut = (struct halving_cut){group, parts, at % parts, exchange};
        group = subgroup(cut, cut->part);
        for (int d = 1; d < parts; d++)
            (exchange++)->peer = subgroup(cut, cut->part + d).first + at / parts * group.stride;
    }
}

/* -------- messages ---------------------------------------------------------------------------- */

static struct chunk span_of(const struct halving_schedule *schedule, size_t slice,
                            struct halving_group chunks)
{
    size_t offset = slice * schedule->slice_count, left = schedule->count - offset;
    size_t count = left < schedule->slice_count ? left : schedule->slice_count;
    size_t n = (size_t)schedule->workers, last = (size_t)(chunks.chunk + chunks.size - 1);
    struct chunk head = chunk_of(count, n, (size_t)chunks.chunk), tail = chunk_of(count, n, last);
    return (struct chunk){offset + head.offset, tail.offset + tail.count - head.offset};
}

/*
 * Adds the messages of one slice in one step, to and from each of the other subgroups.
 * Reduce-scatter moves the receiver's chunks, all-gather the sender's. Each worker sends to the
 * next subgroup first, so that not all workers send to the same one at once. The first message to
 * arrive is then from the previous subgroup. *received counts the slice's receives so far.
 */
static void add_step(const struct halving_schedule *schedule, const struct halving_cut *cut,
                     struct halving_item item, size_t *received)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): cut_groups makes a cut for each step */
    struct halving_group ours = subgroup(cut, cut->part);
    item.after = *received;
    for (int d = 1; d < cut->parts; d++) {
        struct halving_exchange *exchange = &cut->exchanges[d - 1];
        item.span =
            span_of(schedule, item.slice, item.reduces ? subgroup(cut, cut->part + d) : ours);
        if (item.span.count > 0)
            exchange->sends[exchange->send_count++] = item;
    }
    for (int d = cut->parts - 1; d > 0; d--) {
        struct halving_exchange *exchange = &cut->exchanges[d - 1];
        item.span =
            span_of(schedule, item.slice, item.reduces ? ours : subgroup(cut, cut->part + d));
        if (item.span.count == 0)
            continue;
        item.after = (*received)++;
        item.completes = item.reduces && ours.size == 1 && d == 1;
        exchange->receives[exchange->receive_count++] = item;
    }
}

static void add_slice(struct halving_schedule *schedule, const struct halving_cut *cuts,
                      size_t slice, size_t under_way)
{
    size_t received = 0;
    int steps = halving_steps(schedule->workers, schedule->radix);
    for (int step = 0; step < steps; step++) {
        bool reduces = step < steps / 2;
        struct halving_item item = {
            .slice = slice,
            .step = step,
            .reduces = reduces,
            .order = slice * (size_t)steps + (size_t)step * under_way,
        };
        add_step(schedule, &cuts[reduces ? step : steps - 1 - step], item, &received);
    }
    schedule->receives += received;
}

/* -------- their order ------------------------------------------------------------------------- */

/*
 * Orders messages. If one message must wait for another, the other comes first. The order is the
 * same on all workers. The first missing message can therefore always be sent and processed, and
 * workers never wait for each other in a circle.
 */
static int compare(const void *a, const void *b)
{
    const struct halving_item *left = a, *right = b;
    if (left->order != right->order)
        return left->order < right->order ? -1 : 1;
    return left->slice < right->slice ? -1 : left->slice > right->slice;
}

/* In order of slices, the elements received in all-gather are those sent in reduce-scatter. */
static void find_replaced(struct halving_exchange *exchange)
{
    size_t send = 0;
    for (size_t i = 0; i < exchange->receive_count; i++) {
        if (exchange->receives[i].reduces)
            continue;
        while (!exchange->sends[send].reduces)
            send++;
        exchange->receives[i].replaces = send++;
    }
}

/* -------- the whole --------------------------------------------------------------------------- */

/* `whole`: bytes of the first message, if it was not cut. */
static size_t slow_segment_bytes(size_t whole)
{
    size_t wanted = size_larger(size_divide_up(whole, SLICES_WANTED), SEGMENT_BYTES_MIN);
    return size_smaller(wanted, SEGMENT_BYTES_MAX);
}

size_t halving_segment_bytes(int workers, size_t count, const struct comm_options *options)
{
    size_t given = compress_float_bytes(options->compress, options->segment_bytes);
    size_t parts = (size_t)halving_parts(workers, options->radix);
    size_t whole = size_divide_up(count * sizeof(float), parts);
    size_t fast = comm_fast_piece_bytes(options->link_bytes_per_s, COMM_MESSAGE_S, whole);
    if (given > 0 || fast == 0)
        return given;
    if (fast >= whole)
        return whole;
    return size_larger(size_smaller(fast, FAST_SEGMENT_BYTES_MAX), slow_segment_bytes(whole));
}

/* The first message of a slice is the longest: one of as many parts as there are subgroups. */
size_t halving_slice_count(int workers, int radix, size_t count, size_t segment_bytes)
{
    size_t n = (size_t)workers, parts = (size_t)halving_parts(workers, radix);
    if (segment_bytes == 0)
        segment_bytes = slow_segment_bytes(size_divide_up(count * sizeof(float), parts));
    size_t wanted = size_divide_up(segment_bytes, sizeof(float)) * parts;
    size_t slices = size_divide_up(count, wanted);
    return slices ? size_divide_up(size_divide_up(count, slices), n) * n : n;
}

size_t halving_slices(int workers, int radix, size_t count, size_t segment_bytes)
{
    return size_divide_up(count, halving_slice_count(workers, radix, count, segment_bytes));
}

size_t halving_under_way(int workers, size_t count, const struct comm_options *options)
{
    size_t held = comm_bytes_held(options);
    if (held == 0 || workers == 1 || count == 0)
        return HALVING_SLICES_UNDER_WAY;
    int radix = options->radix;
    size_t segment_bytes = halving_segment_bytes(workers, count, options);
    size_t parts = (size_t)halving_parts(workers, radix);
    size_t steps = (size_t)halving_steps(workers, radix);
    size_t first_bytes = halving_slice_count(workers, radix, count, segment_bytes) / parts *
                         (parts - 1) * compress_element_bytes(options->compress);
    size_t wanted = steps + size_divide_up(steps * (held / 2), first_bytes);
    size_t all = steps * halving_slices(workers, radix, count, segment_bytes);
    return size_larger(size_smaller(wanted, all), HALVING_SLICES_UNDER_WAY);
}

static enum status allocate(struct halving_schedule *schedule)
{
    size_t each = 2 * schedule->slices; /* limit of an exchange's sends, and of its receives */
    schedule->exchange_count = count_exchanges(schedule->workers, schedule->radix);
    schedule->exchanges = calloc(schedule->exchange_count + 1, sizeof *schedule->exchanges);
    schedule->items = calloc(2 * each * schedule->exchange_count + 1, sizeof *schedule->items);
    if (!schedule->exchanges || !schedule->items) {
        log_error("rhd: no memory for a schedule of %zu messages", each * schedule->exchange_count);
        halving_schedule_fini(schedule);
        return STATUS_NO_MEMORY;
    }
    for (size_t l = 0; l < schedule->exchange_count; l++) {
        schedule->exchanges[l].sends = schedule->items + 2 * each * l;
        schedule->exchanges[l].receives = schedule->exchanges[l].sends + each;
    }
    return STATUS_OK;
}

enum status halving_schedule_init(struct halving_schedule *schedule, int workers, int radix,
                                  int rank, size_t count, size_t segment_bytes, size_t under_way)
{
    CHECK(workers > 0 && rank >= 0 && rank < workers && under_way > 0);
    *schedule = (struct halving_schedule){
        .workers = workers,
        .radix = radix,
        .rank = rank,
        .count = count,
        .slice_count = halving_slice_count(workers, radix, count, segment_bytes),
        .slices = halving_slices(workers, radix, count, segment_bytes)};
    enum status status = allocate(schedule);
    if (status != STATUS_OK)
        return status;
    struct halving_cut cuts[CUTS_MAX];
    cut_groups(schedule, cuts);
    for (size_t slice = 0; slice < schedule->slices; slice++)
        add_slice(schedule, cuts, slice, under_way);
    for (size_t l = 0; l < schedule->exchange_count; l++) {
        struct halving_exchange *exchange = &schedule->exchanges[l];
        qsort(exchange->sends, exchange->send_count, sizeof *exchange->sends, compare);
        qsort(exchange->receives, exchange->receive_count, sizeof *exchange->receives, compare);
        find_replaced(exchange);
    }
    return STATUS_OK;
}

void halving_schedule_fini(struct halving_schedule *schedule)
{
    free(schedule->exchanges);
    free(schedule->items);
    schedule->exchanges = NULL;
    schedule->items = NULL;
}

/* -------- short vectors ----------------------------------------------------------------------- */

bool doubling_is_short(int workers, int radix, size_t slices, size_t bytes)
{
    bool power_of_two = (workers & (workers - 1)) == 0;
    bool in_halves = halving_steps(workers, radix) == 2 * doubling_steps(workers);
    return workers > 1 && power_of_two && in_halves && slices == 1 && bytes <= DOUBLING_BYTES_MAX;
}

int doubling_steps(int workers)
{
    int steps = 0;
    for (int reached = 1; reached < workers; reached *= 2)
        steps++;
    return steps;
}
