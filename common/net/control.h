/*
 * Control connections. Ranks use them to meet, to make collective calls and to watch each other;
 * members use them to join an elastic job. They are TCP connections, with TLS after secure_open
 * (secure.h), and every wait on them has a time-out. Every message begins with a control_head, and
 * the first message is a hello. Anyone can connect to a port. A process that sends another first
 * message, or none, is dropped and delays no rank. The watchdog has its own connections: its thread
 * must be heard while the main thread is inside a call, and ranks of MPI have no others.
 *
 * Functions return 0 or an errno value and log nothing, because the caller knows the other end.
 *   ETIMEDOUT   nothing moved during the time-out
 *   ECONNRESET  the other end has closed
 *   ECANCELED   the caller's `cancelled` returned true
 *   EKEYREJECTED, EPROTO, EBADMSG  see secure_error
 */
#ifndef PSRING_COMMON_NET_CONTROL_H
#define PSRING_COMMON_NET_CONTROL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/net/address.h"

/* -------- connections ------------------------------------------------------------------------- */

/* Opens a socket that listens at `address`; port 0: the system chooses one. */
int stream_listen(const union address *address, int *out);

/* The least round trip of a TCP connection so far, in seconds. The kernel measures it, so a busy
 * process at either end does not lengthen it. 0: unknown. */
double stream_round_trip_s(int socket);

/* Takes the next connection of a listening socket. EAGAIN: none is waiting. */
int stream_accept(int listening, int *out);

/* Connects; ETIMEDOUT after `timeout_ms`. */
int stream_connect(const union address *address, int64_t timeout_ms, int *out);
/* The same in two calls. The second one waits until deadline_ns. After ETIMEDOUT it can be repeated
 * while *socket is not -1. */
int stream_begin_connect(const union address *address, int *out);
int stream_finish_connect(int64_t deadline_ns, int *socket);

/*
 * Sends (or receives) all of `bytes` bytes. The time-out (0: none) counts from the call, and starts
 * again whenever a part has moved. The call does not wait if all bytes can move at once.
 */
int stream_send(int socket, const void *data, size_t bytes, int64_t timeout_ms);
int stream_receive(int socket, void *data, size_t bytes, int64_t timeout_ms);

/* A waiting function calls it now and then, and ends once it returns true. NULL: never. */
typedef bool cancelled_call(void *context);

/* Waits until poll(2) finds `events`, or until deadline_ns (clock_now_ns; 0: none). */
int stream_wait(int socket, short events, int64_t deadline_ns, cancelled_call *cancelled,
                void *context);

/* Closes *socket if it is open (>= 0) and sets it to -1. The other end gets the end of the stream
 * even if a child of fork() has the socket open. Unread data is read first: otherwise the system
 * may discard the bytes that were sent last. */
void stream_close(int *socket);

/* From now on an idle connection whose other end has vanished breaks within half a minute. */
void stream_keep_alive(int socket);

/* Milliseconds for poll(2) until `deadline_ns` (clock_now_ns; 0: none). */
int stream_poll_ms(int64_t deadline_ns);

/* The time `timeout_ms` from now. 0 (no time-out) gives 0 (no deadline). */
int64_t stream_deadline_ns(int64_t timeout_ms);

/* -------- messages ---------------------------------------------------------------------------- */

/* In the byte order of the machine: a machine of another order finds a foreign magic. */
#define CONTROL_MAGIC UINT64_C(0x6f6c6c6548525350) /* "PSRHello" */

enum {
    CONTROL_PROTOCOL = 4,
    CONTROL_SAME_BYTES = 16, /* magic to value: the same in all versions of the protocol */
};

/* The types of all messages differ, so that no user takes a message of another user for its own. */
enum control_type {
    CONTROL_HELLO = 1,    /* struct hello */
    CONTROL_ANSWER,       /* to a hello: rendezvous.h, reach.c */
    CONTROL_WORLD = 16,   /* and greater: world_rendezvous.c */
    CONTROL_WATCH = 32,   /* and greater: watchdog_impl.h */
    CONTROL_SHRINK = 48,  /* and greater: shrink.c */
    CONTROL_MEMBERS = 64, /* and greater: experiments/elastic/member.h */
};

/* The beginning of every message. A message is a struct as it lies in memory, followed by a text or
 * data. */
struct control_head {
    uint64_t magic;
    uint32_t protocol;
    int32_t value; /* by type: a rank, a status, an exit code */
    uint32_t type;
    uint32_t group; /* by type: the group of ranks or the generation of members */
    uint64_t bytes; /* after this head */
    /* The run id; before there is one, and at doors, the job's token. SHRINK: the first world's run
     * id, or the ticket of a newcomer. MEMBERS: membership_job. An answer has that of its hello, so
     * that no stranger learns the token. */
    uint64_t job;
    /* WORLD: the number of the call in its group, equal on all ranks. Others: control_send counts
     * the messages of this process, so the number grows on each connection. A message that is sent
     * again keeps its number: no reader takes it twice. */
    uint64_t sequence;
};

/* A reader's state of a connection. Zero at first, but for `job` if it is known. */
struct control_input {
    uint64_t job;  /* of all messages; 0: that of the first one */
    uint64_t next; /* the least sequence number of the next one */
    size_t have;   /* its bytes that have arrived */
};

enum control_read {
    CONTROL_NOTHING, /* the message is not complete yet */
    CONTROL_MESSAGE, /* complete; valid until the next call */
    CONTROL_OTHER,   /* of another version of the protocol: only magic to value are known */
    CONTROL_FOREIGN, /* no message, or one of a wrong length, job or sequence number */
    CONTROL_CLOSED,
};

/* Reads the part of a message that has arrived, without waiting. It has from `least` to `room`
 * bytes. */
enum control_read control_read(int socket, void *message, size_t least, size_t room,
                               struct control_input *input);

/* The same for a message of any type, but waits; `timeout_ms` counts from the call. Returns EPROTO
 * for CONTROL_FOREIGN, and EPROTONOSUPPORT for CONTROL_OTHER. */
int control_receive(int socket, void *message, size_t room, struct control_input *input,
                    int64_t timeout_ms, cancelled_call *cancelled, void *context);

/*
 * Sends a message of `size` bytes and `more` bytes of `data`, in one packet if they fit. Fills in
 * magic, protocol, bytes, and the sequence number if it is 0. The time-out works as in stream_send.
 * Below 0 the call does not wait: EAGAIN if nothing can leave now, ETIMEDOUT if a part has left.
 * After any other error a part may have left, too. No message can follow a part.
 */
int control_send(int socket, void *message, size_t size, const void *data, size_t more,
                 int64_t timeout_ms);

/* -------- introductions ----------------------------------------------------------------------- */

enum {
    HELLO_WAIT_MS = 5000,  /* a connection without a hello by then is dropped */
    HELLO_PENDING = 256,   /* connections without a hello; further ones wait to be accepted */
    HELLO_YOUNG_MS = 1000, /* after it one is dropped for the next one */
    /* The same limits once a handshake of TLS has begun: it takes both ends processor time. For the
     * second one HELLO_PENDING strangers that begin a handshake can keep the next ones out. */
    HELLO_SHAKE_MS = 60000,
    HELLO_SHAKE_YOUNG_MS = 5000,
    HELLO_NEWCOMER = -1, /* the rank of a process that joins a running world (shrink_join.c) */
};

/* The first message on a connection; its value is the rank. */
struct hello {
    struct control_head head;
    int32_t world_size;
    uint32_t unused;
    char version[32];
    char host[64];
};

/* With this build's version and this host's name. */
struct hello hello_from(int rank, int world_size, uint64_t job);

/* Whether it comes from one of the ranks 0 to world_size - 1 of that job. */
bool hello_is_of(const struct hello *hello, uint64_t job, int world_size);

struct pending {
    int socket;
    int64_t until_ns; /* HELLO_WAIT_MS after it was made; shakes: HELLO_SHAKE_MS */
    bool shakes;      /* its handshake of TLS has begun */
    struct control_input input;
    struct hello hello;
};

struct listener {
    int socket;
    union address address; /* at which it listens */
    bool warned;           /* a dropped connection has been warned of */
    bool warned_of_accept; /* a failed accept has been warned of */
    bool warned_of_poll;   /* the same for poll(2) */
    int64_t put_off_ns;    /* when to try to accept again; 0: at once */
    int pending_count;
    struct pending pending[HELLO_PENDING]; /* in the order of their arrival here */
    size_t watched_max;
    size_t next;               /* the watched connection to check first: no connection starves */
    struct pollfd *polls;      /* 1 + HELLO_PENDING + watched_max */
    cancelled_call *cancelled; /* the caller sets these two after listener_open */
    void *context;
};

enum { LISTENER_AWAITED = -2 }; /* instead of a socket; -1: no connection is awaited */

enum listener_event {
    LISTENER_HELLO,   /* a process has sent its hello */
    LISTENER_WATCHED, /* a watched connection has closed, or has something to read */
    LISTENER_TIMEOUT,
    LISTENER_CANCELLED,
};

/* Listens at `address`; port 0: any. `watched_max`: see listener_wait. */
int listener_open(struct listener *listener, const union address *address, size_t watched_max);
/* The same with a socket that listens already. Takes the socket, also on an error. */
int listener_adopt(struct listener *listener, int socket, size_t watched_max);
void listener_close(struct listener *listener);

/*
 * Waits for the first of these events:
 *   - A connection has sent its hello. *socket and *hello then belong to the caller. The strings in
 *     *hello are terminated and printable. After a hello of another protocol version only the head
 *     up to `value` is known.
 *   - One of the `count` watched connections has data or has closed: *which. Those below 0 are
 *     skipped.
 *   - The time reaches deadline_ns, by clock_now_ns. 0: no deadline.
 */
enum listener_event listener_wait(struct listener *listener, int64_t deadline_ns,
                                  const int *watched, size_t count, struct hello *hello,
                                  int *socket, size_t *which);

/*
 * Lets in ranks of a job. Each rank whose sockets[rank] is LISTENER_AWAITED gets its connection
 * there, until all have one or `timeout_ms` (0: none) is over. Other processes that say hello are
 * dropped. Returns the first rank that is missing; -1: none is.
 */
int listener_let_in(struct listener *listener, uint64_t job, int64_t timeout_ms, int *sockets,
                    int world_size);

/* Connects and says hello, within `timeout_ms` each. *socket is -1 after an error. */
int listener_join(const union address *address, uint64_t job, int rank, int64_t timeout_ms,
                  int *socket);

/* How to reach a process that may not run yet. */
struct control_search {
    const char *host; /* a name or an address; borrowed */
    int port;
    int64_t timeout_ms; /* 0: none */
    cancelled_call *cancelled;
    void *context; /* for `cancelled` */
    /* Tries one address, for connect_ms (0: no limit) to connect. 0 or an errno value. */
    int (*attempt)(void *self, const union address *address, int64_t connect_ms);
    void *self;
};

/* Attempts one address of the host after the other, repeatedly. Returns 0 or ECANCELED. When the
 * time is over it returns EKEYREJECTED if any attempt did, else the error of the last one. Sets
 * *unknown to the reason why the name is unknown here, or NULL. */
int control_search(const struct control_search *search, const char **unknown);

#endif
