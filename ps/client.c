/*
 * The worker's side of the parameter server. It pushes every chunk to the server that owns it, and
 * writes the answers where the gradients were. It keeps at most `window` chunks unanswered with
 * each server, and makes equal progress with all servers. If servers own the parameters, it stores
 * arrays on them and fetches arrays from them in the same way.
 *
 * An answer's slot is posted when the push is queued, while the push is still being sent. Posting
 * it only after the push has left is worse than a copy, because servers then wait for each other.
 * Over tcp an answer is received in place: it cannot come before the push has left. Other
 * transports may still use that memory. They receive the answer in theirs, and it is copied.
 */
#include <stdlib.h>
#include <string.h>

#include "common/comm/codec.h"
#include "common/base/range.h"
#include "ps/async.h"
#include "ps/ps.h"
#include "ps/shard.h"

/* One exchange of a bucket with the servers. */
struct push_request {
    enum message_kind kind; /* MESSAGE_PUSH, MESSAGE_STORE or MESSAGE_FETCH */
    size_t bucket;
    uint64_t step; /* in the messages' headers; for a store or fetch: index of the array */
    float *data;
};

struct ps_client {
    const struct backend_env *site; /* borrowed from the comm */
    struct transport *transport;
    int servers;
    bool updates;  /* servers update the parameters and answer with them */
    uint64_t step; /* all-reduces done, over all buckets and plans; with `updates`: steps */
    struct async_steps steps;

    /* State of the present plan. */
    struct shard_plan plan;
    size_t buckets;
    struct codec *codecs;           /* (buckets): plain or compressed floats */
    struct shard_pushes *pushes;    /* (servers): for the bucket in exchange */
    struct transport_slot *slots;   /* (servers, window): chunk c is answered in slot c % window */
    struct transport_slot **oldest; /* (servers): slot of the next answer, NULL if none is due */
    uint64_t *tickets;              /* (servers, window): of the pushes */
    struct range *ranges;           /* (servers, window): from a push to its answer */
};

static size_t at(const struct ps_client *client, int server, size_t chunk)
{
    size_t window = (size_t)client->plan.window;
    return (size_t)server * window + chunk % window;
}

static int node_of(const struct ps_client *client, int server)
{
    return client->site->topology.workers + server;
}

/* A message of uncompressed elements. */
static struct message plain_message(size_t bucket, enum message_kind kind, uint64_t step,
                                    struct chunk span)
{
    const struct codec plain = {.bucket = (uint32_t)bucket};
    return codec_message(&plain, kind, step, span);
}

/* The memory in which a chunk's answer belongs. */
static void *place_of(const struct ps_client *client, const struct push_request *request,
                      struct chunk chunk)
{
    return client->updates ? request->data + chunk.offset
                           : codec_wire(&client->codecs[request->bucket], request->data, chunk);
}

/* Pushes or requests the next chunk of a server's shard, and expects an answer. */
static enum status push_next(struct ps_client *client, int server,
                             const struct push_request *request)
{
    enum status status = STATUS_OK;
    struct shard_pushes *pushes = &client->pushes[server];
    struct chunk chunk = shard_chunk(pushes->shard, pushes->chunks, pushes->pushed);
    struct codec *codec = &client->codecs[request->bucket];
    bool gradients = request->kind == MESSAGE_PUSH;
    struct message push = gradients
                              ? codec_message(codec, request->kind, request->step, chunk)
                              : plain_message(request->bucket, request->kind, request->step, chunk);
    struct message answer = push;
    if (client->updates)
        answer = plain_message(request->bucket, MESSAGE_PULL, request->step, chunk);
    answer.kind = MESSAGE_PULL;
    if (request->kind == MESSAGE_STORE)
        answer.length = 0;
    if (request->kind == MESSAGE_FETCH)
        push.length = 0;
    size_t slot = at(client, server, pushes->pushed);
    transport_slot_expect(&client->slots[slot], &answer);
    void *into =
        transport_answers_in_place(client->transport) ? place_of(client, request, chunk) : NULL;
    TRY(transport_post(client->transport, &client->slots[slot], into));
    range_detail_open(&client->ranges[slot], "push to pull",
                      &(struct range_about){.kind = RANGE_SHARD,
                                            .bucket = (uint32_t)request->bucket,
                                            .chunk = (uint32_t)pushes->pushed,
                                            .peer = node_of(client, server),
                                            .number = client->step,
                                            .bytes = push.length});
    TRY(transport_send(client->transport, node_of(client, server), &push,
                       gradients ? codec_encode(codec, request->data, chunk)
                                 : request->data + chunk.offset,
                       &client->tickets[slot]));
    pushes->pushed++;
out:
    return status;
}

/* Whether the next chunks wait until this server's chunk has left. A chunk for a server in this
 * process leaves only when it has been used, which may be much later. */
static bool is_waited_for(const struct ps_client *client, int server)
{
    const struct topology *topology = &client->site->topology;
    return client->plan.by_turns && topology_rank(topology, node_of(client, server)) !=
                                        topology_rank(topology, client->site->index);
}

/* Waits until the last push to a server has left. */
static enum status wait_for_turn(struct ps_client *client, int server)
{
    size_t slot = at(client, server, client->pushes[server].pushed - 1);
    return transport_wait_sent(client->transport, node_of(client, server), client->tickets[slot]);
}

/* The server that this worker pushes to first. It differs between workers, so that they do not all
 * load one link. */
static int first_server(const struct ps_client *client)
{
    int parts = 0, seen = 0;
    for (int server = 0; server < client->servers; server++)
        parts += client->pushes[server].chunks > 0;
    for (int server = 0; server < client->servers; server++) {
        if (client->pushes[server].chunks > 0 && seen++ == client->site->index % parts)
            return server;
    }
    return 0;
}

/* Pushes a chunk to each server in turn, as long as the window allows. */
static enum status push_more(struct ps_client *client, int first,
                             const struct push_request *request)
{
    enum status status = STATUS_OK;
    const struct push_window window = push_window(client->pushes, &client->plan);
    int last = -1; /* the last server pushed to that is waited for */
    bool pushed;
    do {
        pushed = false;
        for (int i = 0; i < client->servers; i++) {
            int server = (first + i) % client->servers;
            if (!push_window_has(window, &client->pushes[server]))
                continue;
            if (!pushed && last >= 0)
                TRY(wait_for_turn(client, last));
            TRY(push_next(client, server, request));
            if (is_waited_for(client, server))
                last = server;
            pushed = true;
        }
    } while (pushed);
out:
    return status;
}

/* Takes one answer of any server and copies it into place. */
static enum status take_answer(struct ps_client *client, const struct push_request *request)
{
    enum status status = STATUS_OK;
    size_t which;
    for (int s = 0; s < client->servers; s++) {
        const struct shard_pushes *pushes = &client->pushes[s];
        bool due = pushes->answered < pushes->pushed;
        client->oldest[s] = due ? &client->slots[at(client, s, pushes->answered)] : NULL;
    }
    TRY(transport_wait_any(client->transport, client->oldest, (size_t)client->servers, false,
                           &which));
    struct transport_slot *slot = client->oldest[which];
    struct shard_pushes *pushes = &client->pushes[which];
    struct chunk chunk = shard_chunk(pushes->shard, pushes->chunks, pushes->answered);
    /* The server has received the push, so this rarely waits. But our side must have noticed,
     * too. */
    TRY(transport_wait_sent(client->transport, slot->peer,
                            client->tickets[at(client, (int)which, pushes->answered)]));
    if (!client->updates)
        codec_take(&client->codecs[request->bucket], request->data, chunk, slot->payload);
    else if (slot->message.length > 0 && slot->payload != request->data + chunk.offset)
        memcpy(request->data + chunk.offset, slot->payload, slot->message.length);
    if (client->updates && request->kind == MESSAGE_PUSH)
        async_steps_answered(&client->steps, &slot->message);
    transport_release(client->transport, slot);
    range_detail_close(&client->ranges[at(client, (int)which, pushes->answered)]);
    pushes->answered++;
out:
    return status;
}

static enum status exchange_bucket(struct ps_client *client, const struct push_request *request)
{
    enum status status = STATUS_OK;
    size_t left = shard_pushes_begin(client->pushes, &client->plan,
                                     client->site->layout->counts[request->bucket]);
    int first = first_server(client);
    TRY(push_more(client, first, request));
    for (; left > 0; left--) {
        TRY(take_answer(client, request));
        TRY(push_more(client, first, request));
    }
out:
    return status;
}

/* -------- steps ------------------------------------------------------------------------------- */

/* Sends a message without payload to every server. */
static enum status notify_servers(struct ps_client *client, enum message_kind kind)
{
    const struct message message = {.kind = kind,
                                    .dtype = codec_dtype(client->site->options->compress),
                                    .step = client->updates ? client->step : 0};
    for (int server = 0; server < client->servers; server++) {
        enum status status =
            transport_send(client->transport, node_of(client, server), &message, NULL, NULL);
        if (status != STATUS_OK)
            return status;
    }
    return transport_flush(client->transport);
}

static enum status client_allreduce(void *self, size_t bucket, void *data)
{
    enum status status = STATUS_OK;
    struct ps_client *client = self;
    TRY(exchange_bucket(
        client, &(struct push_request){
                    .kind = MESSAGE_PUSH, .bucket = bucket, .step = client->step, .data = data}));
    if (!client->updates) {
        client->step++;
    } else if (++client->steps.buckets == client->buckets) {
        uint64_t next = client->step + 1;
        client->step = async_steps_next(&client->steps, &client->site->options->consistency);
        if (client->step > next)
            TRY(notify_servers(client, MESSAGE_CLOCK));
    }
out:
    return status;
}

static enum status client_begin_steps(void *self, uint64_t step, uint64_t end)
{
    struct ps_client *client = self;
    client->step = step;
    async_steps_begin(&client->steps, step, end);
    return notify_servers(client, MESSAGE_CLOCK);
}

static const struct comm_progress *client_progress(const void *self)
{
    const struct ps_client *client = self;
    return &client->steps.progress;
}

static enum status client_store(void *self, size_t bucket, size_t array, float *data)
{
    return exchange_bucket(self, &(struct push_request){MESSAGE_STORE, bucket, array, data});
}

static enum status client_fetch(void *self, size_t bucket, size_t array, float *data)
{
    return exchange_bucket(self, &(struct push_request){MESSAGE_FETCH, bucket, array, data});
}

static enum status client_pause(void *self)
{
    return notify_servers(self, MESSAGE_PAUSE);
}

static enum status client_finish(void *self)
{
    return notify_servers(self, MESSAGE_BYE);
}

static float *client_state(void *self, size_t index, size_t *count)
{
    const struct ps_client *client = self;
    return codecs_state(client->codecs, client->buckets, index, count);
}

/* -------- opening, planning, closing ---------------------------------------------------------- */

static void free_plan(struct ps_client *client)
{
    size_t slots = (size_t)client->servers * (size_t)client->plan.window;
    for (size_t i = 0; client->slots && i < slots; i++)
        transport_slot_fini(&client->slots[i], client->transport);
    codecs_free(client->codecs, client->buckets);
    free(client->pushes);
    free(client->slots);
    free(client->oldest);
    free(client->tickets);
    free(client->ranges);
    *client = (struct ps_client){.site = client->site,
                                 .transport = client->transport,
                                 .servers = client->servers,
                                 .updates = client->updates,
                                 .step = client->step,
                                 .steps = client->steps};
}

static enum status client_plan(void *self)
{
    enum status status = STATUS_OK;
    struct ps_client *client = self;
    const struct comm_options *options = client->site->options;
    const struct comm_layout *layout = client->site->layout;
    free_plan(client);
    client->plan = shard_plan_of(&client->site->topology, layout, options);
    client->buckets = layout->buckets;
    size_t servers = (size_t)client->servers, window = (size_t)client->plan.window;
    TRY(codecs_new(&client->codecs, client->site));
    client->pushes = calloc(servers, sizeof *client->pushes);
    client->slots = calloc(servers * window, sizeof *client->slots);
    client->oldest = calloc(servers, sizeof *client->oldest);
    client->tickets = calloc(servers * window, sizeof *client->tickets);
    client->ranges = calloc(servers * window, sizeof *client->ranges);
    if (!client->pushes || !client->slots || !client->oldest || !client->tickets || !client->ranges)
        return FAIL(STATUS_NO_MEMORY, "ps: no memory for %d servers", client->servers);
    for (size_t i = 0; i < servers * window; i++)
        TRY(transport_slot_init(
            &client->slots[i], client->transport, node_of(client, (int)(i / window)),
            client->plan.chunk_count *
                (client->updates ? sizeof(float) : compress_element_bytes(options->compress))));
out:
    return status;
}

static void client_close(void *self)
{
    free_plan(self);
    free(self);
}

static enum status client_open(void **self, const struct backend_env *site)
{
    if (site->topology.servers < 1)
        return FAIL(STATUS_USAGE,
                    "--servers 0: a parameter server needs at least one; use --servers 1");
    struct ps_client *client = calloc(1, sizeof *client);
    if (!client)
        return FAIL(STATUS_NO_MEMORY, "ps: out of memory");
    client->site = site;
    client->transport = site->transport;
    client->servers = site->topology.servers;
    client->updates = consistency_updates(&site->options->consistency);
    *self = client;
    return STATUS_OK;
}

const struct backend backend_ps = {
    .name = "ps",
    .summary = "parameter server over --transport; --sync bsp, ssp:S or async",
    .uses_transport = true,
    .uses_servers = true,
    .obeys_segment_bytes = true,
    .obeys_window = true,
    .compresses = true,
    .obeys_reduce_order = true,
    .counts_bytes = true,
    .updates_on_server = true,
    .default_transport = TRANSPORT_ZMQ,
    .cost = &ps_cost,
    .open = client_open,
    .plan = client_plan,
    .allreduce = client_allreduce,
    .state = client_state,
    .pause = client_pause,
    .finish = client_finish,
    .close = client_close,
    .server_open = ps_server_open,
    .serve = ps_serve,
    .server_state = ps_server_state,
    .server_close = ps_server_close,
    .begin_steps = client_begin_steps,
    .store = client_store,
    .fetch = client_fetch,
    .progress = client_progress,
};
