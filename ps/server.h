/*
 * A server and its policy. server.c takes the messages of all workers. The policy, a table of
 * functions, decides what follows from a push. There are two: server_sums (server.c) and
 * server_async (async.c). The server's thread owns everything here.
 */
#ifndef PSRING_PS_SERVER_H
#define PSRING_PS_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/codec.h"
#include "ps/shard.h"

/* -------- what a server keeps ----------------------------------------------------------------- */

/* One bucket's shard: its sums, chunk by chunk, and for each chunk the sends that still read it. */
struct store_bucket {
    size_t total;       /* elements of the whole bucket */
    struct chunk shard; /* this server's part of them */
    size_t chunks;
    float *values;      /* (shard.count): the last sum of each chunk */
    struct codec codec; /* for `values`: element 0 is the shard's first */
    uint64_t *tickets;  /* (chunks, workers): the last answer sent from each; see wait_until_read */
    bool *answered;     /* (chunks): whether tickets are set */
};

struct store {
    struct shard_plan plan;
    int workers;
    size_t bucket_count;
    struct store_bucket *buckets;
};

/* For server `site->index`. */
enum status store_init(struct store *store, const struct backend_env *site);
void store_fini(struct store *store);

/* The chunk of a push: {bucket, offset, length} must match one of this server's chunks exactly.
 * NULL if none matches (a peer with another layout). */
struct store_bucket *store_find(struct store *store, const struct message *message, size_t *index);

/* The same for a MESSAGE_STORE or MESSAGE_FETCH, whose elements are float32. */
struct store_bucket *store_find_array(struct store *store, const struct message *message,
                                      size_t *index);

/* -------- a server ---------------------------------------------------------------------------- */

struct server {
    const struct backend_env *site; /* borrowed */
    struct transport *transport;    /* the site's */
    int workers;

    /* State of the present plan. */
    struct store store;
    int window;
    struct transport_slot *slots;     /* (workers, window): slot n % window gets push n */
    struct transport_slot **expected; /* (workers): slot of each worker's next push */
    uint64_t *pushes;                 /* (workers): pushes received */
    bool *paused;                     /* (workers): has sent PAUSE, and must not send more */
    int workers_paused;               /* their number */
    int workers_left;                 /* workers that have not sent BYE */
    const struct server_policy *policy;
    void *rounds; /* the policy's state: pushes that are not answered yet */
};

/* Logs what the worker has sent and why it is refused. Returns STATUS_PROTOCOL. */
enum status server_refuse(const struct server *server, int worker, const struct message *found,
                          const char *why);

/* The payload in the slot has been used: posts the slot for a further push. */
enum status server_reuse(struct server *server, struct transport_slot *slot);

/* Decides when a server adds up or applies pushes, and when it answers them. */
struct server_policy {
    /* Called at the start and at the end of a plan. begin: the store, the number of slots and the
     * workers are known; it logs its errors. end frees what begin has allocated, also after a
     * failed begin. */
    enum status (*begin)(struct server *server);
    void (*end)(struct server *server);

    /* Called for every message except PAUSE and BYE; the message's kind has not been checked. With
     * `keeps_payloads` the payload stays in its slot until the policy calls server_reuse for it. */
    enum status (*on_message)(struct server *server, int worker, const struct message *message,
                              const void *payload);
    bool keeps_payloads;

    /* Slots must hold float32: MESSAGE_STORE carries float32 even if gradients are compressed. */
    bool floats;

    /* A worker pauses or leaves, see message->kind. STATUS_PROTOCOL if it must not do so now. */
    enum status (*on_stop)(struct server *server, int worker, const struct message *message);

    /* Whether a worker waits for another worker's push. A silent worker then counts as lost. */
    bool (*awaits)(const struct server *server);
};

#endif
