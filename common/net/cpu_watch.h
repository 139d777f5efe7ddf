/*
 * The load of the machine's CPUs during a measurement. If a link waits for a process, and the
 * process waits for a CPU, then the measured time says nothing about the link.
 */
#ifndef PSRING_COMMON_NET_CPU_WATCH_H
#define PSRING_COMMON_NET_CPU_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net/world.h"

/* Above this share a measurement counts as limited by the CPUs. */
#define CPU_SHARE_LIMITED 0.85
/* Ignore other processes below this share: ticks are too coarse. */
#define CPU_SHARE_OTHER 0.1

/* Whether other processes caused the load: without them the CPUs would not have been the limit.
 * `busy`, `other`: shares of all CPUs; below 0: not known. */
bool cpu_share_is_others(double busy, double other);

/* Whether this rank reads its machine's ticks. One rank of each machine does, because reading takes
 * CPU time too. */
bool cpu_share_watches(const struct world *world);

/* The kernel's ticks since boot (1/100 s), summed over all CPUs of the machine. */
struct cpu_ticks {
    uint64_t busy, total;
    uint64_t processes; /* `busy` without interrupts */
};

/* Parses the text of /proc/stat. Time taken by a hypervisor counts as busy. False: it is another
 * text. */
bool cpu_ticks_parse(const char *text, struct cpu_ticks *ticks);

/*
 * Adds up the ticks between cpu_watch_start and cpu_watch_stop, over any number of intervals. Ticks
 * are coarse, but their mean over many short intervals is right. Reading takes about 20 us.
 */
struct cpu_watch {
    bool running;
    struct cpu_ticks start, passed;
};

void cpu_watch_start(struct cpu_watch *watch);
void cpu_watch_stop(struct cpu_watch *watch);

/* An operation of at least this many microseconds is watched separately, because reading does not
 * prolong it much. For shorter operations the share also covers the time between them. */
enum { CPU_WATCH_LONG_US = 5000 };

/* From 0 to 1. -1: fewer than CPU_WATCH_LEAST_TICKS passed, or the kernel reports none. */
double cpu_watch_share(const struct cpu_watch *watch);
enum { CPU_WATCH_LEAST_TICKS = 10 };

/* The seconds that passed, summed over all CPUs, and the processes' part of them. False: fewer than
 * CPU_WATCH_STEADY_TICKS passed, too few for a statement. */
bool cpu_watch_seconds(const struct cpu_watch *watch, double *total_s, double *processes_s);
enum { CPU_WATCH_STEADY_TICKS = 100 };

/*
 * The processor time that a process spends on operations: user and system, of all its threads. The
 * caller's thread has other work between operations, so only its time between enter and leave
 * counts. The other threads (a server, a transport's input and output) work for the operations
 * only. All their time counts, also after the caller's wait is over.
 *
 * The sum does not contain the system's work that no process is charged for: interrupts while other
 * processes run, and the kernel's own threads.
 */

/* All calls from one thread. */
struct cpu_time {
    int64_t process_ns; /* all threads, at the start */
    int64_t others_ns;  /* all threads but the caller's, at the start */
    int64_t entered_ns; /* the caller's thread, at the last cpu_time_enter */
    int64_t inside_ns;  /* the caller's thread, all operations together */
};

void cpu_time_start(struct cpu_time *cpu);

/* Around each operation. Each is one system call, about 0.2 us. */
void cpu_time_enter(struct cpu_time *cpu);
void cpu_time_leave(struct cpu_time *cpu);

/* Seconds since the start, exact to a microsecond for threads that are idle at that moment. The
 * kernel adds the time of a running thread at its ticks: call both while the other threads are
 * idle. */
double cpu_time_s(const struct cpu_time *cpu);

/* All processor seconds of the process since the start. */
double cpu_time_process_s(const struct cpu_time *cpu);

#endif
