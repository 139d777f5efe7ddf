/*
 * Hierarchical all-reduce over common/net/transport and memory that the workers of a host share.
 * Read hierarchical.c.
 *
 * Cost with H hosts of L workers each: a worker sends 2(H-1)/H of its L-th of the vector over the
 * network, a host 2(H-1)/H of the vector. In addition each worker copies the vector into and out of
 * shared memory. A host needs shared memory for L+1 times its longest bucket. Nothing is allocated
 * after open.
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
 * All hierarchical all-reduces of one group of workers share the worker's two groups and its host's
 * memory. `psring` has one such all-reduce. libpsring has one for each length and type, and runs
 * one at a time; all use comm_options.host_groups.
 */

/* Describes the vector of an all-reduce. Workers of a host exchange no messages, so each worker
 * writes this behind its vector. */
struct host_content {
    uint64_t count;
    uint32_t dtype, op;       /* enum message_dtype, enum reduce_op */
    struct message_call call; /* the call of libpsring */
};

struct host_groups {
    struct group *host;    /* the workers of this host, by local number */
    struct group *across;  /* the workers with our local number, one on each host */
    struct shared *shared; /* NULL: alone on this host */
    size_t content_offset; /* offset of host_content in each worker's vector */
    uint32_t operation;    /* all-reduces started */
};

/* Collective over `callers`, like shared_open. `callers` is the site's group, or NULL for the whole
 * world. A rank in no group (site->group NULL) gets nothing. Every host must have the same number
 * of workers (hosts_uneven). `vector_bytes` is the length of the longest all-reduce. The function
 * reads the site's world, workers, hosts, transport and time-out. `agreed` as in
 * shared_memory_options. Errors are logged; nothing is left allocated. */
enum status host_groups_open(struct host_groups *groups, const struct backend_env *site,
                             const struct group *callers, size_t vector_bytes, bool *agreed);
void host_groups_close(struct host_groups *groups);

/*
 * Positions of workers: which are on one host, and which have the same local number. Here
 * hosts[worker] is the number of the worker's host, as in comm_hosts. NULL means one host for each
 * worker. Pure.
 */

struct hosts_place {
    int local;  /* index among the workers of its host */
    int across; /* index among the workers of all hosts with that local number */
};

/* (workers) The place of each worker, in O(workers + hosts). The caller frees them. NULL: no
 * memory. */
struct hosts_place *hosts_places(const int *hosts, int workers);

/* Number of workers on `worker`'s host. */
int hosts_locals(const int *hosts, int workers, int worker);

/* The first worker whose host has another number of workers than worker 0's host; -1: none. */
int hosts_uneven(const int *hosts, int workers);

/* Whether each host's workers are consecutive and in order: 0 to L-1 on one host, L to 2L-1 on the
 * next. */
bool hosts_in_order(const int *hosts, int workers);

#endif
