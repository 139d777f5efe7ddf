#include "ring/halving_schedule.h"

#include <stdlib.h>

#include "common/base/check.h"
#include "ring/schedule.h"

/* A run of workers, and of the chunks that bear their numbers. */
struct group {
    int first, size;
};

/* Chunks on their way from one worker to another, and the group of the receiver after the step. */
struct transfer {
    int step, from, to;
    struct group chunks, receivers;
    bool paced;
};

static struct group low_half(struct group group)
{
    return (struct group){group.first, (group.size + 1) / 2};
}

static struct group high_half(struct group group)
{
    int low = (group.size + 1) / 2;
    return (struct group){group.first + low, group.size - low};
}

static bool contains(struct group group, int worker)
{
    return worker >= group.first && worker < group.first + group.size;
}

static struct group both(struct group a, struct group b)
{
    int first = a.first > b.first ? a.first : b.first;
    int a_end = a.first + a.size, b_end = b.first + b.size, end = a_end < b_end ? a_end : b_end;
    return (struct group){first, end > first ? end - first : 0};
}

int halving_steps(int workers)
{
    int steps = 0;
    for (int size = workers; size > 1; size = (size + 1) / 2)
        steps += 2;
    return steps;
}

/* ---- Items of reduce-scatter -------------------------------------------------------------------
 * The lists are made twice: first only counted (sends and receives are NULL), then filled.
 */

static void add_item(struct halving_schedule *schedule, const struct transfer *transfer,
                     struct halving_item item)
{
    if (item.span.count == 0)
        return;
    item.step = transfer->step;
    item.paced = transfer->paced;
    if (transfer->from == schedule->rank) {
        item.peer = transfer->to;
        if (schedule->sends)
            schedule->sends[schedule->reduce_sends] = item;
        schedule->reduce_sends++;
    } else {
        item.peer = transfer->from;
        item.reduces = true;
        if (schedule->receives)
            schedule->receives[schedule->reduce_receives] = item;
        schedule->reduce_receives++;
    }
}

static void add_chunk(struct halving_schedule *schedule, const struct transfer *transfer, int index)
{
    size_t segments = schedule->segments, c = (size_t)index;
    struct chunk chunk = chunk_of(schedule->count, (size_t)schedule->workers, c);
    for (size_t k = 0; k < segments; k++) {
        struct chunk segment = chunk_of(chunk.count, segments, k);
        segment.offset += chunk.offset;
        add_item(schedule, transfer,
                 (struct halving_item){.span = segment, .unit = c * segments + k, .units = 1});
    }
}

/* Chunks that are short enough to travel together. */
static void add_chunks(struct halving_schedule *schedule, const struct transfer *transfer,
                       struct group chunks)
{
    size_t n = (size_t)schedule->workers, segments = schedule->segments;
    size_t first = (size_t)chunks.first, size = (size_t)chunks.size;
    struct chunk head = chunk_of(schedule->count, n, first);
    struct chunk tail = chunk_of(schedule->count, n, first + size - 1);
    add_item(schedule, transfer,
             (struct halving_item){.span = {head.offset, tail.offset + tail.count - head.offset},
                                   .unit = first * segments,
                                   .units = size * segments});
}

/*
 * Cuts `chunks` into items for `receiver`, who is going to halve `group`, in the order in which it
 * will pass them on: first what it sends in its next step, ..., last what it keeps. So its next
 * step can begin with the first item of this one. Recursion: lg N deep.
 */
static void cut(struct halving_schedule *schedule, const struct transfer *transfer,
                struct group chunks, int receiver, struct group group)
{
    size_t longest = chunk_of(schedule->count, (size_t)schedule->workers, 0).count;
    if (chunks.size == 0)
        return;
    if (chunks.size == 1) {
        add_chunk(schedule, transfer, chunks.first);
        return;
    }
    if ((size_t)chunks.size * longest <= schedule->segment_count) {
        add_chunks(schedule, transfer, chunks);
        return;
    }
    struct group keeps = low_half(group), leaves = high_half(group);
    if (!contains(keeps, receiver)) {
        keeps = leaves;
        leaves = low_half(group);
    }
    int partner = receiver - keeps.first; /* the odd one has none: then any order is as good */
    partner = leaves.first + (partner < leaves.size ? partner : 0);
    cut(schedule, transfer, both(chunks, leaves), partner, leaves);
    cut(schedule, transfer, both(chunks, keeps), receiver, keeps);
}

static void add_transfer(struct halving_schedule *schedule, struct transfer transfer)
{
    if (transfer.from == schedule->rank || transfer.to == schedule->rank)
        cut(schedule, &transfer, transfer.chunks, transfer.to, transfer.receivers);
}

/* The step that halves `group`, as the table of the header has it. */
static void add_step(struct halving_schedule *schedule, int step, struct group group)
{
    struct group low = low_half(group), high = high_half(group);
    int odd = low.first + low.size - 1;
    bool has_odd = low.size > high.size;
    struct group low_chunks = {low.first, low.size - has_odd};
    for (int j = 0; j < high.size; j++) {
        int a = low.first + j, b = high.first + j;
        add_transfer(schedule, (struct transfer){step, a, b, high, high, true});
        add_transfer(schedule, (struct transfer){step, b, a, low_chunks, low, true});
        if (!has_odd)
            continue;
        add_transfer(schedule, (struct transfer){step, odd, b, {b, 1}, high, false});
        add_transfer(schedule, (struct transfer){step, b, odd, {odd, 1}, low, false});
    }
}

static void add_reduce_scatter(struct halving_schedule *schedule)
{
    struct group group = {0, schedule->workers};
    schedule->reduce_sends = schedule->reduce_receives = 0;
    for (int step = 0; group.size > 1; step++) {
        add_step(schedule, step, group);
        struct group low = low_half(group);
        group = contains(low, schedule->rank) ? low : high_half(group);
    }
}

/* ---- All-gather, and what must wait for what ---------------------------------------------------
 */

/*
 * Appends the way back of `count` items: the last step first, and in it the last item of each
 * transfer first. But transfers of one step keep their order, partner before odd one: while the odd
 * one serves half a group, partners must not have to wait for it.
 */
static void add_back(struct halving_item *back, const struct halving_item *items, size_t count,
                     int last_step)
{
    for (size_t end = count, begin; end > 0; end = begin) {
        for (begin = end; begin > 0 && items[begin - 1].step == items[end - 1].step;)
            begin--;
        for (size_t from = begin, to; from < end; from = to) {
            for (to = from; to < end && items[to].peer == items[from].peer;)
                to++;
            for (size_t i = to; i-- > from;) {
                *back = items[i];
                back->step = last_step - items[i].step;
                back->reduces = false;
                back->replaces = i;
                back++;
            }
        }
    }
}

/* Receives become sends, and sends receives. */
static void add_all_gather(struct halving_schedule *schedule)
{
    int last_step = halving_steps(schedule->workers) - 1;
    add_back(schedule->sends + schedule->reduce_sends, schedule->receives,
             schedule->reduce_receives, last_step);
    add_back(schedule->receives + schedule->reduce_receives, schedule->sends,
             schedule->reduce_sends, last_step);
}

/* A worker's last transfer of reduce-scatter is its own chunk; each sum is complete with it. */
static void mark_complete(struct halving_schedule *schedule)
{
    size_t i = schedule->reduce_receives;
    if (i == 0)
        return;
    struct halving_item last = schedule->receives[i - 1];
    if (last.unit / schedule->segments != (size_t)schedule->rank)
        return; /* our chunk is empty */
    for (; i > 0 && schedule->receives[i - 1].step == last.step &&
           schedule->receives[i - 1].peer == last.peer;
         i--)
        schedule->receives[i - 1].completes = true;
}

/* Where what comes from one peer in one step stands in the list of receives: `count` in a row. */
struct arrivals_of_peer {
    size_t first, count;
};

static struct arrivals_of_peer find_arrivals(const struct halving_schedule *schedule,
                                             const struct halving_item *send, size_t from)
{
    struct arrivals_of_peer found = {from, 0};
    for (size_t i = from; i < schedule->items && schedule->receives[i].step == send->step; i++) {
        if (schedule->receives[i].peer != send->peer)
            continue;
        if (found.count++ == 0)
            found.first = i;
    }
    return found;
}

/*
 * The item at `position` among those to its peer in a step waits until all but HALVING_IN_FLIGHT of
 * those before it have been matched by one that came back. So partners go in lockstep: no receiver
 * has to hold half a vector that it has not yet added, and one step's bytes leave before the next
 * step's.
 */
static size_t pace(const struct halving_item *send, struct arrivals_of_peer back, size_t position)
{
    if (!send->paced || position < HALVING_IN_FLIGHT || back.count == 0)
        return 0;
    size_t matched = position - HALVING_IN_FLIGHT;
    return back.first + (matched < back.count ? matched : back.count - 1) + 1;
}

/* `arrived`: by unit, zeros: one more than the number of the last receive of it so far. */
static void find_needs(struct halving_schedule *schedule, size_t *arrived)
{
    size_t s = 0, r = 0;
    for (int step = 0; step < halving_steps(schedule->workers); step++) {
        size_t position = 0;
        struct arrivals_of_peer back = {0};
        for (; s < schedule->items && schedule->sends[s].step == step; s++, position++) {
            struct halving_item *send = &schedule->sends[s];
            if (s == 0 || send[-1].step != step || send[-1].peer != send->peer) {
                position = 0;
                back = find_arrivals(schedule, send, r);
            }
            send->needs = pace(send, back, position);
            for (size_t u = send->unit; u < send->unit + send->units; u++)
                send->needs = arrived[u] > send->needs ? arrived[u] : send->needs;
        }
        for (; r < schedule->items && schedule->receives[r].step == step; r++) {
            const struct halving_item *receive = &schedule->receives[r];
            for (size_t u = receive->unit; u < receive->unit + receive->units; u++)
                arrived[u] = r + 1;
        }
    }
}

enum status halving_schedule_init(struct halving_schedule *schedule, int workers, int rank,
                                  size_t count, size_t segment_bytes)
{
    CHECK(workers > 0 && rank >= 0 && rank < workers);
    if (segment_bytes == 0)
        segment_bytes = schedule_segment_bytes(workers, count);
    size_t segment = segment_bytes / sizeof(float) > 0 ? segment_bytes / sizeof(float) : 1;
    size_t longest = chunk_of(count, (size_t)workers, 0).count;
    size_t segments = longest > 0 ? (longest + segment - 1) / segment : 1;
    *schedule = (struct halving_schedule){.workers = workers,
                                          .rank = rank,
                                          .count = count,
                                          .segment_count = segment,
                                          .segments = segments};
    add_reduce_scatter(schedule);
    schedule->items = schedule->reduce_sends + schedule->reduce_receives;
    schedule->sends = calloc(schedule->items + 1, sizeof *schedule->sends);
    schedule->receives = calloc(schedule->items + 1, sizeof *schedule->receives);
    size_t *arrived = calloc((size_t)workers * segments, sizeof *arrived);
    if (!schedule->sends || !schedule->receives || !arrived) {
        log_error("rhd: no memory for a schedule of %zu messages", schedule->items);
        free(arrived);
        halving_schedule_fini(schedule);
        return STATUS_NO_MEMORY;
    }
    add_reduce_scatter(schedule);
    add_all_gather(schedule);
    mark_complete(schedule);
    find_needs(schedule, arrived);
    free(arrived);
    return STATUS_OK;
}

void halving_schedule_fini(struct halving_schedule *schedule)
{
    free(schedule->sends);
    free(schedule->receives);
    schedule->sends = schedule->receives = NULL;
}
