/*
 * What a communicator has prepared for all-reduces of certain lengths: a backend's plan for each,
 * so that an operation like an earlier one allocates nothing. A few are kept; another one takes the
 * place of the one that was used longest ago.
 *
 * All members of the communicator ask for the same shapes in the same order, so they keep the same
 * ones, and the numbers in the headers of their messages agree. No slot is posted between
 * operations: a plan can come and go while others are in use.
 */
#ifndef PSRING_COMMON_LIBRARY_SHAPES_H
#define PSRING_COMMON_LIBRARY_SHAPES_H

#include "common/comm/backend.h"
#include "ring/hierarchical.h"

enum { SHAPES_KEPT = 16 };

struct shape {
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

struct shapes {
    struct world *world;         /* borrowed */
    struct transport *transport; /* borrowed */
    const int *hosts;            /* of the group, as backend_env.hosts; borrowed */
    struct host_groups *groups;  /* for the hierarchical all-reduce, if there is one; borrowed */
    uint64_t uses;
    struct shape list[SHAPES_KEPT];
};

/* The shape of `count` elements in `group` (borrowed), prepared if it is not yet. On the
 * transport's thread. Errors: logged. */
enum status shapes_get(struct shapes *shapes, const struct backend *backend,
                       const struct group *group, const struct reduction *reduction, size_t count,
                       struct shape **shape);

/* Frees all; before the transport is closed. */
void shapes_fini(struct shapes *shapes);

#endif
