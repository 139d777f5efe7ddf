#include "ps/shard.h"

#include "common/base/check.h"

enum {
    CHUNK_BYTES_LEAST = 1 << 10,
    CHUNK_BYTES_MIN = 8 << 10,
    CHUNK_BYTES_MAX = 64 << 10,
    CHUNKS_WANTED = 32,        /* of a shard: 1/32 is what push and pull do not overlap */
    FLIGHT_BYTES = 1536 << 10, /* all workers' windows together: half of a 3 MB port queue */
    WINDOW_MIN = 2,
    WINDOW_MAX = 8,
};

struct shard_plan shard_plan(int workers, int servers, size_t count, size_t chunk_bytes, int window)
{
    size_t shard_bytes = chunk_of(count, (size_t)servers, 0).count * sizeof(float);
    if (chunk_bytes == 0) {
        chunk_bytes = shard_bytes / CHUNKS_WANTED;
        if (chunk_bytes < CHUNK_BYTES_MIN)
            chunk_bytes = CHUNK_BYTES_MIN;
        if (chunk_bytes > CHUNK_BYTES_MAX)
            chunk_bytes = CHUNK_BYTES_MAX;
        size_t fits =
            FLIGHT_BYTES / ((size_t)workers * WINDOW_MIN); /* many workers: shorter ones */
        if (chunk_bytes > fits)
            chunk_bytes = fits > CHUNK_BYTES_LEAST ? fits : CHUNK_BYTES_LEAST;
    }
    if (window == 0) {
        size_t fits = FLIGHT_BYTES / ((size_t)workers * chunk_bytes);
        window = fits < WINDOW_MIN ? WINDOW_MIN : fits > WINDOW_MAX ? WINDOW_MAX : (int)fits;
    }
    size_t chunk_count = chunk_bytes / sizeof(float);
    size_t longest = chunk_of(count, (size_t)servers, 0).count;
    if (chunk_count > longest)
        chunk_count = longest;
    return (struct shard_plan){chunk_count > 0 ? chunk_count : 1, window};
}

size_t shard_chunks(const struct shard_plan *plan, size_t count)
{
    return (count + plan->chunk_count - 1) / plan->chunk_count;
}

struct chunk shard_chunk(const struct shard_plan *plan, struct chunk shard, size_t index)
{
    size_t at = index * plan->chunk_count;
    CHECK(at < shard.count);
    size_t left = shard.count - at;
    return (struct chunk){shard.offset + at, left < plan->chunk_count ? left : plan->chunk_count};
}
