/*
 * A server and its policy. server.c takes the messages of all workers; what follows from a push is
 * the policy's: a table of functions. There are two, server_sums (server.c) and server_async
 * (async.c). Owned by the server's thread.
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
    struct chunk shard; /* ours of them */
    size_t chunks;
    float *values;      /* (shard.count): the last sum of each chunk */
    struct codec codec; /* of `values`: its elements are numbered from the shard's first */
    uint64_t *tickets;  /* (chunks, workers): the last answer sent from it; see wait_until_read */
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

/* The chunk that a push is for: {bucket, offset, length} must be one of ours exactly. NULL if it is
 * not (a peer with another layout). */
struct store_bucket *store_find(struct store *store, const struct message *message, size_t *index);

/* The same for a MESSAGE_STORE or MESSAGE_FETCH, whose elements are float32. */
struct store_bucket *store_find_array(struct store *store, const struct message *message,
                                      size_t *index);

/* -------- a server ---------------------------------------------------------------------------- */

struct server {
    const struct backend_env *site; /* borrowed */
    struct transport *transport;    /* the site's */
    int workers;

    /* Of the present plan. */
    struct store store;
    int window;
    struct transport_slot *slots;     /* (workers, window): push n of a worker is in n % window */
    struct transport_slot **expected; /* (workers): where the next push of each will be */
    uint64_t *pushes;                 /* (workers): how many have come from each */
    int workers_paused;               /* who have said PAUSE, and not pushed since */
    int workers_left;                 /* who have not said BYE */
    const struct server_policy *policy;
    void *rounds; /* the policy's own: what has come and is not answered yet */
};

/* Logs what the worker has sent and why it does not belong here: STATUS_PROTOCOL. */
enum status server_refuse(const struct server *server, int worker, const struct message *found,
                          const char *why);

/* The payload in a slot has been used: a further push may arrive there. */
enum status server_reuse(struct server *server, struct transport_slot *slot);

/* When a server adds up or applies what workers push, and when it answers them. */
struct server_policy {
    /* Between these two is one plan. begin: the store, the slots' number and the workers are known;
     * logs what fails. end frees what begin has allocated, also of a begin that has failed. */
    enum status (*begin)(struct server *server);
    void (*end)(struct server *server);

    /* A message has come that is neither PAUSE nor BYE; its kind is not checked. With
     * `keeps_payloads` the payload stays in its slot until the policy calls server_reuse for it. */
    enum status (*on_message)(struct server *server, int worker, const struct message *message,
                              const void *payload);
    bool keeps_payloads;

    /* MESSAGE_STORE brings float32 even if gradients are compressed: slots have memory for it. */
    bool floats;

    /* A worker pauses or leaves: message->kind. STATUS_PROTOCOL if it must not, now. */
    enum status (*on_stop)(struct server *server, int worker, const struct message *message);

    /* Whether a worker waits for another one's push. Then a silent worker is a lost one. */
    bool (*awaits)(const struct server *server);
};

#endif
