/*
 * How a bucket is cut for the parameter server, and how much of it may be on the way. Pure.
 *
 * Every server owns a *shard*, a run of elements. Shards are equal but with mixed placement, where
 * servers on spare machines get more than those beside a worker, so that every link is busy for as
 * long: with n workers and k spare servers a spare one gets 2(n-1)/(n^2 + kn - 2k) of the elements,
 * one beside a worker (n-k)/(n^2 + kn - 2k), none if k >= n. Source: Jiang et al. 2020, "A unified
 * architecture for accelerating distributed DNN training in heterogeneous GPU/CPU clusters" (OSDI),
 * section 4.1.
 *
 * A shard travels in *chunks*, in order; each chunk is due where the same part of the longest shard
 * is, so that large and small ones end together. Of equal shards all have as many chunks. Those of
 * a shorter one are half as long as the longest's, but no more than these: as many would be so many
 * small messages, as long ones would come in lumps. A worker may have `window` chunks pushed and
 * not yet answered with each server, and is nowhere further than a window from where it is least
 * far.
 *
 * Why ordered chunks and a window: if everything is sent at once, all chunks share the server's
 * link and all finish last: then the link back stands idle while the first half goes in, and the
 * other way round. In order, the first chunk is complete early, its answer overlaps later pushes,
 * and the link is full in both directions. What all windows together have on the way to one host
 * stands in a queue before its link. It should be enough to keep the link busy while an answer
 * travels, and no more: the first sum is complete only once the queue has gone through, a switch's
 * port loses packets when it is full, and senders then share the link unfairly (incast). So of a
 * small shard a window is a tenth at most, but two chunks; of a longer one no less than four, with
 * which pushes and answers do not fall into step and take turns. ps/README.md has the measurements
 * behind the numbers.
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
    size_t chunk_count; /* elements of a chunk, at most */
    int window;         /* chunks */
    bool by_turns;      /* a worker's next chunks wait until the last of a turn has left */
};

/* Server `server`'s part of a bucket of `count` elements. May be empty. */
struct chunk shard_of(const struct topology *topology, size_t count, int server);

/* For buckets of at most `count` elements. Workers and servers compute it alike. A link whose rate
 * is not known is taken for a fast one. */
struct shard_plan shard_plan(const struct topology *topology, size_t count,
                             const struct comm_options *options);

/* For all buckets of a layout. */
struct shard_plan shard_plan_of(const struct topology *topology, const struct comm_layout *layout,
                                const struct comm_options *options);

/* Chunks of server `server`'s shard of a bucket of `count` elements. 0 if it is empty: then nothing
 * travels. */
size_t shard_chunks(const struct shard_plan *plan, size_t count, int server);

/* The most that any server has: how often push and pull alternate in the pipeline. */
size_t shard_chunks_most(const struct shard_plan *plan, size_t count);

/* Where chunk `index` of `chunks` is due, counted in chunks of a shard that has `most`: in the
 * middle of its part of that. Of a shard with as many it is `index`. */
size_t shard_due(size_t index, size_t chunks, size_t most);

/* Chunk `index` of a shard that is cut into `chunks`: their lengths differ by at most one. */
struct chunk shard_chunk(struct chunk shard, size_t chunks, size_t index);

/*
 * What a worker may push next. It pushes the same part of all shards, a chunk to each server in
 * turn, and is nowhere further than a window from the first unanswered chunk of the slowest server.
 * If every server had a window of its own, a worker's link would go to those that answer soonest;
 * their shards would end early, and the others go on alone, with most links idle. If a server got
 * its whole window at once, no first sum would be complete before nearly all windows are, and the
 * links back would stand idle until then.
 */

/* How far a worker is with one server: counted in chunks of its shard of a bucket. */
struct shard_pushes {
    struct chunk shard;
    size_t chunks;
    size_t pushed, answered; /* the caller counts them: answered <= pushed <= chunks */
};

/* Begins a bucket of `count` elements with all servers. Returns how many chunks all shards have. */
size_t shard_pushes_begin(struct shard_pushes *pushes, const struct shard_plan *plan, size_t count);

/* Chunks that are due before `end` may be pushed, counted in chunks of the longest shard. */
struct push_window {
    size_t most; /* chunks of the longest shard */
    size_t end;  /* a window from the first unanswered chunk of the slowest server */
};

/* pushes (servers). */
struct push_window push_window(const struct shard_pushes *pushes, const struct shard_plan *plan);

/* Whether a server's next chunk may be pushed. Where nothing is on the way, and not all is
 * answered, at least one server's may; no server ever has more than a window on the way. */
bool push_window_has(struct push_window window, const struct shard_pushes *pushes);

#endif
