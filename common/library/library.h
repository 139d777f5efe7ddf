/* Errors, communicators, their operations and the engine. Only the files of libpsring include
 * this. */
#ifndef PSRING_COMMON_LIBRARY_LIBRARY_H
#define PSRING_COMMON_LIBRARY_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/base/status.h"
#include "common/comm/backend.h"
#include "common/comm/comm_parts.h"
#include "common/net/transport/transport.h"
#include "common/net/topology.h"
#include "common/psring.h"
#include "ring/hierarchical.h"

/* -------- errors ------------------------------------------------------------------------------ */

/*
 * The errors that the library's callers get: a status, and a text per calling thread. The layers
 * below log their errors; these functions collect the log lines.
 */

enum { ERROR_BYTES = 1024 };

/* From now on collects error lines and passes all other lines to `other`, which may be NULL. Drops
 * what was collected before. */
void errors_collect(void (*other)(void *context, const char *line), void *context);

/* Returns in one line what was collected since the last call; "" if nothing. */
void errors_take(char text[ERROR_BYTES]);

/* Sets psring_error's text for this thread. Returns `status`. */
__attribute__((format(printf, 2, 3))) enum psring_status errors_set(enum psring_status status,
                                                                    const char *format, ...);

/* Converts to the caller's status. Unless that is PSRING_OK, sets psring_error's text to `text`, or
 * to the status's name if `text` is empty. */
enum psring_status errors_explain(enum status status, const char *text);
/* The same with the collected text. */
enum psring_status errors_return(enum status status);

/* -------- a communicator ---------------------------------------------------------------------- */

enum { BROADCAST_SLOTS = 8 };

/* A group of the world's ranks, and its resources for operations. */
struct psring {
    struct engine *engine; /* one per process; borrowed */
    uint16_t number;       /* number of splits of the world before it; 0: the world */
    uint32_t calls;        /* so far; equal on all members between two calls */
    struct group *group;
    /* The same ranks with the first one last. In this order the ring leaves block r of
     * reduce-scatter at rank r. In the group's order it would leave it at rank r-1. */
    struct group *shifted;
    struct comm_place place;
    struct comm_vectors vectors;
    struct host_groups host_groups;               /* for the hierarchical all-reduce; zero: none */
    struct transport_slot slots[BROADCAST_SLOTS]; /* from the left neighbour */
    struct transport_slot credit;                 /* from the right neighbour, for a broadcast */
    bool slots_open;
    uint64_t broadcasts;
    /* In all broadcasts, to and from the neighbours. Both ends of an edge count alike. */
    uint64_t segments_sent, segments_received;
    struct psring *next; /* in the engine's list */
};

/* Makes the communicator of the ranks of one color and adds it to the engine's list; NULL for a
 * color below 0. Collective over the world, on the thread that owns the connections. Errors are
 * logged. If the ranks of a host cannot share memory, all-reduces use the ring. That is an error on
 * all ranks if the caller asked for hierarchical ones. */
enum status communicator_add(struct engine *engine, const int *colors, struct psring **comm);
/* Call it on the thread that owns the connections, before they are closed. Sets *comm to NULL. */
void communicator_free(struct psring **comm);

struct operation {
    /* A barrier and finalize are an all-reduce, a split is an all-gather. MESSAGE_NO_CALL: this
     * rank has no memory for the operation, and fails. */
    enum message_what what;
    void *data;
    size_t count; /* of all elements of `data` */
    enum psring_type type;
    enum psring_op op;
    int root;
    struct psring **group; /* a split's result; its data is the ranks' colors, for the world */
};

/* Returns once the operation has ended. Call it on the thread that owns the connections. Errors are
 * logged. STATUS_PROTOCOL: a member is in another call. */
enum status operation_run(struct psring *comm, const struct operation *operation);

size_t operation_element_bytes(enum psring_type type);

/* -------- the engine -------------------------------------------------------------------------- */

/* An operation in progress. */
struct psring_handle {
    struct overlap_task task; /* first */
    struct engine *engine;
    struct psring *comm; /* until done */
    struct operation operation;
    struct psring_handle *next, **previous; /* in the list of handles not yet waited for */
};

/*
 * All communicators of a process share one engine: the world, its connections, and the right to use
 * them. comm_thread.c gives that right to one operation at a time. A blocking operation runs on its
 * caller's thread. The first operation by handle starts a thread, which runs all of them.
 *
 * After the first failure no further operation runs. The engine reports the failure to the other
 * ranks and cuts the connections. Every later operation returns the same status and text.
 */
struct engine {
    struct world *world;
    const struct backend *backend; /* NULL: chosen by length */
    bool shares_memory;            /* ranks of a host share memory, for the hierarchical
                                    * all-reduce */
    struct comm_place place;       /* of the whole world */
    pid_t process;                 /* the process that made it */
    char *network;                 /* options.network; NULL: none */
    atomic_bool warned;            /* that no thread could be started */
    bool shrunk;                   /* psring_shrink has made another world of its ranks */

    /* For the thread that owns the connections: */
    struct psring *communicators; /* all, newest first */
    struct psring *all;           /* the world's; NULL until it exists */
    uint16_t splits;              /* of the world so far */
    enum status heard;            /* another rank's failure, received while the world waited */

    /* Its monitor also guards what follows. Its status is that of the first failure. */
    struct overlap overlap;
    struct psring_handle *handles;
    char why[ERROR_BYTES]; /* the first failure's text; constant after it */
    struct transport_counters counted;
};

/* Checks of the callers' arguments before an operation. Each returns PSRING_OK, or a status after
 * it has set psring_error's text. `call` is the function's name for that text. */

/* This process made the engine. */
enum psring_status check_process(const char *call, const struct engine *engine);
/* The communicator exists and belongs to this process. check_world: it is also the world. */
enum psring_status check_communicator(const char *call, const struct psring *comm);
enum psring_status check_world(const char *call, const struct psring *comm);

#endif
