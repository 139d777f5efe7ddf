/*
 * The parameter server
 * ====================
 *
 * W workers each hold a gradient of M bytes. A server adds them up and sends every worker the sum:
 *
 *     worker:  push my gradient; wait for the answer                  (ps/client.c)
 *     server:  for ever:
 *                  take a push
 *                  if it was the last of the W: add all W, answer each of them
 *
 * This is *bulk-synchronous*: no worker gets an answer before all workers have pushed. All workers
 * therefore see the same sums, and the result is the same as the ring's. If workers must not wait
 * for each other, the server owns the parameters, applies each push and answers with fresh
 * parameters. The loop is the same; only the policy differs (ps/async.c). A policy is a table of
 * functions (ps/server.h).
 *
 * Cost. A worker sends M and receives M. For W > 2 that is less than the ring's 2(W-1)/W M each
 * way. But the server receives W M and sends W M. With one server and links of B bytes/s that takes
 * at least W M/B, and it grows with every worker. The ring's 2(W-1)/W M/B does not. S servers share
 * the load, each with a shard of 1/S of the elements. The time is then r M/B with r = max(1, W/S)
 * (Li et al. 2014, "Scaling distributed machine learning with the parameter server"). Jiang et al.
 * 2020, BytePS, show when each of the two is faster.
 *
 * Chunks. If a worker pushed M in one piece, the server could answer only after it had received W
 * M. Its link would always be idle in one direction, and the time would be 2 W M/B. A shard
 * therefore travels in chunks, in order, and the server answers a chunk as soon as it is complete.
 * Sums go out while later chunks come in. With K chunks the time is W (1 + 1/K) M/B. A worker keeps
 * at most `window` chunks unanswered (ps/shard.h gives the reasons).
 *
 * The diagram shows the server's messages for four workers, one server, a window of two and chunks
 * a b c d ...
 *
 *     comes in     a0 a1 a2 a3   b0 b1 b2 b3   c0 c1 c2 c3   d0 d1 d2 d3
 *     goes out                   A  A  A  A    B  B  B  B    C  C  C  C     D  D  D  D
 *
 * Here a2 is worker 2's contribution to chunk a, and A is the sum. The window is two, so c may come
 * only after A has gone out. The window thus also bounds the server's memory.
 *
 * Rounds. All workers push the same chunks in the same order. The n-th push of every worker is
 * therefore for the same chunk: *round* n. In a round, W payloads stay where the transport received
 * them (borrowed slots, no copy). When the last one has arrived, the server adds all of them in one
 * pass, in a fixed order. The order of arrival does not matter, so a run can be repeated to the
 * bit. At most `window` rounds are open, so slot n % window of each worker is free when its push n
 * arrives.
 *
 * Code. The policy that sums comes first: take_push and finish_round. Then comes the loop:
 * serve_one takes a message of any worker and passes it to the policy. ps_serve calls serve_one.
 */
#include "ps/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/codec.h"
#include "common/comm/reduce.h"
#include "common/base/range.h"
#include "ps/async.h"
#include "ps/ps.h"

static struct transport_slot *slot_of(const struct server *server, int worker, uint64_t push)
{
    size_t window = (size_t)server->window;
    return &server->slots[(size_t)worker * window + push % window];
}

enum status server_reuse(struct server *server, struct transport_slot *slot)
{
    transport_release(server->transport, slot);
    return transport_post(server->transport, slot, NULL);
}

enum status server_refuse(const struct server *server, int worker, const struct message *found,
                          const char *why)
{
    return FAIL(STATUS_PROTOCOL,
                "server %d: worker %d sent kind %d, step %" PRIu64 " bucket %u offset %" PRIu64
                " (%" PRIu64 " bytes): %s; do all ranks run with the same options?",
                server->site->index, worker, (int)found->kind, found->step, found->bucket,
                found->offset, found->length, why);
}

/* -------- the policy that sums ---------------------------------------------------------------- */

struct sum_round {
    int arrived;         /* workers whose push has arrived */
    struct message push; /* header of the first push; the others must be for the same chunk: */
    struct store_bucket *bucket; /* the bucket and the index of that chunk */
    size_t index;
    const void **payloads; /* (workers): the pushed payloads, in their slots */
};

struct sum_rounds {
    int open;                 /* rounds with some, but not all, pushes */
    const void **payloads;    /* (window, workers): payloads of all rounds */
    struct sum_round round[]; /* (window): round n is round[n % window] */
};

static struct sum_round *round_of(const struct server *server, uint64_t n)
{
    struct sum_rounds *rounds = server->rounds;
    return &rounds->round[n % (uint64_t)server->window];
}

/* Returns when no answer sent from the chunk is still being read, so that it may be overwritten. In
 * practice it returns at once: workers that push again have received all their answers. */
static enum status wait_until_read(const struct server *server, const struct store_bucket *bucket,
                                   size_t index)
{
    size_t workers = (size_t)server->workers;
    for (size_t worker = 0; bucket->answered[index] && worker < workers; worker++) {
        enum status status = transport_wait_sent(server->transport, (int)worker,
                                                 bucket->tickets[index * workers + worker]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* All W contributions have arrived: adds them, frees the slots for the next pushes, and answers. */
static enum status finish_round(struct server *server, uint64_t n)
{
    enum status status = STATUS_OK;
    struct sum_round *round = round_of(server, n);
    struct store_bucket *bucket = round->bucket;
    size_t index = round->index;
    const struct comm_options *options = server->site->options;
    struct chunk chunk = shard_chunk(bucket->shard, bucket->chunks, index);
    struct chunk ours = {chunk.offset - bucket->shard.offset, chunk.count};

    TRY(wait_until_read(server, bucket, index));
    struct reduce_span span = {chunk.offset, chunk.count, bucket->total, options->compress};
    reduce_in_order(bucket->values + ours.offset, round->payloads, server->workers, span,
                    options->reduce_order, server->site->layout->scale);
    const void *sum = codec_encode(&bucket->codec, bucket->values, ours);

    for (int worker = 0; worker < server->workers; worker++)
        TRY(server_reuse(server, slot_of(server, worker, n)));
    struct message answer = round->push;
    answer.kind = MESSAGE_PULL;
    uint64_t *tickets = bucket->tickets + index * (size_t)server->workers;
    for (int i = 0; i < server->workers; i++) {
        /* Each server begins with a different worker, so that servers do not all load the same link
         * first. */
        int worker = (server->site->index + i) % server->workers;
        TRY(transport_send(server->transport, worker, &answer, sum, &tickets[worker]));
    }
    bucket->answered[index] = true;
    round->arrived = 0;
out:
    return status;
}

/* Records a push in its round. The payload stays in its slot until the round is finished. */
static enum status take_push(struct server *server, int worker, const struct message *push,
                             const void *payload)
{
    struct sum_rounds *rounds = server->rounds;
    uint64_t n = server->pushes[worker] - 1;
    struct sum_round *round = round_of(server, n);
    if (push->kind != MESSAGE_PUSH)
        return server_refuse(server, worker, push, "expected a push");
    if (server->workers_left < server->workers)
        return server_refuse(server, worker, push, "another worker has left already");
    if (round->arrived == 0) {
        round->push = *push;
        round->bucket = store_find(&server->store, push, &round->index);
        if (!round->bucket)
            return server_refuse(server, worker, push, "not a chunk of this server");
        rounds->open++;
    }
    if (push->step != round->push.step || push->bucket != round->push.bucket ||
        push->offset != round->push.offset || push->length != round->push.length)
        return server_refuse(server, worker, push, "the other workers are at another chunk");
    round->payloads[worker] = payload;
    if (++round->arrived < server->workers)
        return STATUS_OK;
    rounds->open--;
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

static bool sums_await(const struct server *server)
{
    const struct sum_rounds *rounds = server->rounds;
    return rounds->open > 0;
}

static enum status stop_between_rounds(struct server *server, int worker,
                                       const struct message *message)
{
    if (!sums_await(server))
        return STATUS_OK;
    return server_refuse(server, worker, message,
                         message->kind == MESSAGE_PAUSE
                             ? "the worker pauses in the middle of a step"
                             : "the worker left in the middle of a step");
}

static void end_rounds(struct server *server)
{
    struct sum_rounds *rounds = server->rounds;
    if (rounds)
        free(rounds->payloads);
    free(rounds);
}

static enum status begin_rounds(struct server *server)
{
    size_t workers = (size_t)server->workers, window = (size_t)server->window;
    struct sum_rounds *rounds = calloc(1, sizeof *rounds + window * sizeof *rounds->round);
    server->rounds = rounds;
    if (rounds)
        rounds->payloads = calloc(window * workers, sizeof *rounds->payloads);
    if (!rounds || !rounds->payloads)
        return FAIL(STATUS_NO_MEMORY, "server %d: no memory for %d workers", server->site->index,
                    server->workers);
    for (size_t i = 0; i < window; i++)
        rounds->round[i].payloads = rounds->payloads + i * workers;
    return STATUS_OK;
}

static const struct server_policy server_sums = {
    .begin = begin_rounds,
    .end = end_rounds,
    .on_message = take_push,
    .keeps_payloads = true,
    .on_stop = stop_between_rounds,
    .awaits = sums_await,
};

/* -------- the loop ---------------------------------------------------------------------------- */

/* Takes the next message of any worker. */
static enum status serve_one(struct server *server)
{
    enum status status;
    const struct server_policy *policy = server->policy;
    size_t which;
    /* Between steps the workers compute for as long as they need. In the middle of a step, a silent
     * worker counts as lost. */
    bool patient = !policy->awaits(server);
    TRY(transport_wait_any(server->transport, server->expected, (size_t)server->workers, patient,
                           &which));
    int worker = (int)which;
    struct transport_slot *slot = server->expected[worker];
    const struct message message = slot->message;
    slot->posted = false; /* consumed; no message can arrive until it is posted again */
    /* MESSAGE_PAUSE is counted like a push, but has nothing to add. */
    server->expected[worker] = slot_of(server, worker, ++server->pushes[worker]);
    if (server->paused[worker])
        return server_refuse(server, worker, &message, "the worker has paused");
    if (message.kind == MESSAGE_BYE) {
        transport_release(server->transport, slot); /* the sender may wait for this */
        server->expected[worker] = NULL;
        server->workers_left--;
        return policy->on_stop(server, worker, &message);
    }
    if (message.kind == MESSAGE_PAUSE) {
        server->paused[worker] = true;
        server->workers_paused++;
        TRY(policy->on_stop(server, worker, &message));
        return server_reuse(server, slot);
    }
    TRY(policy->on_message(server, worker, &message, slot->payload));
    if (!policy->keeps_payloads)
        TRY(server_reuse(server, slot));
out:
    return status;
}

/* -------- a server's life --------------------------------------------------------------------- */

/* Withdraws all posted receives: the next plan's messages must not arrive in this plan's slots. */
static void end_plan(struct server *server)
{
    size_t slots = (size_t)server->workers * (size_t)server->window;
    for (size_t i = 0; server->slots && i < slots; i++)
        transport_slot_fini(&server->slots[i], server->transport);
    free(server->slots);
    free(server->expected);
    free(server->pushes);
    free(server->paused);
    if (server->policy)
        server->policy->end(server);
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
    server->policy = consistency_updates(&options->consistency) ? &server_async : &server_sums;
    size_t bytes =
        server->store.plan.chunk_count *
        (server->policy->floats ? sizeof(float) : compress_element_bytes(options->compress));
    server->slots = calloc(workers * window, sizeof *server->slots);
    server->expected = calloc(workers, sizeof *server->expected);
    server->pushes = calloc(workers, sizeof *server->pushes);
    server->paused = calloc(workers, sizeof *server->paused);
    if (!server->slots || !server->expected || !server->pushes || !server->paused)
        return FAIL(STATUS_NO_MEMORY, "server %d: no memory for %d workers", server->site->index,
                    server->workers);
    TRY(server->policy->begin(server));
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

/* After an error, memory that sends may still read stays until ps_server_close. The comm cuts the
 * connections first. */
enum status ps_serve(void *self, bool *paused)
{
    enum status status = STATUS_OK;
    struct server *server = self;
    if (!server->slots) /* else the plan continues after a pause */
        TRY(begin_plan(server));
    memset(server->paused, 0, (size_t)server->workers * sizeof *server->paused);
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
    const struct store *store = &server->store;
    return index < store->bucket_count ? codecs_state(&store->buckets[index].codec, 1, 0, count)
                                       : NULL;
}

void ps_server_close(void *self)
{
    end_plan(self);
    free(self);
}

enum status ps_server_open(void **self, const struct backend_env *site)
{
    struct server *server = calloc(1, sizeof *server);
    if (!server)
        return FAIL(STATUS_NO_MEMORY, "server %d: out of memory", site->index);
    server->site = site;
    server->transport = site->transport;
    server->workers = site->workers;
    *self = server;
    return STATUS_OK;
}

/* -------- the store --------------------------------------------------------------------------- */

enum status store_init(struct store *store, const struct backend_env *site)
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
