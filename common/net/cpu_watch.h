/*
 * How busy the machine's CPUs are while something is measured. A link that waits for a process that
 * waits for a CPU says nothing about the link.
 */
#ifndef PSRING_COMMON_NET_CPU_WATCH_H
#define PSRING_COMMON_NET_CPU_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/world.h"

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

/*
 * The processor time that a process spends on operations: user and system, of all its threads. The
 * caller's thread does other things between operations, so of it only what lies between enter and
 * leave counts; what the other threads do (a server, a transport's input and output) is for the
 * operations whenever it happens, also when the caller's wait is over.
 *
 * The system's work that no process is charged with is not in it: interrupts that come while
 * others run, the kernel's own threads.
 */

/* All calls from one thread. */
struct cpu_time {
    int64_t process_ns; /* of all threads, when it started */
    int64_t others_ns;  /* of the other ones, when it started */
    int64_t entered_ns; /* the caller's thread, at the last cpu_time_enter */
    int64_t inside_ns;  /* of the caller's thread, all operations together */
};

void cpu_time_start(struct cpu_time *cpu);

/* Around each operation. A call of the kernel each, some 0.2 us. */
void cpu_time_enter(struct cpu_time *cpu);
void cpu_time_leave(struct cpu_time *cpu);

/* Seconds since the start. To a microsecond, but for other threads that run at that moment, which
 * the kernel adds up at its ticks: call both when the others have nothing to do. */
double cpu_time_s(const struct cpu_time *cpu);

/* Seconds of the whole process since the start, whatever it did. */
double cpu_time_process_s(const struct cpu_time *cpu);

#endif
