/*
 * How a bucket is cut for the parameter server, and how much of it may be in flight. Pure.
 *
 * Every server owns a *shard*, a run of elements. Shards are equal except with mixed placement.
 * There, servers on spare machines get more than those that share a process with a worker, so that
 * every link is busy for the same time. With n workers and k spare servers, a spare server gets
 * 2(n-1)/(n^2 + kn - 2k) of the elements. A server in a worker's process gets (n-k)/(n^2 + kn -
 * 2k), or none if k >= n. Source: Jiang et al. 2020, "A unified architecture for accelerating
 * distributed DNN training in heterogeneous GPU/CPU clusters" (OSDI), section 4.1.
 *
 * A shard travels in *chunks*, in order. Each chunk is due at the same fraction of its shard as in
 * the longest shard, so that large and small shards end together. Equal shards have the same number
 * of chunks. The chunks of a shorter shard are half as long as the longest shard's, but not more in
 * number. As many chunks as the longest would mean many small messages. Chunks of the full length
 * would arrive in bursts. A worker may have at most `window` unanswered chunks with each server. In
 * no shard is it more than a window beyond the first unanswered chunk of the slowest server.
 *
 * Why ordered chunks and a window: if everything is sent at once, all chunks share the server's
 * link, and all finish late. The link back is idle while the first half comes in, and the other way
 * round. In order, the first chunk is complete early, and its answer overlaps later pushes. The
 * link is then full in both directions.
 *
 * The windows of all senders together determine the bytes in flight to one host. These bytes form a
 * queue before the host's link. The queue must keep the link busy while an answer travels, but it
 * must not be longer. The first sum is complete only after the queue has passed. A switch's port
 * drops packets when its queue is full, and senders then share the link unfairly (incast).
 *
 * A window is therefore at most a tenth of a small shard, but at least two chunks. For a longer
 * shard it is at least four chunks. With fewer, pushes and answers alternate instead of
 * overlapping. ps/README.md has the measurements behind the numbers.
 *
 * On a fast link the processors' work for a message takes longer than its bytes. Few long chunks
 * are then faster, although fewer of them overlap (comm_fast_piece_bytes). The same queue bounds
 * them.
 *
 * A distant link (COMM_DISTANT_S) also holds the bytes of a round trip, which are in no queue. The
 * windows of all senders grow by these bytes, rate x round trip, up to all chunks of the shard. The
 * chunks stay as short as without distance.
 */
#ifndef PSRING_PS_SHARD_H
#define PSRING_PS_SHARD_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"
#include "common/comm/comm_options.h"
#include "common/net/topology.h"

struct shard_plan {
    struct topology topology;
    size_t chunk_count; /* most elements of a chunk */
    int window;         /* in chunks */
    bool by_turns;      /* a worker's next chunks wait until the last of a turn has left */
};

/* Server `server`'s part of a bucket of `count` elements. May be empty. */
struct chunk shard_of(const struct topology *topology, size_t count, int server);

/* For buckets of at most `count` elements. Workers and servers compute the same plan. A link of
 * unknown rate is treated as a fast one. */
struct shard_plan shard_plan(const struct topology *topology, size_t count,
                             const struct comm_options *options);

/* For all buckets of a layout. */
struct shard_plan shard_plan_of(const struct topology *topology, const struct comm_layout *layout,
                                const struct comm_options *options);

/* Number of chunks of server `server`'s shard of a bucket of `count` elements. 0 if the shard is
 * empty: no message is sent. */
size_t shard_chunks(const struct shard_plan *plan, size_t count, int server);

/* The largest number of chunks of any server: how often push and pull alternate in the pipeline. */
size_t shard_chunks_most(const struct shard_plan *plan, size_t count);

/* The position at which chunk `index` of `chunks` is due, in chunks of a shard that has `most`: the
 * middle of its interval. If `chunks` equals `most` the result is `index`. */
size_t shard_due(size_t index, size_t chunks, size_t most);

/* Chunk `index` of a shard that is cut into `chunks`. Lengths differ by at most one. */
struct chunk shard_chunk(struct chunk shard, size_t chunks, size_t index);

/*
 * The rule for a worker's next push. It pushes the same fraction of all shards, one chunk to each
 * server in turn. In no shard is it more than a window beyond the first unanswered chunk of the
 * slowest server.
 *
 * If every server had a separate window, a worker's link would serve the fastest servers. Their
 * shards would end early, and the other shards would continue alone, with most links idle. If a
 * server got its whole window at once, no first sum would be complete before nearly all windows had
 * arrived. The links back would be idle until then.
 */

/* A worker's progress with one server, in chunks of that server's shard of a bucket. */
struct shard_pushes {
    struct chunk shard;
    size_t chunks;
    size_t pushed, answered; /* counted by the caller: answered <= pushed <= chunks */
};

/* Starts a bucket of `count` elements with all servers. Returns the number of chunks of all
 * shards. */
size_t shard_pushes_begin(struct shard_pushes *pushes, const struct shard_plan *plan, size_t count);

/* Chunks that are due before `end` may be pushed. Both fields count chunks of the longest shard. */
struct push_window {
    size_t most; /* chunks of the longest shard */
    size_t end;  /* a window after the first unanswered chunk of the slowest server */
};

/* pushes (servers). */
struct push_window push_window(const struct shard_pushes *pushes, const struct shard_plan *plan);

/* Whether a server's next chunk may be pushed. If nothing is in flight and some chunks are
 * unanswered, at least one server's chunk may be pushed. No server ever has more than a window in
 * flight. */
bool push_window_has(struct push_window window, const struct shard_pushes *pushes);

#endif
