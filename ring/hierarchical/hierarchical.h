/*
 * Hierarchical all-reduce over common/net/transport and memory that the workers of a host share.
 * Read hierarchical.c.
 *
 * Cost: with H hosts of L workers each, a worker sends 2(H-1)/H of its L-th of the vector over the
 * network, a host 2(H-1)/H of the vector. Beside that each worker copies the vector into and out of
 * shared memory; a host needs L+1 times its longest bucket of that. Nothing is allocated after
 * open.
 */
#ifndef PSRING_RING_HIERARCHICAL_H
#define PSRING_RING_HIERARCHICAL_H

#include "common/comm/backend.h"
#include "ring/hierarchical/host_groups.h"

extern const struct backend backend_hierarchical;

/* backend_hierarchical.open, but collective over the group only: in `groups`, opened for vectors as
 * long as the site's; borrowed, and at most one all-reduce at a time goes on in them. The table's
 * other functions then take *self. */
enum status hierarchical_open_in(void **self, const struct comm_site *site,
                                 struct host_groups *groups);

#endif
