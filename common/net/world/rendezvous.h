/* Internal to common/net: a world that has met by rendezvous, and its collective calls. */
#ifndef PSRING_COMMON_NET_WORLD_RENDEZVOUS_H
#define PSRING_COMMON_NET_WORLD_RENDEZVOUS_H

#include "common/net/rendezvous.h"
#include "common/net/stream.h"
#include "common/net/world/world_impl.h"

/* In front of every message; numbers in the machine's order (listener.h). */
struct frame {
    uint32_t call;  /* enum call; CALL_FAILED: the root has given up, and why follows as text */
    uint32_t group; /* number of the group in this world */
    uint64_t turn;  /* number of the call in the group */
    uint64_t bytes; /* that follow */
    int64_t status; /* of CALL_FAILED */
};

struct world_impl {
    int *sockets; /* by rank; below 0: no connection to that one */
    struct group *all;
    uint32_t groups; /* made so far */
};

struct group_impl {
    uint32_t number; /* of the group in this world */
    uint64_t turn;   /* of its next call */
};

/* As in world_ops. */
enum status world_rendezvous_barrier(struct world *world, const struct group *group);
enum status world_rendezvous_broadcast(struct world *world, const struct group *group, void *data,
                                       size_t bytes);
enum status world_rendezvous_gather(struct world *world, const struct group *group,
                                    const void *mine, size_t bytes, void *all);
enum status world_rendezvous_collect(struct world *world, const struct group *group,
                                     const void *mine, size_t bytes, void *all);
enum status world_rendezvous_scatter(struct world *world, const struct group *group,
                                     const void *all, size_t bytes, void *mine);
void world_rendezvous_fail(struct world *world, enum status status, const char *why);
void world_rendezvous_close_in_child(const struct world *world);

#endif
