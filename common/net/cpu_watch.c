#include "common/net/cpu_watch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

bool cpu_share_is_others(double busy, double other)
{
    return busy > CPU_SHARE_LIMITED && other >= CPU_SHARE_OTHER &&
           busy - other <= CPU_SHARE_LIMITED;
}

bool cpu_share_watches(const struct world *world)
{
    return world->sharing_cpus == world->size ? world->rank == 0 : world->local_rank == 0;
}

/* The first line is "cpu user nice system idle iowait irq softirq steal guest guest_nice". user and
 * nice contain the guests' time. Old kernels print fewer fields. */
bool cpu_ticks_parse(const char *text, struct cpu_ticks *ticks)
{
    uint64_t user, nice, system, idle, iowait = 0, irq = 0, softirq = 0, steal = 0;
    int found = sscanf(text,
                       "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                       " %" SCNu64 " %" SCNu64,
                       &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);
    if (found < 4 || strncmp(text, "cpu ", 4) != 0) /* "cpu0" is one CPU only */
        return false;
    ticks->processes = user + nice + system + steal;
    ticks->busy = ticks->processes + irq + softirq;
    ticks->total = ticks->busy + idle + iowait;
    return true;
}

static bool read_ticks(struct cpu_ticks *ticks)
{
    char line[256];
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return false;
    bool good = fgets(line, sizeof line, file) && cpu_ticks_parse(line, ticks);
    fclose(file);
    return good;
}

void cpu_watch_start(struct cpu_watch *watch)
{
    watch->running = read_ticks(&watch->start);
}

void cpu_watch_stop(struct cpu_watch *watch)
{
    struct cpu_ticks now;
    if (!watch->running || !read_ticks(&now))
        return;
    watch->running = false;
    /* Counters of a CPU that goes to sleep sometimes step back. */
    if (now.total < watch->start.total || now.busy < watch->start.busy)
        return;
    watch->passed.busy += now.busy - watch->start.busy;
    watch->passed.total += now.total - watch->start.total;
    if (now.processes > watch->start.processes)
        watch->passed.processes += now.processes - watch->start.processes;
}

double cpu_watch_share(const struct cpu_watch *watch)
{
    if (watch->passed.total < CPU_WATCH_LEAST_TICKS)
        return -1;
    return fmin(1, (double)watch->passed.busy / (double)watch->passed.total);
}

bool cpu_watch_seconds(const struct cpu_watch *watch, double *total_s, double *processes_s)
{
    double a_second = (double)sysconf(_SC_CLK_TCK);
    *total_s = (double)watch->passed.total / a_second;
    *processes_s = (double)watch->passed.processes / a_second;
    return watch->passed.total >= CPU_WATCH_STEADY_TICKS;
}

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* The process's clock is read first here and last at the end. Time between two readings is thus
 * added rather than subtracted, and no sum is below zero. */
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
