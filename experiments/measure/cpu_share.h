/*
 * How busy the machine's CPUs are while something is measured. A link that waits for a process that
 * waits for a CPU says nothing about the link.
 */
#ifndef PSRING_EXPERIMENTS_CPU_SHARE_H
#define PSRING_EXPERIMENTS_CPU_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/world/world.h"

/* Above this share a measurement counts as limited by the CPUs. */
#define CPU_SHARE_LIMITED 0.85
/* Less than this share of other work is no reason: ticks are not as exact. */
#define CPU_SHARE_OTHER 0.1

/* Whether it was other processes that made the CPUs so busy: without them they would not have been
 * the limit. `busy`, `other`: shares of all CPUs; below 0: not known. */
bool cpu_share_is_others(double busy, double other);

/* Whether this rank reads its machine's ticks: one rank of each machine does, because reading takes
 * CPU time too. */
bool cpu_share_watches(const struct world *world);

/* The kernel's ticks since boot (1/100 s), summed over all CPUs of the machine. */
struct cpu_ticks {
    uint64_t busy, total;
    uint64_t processes; /* of `busy`, all but interrupts */
};

/* The text of /proc/stat. What a hypervisor takes away counts as busy. False if it is no such text.
 */
bool cpu_ticks_parse(const char *text, struct cpu_ticks *ticks);

/*
 * Adds up what passed between `cpu_watch_start` and `cpu_watch_stop`, over any number of intervals:
 * ticks are coarse, but over many short intervals they come out right on average. Reading takes
 * some 20 us.
 */
struct cpu_watch {
    bool running;
    struct cpu_ticks start, passed;
};

void cpu_watch_start(struct cpu_watch *watch);
void cpu_watch_stop(struct cpu_watch *watch);

/* An operation of at least so many microseconds is watched alone, since reading does not prolong
 * it; of shorter ones a share is that of all between them, too. */
enum { CPU_WATCH_LONG_US = 5000 };

/* From 0 to 1; -1 where less than CPU_WATCH_LEAST_TICKS passed, or the kernel does not say. */
double cpu_watch_share(const struct cpu_watch *watch);
enum { CPU_WATCH_LEAST_TICKS = 10 };

/* Seconds of all CPUs together that passed, and of these the processes'. False where less than
 * CPU_WATCH_STEADY_TICKS passed, of which too little can be told. */
bool cpu_watch_seconds(const struct cpu_watch *watch, double *total_s, double *processes_s);
enum { CPU_WATCH_STEADY_TICKS = 100 };

#endif
