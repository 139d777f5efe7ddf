/*
 * The parts that a comm and libpsring share: who averages and over which connections, plans for
 * vectors of any length, and which thread uses the connections when.
 *
 * The trainer and bench know all lengths beforehand. They use comm.h: a list of buckets, servers
 * and copies to and from devices. libpsring knows no length beforehand and has no device, so it
 * uses these parts directly.
 */
#ifndef PSRING_COMMON_COMM_COMM_PARTS_H
#define PSRING_COMMON_COMM_COMM_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/comm/backend.h"
#include "common/comm/comm_options.h"
#include "common/net/topology.h"
#include "common/net/transport/transport.h"
#include "common/net/world.h"

/* -------- who averages (comm_place.c) ---------------------------------------------------------
 */

/* The place of this process among those that average. Every backend_env is made from one. */
struct comm_place {
    struct comm_options options; /* the caller's; `group` is set where it named none */
    struct world *world;         /* borrowed */
    struct topology topology;
    struct group *own_group;        /* all workers, where the caller named none */
    const struct group *everyone;   /* who plans together: NULL is the world */
    int *hosts;                     /* see comm_hosts */
    struct transport *endpoints[2]; /* by enum node_role; NULL where this process hosts none */
    bool shares;                    /* the endpoints are another place's */
};

/*
 * Collective over the world: finds the group of workers and connects, as `backend` needs it.
 * `backend` NULL is for libpsring. The place is then connected for every backend that has no
 * servers, unless the world is of one rank. It has no group: each communicator brings its own
 * (comm_place_share). Errors: logged; comm_place_close frees what there is.
 */
enum status comm_place_open(struct comm_place *place, struct world *world,
                            const struct backend *backend, const struct comm_options *options);

/* A group of the world's ranks over the connections of `of`, which stays open longer. No messages.
 * Borrows `group`. */
enum status comm_place_share(struct comm_place *place, const struct comm_place *of,
                             const struct group *group);

/* The environment of the backend's worker or server. It has no layout yet. */
struct backend_env comm_place_env(const struct comm_place *place, enum node_role role);

/* Closes the connections, unless they are another place's. */
void comm_place_close(struct comm_place *place);

/* -------- plans for vectors of any length (comm_place.c) ---------------------------------------
 *
 * For a caller that does not know its lengths beforehand: a vector's plan is made when a vector
 * like it first comes. The last COMM_VECTORS_KEPT plans are kept, so that a vector that comes again
 * allocates nothing. A new plan takes the place of the one that was used longest ago.
 *
 * There is no barrier. All members of the group ask for the same vectors in the same order. They
 * keep the same plans, and the numbers in the headers of their messages agree. No slot is posted
 * between two operations, so a plan can come and go while others are in use. (comm_plan needs a
 * barrier, because a server posts slots before its workers push.)
 */

enum { COMM_VECTORS_KEPT = 16 };

struct comm_vector {
    const struct backend *backend;
    const struct group *group; /* borrowed; the place's ranks in any order */
    const struct reduction *reduction;
    size_t count;
};

struct comm_vector_plan {
    struct comm_vector vector; /* backend NULL: not in use */
    uint64_t used;             /* when, by comm_vectors.uses */
    /* The backend sees these until close. */
    struct comm_options options;
    struct comm_layout layout;
    struct backend_env env;
    void *self;
};

struct comm_vectors {
    uint64_t uses;
    struct comm_vector_plan list[COMM_VECTORS_KEPT];
};

/* The backend's `self` for this vector, as bucket 0. On the thread that uses the connections.
 * Errors: logged. */
enum status comm_vectors_plan(struct comm_vectors *vectors, const struct comm_place *place,
                              const struct comm_vector *vector, void **self);

/* Before the place is closed. */
void comm_vectors_close(struct comm_vectors *vectors);

/* -------- who uses the connections when (comm_thread.c) ----------------------------------------
 *
 * Tasks are done one at a time, since their bytes share one link. All ranks must take the same
 * order, which is that of their starts.
 *
 *     overlap_init(&overlap, work, context)
 *     overlap_begin(&overlap, name)          (optional) a thread does what is started from now on
 *     overlap_start(&overlap, &task)         without that thread, the task is done in the call
 *     ... computes ...
 *     overlap_wait(&overlap, &task)
 *     overlap_run(&overlap, &task)           does a task on the calling thread
 *     overlap_end, overlap_fini
 *
 * After a failure no further task is begun: each ends with the status of that failure. Threads: any
 * may call all but init, end and fini.
 */

struct overlap_task {
    struct overlap_task *next; /* in the queue */
    bool done;
    enum status status;
};

/* Does a task. Called outside the monitor. */
typedef enum status overlap_function(void *context, struct overlap_task *task);

struct overlap {
    overlap_function *work;
    void *context;
    struct thread thread;
    struct monitor monitor; /* of all that follows; wakes: busy, a task queued or done, ending */
    struct overlap_task *queue, **queue_end;
    bool busy; /* a thread uses the connections */
    bool ending;
    enum status status; /* the first failure */
    uint64_t ended;     /* tasks */
    int64_t busy_ns;    /* spent in them */
};

void overlap_init(struct overlap *overlap, overlap_function *work, void *context);
/* Starts the thread, unless it runs. Errors: logged. */
enum status overlap_begin(struct overlap *overlap, const char *name);

/* Hands a task over. Its memory is the overlap's until overlap_wait. Returns at once; without a
 * thread, once the task has ended, with its status. */
enum status overlap_start(struct overlap *overlap, struct overlap_task *task);
/* Does the task on the calling thread, as soon as all that was started has ended. */
enum status overlap_run(struct overlap *overlap, struct overlap_task *task);
bool overlap_done(struct overlap *overlap, const struct overlap_task *task);
/* Returns once the task has ended, with its status. */
enum status overlap_wait(struct overlap *overlap, const struct overlap_task *task);

/* Waits until all that was started has ended. The caller then has the connections until
 * overlap_leave. */
void overlap_take(struct overlap *overlap);
void overlap_leave(struct overlap *overlap);

/* Time spent in tasks since overlap_init, in ns. */
int64_t overlap_busy_ns(struct overlap *overlap);

/* Ends the thread once it has done what was started. A zero *overlap is fine, here and below. */
void overlap_end(struct overlap *overlap);
/* The same; then zeros *overlap. */
void overlap_fini(struct overlap *overlap);

#endif
