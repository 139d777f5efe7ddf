/*
 * Which ranks share a host, a machine, a processor core; the launcher that started them; and
 * pinning.
 *
 * A *host* is what a user calls one: a name on a running kernel. Two machines of one name are two
 * hosts, because their kernels were started at other times; so are the namespaces of one machine
 * that have a name or a network of their own. A *machine* is one running kernel, however many hosts
 * it plays: its cores and its GPUs are what they share.
 */
#ifndef PSRING_COMMON_NET_HOST_H
#define PSRING_COMMON_NET_HOST_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"

/* The name of this host, "unknown" where it has none; cut to fit. */
void host_name(char *text, size_t size);

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

/*
 * What a launcher says of this process in the environment: MPI's (mpirun, srun) which rank it is,
 * torchrun's (or whoever sets the same variables) where all meet, too.
 */

enum { LAUNCHER_RANKS_MOST = 65535, LAUNCHER_RENDEZVOUS_BYTES = 300 };

/* What a variable of the environment says, or NULL if it is unset or empty. */
const char *launcher_variable(const char *name);

/* This process's rank as MPI's launcher says before the ranks have met; -1: none has started it. */
int launcher_mpi_rank(void);

struct launcher_place {
    bool given; /* RANK and WORLD_SIZE are set; else the rest is zero */
    char rendezvous[LAUNCHER_RENDEZVOUS_BYTES]; /* "tcp://HOST:PORT" */
    int rank, size;
};

/* From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. STATUS_USAGE (logged): some of them are
 * missing, or are no such numbers. */
enum status launcher_torchrun(struct launcher_place *place);

/*
 * Binding ranks to processor cores: a rank's threads stay on cores that no other rank has, so that
 * the scheduler does not move them, and none waits for another rank's. A launcher that has given
 * ranks cores of their own (mpirun --bind-to core, srun --cpu-bind) is left as it is; those that
 * have all cores in common (--rendezvous, torchrun, mpirun --bind-to none) get a part each, by
 * their order on the machine. GPUs are chosen in the same order (experiments/config/gpus.c).
 */

enum { PIN_LIST_BYTES = 160 };

/* A processor as the kernel numbers them, and where it is: hyperthreads have a core in common. */
struct pin_cpu {
    int cpu, package, core;
};

/* How the cores of `rank` are to be divided; identities are of all `size` ranks. */
struct pin_share {
    int index, count; /* among the ranks that may run on the very same cores, by rank */
    int overlaps;     /* the lowest rank that has some of its cores, but not the same; -1: none */
};
struct pin_share pin_share_of(const struct host_identity *all, int size, int rank);

/*
 * Part `index` of `count` of the `cpus` processors, which are reordered: neighbours, and as many as
 * every other part or one more. Hyperthreads of a core stay together where there are cores enough.
 * Empty if there are fewer processors than parts.
 */
void pin_part(struct pin_cpu *list, int cpus, int index, int count, cpu_set_t *part);

/* "0-3,8", as the kernel lists them. */
void pin_list(const cpu_set_t *cpus, char text[PIN_LIST_BYTES]);

/* The processors that this process may run on, as pin_list. */
void pin_list_own(char text[PIN_LIST_BYTES]);

/*
 * Binds this process, with all threads that it has and will have, to its part; the world then
 * counts those cores as its own. Collective over the world. STATUS_USAGE, on all ranks, logged by
 * rank 0: ranks share fewer cores than they are, or only some of their cores.
 */
enum status world_pin(struct world *world);

#endif
