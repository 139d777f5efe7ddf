/*
 * What NCCL reads from the environment, once, at its first call in a process: so the program sets
 * it before it opens a comm. What the user has set stays, in everything.
 *
 * NCCL_ALGO=Ring, NCCL_PROTO=Simple   the algorithm that is to be compared, whatever the size
 * NCCL_DEBUG, _SUBSYS, _FILE          its log of choices, into memory that goes with the process
 *
 * and where processes share a GPU: NCCL takes two ranks on one GPU for a mistake, unless they look
 * as if they were on two hosts, which then talk over sockets:
 *
 * NCCL_HOSTID                         another one in every process
 * NCCL_NET=Socket, NCCL_IB_DISABLE=1, and on one host NCCL_SOCKET_IFNAME=lo
 */
#ifndef PSRING_RING_NCCL_ENV_H
#define PSRING_RING_NCCL_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "common/net/world.h"
#include "ring/vendor/nccl_log.h"

struct nccl_env_options {
    bool share_gpu;
    /* Sees that all ranks are on this host, and gives each its NCCL_HOSTID. */
    const struct world *world;
};

/*
 * Sets the variables. *log is the descriptor of the file that NCCL is to write its log to, in
 * memory, there until the process ends; 0 where this system has none: then NCCL's choice stays
 * unknown, and everything else works.
 */
void nccl_env_set(const struct nccl_env_options *options, int *log);

/* How long the log is now; 0 without one. */
size_t nccl_env_log_length(int log);

/* What the log says from byte `start` on. All zeros without one, or where the user's own NCCL_DEBUG
 * settings kept NCCL from writing there. */
void nccl_env_log_read(int log, size_t start, struct nccl_choice *choice);

#endif
