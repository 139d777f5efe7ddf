/*
 * The processor time that a process spends on operations: user and system, of all its threads. The
 * caller's thread does other things between operations, so of it only what lies between enter and
 * leave counts; what the other threads do (a server, a transport's input and output) is for the
 * operations whenever it happens, also when the caller's wait is over.
 *
 * The system's work that no process is charged with is not in it: interrupts that come while
 * others run, the kernel's own threads.
 */
#ifndef PSRING_EXPERIMENTS_CPU_TIME_H
#define PSRING_EXPERIMENTS_CPU_TIME_H

#include <stdint.h>

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
