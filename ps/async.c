/*
 * Servers that own the parameters, and their workers. A server applies pushes and answers with
 * fresh parameters when the rules allow it (async.h). It applies a push, or adds it to the other
 * pushes of its step. Then it answers every push that may be answered now, each worker's pushes in
 * order. The rules depend only on `clocks`, one for each chunk and worker.
 *
 * Memory: the updater owns the arrays. An answer is a copy, because its chunk may change before the
 * answer has been sent. Each worker has a window of copies.
 *
 * Errors: STATUS_PROTOCOL for an unexpected message, and for an answer that breaks the promise of
 * the mode: parameters without an update that they must contain (check_bound).
 */
#include "ps/async.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/comm/codec.h"
#include "common/comm/reduce.h"
#include "common/base/range.h"
#include "ps/server.h"

/* -------- the two rules ----------------------------------------------------------------------- */

struct async_rules async_rules_of(const struct consistency *consistency, int workers)
{
    struct async_rules rules = {0};
    switch (consistency->kind) { /* no default: the compiler names a mode that is missing here */
    case CONSISTENCY_BSP:
        rules.to_apply = rules.to_answer = workers - consistency->backup_workers;
        break;
    case CONSISTENCY_SSP:
        rules = (struct async_rules){
            .to_apply = 1, .to_answer = workers, .slack = consistency->staleness, .alone = true};
        break;
    case CONSISTENCY_ASYNC:
        rules = (struct async_rules){.to_apply = 1, .alone = true};
        break;
    }
    return rules;
}

/* Whether at least `needed` workers have done all steps before `clock`. */
static bool have_reached(const uint64_t *clocks, int workers, uint64_t clock, int needed)
{
    for (int worker = 0; worker < workers && needed > 0; worker++)
        needed -= clocks[worker] >= clock;
    return needed <= 0;
}

bool async_may_apply(const struct async_rules *rules, const uint64_t *clocks, int workers,
                     uint64_t step)
{
    return have_reached(clocks, workers, step + 1, rules->to_apply);
}

bool async_may_answer(const struct async_rules *rules, const uint64_t *clocks, int workers,
                      uint64_t step)
{
    uint64_t clock = step + 1;
    return clock <= rules->slack ||
           have_reached(clocks, workers, clock - rules->slack, rules->to_answer);
}

uint64_t async_next_step(const struct consistency *consistency, uint64_t next, uint64_t first,
                         uint64_t end)
{
    bool together = !consistency_applies_each(consistency);
    uint64_t behind = first > next ? first - next : 0;
    if (behind == 0 || (consistency->late_steps == 0 && !together))
        return next;
    return first >= end || together || behind >= consistency->late_steps ? first : next;
}

/* -------- a worker's steps -------------------------------------------------------------------- */

static void start_step(struct async_steps *steps)
{
    *steps = (struct async_steps){
        .progress = steps->progress, .end = steps->end, .ahead_least = UINT16_MAX};
}

void async_steps_begin(struct async_steps *steps, uint64_t step, uint64_t end)
{
    steps->progress.step = step;
    steps->end = end;
    start_step(steps);
}

void async_steps_answered(struct async_steps *steps, const struct message *answer)
{
    steps->answers++;
    steps->elements += answer->length;
    steps->late += answer->late ? answer->length : 0;
    if (answer->staleness > steps->staleness)
        steps->staleness = answer->staleness;
    if (answer->ahead < steps->ahead_least)
        steps->ahead_least = answer->ahead;
    if (answer->ahead > steps->ahead_most)
        steps->ahead_most = answer->ahead;
}

/*
 * How far the first worker is ahead. Chunks are at different steps. With backup workers a step is
 * over only when all its chunks are, and it may need this worker until then: the minimum counts.
 * Otherwise the maximum counts: in ssp the first worker waits in its first chunks.
 */
static uint64_t ahead_of(const struct async_steps *steps, const struct consistency *consistency)
{
    if (steps->answers == 0)
        return 0;
    return consistency_applies_each(consistency) ? steps->ahead_most : steps->ahead_least;
}

uint64_t async_steps_next(struct async_steps *steps, const struct consistency *consistency)
{
    struct comm_progress *progress = &steps->progress;
    uint64_t next = progress->step + 1, first = next + ahead_of(steps, consistency);
    size_t bin = steps->staleness < COMM_STALENESS_MOST ? steps->staleness : COMM_STALENESS_MOST;
    progress->step = async_next_step(consistency, next, first, steps->end);
    progress->left_out += progress->step - next;
    progress->done++;
    progress->staleness[bin]++;
    if (steps->elements > 0)
        progress->dropped += (double)steps->late / (double)steps->elements;
    start_step(steps);
    return progress->step;
}

/* -------- a server ---------------------------------------------------------------------------- */

/* An unanswered push. */
struct async_push {
    struct store_bucket *bucket;
    size_t index; /* index of the chunk in it */
    uint64_t step;
    bool late;
};

/* State of a chunk for the rules. */
struct async_chunk {
    uint64_t *clocks;  /* (workers): the first step that each has neither pushed nor skipped */
    uint64_t applied;  /* with backup workers: all steps before it are over */
    int contributions; /* pushes added for step `applied` */
};

struct async {
    const struct server *server; /* the server with this policy */
    const struct backend_env *site;
    const struct comm_updater *updater;
    struct store *store; /* the server's */
    struct async_rules rules;
    size_t window;
    struct async_chunk **chunks; /* (buckets): chunks of each bucket */
    uint64_t *clocks;            /* (all chunks, workers) */
    size_t chunk_total;
    struct async_push *pulls; /* (workers, window): ring buffer of each worker, from its `head` */
    size_t *heads, *waiting;
    float *answers;    /* (workers, window, chunk_count) */
    uint64_t *tickets; /* (workers, window): of the answers sent from that copy */
    uint64_t *sent;    /* (workers): answers sent */
    bool begun;
    uint64_t first_step; /* first step of this run; a timeline counts from it */
};

/* -------- memory ------------------------------------------------------------------------------ */

static void async_end(struct server *server)
{
    struct async *u = server->rounds;
    if (!u)
        return;
    for (size_t b = 0; u->chunks && b < u->store->bucket_count; b++)
        free(u->chunks[b]);
    free(u->chunks);
    free(u->clocks);
    free(u->pulls);
    free(u->heads);
    free(u->waiting);
    free(u->answers);
    free(u->tickets);
    free(u->sent);
    free(u);
}

static bool allocate_chunks(struct async *u)
{
    size_t workers = (size_t)u->site->workers, at = 0;
    for (size_t b = 0; b < u->store->bucket_count; b++)
        u->chunk_total += u->store->buckets[b].chunks;
    u->chunks = calloc(u->store->bucket_count + 1, sizeof *u->chunks);
    u->clocks = calloc(u->chunk_total * workers + 1, sizeof *u->clocks);
    for (size_t b = 0; u->chunks && u->clocks && b < u->store->bucket_count; b++) {
        size_t chunks = u->store->buckets[b].chunks;
        u->chunks[b] = calloc(chunks + 1, sizeof *u->chunks[b]);
        for (size_t c = 0; u->chunks[b] && c < chunks; c++)
            u->chunks[b][c].clocks = u->clocks + at++ * workers;
        if (!u->chunks[b])
            return false;
    }
    return u->chunks && u->clocks;
}

static enum status async_begin(struct server *server)
{
    const struct backend_env *site = server->site;
    struct store *store = &server->store;
    size_t workers = (size_t)site->workers, window = (size_t)store->plan.window;
    struct async *u = server->rounds = calloc(1, sizeof *u);
    if (u) {
        *u = (struct async){.server = server,
                            .site = site,
                            .updater = site->options->updater,
                            .store = store,
                            .rules = async_rules_of(&site->options->consistency, site->workers),
                            .window = window};
        u->pulls = calloc(workers * window, sizeof *u->pulls);
        u->heads = calloc(workers, sizeof *u->heads);
        u->waiting = calloc(workers, sizeof *u->waiting);
        u->answers = calloc(workers * window * store->plan.chunk_count, sizeof *u->answers);
        u->tickets = calloc(workers * window, sizeof *u->tickets);
        u->sent = calloc(workers, sizeof *u->sent);
    }
    if (u && u->pulls && u->heads && u->waiting && u->answers && u->tickets && u->sent &&
        allocate_chunks(u))
        return STATUS_OK;
    return FAIL(STATUS_NO_MEMORY, "server %d: no memory for the answers to %d workers", site->index,
                site->workers);
}

/* -------- answering --------------------------------------------------------------------------- */

static struct async_chunk *progress_of(const struct async *u, const struct store_bucket *bucket,
                                       size_t index)
{
    return &u->chunks[bucket - u->store->buckets][index];
}

/* Sends a message with (count) floats from a copy, which is in use until the worker has received
 * it. */
static enum status send_answer(struct async *u, int worker, struct message *answer,
                               const float *values)
{
    enum status status = STATUS_OK;
    struct transport *transport = u->site->transport;
    size_t slot = (size_t)worker * u->window + u->sent[worker] % u->window;
    float *copy = u->answers + slot * u->store->plan.chunk_count;
    /* Returns at once: the worker has received the previous answer from there, or it would not have
     * pushed again. */
    if (u->sent[worker] >= u->window)
        TRY(transport_wait_sent(transport, worker, u->tickets[slot]));
    if (answer->length > 0)
        memcpy(copy, values, answer->length);
    answer->kind = MESSAGE_PULL;
    answer->dtype = MESSAGE_FLOAT32;
    TRY(transport_send(transport, worker, answer, copy, &u->tickets[slot]));
    u->sent[worker]++;
out:
    return status;
}

static struct message message_for(const struct async *u, const struct store_bucket *bucket,
                                  size_t index, uint64_t step)
{
    struct chunk chunk = shard_chunk(bucket->shard, bucket->chunks, index);
    return (struct message){.bucket = (uint32_t)(bucket - u->store->buckets),
                            .step = step,
                            .offset = chunk.offset * sizeof(float),
                            .length = chunk.count * sizeof(float)};
}

static float *values_of(const struct async *u, const struct store_bucket *bucket, size_t index,
                        size_t array)
{
    struct chunk chunk = shard_chunk(bucket->shard, bucket->chunks, index);
    size_t b = (size_t)(bucket - u->store->buckets);
    return u->updater->array(u->updater->context, b, array) + chunk.offset;
}

static uint16_t to_u16(uint64_t value)
{
    return value < UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

/* Compares the other workers' clocks with the clock of the worker that is answered. */
static void compare_clocks(const struct async *u, const struct async_chunk *progress, int worker,
                           const struct async_push *pull, struct message *answer)
{
    uint64_t clock = pull->step + 1, least = clock, first = clock;
    for (int other = 0; other < u->site->workers; other++) {
        uint64_t its = progress->clocks[other];
        if (other == worker || its == ASYNC_LEFT)
            continue;
        least = its < least ? its : least;
        first = its > first ? its : first;
    }
    if (!u->rules.alone) { /* pushes of an unfinished step, and late pushes, do not count */
        least = clock;
        first = progress->applied;
    }
    answer->staleness = to_u16(clock - least);
    answer->ahead = to_u16(first < clock ? 0 : first - clock);
    answer->late = pull->late;
}

/* Checks, independently of the rules, that the parameters lack no step that the mode promises. */
static enum status check_bound(const struct async *u, int worker, const struct async_push *pull,
                               const struct message *answer)
{
    const struct consistency *consistency = &u->site->options->consistency;
    const struct async_chunk *progress = progress_of(u, pull->bucket, pull->index);
    if (!u->rules.alone && progress->applied <= pull->step)
        return FAIL(STATUS_PROTOCOL,
                    "server %d: worker %d was about to get parameters without step %" PRIu64
                    ", which is not applied yet; please report this defect",
                    u->site->index, worker, pull->step);
    if (consistency->kind != CONSISTENCY_SSP || answer->staleness <= consistency->staleness)
        return STATUS_OK;
    return FAIL(STATUS_PROTOCOL,
                "server %d: worker %d was about to get parameters that lack %u steps of another "
                "worker, at most %" PRIu64 " with this --sync ssp; please report this defect",
                u->site->index, worker, (unsigned)answer->staleness, consistency->staleness);
}

static enum status answer_pull(struct async *u, int worker, const struct async_push *pull)
{
    enum status status = STATUS_OK;
    struct message answer = message_for(u, pull->bucket, pull->index, pull->step);
    compare_clocks(u, progress_of(u, pull->bucket, pull->index), worker, pull, &answer);
    TRY(check_bound(u, worker, pull, &answer));
    TRY(send_answer(u, worker, &answer, values_of(u, pull->bucket, pull->index, COMM_PARAMETERS)));
out:
    return status;
}

/* Sends all answers that the rules allow now. */
static enum status answer_all(struct async *u)
{
    enum status status = STATUS_OK;
    for (int worker = 0; worker < u->site->workers; worker++) {
        struct async_push *pulls = u->pulls + (size_t)worker * u->window;
        while (u->waiting[worker] > 0) {
            const struct async_push *pull = &pulls[u->heads[worker]];
            struct async_chunk *progress = progress_of(u, pull->bucket, pull->index);
            if (!async_may_answer(&u->rules, progress->clocks, u->site->workers, pull->step))
                break;
            TRY(answer_pull(u, worker, pull));
            u->heads[worker] = (u->heads[worker] + 1) % u->window;
            u->waiting[worker]--;
        }
    }
out:
    return status;
}

static bool async_awaits(const struct server *server)
{
    const struct async *u = server->rounds;
    for (int worker = 0; worker < server->workers; worker++) {
        if (u->waiting[worker] > 0)
            return true;
    }
    return false;
}

/* -------- taking ------------------------------------------------------------------------------ */

/* Assigns (first) or adds the payload to the gradients. */
static void add_gradients(struct async *u, const struct async_push *pull, const void *payload,
                          size_t count, bool first)
{
    enum compress compress = u->site->options->compress;
    float *gradients = values_of(u, pull->bucket, pull->index, COMM_GRADIENTS);
    if (compress == COMPRESS_NONE && first)
        memcpy(gradients, payload, count * sizeof *gradients);
    else if (compress == COMPRESS_NONE)
        reduce_add(gradients, payload, count);
    else if (first)
        compress_decode(compress, gradients, payload, count);
    else
        compress_add(compress, gradients, payload, count);
}

/* The layout's scale turns the sum over all workers into an average. W pushes that are applied
 * separately therefore move the parameters as far as one step of bsp. */
static void apply(struct async *u, const struct async_push *pull, struct async_chunk *progress)
{
    struct chunk chunk = shard_chunk(pull->bucket->shard, pull->bucket->chunks, pull->index);
    size_t bucket = (size_t)(pull->bucket - u->store->buckets);
    int of = u->rules.alone ? u->site->workers : progress->contributions;
    reduce_scale(values_of(u, pull->bucket, pull->index, COMM_GRADIENTS), chunk.count,
                 u->site->layout->scale * (float)u->site->workers / (float)of);
    u->updater->apply(u->updater->context, bucket, chunk, pull->step);
    progress->contributions = 0;
    progress->applied = pull->step + 1;
}

static enum status take_push(struct async *u, int worker, const struct message *push,
                             const void *payload)
{
    struct async_push pull = {.step = push->step};
    pull.bucket = store_find(u->store, push, &pull.index);
    if (!pull.bucket || push->dtype != codec_dtype(u->site->options->compress))
        return server_refuse(u->server, worker, push, "not a chunk of this server");
    struct async_chunk *progress = progress_of(u, pull.bucket, pull.index);
    if (push->step < progress->clocks[worker] || u->waiting[worker] == u->window)
        return server_refuse(u->server, worker, push, "the push is out of order");
    progress->clocks[worker] = push->step + 1;
    pull.late = !u->rules.alone && push->step < progress->applied;
    if (!u->rules.alone && push->step > progress->applied)
        return server_refuse(u->server, worker, push, "the previous step is not over");
    if (!pull.late) {
        size_t count = shard_chunk(pull.bucket->shard, pull.bucket->chunks, pull.index).count;
        add_gradients(u, &pull, payload, count, progress->contributions++ == 0);
        if (async_may_apply(&u->rules, progress->clocks, u->site->workers, push->step))
            apply(u, &pull, progress);
    }
    size_t last = (u->heads[worker] + u->waiting[worker]++) % u->window;
    u->pulls[(size_t)worker * u->window + last] = pull;
    return answer_all(u);
}

/* Stores or sends a chunk of an array, independently of the clocks. `step` is the index of the
 * array. */
static enum status take_array(struct async *u, int worker, const struct message *message,
                              const void *payload)
{
    size_t index, array = (size_t)message->step;
    bool stores = message->kind == MESSAGE_STORE;
    const struct store_bucket *bucket = store_find_array(u->store, message, &index);
    if (!bucket || message->step >= u->updater->arrays)
        return server_refuse(u->server, worker, message, "not an array of this server");
    if (u->waiting[worker] > 0)
        return server_refuse(u->server, worker, message, "in the middle of a step");
    struct message answer = message_for(u, bucket, index, message->step);
    float *values = values_of(u, bucket, index, array);
    if (stores) {
        memcpy(values, payload, answer.length);
        answer.length = 0;
    }
    return send_answer(u, worker, &answer, values);
}

/* Sets the worker's clock in all chunks: earlier steps of it are not waited for any longer. */
static enum status set_clock(struct async *u, int worker, uint64_t clock)
{
    size_t workers = (size_t)u->site->workers;
    if (!u->begun && clock != ASYNC_LEFT) {
        u->begun = true;
        u->first_step = clock;
    }
    for (size_t c = 0; c < u->chunk_total; c++)
        u->clocks[c * workers + (size_t)worker] = clock;
    for (size_t b = 0; b < u->store->bucket_count && clock != ASYNC_LEFT; b++) {
        for (size_t c = 0; c < u->store->buckets[b].chunks; c++) {
            struct async_chunk *progress = &u->chunks[b][c];
            if (progress->contributions == 0 && progress->applied < clock)
                progress->applied = clock; /* the run begins with this step */
        }
    }
    return answer_all(u);
}

/* A timeline uses the steps of the worker in the same process, if there is one: other workers may
 * be ahead of it. */
static void notify_step(const struct async *u, uint64_t step)
{
    const struct backend_env *site = u->site;
    int rank = topology_rank(&site->topology, site->workers + site->index);
    if (topology_node(&site->topology, rank, NODE_WORKER) < 0)
        range_at_step(step > u->first_step ? step - u->first_step : 0);
}

static enum status take(struct async *u, int worker, const struct message *message,
                        const void *payload)
{
    switch (message->kind) {
    case MESSAGE_PUSH:
        notify_step(u, message->step);
        return take_push(u, worker, message, payload);
    case MESSAGE_STORE:
    case MESSAGE_FETCH:
        return take_array(u, worker, message, payload);
    case MESSAGE_CLOCK:
        return set_clock(u, worker, message->step);
    default:
        return server_refuse(u->server, worker, message, "expected a push");
    }
}

static enum status async_on_message(struct server *server, int worker,
                                    const struct message *message, const void *payload)
{
    range_detail_begin("take and answer", &(struct range_about){.kind = RANGE_SERVER,
                                                                .bucket = message->bucket,
                                                                .number = message->step,
                                                                .bytes = message->length});
    enum status status = take(server->rounds, worker, message, payload);
    range_detail_end();
    return status;
}

/* No worker waits for a worker that has left. */
static enum status async_on_stop(struct server *server, int worker, const struct message *message)
{
    return message->kind == MESSAGE_BYE ? set_clock(server->rounds, worker, ASYNC_LEFT) : STATUS_OK;
}

const struct server_policy server_async = {
    .begin = async_begin,
    .end = async_end,
    .on_message = async_on_message,
    .floats = true,
    .on_stop = async_on_stop,
    .awaits = async_awaits,
};
