/*
 * How a bucket is cut for the parameter server, and how much of it may be on the way. Pure.
 *
 * Server s of S owns the elements chunk_of(count, S, s): its *shard*. A shard travels in *chunks*,
 * in order. A worker may have `window` chunks pushed and not yet answered with each server.
 *
 * Why ordered chunks and a window: if everything is sent at once, all chunks share the server's
 * link and all finish last: then the link back stands idle while the first half goes in, and the
 * other way round. In order, the first chunk is complete early, its answer overlaps later pushes,
 * and the link is full in both directions. The sum of the windows is kept well below the queue of a
 * switch port, where senders that overflow it would lose packets and share the link unfairly
 * (incast).
 */
#ifndef PSRING_PS_SHARD_H
#define PSRING_PS_SHARD_H

#include <stddef.h>

#include "common/comm/chunk.h"

struct shard_plan {
    size_t chunk_count; /* elements of a chunk; the last of a shard may be shorter */
    int window;         /* chunks */
};

/* For buckets of at most `count` elements. chunk_bytes, window: 0 = chosen. Workers and servers
 * compute it alike. A chunk is never longer than the longest shard. */
struct shard_plan shard_plan(int workers, int servers, size_t count, size_t chunk_bytes,
                             int window);

/* Chunks of a shard of `count` elements. 0 for an empty one: then nothing travels. */
size_t shard_chunks(const struct shard_plan *plan, size_t count);

/* Chunk `index` of the shard, in elements of the bucket. */
struct chunk shard_chunk(const struct shard_plan *plan, struct chunk shard, size_t index);

#endif
