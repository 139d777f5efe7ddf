#include "experiments/measure/cpu_share.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool cpu_share_is_others(double busy, double other)
{
    return busy > CPU_SHARE_LIMITED && other >= CPU_SHARE_OTHER &&
           busy - other <= CPU_SHARE_LIMITED;
}

bool cpu_share_watches(const struct world *world)
{
    return world->sharing_cpus == world->size ? world->rank == 0 : world->local_rank == 0;
}

/* The first line is "cpu user nice system idle iowait irq softirq steal guest guest_nice", where
 * user and nice hold the guests' time already. Kernels of old end earlier. */
bool cpu_ticks_parse(const char *text, struct cpu_ticks *ticks)
{
    uint64_t user, nice, system, idle, iowait = 0, irq = 0, softirq = 0, steal = 0;
    int found = sscanf(text,
                       "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                       " %" SCNu64 " %" SCNu64,
                       &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);
    if (found < 4 || strncmp(text, "cpu ", 4) != 0) /* "cpu0" is one of them */
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
    /* Counters of a CPU that goes to sleep have been seen to step back. */
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
