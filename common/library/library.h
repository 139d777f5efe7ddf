/* Errors, communicators, their operations and the engine: shared by the files of libpsring. */
#ifndef PSRING_COMMON_LIBRARY_LIBRARY_H
#define PSRING_COMMON_LIBRARY_LIBRARY_H

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
 * Errors as the library's callers get them: a status and a text, of the calling thread. Everything
 * below logs its errors; here is where these lines go.
 */

enum { ERROR_BYTES = 1024 };

/* From here on log lines come here: errors are collected, all others go to `other`, which may be
 * NULL. Drops what was collected. */
void errors_collect(void (*other)(void *context, const char *line), void *context);

/* What has been collected since the last time, in one line; "" if nothing. */
void errors_take(char text[ERROR_BYTES]);

/* psring_error's text from now on, on this thread. Returns `status`. */
__attribute__((format(printf, 2, 3))) enum psring_status errors_set(enum psring_status status,
                                                                    const char *format, ...);

/* The caller's status. Unless that is PSRING_OK, psring_error's text is `text`, or the status's
 * name if that is empty. */
enum psring_status errors_explain(enum status status, const char *text);
/* The same with the text that was collected. */
enum psring_status errors_return(enum status status);

/* -------- a communicator ---------------------------------------------------------------------- */

enum { BROADCAST_SLOTS = 8 };

/* A group of the world's ranks, and what it has prepared for operations. */
struct psring {
    struct engine *engine; /* of the process; borrowed */
    uint16_t number;       /* the splits of the world before it; 0: the world */
    uint32_t calls;        /* so far; the same on all members between two of them */
    struct group *group;
    /* The same ranks, the first one last: in it the ring leaves block r of reduce-scatter with rank
     * r, where in the group it would be with rank r-1. */
    struct group *shifted;
    struct comm_place place;
    struct comm_vectors vectors;
    struct host_groups host_groups; /* for the hierarchical all-reduce; zero: there is none */
    struct transport_slot slots[BROADCAST_SLOTS]; /* from the left neighbour */
    bool slots_open;
    uint64_t broadcasts;
    struct psring *next; /* of the engine's */
};

/* Makes the communicator of the ranks of one color, and adds it to the engine's; NULL below 0.
 * Collective over the world, on the thread that has the connections. Errors: logged. If
 * the ranks of a host cannot share memory, all-reduces go over the ring. That is an error, on all
 * ranks, if the caller asked for hierarchical ones. */
enum status communicator_add(struct engine *engine, const int *colors, struct psring **comm);
/* On the thread that has the connections, and before they are closed. Sets *comm to NULL. */
void communicator_free(struct psring **comm);

struct operation {
    enum message_what what; /* a barrier and the end are an all-reduce, a split is an all-gather */
    void *data;
    size_t count; /* of all elements of `data` */
    enum psring_type type;
    enum psring_op op;
    int root;
    struct psring **group; /* a split's result; its data are the ranks' colors, for the world */
};

/* Returns once it has ended. On the thread that has the connections. Errors: logged;
 * STATUS_PROTOCOL where a member is in another call. */
enum status operation_run(struct psring *comm, const struct operation *operation);

size_t operation_element_bytes(enum psring_type type);

/* -------- the engine ---------------------------------------------------------------------------
 */

/* An operation that was started. */
struct psring_handle {
    struct overlap_task task; /* first */
    struct engine *engine;
    struct psring *comm; /* until done */
    struct operation operation;
    struct psring_handle *next, **previous; /* of all that have not been waited for */
};

/*
 * All communicators of a process share one engine: the world, its connections, and the right to use
 * them, which comm_thread.c gives to one operation at a time. A blocking operation runs on its
 * caller's thread. Started ones run on a thread, which the first of them starts.
 *
 * The first failure is the last operation. The engine reports it to the other ranks and cuts the
 * connections. Every later operation returns the same status and text.
 */
struct engine {
    struct world *world;
    const struct backend *backend; /* NULL: chosen by length */
    bool shares_memory;            /* ranks of a host do, for the hierarchical all-reduce */
    struct comm_place place;       /* of the whole world */
    pid_t process;                 /* whose it is */

    /* For the thread that has the connections: */
    struct psring *communicators; /* all, the newest first */
    struct psring *all;           /* that of the world; NULL until there is one */
    uint16_t splits;              /* of the world so far */
    enum status heard;            /* of another rank's failure, while the world waited */

    /* Its monitor guards what follows, too. Its status is that of the first failure. */
    struct overlap overlap;
    struct psring_handle *handles;
    char why[ERROR_BYTES]; /* that failure's text; does not change after it */
    struct transport_counters counted;
};

/* What callers hand over, looked at before anything is done. Each returns PSRING_OK, or a status
 * with the text of psring_error set. `call` is the function's name, for that text. */

/* This is the process that it belongs to. */
enum psring_status check_process(const char *call, const struct engine *engine);
/* There is one, of this process; check_world: and it is the world. */
enum psring_status check_communicator(const char *call, const struct psring *comm);
enum psring_status check_world(const char *call, const struct psring *comm);

#endif
