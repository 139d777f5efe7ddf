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

#include "common/base/chunk.h"
#include "common/comm/comm_options.h"
#include "common/net/world/topology.h"

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
 * How far a worker is in exchanging one bucket with every server, and what it may push next. Pure:
 * who sends and waits is client.c.
 *
 * A worker pushes the same part of all shards, a chunk to each server in turn, and is nowhere
 * further than a window from the first unanswered chunk of the slowest server. If every server had
 * a window of its own, a worker's link would go to those that answer soonest; their shards would
 * end early, and the others go on alone, with most links idle. If a server got its whole window at
 * once, no first sum would be complete before nearly all windows are, and the links back would
 * stand idle until then.
 */

/* With one server. Counted in chunks of its shard. */
struct exchange {
    struct chunk shard;
    size_t chunks;
    size_t pushed, answered; /* the caller counts them: answered <= pushed <= chunks */
};

/* With all servers. */
struct exchanges {
    struct exchange *with; /* (servers), the caller's */
    int servers;
    int first;     /* to be pushed to: another one for each worker, lest all go for one link */
    size_t most;   /* chunks of the longest shard */
    size_t window; /* counted in these */
};

/* Begins one of a bucket of `count` elements, of worker `worker`, in `with`, which has room for all
 * servers. */
struct exchanges exchanges_begin(struct exchange *with, const struct shard_plan *plan, size_t count,
                                 int worker);

/* How many chunks all shards have. */
size_t exchanges_chunks(const struct exchanges *exchanges);

/* Up to where may be pushed now: a window from the first unanswered chunk of the slowest server. */
size_t exchanges_end(const struct exchanges *exchanges);

/* Whether the server's next chunk is due before `end`. Where nothing is on the way, and not all is
 * answered, at least one server's is; no server ever has more than a window on the way. */
bool exchanges_due(const struct exchanges *exchanges, int server, size_t end);

#endif
