/*
 * The parameter server
 * ====================
 *
 * W workers each hold a gradient of M bytes; a server adds them up and hands every worker the sum:
 *
 *     worker:  push my gradient; wait for the answer                  (ps/client.c)
 *     server:  for ever:
 *                  take a push
 *                  if it was the last of the W: add all W, answer each of them
 *
 * This is *bulk-synchronous*: nobody gets an answer before everybody has pushed, so all workers see
 * the same sums, and the result is the same as the ring's. Where workers shall not wait for each
 * other, the server owns the parameters, applies what comes and answers with fresh ones: the same
 * loop, with another pair of rules (ps/async.h) and what belongs to them (ps/async.c).
 *
 * What it costs. A worker sends M and receives M: less than the ring's 2(W-1)/W M each way once W
 * > 2. But the server receives W M and sends W M. With one server and links of B bytes/s, that is W
 * M/B at best, and it grows with every worker; the ring's 2(W-1)/W M/B does not. S servers, each
 * with a 1/S shard of the elements, share the load: r M/B with r = max(1, W/S) (Li et al. 2014,
 * "Scaling distributed machine learning with the parameter server"; Jiang et al. 2020, BytePS, for
 * when which is faster).
 *
 * Chunks. If a worker pushed M in one piece, the server could answer only after W M had come in,
 * and its link would stand idle one way at any time: 2 W M/B. So a shard travels in chunks, in
 * order, and a chunk is answered as soon as it is complete: sums go out while later chunks come in.
 * With K chunks: W (1 + 1/K) M/B. A worker keeps `window` chunks unanswered (ps/shard.h says why
 * not more).
 *
 * For four workers, one server and a window of two, chunks a b c d ..., what the server sees:
 *
 *     comes in     a0 a1 a2 a3   b0 b1 b2 b3   c0 c1 c2 c3   d0 d1 d2 d3
 *     goes out                   A  A  A  A    B  B  B  B    C  C  C  C     D  D  D  D
 *
 * where a2 is worker 2's contribution to chunk a and A the sum. c may come only once A has gone
 * out, because the window is two: that is what bounds the memory here, too.
 *
 * Rounds. All workers push the same chunks in the same order, so the n-th push of every worker is
 * for the same chunk: *round* n. Within one round W payloads are held where the transport received
 * them (borrowed slots, no copy); when the last has come they are added in one pass, in a fixed
 * order whatever the order of arrival, so a run can be repeated to the bit. At most `window` rounds
 * are open, so slot n % window of each worker is free again when its push n comes.
 *
 * In the code below, top-down from ps_serve at the end: serve_one takes a message, take_push files
 * it in its round, finish_round adds and answers.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/comm/codec.h"
#include "common/comm/reduce.h"
#include "common/obs/range.h"
#include "ps/async.h"
#include "ps/ps.h"
#include "ps/server.h"

struct round {
    int arrived;         /* workers whose push is here */
    struct message push; /* the first one's header: the others must be for the same chunk, */
    struct store_bucket *bucket; /* which is this one */
    size_t index;
};

struct server {
    const struct comm_site *site;
    struct transport *transport;
    struct store store;
    int workers, window;
    struct transport_slot *slots;     /* (workers, window): push n of a worker is in n % window */
    struct transport_slot **expected; /* (workers): where the next push of each will be */
    uint64_t *pushes;                 /* (workers): how many have come from each */
    struct round *rounds;             /* (window): round n is rounds[n % window] */
    const void **sources;             /* (workers): scratch for finish_round */
    int open_rounds;                  /* rounds with some, but not all, pushes */
    int workers_paused;               /* who have said PAUSE, and not pushed since */
    int workers_left;                 /* who have not said BYE */
    struct updates *updates;          /* NULL: it only sums; then nothing is in `rounds` */
};

static struct transport_slot *slot_of(const struct server *server, int worker, uint64_t push)
{
    size_t window = (size_t)server->window;
    return &server->slots[(size_t)worker * window + push % window];
}

static enum status refuse(const struct server *server, int worker, const struct message *found,
                          const char *why)
{
    log_error("server %d: worker %d sent kind %d, step %" PRIu64 " bucket %u offset %" PRIu64
              " (%" PRIu64 " bytes): %s; do all ranks run with the same options?",
              server->site->index, worker, (int)found->kind, found->step, found->bucket,
              found->offset, found->length, why);
    return STATUS_PROTOCOL;
}

/* All W contributions are here: add them, make the slots free for the next pushes, answer. */
static enum status finish_round(struct server *server, uint64_t n)
{
    enum status status = STATUS_OK;
    struct round *round = &server->rounds[n % (uint64_t)server->window];
    struct store_bucket *bucket = round->bucket;
    size_t index = round->index;
    const struct comm_options *options = server->site->options;
    float scale = server->site->layout->scale;
    struct chunk chunk = shard_chunk(bucket->shard, bucket->chunks, index);
    struct chunk ours = {chunk.offset - bucket->shard.offset, chunk.count};

    TRY(store_chunk_free(&server->store, bucket, index, server->transport));
    for (int worker = 0; worker < server->workers; worker++)
        server->sources[worker] = slot_of(server, worker, n)->payload;
    struct reduce_span span = {chunk.offset, chunk.count, bucket->total, options->compress};
    reduce_in_order(bucket->values + ours.offset, server->sources, server->workers, span,
                    options->reduce_order, scale);
    const void *sum = codec_encode(&bucket->codec, bucket->values, ours);

    for (int worker = 0; worker < server->workers; worker++) {
        struct transport_slot *slot = slot_of(server, worker, n);
        transport_release(server->transport, slot);
        TRY(transport_post(server->transport, slot, NULL));
    }
    struct message answer = round->push;
    answer.kind = MESSAGE_PULL;
    uint64_t *tickets = bucket->tickets + index * (size_t)server->workers;
    for (int i = 0; i < server->workers; i++) {
        /* Every server begins with another worker, lest all senders go for the first one's link. */
        int worker = (server->site->index + i) % server->workers;
        TRY(transport_send(server->transport, worker, &answer, sum, &tickets[worker]));
    }
    bucket->answered[index] = true;
    round->arrived = 0;
out:
    return status;
}

/* Files a push in its round; it stays in its slot until the round is finished. */
static enum status take_push(struct server *server, int worker, const struct message *push)
{
    if (server->workers_left < server->workers)
        return refuse(server, worker, push, "another worker has left already");
    uint64_t n = server->pushes[worker]++;
    server->expected[worker] = slot_of(server, worker, n + 1);
    struct round *round = &server->rounds[n % (uint64_t)server->window];
    if (round->arrived == 0) {
        round->push = *push;
        round->bucket = store_find(&server->store, push, &round->index);
        if (!round->bucket)
            return refuse(server, worker, push, "no chunk of this server's");
        server->open_rounds++;
    }
    if (push->step != round->push.step || push->bucket != round->push.bucket ||
        push->offset != round->push.offset || push->length != round->push.length)
        return refuse(server, worker, push, "the others are at another chunk");
    if (++round->arrived < server->workers)
        return STATUS_OK;
    server->open_rounds--;
    range_at_step(push->step / server->site->layout->buckets);
    range_detail_begin("add and answer", &(struct range_about){.kind = RANGE_SERVER,
                                                               .bucket = push->bucket,
                                                               .chunk = (uint32_t)round->index,
                                                               .number = push->step,
                                                               .bytes = push->length});
    enum status status = finish_round(server, n);
    range_detail_end();
    return status;
}

/* A pause is a round in which nothing is added. */
static enum status take_pause(struct server *server, int worker, const struct message *pause)
{
    struct transport_slot *slot = server->expected[worker];
    server->expected[worker] = slot_of(server, worker, ++server->pushes[worker]);
    server->workers_paused++;
    if (server->open_rounds > 0)
        return refuse(server, worker, pause, "it pauses in the middle of a step");
    transport_release(server->transport, slot);
    return transport_post(server->transport, slot, NULL);
}

/* Where the server owns the parameters, nothing stays in its slot. */
static enum status update(struct server *server, int worker, const struct message *message)
{
    enum status status = STATUS_OK;
    struct transport_slot *slot = server->expected[worker];
    range_detail_begin("take and answer", &(struct range_about){.kind = RANGE_SERVER,
                                                                .bucket = message->bucket,
                                                                .number = message->step,
                                                                .bytes = message->length});
    TRY(updates_take(server->updates, worker, message, slot->payload));
    transport_release(server->transport, slot);
    TRY(transport_post(server->transport, slot, NULL));
    server->expected[worker] = slot_of(server, worker, ++server->pushes[worker]);
out:
    range_detail_end();
    return status;
}

/* Takes the next message from anyone. */
static enum status serve_one(struct server *server)
{
    size_t which;
    /* Between steps the workers compute, for as long as they need. In the middle of one, a silent
     * worker is a lost one. */
    bool patient = server->updates ? !updates_awaited(server->updates) : server->open_rounds == 0;
    enum status status = transport_wait_any(server->transport, server->expected,
                                            (size_t)server->workers, patient, &which);
    if (status != STATUS_OK)
        return status;
    int worker = (int)which;
    struct transport_slot *slot = server->expected[worker];
    struct message message = slot->message;
    slot->done = false; /* taken; a push keeps its slot until its round is finished */
    if (server->updates && message.kind != MESSAGE_BYE && message.kind != MESSAGE_PAUSE)
        return update(server, worker, &message);
    switch (message.kind) {
    case MESSAGE_PUSH:
        return take_push(server, worker, &message);
    case MESSAGE_PAUSE:
        return take_pause(server, worker, &message);
    case MESSAGE_BYE:
        transport_release(server->transport, slot); /* its sender may wait for that */
        server->expected[worker] = NULL;
        server->workers_left--;
        if (server->open_rounds > 0)
            return refuse(server, worker, &message, "it left in the middle of a step");
        return server->updates ? updates_leave(server->updates, worker) : STATUS_OK;
    default:
        return refuse(server, worker, &message, "expected a push");
    }
}

/* -------- a server's life --------------------------------------------------------------------- */

/* Nothing that was posted stays so: the next plan's messages must not meet this one's slots. */
static void end_plan(struct server *server)
{
    size_t slots = (size_t)server->workers * (size_t)server->window;
    for (size_t i = 0; server->slots && i < slots; i++)
        transport_slot_fini(&server->slots[i], server->transport);
    free(server->slots);
    free(server->expected);
    free(server->pushes);
    free(server->rounds);
    free(server->sources);
    updates_free(&server->updates);
    store_fini(&server->store);
    *server = (struct server){
        .site = server->site, .transport = server->transport, .workers = server->workers};
}

static enum status begin_plan(struct server *server)
{
    enum status status = STATUS_OK;
    TRY(store_init(&server->store, server->site));
    server->window = server->store.plan.window;
    server->workers_left = server->workers;
    size_t workers = (size_t)server->workers, window = (size_t)server->window;
    const struct comm_options *options = server->site->options;
    bool updates = consistency_updates(&options->consistency);
    size_t bytes = server->store.plan.chunk_count *
                   (updates ? sizeof(float) : compress_element_bytes(options->compress));
    server->slots = calloc(workers * window, sizeof *server->slots);
    server->expected = calloc(workers, sizeof *server->expected);
    server->pushes = calloc(workers, sizeof *server->pushes);
    server->rounds = calloc(window, sizeof *server->rounds);
    server->sources = calloc(workers, sizeof *server->sources);
    if (!server->slots || !server->expected || !server->pushes || !server->rounds ||
        !server->sources) {
        log_error("server %d: no memory for %d workers", server->site->index, server->workers);
        return STATUS_NO_MEMORY;
    }
    if (updates)
        TRY(updates_new(&server->updates, server->site, &server->store));
    for (size_t i = 0; i < workers * window; i++) {
        struct transport_slot *slot = &server->slots[i];
        TRY(transport_slot_init(slot, server->transport, (int)(i / window), bytes));
        TRY(transport_post(server->transport, slot, NULL));
    }
    for (int worker = 0; worker < server->workers; worker++)
        server->expected[worker] = slot_of(server, worker, 0);
out:
    return status;
}

/* After an error what sends may still read stays until ps_server_close: the comm cuts the
 * connections first. */
enum status ps_serve(void *self, bool *paused)
{
    enum status status = STATUS_OK;
    struct server *server = self;
    if (!server->slots) /* else it goes on after a pause */
        TRY(begin_plan(server));
    server->workers_paused = 0;
    while (server->workers_left > 0 && server->workers_paused < server->workers)
        TRY(serve_one(server));
    TRY(transport_flush(server->transport));
    *paused = server->workers_left > 0;
    if (!*paused)
        end_plan(server);
out:
    return status;
}

float *ps_server_state(void *self, size_t index, size_t *count)
{
    const struct server *server = self;
    return store_state(&server->store, index, count);
}

void ps_server_close(void *self)
{
    end_plan(self);
    free(self);
}

enum status ps_server_open(void **self, const struct comm_site *site)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server) {
        log_error("server %d: out of memory", site->index);
        return STATUS_NO_MEMORY;
    }
    server->site = site;
    server->transport = site->transport;
    server->workers = site->workers;
    *self = server;
    return STATUS_OK;
}

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
