/*
 * What a server keeps: the sums of its shard of every bucket, chunk by chunk, and for each chunk
 * the sends that still read it. Owned by the server's thread.
 */
#ifndef PSRING_PS_SERVER_H
#define PSRING_PS_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "ps/shard.h"

/* One bucket's shard. */
struct store_bucket {
    size_t total;       /* elements of the whole bucket */
    struct chunk shard; /* ours of them */
    size_t chunks;
    float *values;      /* (shard.count): the last sum of each chunk */
    struct codec codec; /* of `values`: its elements are numbered from the shard's first */
    uint64_t *tickets;  /* (chunks, workers): the last answer sent from it; see store_chunk_free */
    bool *answered;     /* (chunks): whether tickets are set */
};

struct store {
    struct shard_plan plan;
    int workers;
    size_t bucket_count;
    struct store_bucket *buckets;
};

/* For server `site->index`. */
enum status store_init(struct store *store, const struct comm_site *site);
void store_fini(struct store *store);

/* As backend.server_state has it: the residual of bucket `index`. */
float *store_state(const struct store *store, size_t index, size_t *count);

/* The chunk that a push is for: {bucket, offset, length} must be one of ours exactly. NULL if it is
 * not (a peer with another layout). */
struct store_bucket *store_find(struct store *store, const struct message *message, size_t *index);

/* The same for a MESSAGE_STORE or MESSAGE_FETCH, whose elements are float32. */
struct store_bucket *store_find_array(struct store *store, const struct message *message,
                                      size_t *index);

/* Returns once no answer sent from the chunk is still being read: it may then be overwritten. At
 * once in practice, because the workers that push again have all had their answers. */
enum status store_chunk_free(const struct store *store, const struct store_bucket *bucket,
                             size_t index, struct transport *transport);

#endif
