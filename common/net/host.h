/*
 * The ranks that share a host, a machine or a processor core; the launcher that started them; and
 * pinning.
 *
 * A *host* is a name on a running kernel, as users see it. Two machines with one name are two
 * hosts, because their kernels were started at different times. Namespaces of one machine that have
 * their own name or network are hosts, too. A *machine* is one running kernel with any number of
 * hosts; they share its cores and its GPUs.
 */
#ifndef PSRING_COMMON_NET_HOST_H
#define PSRING_COMMON_NET_HOST_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"
#include "common/net/world.h"

/* The name of this host, cut to fit; "unknown" if it has none. */
void host_name(char *text, size_t size);

/* One rank's host. Plain data: ranks exchange it. */
struct host_identity {
    uint64_t host, machine; /* equal numbers: the same host, the same machine */
    cpu_set_t cpus;         /* on which the process may run */
};

/* From the host's name and the kernel's boot id. With boot id "" only the name counts. Leaves
 * `cpus` empty. */
struct host_identity host_identity_of(const char *name, const char *boot_id);

/* The identity of this process's host. */
struct host_identity host_identify(const char *name);

struct host_place {
    int local_rank, local_size; /* among the ranks of this host */
    int machine;                /* this machine's number: the lowest rank on it */
    int sharing_cpus;           /* ranks, including this one, that may run on one of its cores */
};

/* The place of `rank` among the `size` identities of all ranks. */
struct host_place host_place_of(const struct host_identity *all, int size, int rank);

/* The number of `rank`'s host: the lowest rank on it. */
int host_number_of(const struct host_identity *all, int rank);

/*
 * Variables that a launcher sets in the environment. Those of MPI's launchers (mpirun, srun) give
 * this process's rank. Those of torchrun, or of any launcher that sets the same variables, also
 * give the address of the rendezvous.
 */

enum { LAUNCHER_RANKS_MOST = 65535, LAUNCHER_RENDEZVOUS_BYTES = 300 };

/* The value of an environment variable; NULL if it is unset or empty. */
const char *launcher_variable(const char *name);

/* This process's rank according to MPI's launcher, known before the ranks have met. -1: no MPI
 * launcher started it. */
int launcher_mpi_rank(void);

struct launcher_place {
    bool given; /* RANK and WORLD_SIZE are set; else all other fields are zero */
    char rendezvous[LAUNCHER_RENDEZVOUS_BYTES]; /* "tcp://HOST:PORT" */
    int rank, size;
};

/* Reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. STATUS_USAGE (logged): some are missing or
 * invalid. */
enum status launcher_torchrun(struct launcher_place *place);

/*
 * Binds ranks to processor cores. A rank's threads stay on cores that no other rank has. Then the
 * scheduler does not move them, and no thread waits for another rank's. If a launcher has given
 * each rank its own cores (mpirun --bind-to core, srun --cpu-bind), they stay. Ranks that share all
 * cores (--rendezvous, torchrun, mpirun --bind-to none) get a part each, in their order on the
 * machine. GPUs are chosen in the same order (experiments/config/gpus.c).
 */

enum { PIN_LIST_BYTES = 160 };

/* A processor with the kernel's number and its position: hyperthreads have the same core. */
struct pin_cpu {
    int cpu, package, core;
};

/* How the cores of `rank` must be divided. `all` holds the identities of all `size` ranks. */
struct pin_share {
    int index, count; /* among the ranks that may run on exactly the same cores, by rank */
    int overlaps;     /* the lowest rank that has some of its cores but not the same set; -1:
                       * none */
};
struct pin_share pin_share_of(const struct host_identity *all, int size, int rank);

/*
 * Part `index` of `count` of the `cpus` processors in `list`, which is reordered. A part consists
 * of neighbours; sizes differ by at most one core. Hyperthreads of a core stay together if there
 * are enough cores. The part is empty if there are fewer processors than parts.
 */
void pin_part(struct pin_cpu *list, int cpus, int index, int count, cpu_set_t *part);

/* "0-3,8", as the kernel lists them. */
void pin_list(const cpu_set_t *cpus, char text[PIN_LIST_BYTES]);

/* The processors on which this process may run, in the form of pin_list. */
void pin_list_own(char text[PIN_LIST_BYTES]);

/*
 * Binds this process, with all its present and future threads, to its part. `world` then counts
 * those cores as this process's own. Collective over the world. STATUS_USAGE, on all ranks, logged
 * by rank 0: ranks share too few cores, or only some of their cores.
 */
enum status world_pin(struct world *world);

#endif
