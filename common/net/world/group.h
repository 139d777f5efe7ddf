/*
 * A group: some of the world's ranks, in ascending order. Collective calls run in one (world.h).
 * Worker w is rank w and node w, so the ranks of a workers' group are also nodes of the transport.
 */
#ifndef PSRING_COMMON_NET_WORLD_GROUP_H
#define PSRING_COMMON_NET_WORLD_GROUP_H

#include "common/base/status.h"

struct group {
    int size;
    int rank;                /* this process's index in `ranks`, or -1 */
    const int *ranks;        /* world ranks, ascending; `size` of them */
    struct group_impl *impl; /* what the world's collective calls need; NULL in a mere list */
};

enum { GROUP_NONE = -1 }; /* the color of a rank that joins no group */

/*
 * Makes the group of `rank` from the colors of all ranks of a world: those of one color >= 0 are
 * together. A rank with a color below 0 gets NULL. No messages; `group` is the caller's, see
 * group_free. STATUS_NO_MEMORY is logged.
 */
enum status group_from_colors(struct group **group, const int *colors, int world_size, int rank);

/* Frees a group that no collective call can use (impl == NULL) and sets *group to NULL. Groups of
 * world_group_new end with world_group_free. */
void group_free(struct group **group);

#endif
