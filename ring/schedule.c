#include "ring/schedule.h"

#include "common/base/status.h"
#include "common/base/util.h"

/*
 * Eight segments a chunk keep a link busy, and 256 KB make a message's fixed cost small. Long
 * vectors can have more of both: 32 segments a chunk, of up to 1 MB each. This saves system calls,
 * which matter on a fast network (loopback: + 40%).
 */
enum {
    SEGMENT_BYTES_MIN = 32 << 10,
    SEGMENT_BYTES_MAX = 256 << 10,
    SEGMENTS_WANTED = 8,
    LONG_SEGMENT_BYTES_MAX = 1 << 20,
    LONG_SEGMENTS_WANTED = 32,
};

/* A piece that two workers send each other must stay in a core's cache until it is added
 * (pair.c). */
enum { PIECE_BYTES = 384 << 10 };

/* Bytes of one of `parts` parts of a chunk. Rounded up to whole elements: otherwise the last
 * elements would need one more segment. */
static size_t part_bytes(size_t chunk, size_t parts)
{
    return size_divide_up(chunk, parts) * sizeof(float);
}

/* On a slow link, or one of unknown rate. The vector of `count` floats has `chunks` chunks. */
static size_t slow_segment_bytes(size_t chunks, size_t count)
{
    size_t chunk = size_divide_up(count, chunks);
    size_t bytes = size_smaller(part_bytes(chunk, SEGMENTS_WANTED), SEGMENT_BYTES_MAX);
    bytes = size_larger(
        bytes, size_smaller(part_bytes(chunk, LONG_SEGMENTS_WANTED), LONG_SEGMENT_BYTES_MAX));
    return size_larger(bytes, SEGMENT_BYTES_MIN);
}

size_t schedule_segment_bytes(int workers, size_t count, const struct comm_options *options,
                              const struct schedule_part *part)
{
    size_t given = compress_float_bytes(options->compress, options->segment_bytes);
    size_t chunks = (size_t)workers * (part ? (size_t)part->parts : 1);
    size_t fast = comm_fast_piece_bytes(options->link_bytes_per_s, COMM_MESSAGE_S,
                                        size_divide_up(count, chunks) * sizeof(float));
    if (given > 0 || fast == 0 || (workers == 2 && !part)) /* two workers cut into pieces */
        return given;
    return size_larger(fast, slow_segment_bytes(chunks, count));
}

struct chunk schedule_chunk(const struct schedule *schedule, int index)
{
    const struct schedule_part *part = &schedule->part;
    return chunk_of(schedule->count, (size_t)schedule->workers * (size_t)part->parts,
                    (size_t)index * (size_t)part->parts + (size_t)part->part);
}

void schedule_init(struct schedule *schedule, int workers, int rank, size_t count,
                   size_t segment_bytes, const struct schedule_part *part)
{
    static const struct schedule_part all = {.parts = 1};
    CHECK(workers > 0 && rank >= 0 && rank < workers);
    size_t piece = (segment_bytes ? segment_bytes : PIECE_BYTES) / sizeof(float);
    *schedule = (struct schedule){workers, rank, count, 1, 0, part ? *part : all};
    if (segment_bytes == 0)
        segment_bytes = slow_segment_bytes((size_t)workers * (size_t)schedule->part.parts, count);
    size_t longest = schedule_chunk(schedule, 0).count;
    size_t segment = segment_bytes / sizeof(float) > 0 ? segment_bytes / sizeof(float) : 1;
    schedule->segments = longest > 0 ? size_divide_up(longest, segment) : 1;
    if (workers == 2 && !part)
        schedule->pieces = size_divide_up(count, piece > 0 ? piece : 1);
}

int schedule_next(int workers, int rank)
{
    return (rank + 1) % workers;
}

int schedule_previous(int workers, int rank)
{
    return (rank + workers - 1) % workers;
}

size_t schedule_reduce_steps(const struct schedule *schedule)
{
    return (size_t)schedule->workers - !schedule->part.returns;
}

size_t schedule_steps(const struct schedule *schedule)
{
    return schedule_reduce_steps(schedule) + (size_t)schedule->workers - 1;
}

size_t schedule_items(const struct schedule *schedule)
{
    return schedule_steps(schedule) * schedule->segments;
}

size_t schedule_message_count_max(const struct schedule *schedule)
{
    size_t segment = chunk_of(schedule_chunk(schedule, 0).count, schedule->segments, 0).count;
    size_t piece = schedule->pieces ? chunk_of(schedule->count, schedule->pieces, 0).count : 0;
    return size_larger(segment, piece);
}

int schedule_chunk_sent(int workers, int rank, size_t step)
{
    size_t n = (size_t)workers;
    return (int)(((size_t)rank + n - step % n) % n);
}

/* Segment `item % K` of the chunk that `rank` sends in step `item / K`. */
static struct chunk item_of(const struct schedule *schedule, int rank, size_t item)
{
    CHECK(item < schedule_items(schedule));
    int index = schedule_chunk_sent(schedule->workers, rank, item / schedule->segments);
    struct chunk chunk = schedule_chunk(schedule, index);
    struct chunk segment = chunk_of(chunk.count, schedule->segments, item % schedule->segments);
    segment.offset += chunk.offset;
    return segment;
}

struct chunk schedule_send(const struct schedule *schedule, size_t item)
{
    return item_of(schedule, schedule->rank, item);
}

struct chunk schedule_receive(const struct schedule *schedule, size_t item)
{
    return item_of(schedule, schedule_previous(schedule->workers, schedule->rank), item);
}

bool schedule_reduces(const struct schedule *schedule, size_t item)
{
    return item / schedule->segments < schedule_reduce_steps(schedule);
}

bool schedule_completes(const struct schedule *schedule, size_t item)
{
    return item / schedule->segments + 1 == schedule_reduce_steps(schedule);
}

bool schedule_returns(const struct schedule *schedule, size_t item)
{
    return schedule->part.returns && schedule_completes(schedule, item);
}
