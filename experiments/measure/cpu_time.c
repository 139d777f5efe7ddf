#include "experiments/measure/cpu_time.h"

#include <time.h>

#include "common/base/clock.h"

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The process's clock is read first here and last at the end: what passes between two readings is
 * counted rather than taken away, so that no sum is below zero. */
void cpu_time_start(struct cpu_time *cpu)
{
    int64_t process_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
    *cpu = (struct cpu_time){.process_ns = process_ns,
                             .others_ns = process_ns - read_ns(CLOCK_THREAD_CPUTIME_ID)};
}

void cpu_time_enter(struct cpu_time *cpu)
{
    cpu->entered_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
}

void cpu_time_leave(struct cpu_time *cpu)
{
    cpu->inside_ns += read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu->entered_ns;
}

double cpu_time_s(const struct cpu_time *cpu)
{
    int64_t thread_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t others_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID) - thread_ns;
    return (double)(others_ns - cpu->others_ns + cpu->inside_ns) / (double)NS_PER_S;
}

double cpu_time_process_s(const struct cpu_time *cpu)
{
    return (double)(read_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu->process_ns) / (double)NS_PER_S;
}
