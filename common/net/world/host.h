/*
 * Internal to common/net: which ranks share a host, a machine, a processor core.
 *
 * A *host* is what a user calls one: a name on a running kernel. Two machines of one name are two
 * hosts, because their kernels were started at other times; so are the namespaces of one machine
 * that have a name or a network of their own. A *machine* is one running kernel, however many hosts
 * it plays: its cores and its GPUs are what they share.
 */
#ifndef PSRING_COMMON_NET_WORLD_HOST_H
#define PSRING_COMMON_NET_WORLD_HOST_H

#include <sched.h>
#include <stdint.h>

/* Of one rank. Plain data: ranks exchange it. */
struct host_identity {
    uint64_t host, machine; /* equal numbers: the same one */
    cpu_set_t cpus;         /* that the process may run on */
};

/* From the host's name and the kernel's boot id; "" where there is none: then the name is all that
 * is known. Leaves `cpus` empty. */
struct host_identity host_identity_of(const char *name, const char *boot_id);

/* Of this process. */
struct host_identity host_identify(const char *name);

struct host_place {
    int local_rank, local_size; /* among the ranks of this host */
    int machine;                /* this machine's number: the lowest rank on it */
    int sharing_cpus;           /* ranks, this one included, that may run on one of its cores */
};

/* Where `rank` stands among the `size` identities of all ranks. */
struct host_place host_place_of(const struct host_identity *all, int size, int rank);

/* The number of `rank`'s host: the lowest rank on it. */
int host_number_of(const struct host_identity *all, int rank);

#endif
