/* What the files of libpsring share: errors, plans, communicators, the engine. */
#ifndef PSRING_COMMON_LIBRARY_LIBRARY_H
#define PSRING_COMMON_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/status.h"
#include "common/base/thread.h"
#include "common/comm/backend.h"
#include "common/comm/reduce.h"
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

/* The same, with the text that was collected. */
enum psring_status errors_return(enum status status);

enum psring_status errors_status(enum status status);

/*
 * What a communicator has prepared for all-reduces of certain lengths: a backend's plan for each,
 * so that an operation like an earlier one allocates nothing. A few are kept; another one takes the
 * place of the one that was used longest ago.
 *
 * All members of the communicator ask for the same shapes in the same order, so they keep the same
 * ones, and the numbers in the headers of their messages agree. No slot is posted between
 * operations: a plan can come and go while others are in use.
 */

enum { SHAPES_KEPT = 16 };

struct library_shape {
    const struct backend *backend; /* NULL: not in use */
    const struct group *group;
    const struct reduction *reduction;
    size_t count;
    uint64_t used; /* when, by shapes.uses */
    /* What the backend sees until close. */
    struct comm_options options;
    struct comm_layout layout;
    struct backend_env site;
    void *self;
};

struct library_shapes {
    struct world *world;         /* borrowed */
    struct transport *transport; /* borrowed */
    const int *hosts;            /* of the group, as backend_env.hosts; borrowed */
    struct host_groups *groups;  /* for the hierarchical all-reduce, if there is one; borrowed */
    uint64_t uses;
    struct library_shape list[SHAPES_KEPT];
};

/*
 * A broadcast from any rank of a group to all others, along the ring: the root's right neighbour
 * gets the data in segments and passes each on as soon as it has come, and so on to the root's left
 * neighbour.
 *
 *     root          [0][1][2][3]
 *     root + 1         [0][1][2][3]
 *     root + 2            [0][1][2][3]        time ->
 *
 * Bytes: every rank but the last sends all once. Time: M/B and N-2 segments more. The slots are the
 * same whoever the root is, because everybody receives from the left.
 */

enum { BROADCAST_SLOTS = 8 };

struct broadcast {
    struct transport *transport; /* borrowed; NULL until broadcast_open */
    int size, rank, next, previous;
    uint64_t step; /* broadcasts done */
    struct transport_slot slots[BROADCAST_SLOTS];
};

/* A communicator: a group of the world's ranks and what it has prepared, and what one operation
 * does on it. */

struct engine;

struct psring {
    struct engine *engine; /* of the process; borrowed */
    uint16_t number;       /* the splits of the world before it; 0: the world */
    uint32_t calls;        /* so far; the same on all members between two of them */
    struct group *group;
    /* The same ranks, the first one last: in it the ring leaves block r of reduce-scatter with rank
     * r, where in the group it would be with rank r-1. */
    struct group *shifted;
    int *hosts; /* (size) the members', by equal numbers */
    struct host_groups host_groups;
    bool hierarchical; /* these are open */
    bool is_world;
    struct library_shapes shapes;
    struct broadcast broadcast;
    struct psring *next; /* of the engine's */
};

/* Takes `group`; `number`: struct psring. STATUS_NO_MEMORY is logged. */
enum status communicator_new(struct psring **comm, struct engine *engine, struct group *group,
                             uint16_t number);
/* Collective over the world; NULL: of no communicator. Makes a communicator ready for hierarchical
 * all-reduces, where its hosts suit. Where memory cannot be shared that is an error (logged) if the
 * caller asked for them, on all ranks; else there are none. A rank unheard of is an error. */
struct connection;
enum status communicator_share(struct psring *comm, const struct connection *connection);
/* An operation has failed, on whatever communicator, and was the last one: those who would wait for
 * this rank in memory of their host need not. On the transport's thread. */
void communicator_fail(struct psring *comm);
/* On the transport's thread, and before that is closed. Sets *comm to NULL. */
void communicator_free(struct psring **comm);

struct operation {
    enum message_what what; /* a barrier and the end are an all-reduce, a split is an all-gather */
    void *data;
    size_t count; /* of all elements of `data` */
    enum message_dtype dtype;
    enum reduce_op op;
    int root;
};

/* Returns once it has ended. On the transport's thread. Errors: logged; STATUS_PROTOCOL where a
 * member is in another call. */
enum status operation_run(struct psring *comm, const struct operation *operation);

/* How the ranks come together and are connected, as psring_options and the environment say. */

struct connection {
    struct world *world;
    enum transport_kind kind;
    struct transport *endpoint[2]; /* [NODE_WORKER]; NULL in a world of one */
    const struct backend *backend; /* NULL: chosen by length */
    bool
        shares_memory; /* ranks of a host do, for the hierarchical all-reduce: communicator_share */
};

/* Collective. Errors: logged; the caller closes what there is then, too. */
enum status start_connect(const struct psring_options *options, struct connection *connection);

/*
 * All communicators of a process share one engine: the world, its connections, and the right to use
 * them. Operations run one at a time, in the order in which they come: a blocking one on its
 * caller's thread, as soon as all that were started before have ended; started ones on a thread of
 * the engine's, which the first of them starts.
 *
 * The first failure is the last operation. The engine reports it to the other ranks and cuts the
 * connections. Every later operation returns the same status and text.
 */

struct psring_handle {
    struct engine *engine;
    struct psring *comm; /* until done */
    struct operation operation;
    bool done, failed;
    struct psring_handle *next_queued;
    struct psring_handle *next, **previous; /* of all that have not been waited for */
};

struct engine {
    struct connection connection;
    bool threaded;                /* a thread of the engine's may use the transport */
    pid_t process;                /* whose it is */
    struct psring *communicators; /* all, the newest first; for who has the transport */
    struct psring *all;           /* that of the world; NULL until there is one */
    uint16_t splits;              /* of the world so far */
    enum status
        heard; /* of another rank's failure, while the world waited; for who has the transport */

    struct monitor
        monitor;       /* of all that follows; wakes: busy, the queue, a handle's done, ending */
    bool busy, ending; /* busy: a thread has the transport */
    struct thread thread;
    struct psring_handle *queue, **queue_end, *handles;
    enum status failed; /* of the first operation that did */
    char why[ERROR_BYTES];
    struct psring_statistics statistics;
};

/* Brings the ranks together, and makes their communicator. Errors: logged. */
enum status engine_new(struct engine **engine, const struct psring_options *options);

/* Ends what has been started; waits for all ranks unless an operation has failed. Frees everything
 * and sets *engine to NULL. Errors: logged. */
enum status engine_free(struct engine **engine);

/* In a child of fork(), whose parent has the engine: closes the inherited connections. */
void engine_close_in_child(const struct engine *engine);

/* Makes a communicator of the ranks of one color, as psring_split; and frees one. Both wait until
 * all that was started has ended. */
enum psring_status engine_split(struct engine *engine, int color, struct psring **group);
void engine_drop(struct engine *engine, struct psring **group);

/* Returns when the operation has ended. */
enum psring_status engine_run(struct engine *engine, struct psring *comm,
                              const struct operation *operation);

/* Starts it; the engine owns the handle. */
enum psring_status engine_start(struct engine *engine, struct psring *comm,
                                const struct operation *operation, struct psring_handle **handle);
bool engine_done(const struct psring_handle *handle);
/* Waits for its end and frees it. */
enum psring_status engine_wait(struct psring_handle *handle);

void engine_statistics(struct engine *engine, struct psring_statistics *statistics);

/* What callers hand over, looked at before anything is done. Each returns PSRING_OK, or a status
 * with the text of psring_error set. `call` is the function's name, for that text. */

/* This is the process that it belongs to. */
enum psring_status check_process(const char *call, const struct engine *engine);
/* There is one, of this process. */
enum psring_status check_communicator(const char *call, const struct psring *comm);

/* What operations have in common, as the caller gave it. */
struct arguments {
    void *data;
    size_t count; /* blocks: of one of them */
    bool blocks;  /* data is (size, count) */
    enum psring_type type;
    enum psring_op op; /* PSRING_SUM where there is none */
    int root;          /* 0 where there is none */
};

/* Fills `operation` (but for its kind). */
enum psring_status check_operation(const char *call, const struct psring *comm,
                                   const struct arguments *arguments, struct operation *operation);

/* A child of fork() inherits the connections. While it has them open, no rank sees the end of this
 * process, so the child closes them. */

struct engine;

/* Between the two no fork() happens: a child must not see a descriptor that is half closed. */
void forks_hold(void);
void forks_release(void);

#endif
