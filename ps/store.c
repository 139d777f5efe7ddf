#include "ps/store.h"

#include <stdlib.h>

enum status store_init(struct store *store, const struct comm_site *site)
{
    const struct comm_layout *layout = site->layout;
    *store = (struct store){
        .plan = shard_plan_of(&site->topology, layout, site->options),
        .workers = site->workers,
        .bucket_count = layout->buckets,
        .buckets = calloc(layout->buckets + 1, sizeof *store->buckets),
    };
    bool complete = store->buckets != NULL;
    for (size_t b = 0; complete && b < layout->buckets; b++) {
        struct store_bucket *bucket = &store->buckets[b];
        bucket->total = layout->counts[b];
        bucket->shard = shard_of(&site->topology, bucket->total, site->index);
        bucket->chunks = shard_chunks(&store->plan, bucket->total, site->index);
        bucket->values = calloc(bucket->shard.count + 1, sizeof *bucket->values);
        bucket->tickets =
            calloc(bucket->chunks * (size_t)store->workers + 1, sizeof *bucket->tickets);
        bucket->answered = calloc(bucket->chunks + 1, sizeof *bucket->answered);
        complete = bucket->values && bucket->tickets && bucket->answered &&
                   codec_init(&bucket->codec, site, b, bucket->shard.count) == STATUS_OK;
    }
    if (complete)
        return STATUS_OK;
    log_error("server %d: no memory for its shards of %zu buckets", site->index, layout->buckets);
    store_fini(store);
    return STATUS_NO_MEMORY;
}

void store_fini(struct store *store)
{
    for (size_t b = 0; store->buckets && b < store->bucket_count; b++) {
        codec_fini(&store->buckets[b].codec);
        free(store->buckets[b].values);
        free(store->buckets[b].tickets);
        free(store->buckets[b].answered);
    }
    free(store->buckets);
    *store = (struct store){0};
}

float *store_state(const struct store *store, size_t index, size_t *count)
{
    return index < store->bucket_count ? codecs_state(&store->buckets[index].codec, 1, 0, count)
                                       : NULL;
}

/* The chunk that begins at element `offset` of the message's bucket. */
static struct store_bucket *find(struct store *store, const struct message *message,
                                 uint64_t offset, size_t *index)
{
    struct store_bucket *bucket = &store->buckets[message->bucket];
    if (offset < bucket->shard.offset || offset >= bucket->shard.offset + bucket->shard.count)
        return NULL;
    size_t at = (size_t)offset - bucket->shard.offset;
    *index = chunk_holding(bucket->shard.count, bucket->chunks, at);
    return shard_chunk(bucket->shard, bucket->chunks, *index).offset == offset ? bucket : NULL;
}

struct store_bucket *store_find(struct store *store, const struct message *message, size_t *index)
{
    if (message->bucket >= store->bucket_count)
        return NULL;
    const struct codec *codec = &store->buckets[message->bucket].codec;
    struct store_bucket *bucket =
        find(store, message, message->offset / compress_element_bytes(codec->compress), index);
    if (!bucket)
        return NULL;
    struct message expected = codec_message(codec, message->kind, message->step,
                                            shard_chunk(bucket->shard, bucket->chunks, *index));
    if (message->offset != expected.offset || message->length != expected.length)
        return NULL;
    return bucket;
}

struct store_bucket *store_find_array(struct store *store, const struct message *message,
                                      size_t *index)
{
    if (message->bucket >= store->bucket_count || message->dtype != MESSAGE_FLOAT32)
        return NULL;
    struct store_bucket *bucket = find(store, message, message->offset / sizeof(float), index);
    if (!bucket)
        return NULL;
    size_t count = shard_chunk(bucket->shard, bucket->chunks, *index).count;
    bool whole = message->kind == MESSAGE_FETCH || message->length == count * sizeof(float);
    return whole ? bucket : NULL;
}

enum status store_chunk_free(const struct store *store, const struct store_bucket *bucket,
                             size_t index, struct transport *transport)
{
    if (!bucket->answered[index])
        return STATUS_OK;
    for (int worker = 0; worker < store->workers; worker++) {
        uint64_t ticket = bucket->tickets[index * (size_t)store->workers + (size_t)worker];
        enum status status = transport_wait_sent(transport, worker, ticket);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}
