/*
 * What the hierarchical all-reduces of one group of workers have in common: the two groups that a
 * worker is in, and its host's memory. `psring` has one such all-reduce; libpsring one for each
 * length and type, one at a time.
 */
#ifndef PSRING_RING_HIERARCHICAL_HOST_GROUPS_H
#define PSRING_RING_HIERARCHICAL_HOST_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "common/comm/backend.h"
#include "common/net/transport/message.h"
#include "ring/hierarchical/shared.h"

/* What an all-reduce is of. No message says that between the workers of a host, so each says it
 * behind its vector. */
struct host_content {
    uint64_t count;
    uint32_t dtype, op;       /* enum message_dtype, enum reduce_op */
    struct message_call call; /* of libpsring */
};

struct host_groups {
    struct group *host;    /* the workers of this host, by local number */
    struct group *across;  /* those of this local number, one on each host */
    struct shared *shared; /* NULL: alone on this host */
    size_t content_offset; /* of host_content in each worker's vector */
    uint32_t operation;    /* all-reduces begun */
};

/* Collective over `callers`, as shared_open: the site's group, or NULL: the whole world, of which a
 * rank in no group (site->group NULL) gets nothing.
 * Every host has as many workers (hosts.h). `vector_bytes`: no all-reduce is longer. Of the site it
 * reads who there is, the transport and the time-out. Errors: logged; nothing is left. */
enum status host_groups_open(struct host_groups *groups, const struct comm_site *site,
                             const struct group *callers, size_t vector_bytes);
void host_groups_close(struct host_groups *groups);

#endif
