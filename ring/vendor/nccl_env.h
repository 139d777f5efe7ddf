/*
 * What NCCL reads from the environment, once, at its first call in a process: so the program sets
 * it before it opens a comm. What the user has set stays, in everything.
 *
 * NCCL_ALGO, NCCL_PROTO=Simple        the algorithm that is to be compared, whatever the size
 * NCCL_LEGACY_CUDA_REGISTER=1         where `registers` asks for it (nccl_memory.h)
 * NCCL_DEBUG, _SUBSYS, _FILE          its log of choices, into memory that goes with the process,
 *                                     or, where a sandbox has none with a name, into a file in /tmp
 *                                     that loses its name once NCCL has it
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
#include <sys/types.h>

#include "common/net/world/world.h"
#include "ring/vendor/nccl_log.h"

struct nccl_env_options {
    bool share_gpu;
    bool registers;        /* memory of buckets, which cudaMalloc gave, is to be registered */
    const char *algorithm; /* "ring", "tree"; NULL: NCCL's own choice, by size */
    /* Sees that all ranks are on this host, and gives each its NCCL_HOSTID. */
    const struct world *world;
};

/*
 * Sets the variables. *log is the descriptor of the file that NCCL is to write its log to, there
 * until the process ends; 0 where this system has none: then NCCL's choice stays unknown, and
 * everything else works.
 */
void nccl_env_set(const struct nccl_env_options *options, int *log);

/*
 * The log as it is read. NCCL writes a line for every all-reduce, 600 MB in a million steps, so
 * what has been read is given back to the system: whoever follows often needs little memory.
 */
struct nccl_env_log {
    int file;                  /* as of nccl_env_set */
    off_t read;                /* so many bytes of it */
    struct nccl_choice choice; /* what they say */
};

/* A communicator is open. From here on: what was logged before does not count. One reader at a
 * time. Borrows `file`; 0: there is no log. `wanted`: nccl_choice.wanted. */
void nccl_env_log_begin(struct nccl_env_log *log, int file, const char *wanted);

/* Where the log is a file in /tmp, takes its name away, which NCCL needs no more once a
 * communicator is open, or cannot be opened. */
void nccl_env_log_forget(void);

/* Adds the whole lines that came since to log->choice. It stays at zero without a log, and where
 * the user's own NCCL_DEBUG settings keep NCCL from writing there. */
void nccl_env_log_follow(struct nccl_env_log *log);

/* Whether all that has been read went by the algorithm that was wanted; else STATUS_WRONG, logged.
 */
enum status nccl_env_log_check(const struct nccl_env_log *log);

#endif
