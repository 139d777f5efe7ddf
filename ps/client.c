/*
 * The worker's side of the parameter server: push every chunk to the server that owns it, keep at
 * most `window` of them unanswered with each server and all servers about equally far, and put the
 * answers where the gradients were.
 *
 * An answer is received in the transport's memory and copied into place. It cannot be received
 * there: its slot is posted when the push is queued, while the push is still being sent from that
 * place. (A slot posted only after the push has left is worse than a copy: servers then wait for
 * each other.)
 */
#include <stdlib.h>

#include "common/base/check.h"
#include "common/comm/codec.h"
#include "common/obs/range.h"
#include "ps/ps.h"
#include "ps/ps_cost.h"
#include "ps/shard.h"

/* How far the exchange of one bucket with one server is. Counted in chunks of its shard. */
struct exchange {
    struct chunk shard;
    size_t chunks;
    size_t pushed, answered;
};

struct client {
    const struct comm_site *site; /* borrowed: the comm's */
    struct transport *transport;
    int servers;
    uint64_t step; /* all-reduces done, over all buckets and plans */

    /* Of the present plan. */
    struct shard_plan plan;
    size_t buckets;
    struct codec *codecs;         /* one a bucket: the floats as they are, or compressed */
    struct exchange *exchanges;   /* (servers) */
    struct transport_slot *slots; /* (servers, window): the answer to chunk c is slot c % window */
    struct transport_slot **oldest; /* (servers): the next answer of each, NULL if none is due */
    uint64_t *tickets;              /* (servers, window): of the pushes */
    struct range *ranges;           /* (servers, window): from a push to its answer */
};

static size_t at(const struct client *client, int server, size_t chunk)
{
    size_t window = (size_t)client->plan.window;
    return (size_t)server * window + chunk % window;
}

static int node_of(const struct client *client, int server)
{
    return client->site->topology.workers + server;
}

/* Pushes the next chunk of a server's shard, and expects an answer. */
static enum status push_next(struct client *client, int server, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct exchange *exchange = &client->exchanges[server];
    struct chunk chunk = shard_chunk(exchange->shard, exchange->chunks, exchange->pushed);
    struct codec *codec = &client->codecs[bucket];
    struct message push = codec_message(codec, MESSAGE_PUSH, client->step, chunk);
    size_t slot = at(client, server, exchange->pushed);
    struct message answer = push;
    answer.kind = MESSAGE_PULL;
    transport_slot_expect(&client->slots[slot], &answer);
    TRY(transport_post(client->transport, &client->slots[slot], NULL));
    range_detail_open(&client->ranges[slot], "push to pull",
                      &(struct range_about){.kind = RANGE_SHARD,
                                            .bucket = (uint32_t)bucket,
                                            .chunk = (uint32_t)exchange->pushed,
                                            .peer = node_of(client, server),
                                            .number = client->step,
                                            .bytes = push.length});
    TRY(transport_send(client->transport, node_of(client, server), &push,
                       codec_encode(codec, data, chunk), &client->tickets[slot]));
    exchange->pushed++;
out:
    return status;
}

/* The chunk up to which may be pushed: a window from the first unanswered one of the slowest. */
static size_t window_end(const struct client *client)
{
    size_t end = SIZE_MAX;
    for (int server = 0; server < client->servers; server++) {
        const struct exchange *exchange = &client->exchanges[server];
        size_t own = exchange->answered + (size_t)client->plan.window;
        if (exchange->answered < exchange->chunks && own < end)
            end = own;
    }
    return end;
}

/*
 * Pushes as far as the window allows: the same chunks to all servers. If every server had a
 * window of its own, a worker's link would go to those that answer soonest; their shards would end
 * early, and the others go on alone, with most links idle.
 */
static enum status push_more(struct client *client, size_t bucket, float *data)
{
    size_t end = window_end(client);
    for (int i = 0; i < client->servers; i++) {
        /* Every worker begins with another server, lest all senders go for the first one's link. */
        int server = (client->site->index + i) % client->servers;
        const struct exchange *exchange = &client->exchanges[server];
        while (exchange->pushed < exchange->chunks && exchange->pushed < end) {
            enum status status = push_next(client, server, bucket, data);
            if (status != STATUS_OK)
                return status;
        }
    }
    return STATUS_OK;
}

/* Takes one answer, from whichever server has one, and puts it in place. */
static enum status take_answer(struct client *client, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    size_t which;
    for (int s = 0; s < client->servers; s++) {
        const struct exchange *exchange = &client->exchanges[s];
        bool due = exchange->answered < exchange->pushed;
        client->oldest[s] = due ? &client->slots[at(client, s, exchange->answered)] : NULL;
    }
    TRY(transport_wait_any(client->transport, client->oldest, (size_t)client->servers, false,
                           &which));
    struct transport_slot *slot = client->oldest[which];
    struct exchange *exchange = &client->exchanges[which];
    struct chunk chunk = shard_chunk(exchange->shard, exchange->chunks, exchange->answered);
    /* The server has the push, so this is at most a look: but our side must have noticed, too. */
    TRY(transport_wait_sent(client->transport, slot->peer,
                            client->tickets[at(client, (int)which, exchange->answered)]));
    codec_take(&client->codecs[bucket], data, chunk, slot->payload);
    transport_release(client->transport, slot);
    range_detail_close(&client->ranges[at(client, (int)which, exchange->answered)]);
    exchange->answered++;
out:
    return status;
}

static enum status client_allreduce(void *self, size_t bucket, void *data)
{
    enum status status = STATUS_OK;
    struct client *client = self;
    size_t count = client->site->layout->counts[bucket], left = 0;
    for (int server = 0; server < client->servers; server++) {
        struct exchange *exchange = &client->exchanges[server];
        *exchange = (struct exchange){.shard = shard_of(&client->plan.topology, count, server),
                                      .chunks = shard_chunks(&client->plan, count, server)};
        left += exchange->chunks;
    }
    TRY(push_more(client, bucket, data));
    for (; left > 0; left--) {
        TRY(take_answer(client, bucket, data));
        TRY(push_more(client, bucket, data));
    }
    client->step++;
out:
    return status;
}

/* A message without payload to every server. */
static enum status tell_servers(struct client *client, enum message_kind kind)
{
    const struct message message = {.kind = kind,
                                    .dtype = codec_dtype(client->site->options->compress)};
    for (int server = 0; server < client->servers; server++) {
        enum status status =
            transport_send(client->transport, node_of(client, server), &message, NULL, NULL);
        if (status != STATUS_OK)
            return status;
    }
    return transport_flush(client->transport);
}

static enum status client_pause(void *self)
{
    return tell_servers(self, MESSAGE_PAUSE);
}

static enum status client_finish(void *self)
{
    return tell_servers(self, MESSAGE_BYE);
}

static float *client_state(void *self, size_t index, size_t *count)
{
    const struct client *client = self;
    return codecs_state(client->codecs, client->buckets, index, count);
}

/* -------- opening, planning, closing ---------------------------------------------------------- */

static void free_plan(struct client *client)
{
    size_t slots = (size_t)client->servers * (size_t)client->plan.window;
    for (size_t i = 0; client->slots && i < slots; i++)
        transport_slot_fini(&client->slots[i], client->transport);
    codecs_free(client->codecs, client->buckets);
    free(client->exchanges);
    free(client->slots);
    free(client->oldest);
    free(client->tickets);
    free(client->ranges);
    *client = (struct client){.site = client->site,
                              .transport = client->transport,
                              .servers = client->servers,
                              .step = client->step};
}

static enum status client_plan(void *self)
{
    enum status status = STATUS_OK;
    struct client *client = self;
    const struct comm_options *options = client->site->options;
    const struct comm_layout *layout = client->site->layout;
    free_plan(client);
    client->plan = shard_plan_of(&client->site->topology, layout, options);
    client->buckets = layout->buckets;
    size_t servers = (size_t)client->servers, window = (size_t)client->plan.window;
    TRY(codecs_new(&client->codecs, client->site));
    client->exchanges = calloc(servers, sizeof *client->exchanges);
    client->slots = calloc(servers * window, sizeof *client->slots);
    client->oldest = calloc(servers, sizeof *client->oldest);
    client->tickets = calloc(servers * window, sizeof *client->tickets);
    client->ranges = calloc(servers * window, sizeof *client->ranges);
    if (!client->exchanges || !client->slots || !client->oldest || !client->tickets ||
        !client->ranges) {
        log_error("ps: no memory for %d servers", client->servers);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < servers * window; i++)
        TRY(transport_slot_init(
            &client->slots[i], client->transport, node_of(client, (int)(i / window)),
            client->plan.chunk_count * compress_element_bytes(options->compress)));
out:
    return status;
}

static void client_close(void *self)
{
    free_plan(self);
    free(self);
}

static enum status client_open(void **self, const struct comm_site *site)
{
    if (site->topology.servers < 1) {
        log_error("--servers 0: a parameter server needs at least one; use --servers 1");
        return STATUS_USAGE;
    }
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        log_error("ps: out of memory");
        return STATUS_NO_MEMORY;
    }
    client->site = site;
    client->transport = site->transport;
    client->servers = site->topology.servers;
    *self = client;
    return STATUS_OK;
}

const struct backend backend_ps = {
    .name = "ps",
    .summary = "parameter server over --transport; bulk-synchronous",
    .uses_transport = true,
    .uses_servers = true,
    .cuts_segments = true,
    .keeps_window = true,
    .compresses = true,
    .orders_sums = true,
    .counts_bytes = true,
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
};
