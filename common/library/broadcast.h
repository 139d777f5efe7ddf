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
#ifndef PSRING_COMMON_LIBRARY_BROADCAST_H
#define PSRING_COMMON_LIBRARY_BROADCAST_H

#include "common/net/transport/transport.h"
#include "common/net/world/topology.h"

enum { BROADCAST_SLOTS = 8 };

struct broadcast {
    struct transport *transport; /* borrowed; NULL until broadcast_open */
    int size, rank, next, previous;
    uint64_t step; /* broadcasts done */
    struct transport_slot slots[BROADCAST_SLOTS];
};

/* Borrows `transport` until broadcast_close, which may be called without. Errors: logged. */
enum status broadcast_open(struct broadcast *broadcast, struct transport *transport,
                           const struct group *group);
void broadcast_close(struct broadcast *broadcast);

/* `count` elements at `data`, root's to all. On the transport's thread. Errors: logged. */
enum status broadcast_run(struct broadcast *broadcast, void *data, size_t count,
                          enum message_dtype dtype, int root);

#endif
