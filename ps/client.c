/*
 * The worker's side of the parameter server: push every chunk to the server that owns it, keep
 * `window` of them unanswered with each server, and let the answers land where the gradients were.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/check.h"
#include "ps/ps.h"
#include "ps/store.h"

/* How far the exchange of one bucket with one server is. Counted in chunks of its shard. */
struct lane {
    struct chunk shard;
    size_t chunks;
    size_t pushed, posted, answered;
};

struct client {
    const struct comm_site *site; /* borrowed: the comm's */
    struct transport *transport;
    struct shard_plan plan;
    int servers;
    uint64_t step;                /* all-reduces done, over all buckets */
    struct lane *lanes;           /* (servers) */
    struct transport_slot *slots; /* (servers, window): the answer to chunk c is slot c % window */
    uint64_t *tickets;            /* (servers, window): of the pushes */
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
    return (struct message){
        .kind = MESSAGE_PUSH,
        .dtype = MESSAGE_FLOAT32,
        .step = client->step,
        .bucket = (uint32_t)bucket,
        .offset = chunk.offset * sizeof(float),
        .length = chunk.count * sizeof(float),
    };
}

/* Pushes as far as the window allows. */
static enum status push_more(struct client *client, int server, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct lane *lane = &client->lanes[server];
    while (lane->pushed < lane->chunks &&
           lane->pushed < lane->answered + (size_t)client->plan.window) {
        struct chunk chunk = shard_chunk(&client->plan, lane->shard, lane->pushed);
        struct message push = describe(client, bucket, chunk);
        TRY(transport_send(client->transport, node_of(client, server), &push, data + chunk.offset,
                           &client->tickets[at(client, server, lane->pushed)]));
        lane->pushed++;
    }
out:
    return status;
}

/*
 * Posts the answers' slots, in order. An answer lands where its push was sent from, so the push
 * must have left that memory. Only the oldest is waited for: without it nothing goes on anyway.
 */
static enum status post_more(struct client *client, int server, float *data)
{
    enum status status = STATUS_OK;
    struct lane *lane = &client->lanes[server];
    for (; lane->posted < lane->pushed; lane->posted++) {
        size_t slot = at(client, server, lane->posted);
        uint64_t ticket = client->tickets[slot];
        bool oldest = lane->posted == lane->answered;
        if (!oldest && !transport_sent(client->transport, node_of(client, server), ticket))
            break;
        TRY(transport_wait_sent(client->transport, node_of(client, server), ticket));
        struct chunk chunk = shard_chunk(&client->plan, lane->shard, lane->posted);
        TRY(transport_post(client->transport, &client->slots[slot], data + chunk.offset));
    }
out:
    return status;
}

/* Takes one answer from any server; it has landed in place. */
static enum status take_answer(struct client *client, size_t bucket, int *server)
{
    size_t which, slots = (size_t)client->servers * (size_t)client->plan.window;
    enum status status = transport_wait_any(client->transport, client->slots, slots, false, &which);
    if (status != STATUS_OK)
        return status;
    struct transport_slot *slot = &client->slots[which];
    *server = slot->peer - client->site->topology.workers;
    struct lane *lane = &client->lanes[*server];
    const struct message found = slot->message;
    struct message expected =
        describe(client, bucket, shard_chunk(&client->plan, lane->shard, lane->answered));
    transport_release(client->transport, slot);
    lane->answered++;
    if (found.kind == MESSAGE_PULL && found.step == expected.step &&
        found.bucket == expected.bucket && found.offset == expected.offset &&
        found.length == expected.length)
        return STATUS_OK;
    log_error("server %d answered step %" PRIu64 " bucket %u offset %" PRIu64
              ", expected step %" PRIu64 " bucket %u offset %" PRIu64
              "; do all ranks run with the same options?",
              *server, found.step, found.bucket, found.offset, expected.step, expected.bucket,
              expected.offset);
    return STATUS_PROTOCOL;
}

static enum status client_allreduce(void *self, size_t bucket, float *data)
{
    enum status status = STATUS_OK;
    struct client *client = self;
    size_t count = client->site->options->bucket_counts[bucket], left = 0;
    for (int server = 0; server < client->servers; server++) {
        struct chunk shard = chunk_of(count, (size_t)client->servers, (size_t)server);
        size_t chunks = shard_chunks(&client->plan, shard.count);
        client->lanes[server] = (struct lane){.shard = shard, .chunks = chunks};
        left += chunks;
        TRY(push_more(client, server, bucket, data));
    }
    for (int server = 0; server < client->servers; server++)
        TRY(post_more(client, server, data));
    for (; left > 0; left--) {
        int server;
        TRY(take_answer(client, bucket, &server));
        TRY(push_more(client, server, bucket, data));
        TRY(post_more(client, server, data));
    }
    client->step++;
out:
    return status;
}

static enum status client_finish(void *self)
{
    struct client *client = self;
    const struct message bye = {.kind = MESSAGE_BYE, .dtype = MESSAGE_FLOAT32};
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
    free(client->lanes);
    free(client->slots);
    free(client->tickets);
    free(client);
}

static enum status client_open(void **self, const struct comm_site *site)
{
    enum status status = STATUS_OK;
    const struct comm_options *options = site->options;
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
    client->lanes = calloc(servers, sizeof *client->lanes);
    client->slots = calloc(servers * window, sizeof *client->slots);
    client->tickets = calloc(servers * window, sizeof *client->tickets);
    if (!client->lanes || !client->slots || !client->tickets) {
        log_error("ps: no memory for %d servers", client->servers);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t i = 0; i < servers * window; i++)
        TRY(transport_slot_init(&client->slots[i], client->transport,
                                node_of(client, (int)(i / window)),
                                client->plan.chunk_count * sizeof(float)));
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
    .default_transport = TRANSPORT_ZMQ,
    .open = client_open,
    .allreduce = client_allreduce,
    .finish = client_finish,
    .close = client_close,
    .serve = ps_serve,
};
