/*
 * The parts that a comm and libpsring share: who averages over which connections, plans for vectors
 * of any length, and which thread uses the connections when.
 *
 * The trainer and bench know all lengths beforehand. They use comm.h: a list of buckets, servers
 * and copies to and from devices. The library libpsring knows no length beforehand and has no
 * device, so it uses these parts directly.
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

/* -------- who averages (comm_place.c) --------------------------------------------------------- */

/* The place of this process among the ranks that average. Every backend_env is made from one. */
struct comm_place {
    struct comm_options options; /* the caller's; `group` is filled in if the caller gave none */
    struct world *world;         /* borrowed */
    struct topology topology;
    struct group *own_group;        /* all workers, if the caller gave no group */
    const struct group *everyone;   /* the ranks that plan together; NULL: the world */
    int *hosts;                     /* see comm_hosts */
    struct transport *endpoints[2]; /* by enum node_role; NULL if this process has none */
    bool shares;                    /* the endpoints belong to another place */
};

/*
 * Collective over the world: finds the group of workers and connects, as `backend` needs it.
 * `backend` NULL is for libpsring. The place is then connected for every backend without servers,
 * unless the world has one rank. It has no group, because each communicator has one
 * (comm_place_share). Errors are logged; comm_place_close then frees what was opened.
 */
enum status comm_place_open(struct comm_place *place, struct world *world,
                            const struct backend *backend, const struct comm_options *options);

/* A group of the world's ranks over the connections of `of`, which must stay open longer. Sends no
 * messages. Borrows `group`. */
enum status comm_place_share(struct comm_place *place, const struct comm_place *of,
                             const struct group *group);

/* The environment of the backend's worker or server. It has no layout yet. */
struct backend_env comm_place_env(const struct comm_place *place, enum node_role role);

/* Closes the connections, unless they belong to another place. */
void comm_place_close(struct comm_place *place);

/* -------- plans for vectors of any length (comm_place.c) ---------------------------------------
 *
 * For a caller that does not know its lengths beforehand. The first vector of a kind makes its
 * plan. The last COMM_VECTORS_KEPT plans are kept, so a repeated vector allocates nothing. A new
 * plan replaces the one that was unused for longest.
 *
 * There is no barrier. All members of the group ask for the same vectors in the same order. They
 * keep the same plans, and the numbers in the headers of their messages agree. No slot is posted
 * between two operations, so a plan can come and go while others are in use. (comm_plan needs a
 * barrier, because a server posts slots before its workers push.) */

enum { COMM_VECTORS_KEPT = 16 };

struct comm_vector {
    const struct backend *backend;
    const struct group *group; /* borrowed; the place's ranks in any order */
    const struct reduction *reduction;
    size_t count;
};

struct comm_vector_plan {
    struct comm_vector vector; /* backend NULL: not in use */
    uint64_t used;             /* time of the last use, by comm_vectors.uses */
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

/* Returns the backend's `self` for this vector, which is bucket 0. Call it on the thread that uses
 * the connections. Errors are logged. */
enum status comm_vectors_plan(struct comm_vectors *vectors, const struct comm_place *place,
                              const struct comm_vector *vector, void **self);

/* Call it before the place is closed. */
void comm_vectors_close(struct comm_vectors *vectors);

/* -------- who uses the connections when (comm_thread.c) ----------------------------------------
 *
 * Tasks run one at a time, because their bytes share one link. All ranks must start them in the
 * same order, which is the order of execution.
 *
 *     overlap_init(&overlap, work, context)
 *     overlap_begin(&overlap, name)          (optional) a thread does what is started from now on
 *     overlap_start(&overlap, &task)         without that thread, the task is done in the call
 *     ... computes ...
 *     overlap_wait(&overlap, &task)
 *     overlap_run(&overlap, &task)           does a task on the calling thread
 *     overlap_end, overlap_fini
 *
 * After a failure no further task begins: each ends with the status of that failure. Threads: any
 * thread may call all functions except init, end and fini. */

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
    struct monitor monitor; /* guards all that follows; wakes: busy, a task queued or done,
                             * ending */
    struct overlap_task *queue, **queue_end;
    bool busy; /* a thread uses the connections */
    bool ending;
    enum status status; /* the first failure */
    uint64_t ended;     /* number of tasks that have ended */
    int64_t busy_ns;    /* spent in tasks */
};

void overlap_init(struct overlap *overlap, overlap_function *work, void *context);
/* Starts the thread, unless it runs. Errors: logged. */
enum status overlap_begin(struct overlap *overlap, const char *name);

/* Hands a task over. Its memory belongs to the overlap until overlap_wait. With a thread it returns
 * at once; without, once the task has ended, with its status. */
enum status overlap_start(struct overlap *overlap, struct overlap_task *task);
/* Does the task on the calling thread after all started tasks have ended. */
enum status overlap_run(struct overlap *overlap, struct overlap_task *task);
bool overlap_done(struct overlap *overlap, const struct overlap_task *task);
/* Returns once the task has ended, with its status. */
enum status overlap_wait(struct overlap *overlap, const struct overlap_task *task);

/* Waits until all started tasks have ended. The caller then owns the connections until
 * overlap_leave. */
void overlap_take(struct overlap *overlap);
void overlap_leave(struct overlap *overlap);

/* Time spent in tasks since overlap_init, in ns. */
int64_t overlap_busy_ns(struct overlap *overlap);

/* Ends the thread after the started tasks. A zero *overlap is allowed, here and below. */
void overlap_end(struct overlap *overlap);
/* As overlap_end, then zeroes *overlap. */
void overlap_fini(struct overlap *overlap);

#endif
