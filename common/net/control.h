/*
 * Control connections: how ranks meet, make collective calls and watch each other, and how members
 * join an elastic job. They are plain TCP connections, and every wait on them has a time-out. Every
 * message begins with a control_head, and the first one is a hello. Anyone can connect to a port. A
 * process that sends another first message, or none, is dropped and delays no rank.
 *
 * Functions return 0 or an errno value and log nothing, because the caller knows the other end.
 * ETIMEDOUT: nothing moved for the time-out. ECONNRESET: the other end has closed. ECANCELED: the
 * caller's `cancelled` said so.
 */
#ifndef PSRING_COMMON_NET_CONTROL_H
#define PSRING_COMMON_NET_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/address.h"

/* -------- connections ------------------------------------------------------------------------- */

/* Opens a socket that listens at `address`; port 0: one of the system's choice. */
int stream_listen(const union address *address, int *out);

/* Takes the next connection of a listening socket; EAGAIN: there is none now. */
int stream_accept(int listening, int *out);

/* Connects; ETIMEDOUT after `timeout_ms`. */
int stream_connect(const union address *address, int64_t timeout_ms, int *out);

/*
 * Sends (or receives) all of `bytes` bytes. The time-out (0: none) counts from the call, and again
 * from each part that has moved. The call does not wait if all can move at once.
 */
int stream_send(int socket, const void *data, size_t bytes, int64_t timeout_ms);
int stream_receive(int socket, void *data, size_t bytes, int64_t timeout_ms);

/* Asked now and then by a function that waits, which ends once it returns true. NULL: never. */
typedef bool cancelled_call(void *context);

/* Waits until poll(2) finds `events`, or until deadline_ns (clock_now_ns; 0: none). */
int stream_wait(int socket, short events, int64_t deadline_ns, cancelled_call *cancelled,
                void *context);

/* Closes *socket if it is open (>= 0) and sets it to -1. The other end gets the end of the stream
 * even if a child of fork() has the socket open. Unread data is read first, because otherwise the
 * system may discard what was sent last. */
void stream_close(int *socket);

/* Milliseconds for poll(2) until `deadline_ns` (clock_now_ns; 0: none). */
int stream_poll_ms(int64_t deadline_ns);

/* The time `timeout_ms` from now; 0: none, from none. */
int64_t stream_deadline_ns(int64_t timeout_ms);

/* -------- messages ---------------------------------------------------------------------------- */

/* In the byte order of the machine: one of another order finds a foreign magic. */
#define CONTROL_MAGIC UINT64_C(0x6f6c6c6548525350) /* "PSRHello" */

enum {
    CONTROL_PROTOCOL = 2,
    CONTROL_SAME_BYTES = 16, /* magic to value: alike in all versions of the protocol */
};

/* The types of all messages are unlike each other, so that none is taken for another user's. */
enum control_type {
    CONTROL_HELLO = 1,    /* struct hello */
    CONTROL_ANSWER,       /* to a hello: rendezvous.h, reach.c */
    CONTROL_WORLD = 16,   /* and on: world_rendezvous.c */
    CONTROL_WATCH = 32,   /* and on: watchdog_impl.h */
    CONTROL_MEMBERS = 64, /* and on: experiments/elastic/member.h */
};

/* Every message begins with it. A message is a struct as it lies in memory, and a text or data. */
struct control_head {
    uint64_t magic;
    uint32_t protocol;
    int32_t value; /* by type: a rank, a status, an exit code */
    uint32_t type;
    uint32_t group; /* by type: the group of ranks or the generation of members that it is about */
    uint64_t bytes; /* that follow this head */
};

enum control_read {
    CONTROL_NOTHING, /* more is to come */
    CONTROL_MESSAGE, /* until the next call */
    CONTROL_OTHER,   /* of another version of the protocol: only magic to value are known */
    CONTROL_FOREIGN, /* what has come is no message, or one that is too long */
    CONTROL_CLOSED,
};

/* Reads what has come of a message, without waiting. `message` has room for `room` bytes, and
 * *have of them have come; 0 at first. */
enum control_read control_read(int socket, void *message, size_t room, size_t *have);

/* The same, waiting; `timeout_ms` counts from the call. EPROTO stands for CONTROL_FOREIGN, and
 * EPROTONOSUPPORT for CONTROL_OTHER. */
int control_receive(int socket, void *message, size_t room, int64_t timeout_ms,
                    cancelled_call *cancelled, void *context);

/*
 * Sends a message of `size` bytes, and `more` bytes of `data`: in one packet where they fit. Fills
 * in magic, protocol and bytes. The time-out is as of stream_send. Below 0 the call does not wait:
 * EAGAIN if nothing can leave now, ETIMEDOUT if a part has left. After any other error a part may
 * have left, too, and no message can follow it.
 */
int control_send(int socket, void *message, size_t size, const void *data, size_t more,
                 int64_t timeout_ms);

/* -------- introductions ----------------------------------------------------------------------- */

enum {
    HELLO_WAIT_MS = 5000,  /* a connection that has not introduced itself by then is dropped */
    HELLO_PENDING = 64,    /* connections that have not yet; the next ones wait to be accepted */
    HELLO_YOUNG_MS = 1000, /* then the oldest is dropped for the next one */
};

/* The first message on a connection; its value is the rank. */
struct hello {
    struct control_head head;
    int32_t world_size;
    uint32_t unused;
    uint64_t run_id; /* at the rendezvous, where there is none yet, the token */
    char version[32];
    char host[64];
};

/* With this build's version and this host's name. */
struct hello hello_from(int rank, int world_size, uint64_t run_id);

/* Whether it is one of rank 0 to world_size - 1 of that run. */
bool hello_is_of(const struct hello *hello, uint64_t run_id, int world_size);

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
    size_t next;               /* watched connection to look at first: none keeps others waiting */
    struct pollfd *polls;      /* 1 + HELLO_PENDING + watched_max */
    cancelled_call *cancelled; /* the caller sets them after listener_open */
    void *context;
};

enum { LISTENER_AWAITED = -2 }; /* in place of a socket; -1: no connection is awaited */

enum listener_event {
    LISTENER_HELLO,   /* a process has introduced itself */
    LISTENER_WATCHED, /* a watched connection has closed, or has something to read */
    LISTENER_TIMEOUT,
    LISTENER_CANCELLED,
};

/* Listens at `address`; port 0: any. `watched_max`: see listener_wait. */
int listener_open(struct listener *listener, const union address *address, size_t watched_max);
/* The same of a socket that listens already; taken, also on an error. */
int listener_adopt(struct listener *listener, int socket, size_t watched_max);
void listener_close(struct listener *listener);

/*
 * Waits for the first of these:
 *   - A connection has said hello. *socket and *hello are then the caller's. The strings in *hello
 *     are terminated and printable. Of another protocol only the head up to `value` is known.
 *   - Something happens on one of the `count` watched connections: *which. Those below 0 are
 *     skipped.
 *   - The time is deadline_ns, by clock_now_ns. 0: no deadline.
 */
enum listener_event listener_wait(struct listener *listener, int64_t deadline_ns,
                                  const int *watched, size_t count, struct hello *hello,
                                  int *socket, size_t *which);

/*
 * Lets in ranks of a run: each whose sockets[rank] is LISTENER_AWAITED gets its connection there,
 * until all have it or `timeout_ms` (0: none) is over. Other processes that say hello are dropped.
 * Returns the first rank that has not come; -1: all have.
 */
int listener_let_in(struct listener *listener, uint64_t run_id, int64_t timeout_ms, int *sockets,
                    int world_size);

/* Connects to a listener and says hello, within `timeout_ms` each. *socket is -1 after an
 * error. */
int listener_join(const union address *address, uint64_t run_id, int rank, int64_t timeout_ms,
                  int *socket);

/* How to reach a process that may not have been started yet. */
struct control_search {
    const char *host; /* a name or an address; borrowed */
    int port;
    int64_t timeout_ms; /* 0: none */
    cancelled_call *cancelled;
    void *context; /* of cancelled */
    /* Tries one address, for connect_ms (0: no limit) to connect. 0 or an errno value. */
    int (*attempt)(void *self, const union address *address, int64_t connect_ms);
    void *self;
};

/* Attempts one address of the host after the other, again and again. Returns 0, ECANCELED, or what
 * the last attempt met when the time was over; *unknown: why the name is unknown here, or NULL. */
int control_search(const struct control_search *search, const char **unknown);

#endif
