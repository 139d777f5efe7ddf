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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/comm/backend.h"
#include "common/net/transport/message.h"
#include "ring/shared_memory.h"

extern const struct backend backend_hierarchical;

/*
 * The hierarchical all-reduces of one group of workers share the two groups that a worker is in,
 * and its host's memory. `psring` has one such all-reduce. libpsring has one for each length and
 * type, and does one at a time. They all share comm_options.host_groups.
 */

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
 * Every host has as many workers (hosts_uneven). `vector_bytes`: no all-reduce is longer. Of the
 * site it reads who there is, the transport and the time-out. Errors: logged; nothing is left. */
enum status host_groups_open(struct host_groups *groups, const struct backend_env *site,
                             const struct group *callers, size_t vector_bytes);
void host_groups_close(struct host_groups *groups);

/*
 * Where workers stand among each other: which are on one host, and which have one local number.
 * `hosts` says for each worker which host it is on, by equal numbers, as comm_hosts; NULL: each is
 * on one of its own. Pure.
 */

struct hosts_place {
    int local;  /* among the workers of its host */
    int across; /* among the workers of that local number, of all hosts */
};

struct hosts_place hosts_place_of(const int *hosts, int worker);

/* How many workers are on `worker`'s host. */
int hosts_locals(const int *hosts, int workers, int worker);

/* The first worker whose host has not as many workers as worker 0's; -1 if there is none. */
int hosts_uneven(const int *hosts, int workers);

/* Whether each host's workers are neighbours in order: 0 to L-1 on one, L to 2L-1 on the next. */
bool hosts_in_order(const int *hosts, int workers);

#endif
