/*
 * Binding ranks to processor cores: a rank's threads stay on cores that no other rank has, so that
 * the scheduler does not move them, and none waits for another rank's. A launcher that has given
 * ranks cores of their own (mpirun --bind-to core, srun --cpu-bind) is left as it is; those that
 * have all cores in common (--rendezvous, torchrun, mpirun --bind-to none) get a part each, by
 * their order on the machine. GPUs are chosen in the same order (experiments/gpu/gpus.h).
 */
#ifndef PSRING_COMMON_NET_WORLD_PIN_H
#define PSRING_COMMON_NET_WORLD_PIN_H

#include "common/net/world/host.h"
#include "common/net/world/world.h"

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
