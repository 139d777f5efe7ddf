/*
 * Internal to common/net: a port at which ranks of this project introduce themselves. Anyone can
 * connect to a port: who says something else, or nothing, is dropped, and holds nobody up.
 */
#ifndef PSRING_COMMON_NET_LISTENER_H
#define PSRING_COMMON_NET_LISTENER_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/address.h"

/* In the byte order of the machine: one of another order finds a foreign magic. */
#define HELLO_MAGIC UINT64_C(0x6f6c6c6548525350) /* "PSRHello" */

enum {
    HELLO_PROTOCOL = 1,
    HELLO_SAME_BYTES = 16, /* magic to rank: alike in all versions of the protocol */
    HELLO_WAIT_MS = 5000,  /* a connection that has not introduced itself by then is dropped */
    HELLO_PENDING = 64,    /* connections that have not yet; the next ones wait to be accepted */
    HELLO_YOUNG_MS = 1000, /* then the oldest is dropped for the next one */
};

/* The first message on a connection, as it travels. */
struct hello {
    uint64_t magic;
    uint32_t protocol;
    int32_t rank;
    int32_t world_size;
    uint32_t unused;
    uint64_t run_id; /* at the rendezvous, where there is none yet, the token */
    char version[32];
    char host[64];
};

struct pending {
    int socket;
    int64_t until_ns;
    size_t have; /* bytes of `hello` */
    struct hello hello;
};

struct listener {
    int socket;
    union address address; /* that it listens at */
    bool warned;           /* of a connection that was dropped */
    bool warned_of_accept; /* that one cannot be accepted: no descriptor is left, say */
    int pending_count;
    struct pending pending[HELLO_PENDING]; /* oldest first */
    size_t watched_max;
    size_t next;          /* watched connection to look at first: none keeps others waiting */
    struct pollfd *polls; /* 1 + HELLO_PENDING + watched_max */
};

enum { LISTENER_AWAITED = -2 }; /* in place of a socket; -1: nobody is awaited */

enum listener_event {
    LISTENER_HELLO,   /* somebody has introduced himself */
    LISTENER_WATCHED, /* a watched connection has closed, or has something to read */
    LISTENER_TIMEOUT,
};

/* Listens at `address`; port 0: any. `watched_max`: see listener_wait. 0 or an errno value; not
 * logged. */
int listener_open(struct listener *listener, const union address *address, size_t watched_max);
/* The same of a socket that listens already; taken, also on an error. */
int listener_adopt(struct listener *listener, int socket, size_t watched_max);
void listener_close(struct listener *listener);

/*
 * Waits until a connection has said hello (*socket and *hello are then the caller's; where
 * hello->protocol is another, only magic, protocol and rank are known), until something happens on
 * one of the `count` watched connections (*which; those below 0 are skipped), or until deadline_ns
 * (clock_now_ns; 0: none). The strings in *hello are terminated and printable.
 */
enum listener_event listener_wait(struct listener *listener, int64_t deadline_ns,
                                  const int *watched, size_t count, struct hello *hello,
                                  int *socket, size_t *which);

/*
 * Lets in ranks of a run: each whose sockets[rank] is LISTENER_AWAITED gets its connection there,
 * until all have it or `timeout_ms` (0: none) is over. Whoever else says hello is dropped. Returns
 * the first rank that has not come; -1: all have.
 */
int listener_let_in(struct listener *listener, uint64_t run_id, int64_t timeout_ms, int *sockets,
                    int world_size);

/* Connects to whoever lets in, and says hello with this build's version and this host's name,
 * within `timeout_ms` each. 0 or an errno value, not logged; *socket is then -1. */
int listener_join(const union address *address, uint64_t run_id, int rank, int64_t timeout_ms,
                  int *socket);

#endif
