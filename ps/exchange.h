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
#ifndef PSRING_PS_EXCHANGE_H
#define PSRING_PS_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#include "ps/shard.h"

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
