/*
 * The worker's side of the parameter server: push every chunk to the server that owns it, keep at
 * most `window` of them unanswered with each server and all servers about equally far, and put the
 * answers where the gradients were.
 *
 * An answer is received in the transport's memory and copied into place. It cannot be received
 * there: its slot is posted when the push is queued, while the push is still being sent from that
 * place. (A slot posted only after the push has left is worse than a copy: lanes then wait for each
 * other.)
 */
#include <stdlib.h>

#include "common/base/check.h"
#include "common/comm/codec.h"
#include "ps/ps.h"
#include "ps/store.h"

/* How far the exchange of one bucket with one server is. Counted in chunks of its shard. */
struct lane {
    struct chunk shard;
    size_t chunks;
    size_t pushed, answered;
};

struct client {
    const struct comm_site *site; /* borrowed: the comm's */
    struct transport *transport;
    struct shard_plan plan;
    int servers;
    uint64_t step;                /* all-reduces done, over all buckets */
    struct codec *codecs;         /* one a bucket: the floats as they are, or compressed */
    struct lane *lanes;           /* (servers) */
    struct transport_slot *slots; /* (servers, window): the answer to chunk c is slot c % window */
    struct transport_slot **oldest; /* (servers): the next answer of each, NULL if none is due */
    uint64_t *tickets;              /* (servers, window): of the pushes */
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

static struct message describe(const struct client *client, size_t bucket, struct chunk chunk)
{
    struct message push = codec_message(&client->codecs[bucket], chunk);
    push.kind = MESSAGE_PUSH;
    push.step = client->step;
    push.bucket = (uint32_t)bucket;
    return push;
}

/* Pushes the next chunk of a server's shard, and expects an answer. */
static enum status push_next(struct client *client, int server, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct lane *lane = &client->lanes[server];
    struct chunk chunk = shard_chunk(lane->shard, lane->chunks, lane->pushed);
    struct message push = describe(client, bucket, chunk);
    size_t slot = at(client, server, lane->pushed);
    TRY(transport_post(client->transport, &client->slots[slot], NULL));
    TRY(transport_send(client->transport, node_of(client, server), &push,
                       codec_encode(&client->codecs[bucket], data, chunk), &client->tickets[slot]));
    lane->pushed++;
out:
    return status;
}

/* The chunk up to which a lane may push: a window from the first unanswered one of the slowest. */
static size_t window_end(const struct client *client)
{
    size_t end = SIZE_MAX;
    for (int server = 0; server < client->servers; server++) {
        const struct lane *lane = &client->lanes[server];
        size_t own = lane->answered + (size_t)client->plan.window;
        if (lane->answered < lane->chunks && own < end)
            end = own;
    }
    return end;
}

/*
 * Pushes as far as the window allows: the same chunks to all servers. If every lane had a window of
 * its own, a worker's link would go to the lanes that are answered soonest; those would end early,
 * and the others go on alone, with most links idle.
 */
static enum status push_more(struct client *client, size_t bucket, float *data)
{
    size_t end = window_end(client);
    for (int i = 0; i < client->servers; i++) {
        /* Every worker begins with another server, lest all senders go for the first one's link. */
        int server = (client->site->index + i) % client->servers;
        const struct lane *lane = &client->lanes[server];
        while (lane->pushed < lane->chunks && lane->pushed < end) {
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
        const struct lane *lane = &client->lanes[s];
        bool due = lane->answered < lane->pushed;
        client->oldest[s] = due ? &client->slots[at(client, s, lane->answered)] : NULL;
    }
    TRY(transport_wait_any(client->transport, client->oldest, (size_t)client->servers, false,
                           &which));
    struct transport_slot *slot = client->oldest[which];
    struct lane *lane = &client->lanes[which];
    struct chunk chunk = shard_chunk(lane->shard, lane->chunks, lane->answered);
    struct message expected = describe(client, bucket, chunk);
    expected.kind = MESSAGE_PULL;
    TRY(transport_expect(client->transport, slot, &expected));
    /* The server has the push, so this is at most a look: but our side must have noticed, too. */
    TRY(transport_wait_sent(client->transport, slot->peer,
                            client->tickets[at(client, (int)which, lane->answered)]));
    codec_take(&client->codecs[bucket], data, chunk, slot->payload);
    transport_release(client->transport, slot);
    lane->answered++;
out:
    return status;
}

static enum status client_allreduce(void *self, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct client *client = self;
    size_t count = client->site->options->bucket_counts[bucket], left = 0;
    for (int server = 0; server < client->servers; server++) {
        struct lane *lane = &client->lanes[server];
        *lane = (struct lane){.shard = shard_of(&client->plan.topology, count, server),
                              .chunks = shard_chunks(&client->plan, count, server)};
        left += lane->chunks;
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

static enum status client_finish(void *self)
{
    struct client *client = self;
    const struct message bye = {.kind = MESSAGE_BYE,
                                .dtype = codec_dtype(client->site->options->compress)};
    for (int server = 0; server < client->servers; server++) {
        enum status status =
            transport_send(client->transport, node_of(client, server), &bye, NULL, NULL);
        if (status != STATUS_OK)
            return status;
    }
    return transport_flush(client->transport);
}

static void client_close(void *self)
{
    struct client *client = self;
    size_t slots = (size_t)client->servers * (size_t)client->plan.window;
    for (size_t i = 0; client->slots && i < slots; i++)
        transport_slot_fini(&client->slots[i], client->transport);
    for (size_t b = 0; client->codecs && b < client->site->options->buckets; b++)
        codec_fini(&client->codecs[b]);
    free(client->codecs);
    free(client->lanes);
    free(client->slots);
    free(client->oldest);
    free(client->tickets);
    free(client);
}

static enum status client_open(void **self, const struct comm_site *site)
{
    enum status status = STATUS_OK;
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
    client->plan = store_plan(site);
    size_t servers = (size_t)client->servers, window = (size_t)client->plan.window;
    const struct comm_options *options = site->options;
    client->codecs = calloc(options->buckets + 1, sizeof *client->codecs);
    client->lanes = calloc(servers, sizeof *client->lanes);
    client->slots = calloc(servers * window, sizeof *client->slots);
    client->oldest = calloc(servers, sizeof *client->oldest);
    client->tickets = calloc(servers * window, sizeof *client->tickets);
    if (!client->codecs || !client->lanes || !client->slots || !client->oldest ||
        !client->tickets) {
        log_error("ps: no memory for %d servers", client->servers);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t b = 0; b < options->buckets; b++)
        TRY(codec_init(&client->codecs[b], options, options->bucket_counts[b]));
    for (size_t i = 0; i < servers * window; i++)
        TRY(transport_slot_init(
            &client->slots[i], client->transport, node_of(client, (int)(i / window)),
            client->plan.chunk_count * compress_element_bytes(options->compress)));
    *self = client;
    return STATUS_OK;
out:
    client_close(client);
    return status;
}

const struct backend backend_ps = {
    .name = "ps",
    .summary = "parameter server over --transport; bulk-synchronous",
    .uses_transport = true,
    .uses_servers = true,
    .orders_sums = true,
    .default_transport = TRANSPORT_ZMQ,
    .open = client_open,
    .allreduce = client_allreduce,
    .finish = client_finish,
    .close = client_close,
    .serve = ps_serve,
};
