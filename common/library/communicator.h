/* A communicator: a group of the world's ranks and what it has prepared, and what one operation
 * does on it. */
#ifndef PSRING_COMMON_LIBRARY_COMMUNICATOR_H
#define PSRING_COMMON_LIBRARY_COMMUNICATOR_H

#include "common/comm/reduce.h"
#include "common/library/broadcast.h"
#include "common/library/shapes.h"
#include "common/psring.h"

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
    struct shapes shapes;
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

#endif
