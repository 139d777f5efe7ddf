/* The bottleneck of a training run: compares the ranks' measured times with the cost model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/net/cpu_watch.h"
#include "experiments/train/trainer.h"

/* -------- the model of cost ------------------------------------------------------------------- */

/* Time per step in ms on links of this rate, for all buckets one after the other. */
static double model_ms(const struct trainer *t, const struct topology *topology, const int *hosts,
                       double bits_per_s)
{
    const struct cost_link link = {.bytes_per_s = bits_per_s / 8};
    const struct cost_formula *formula = t->backend->cost;
    struct comm_options options;
    double ms = 0;
    config_comm_options(t->config, t->backend, &options);
    for (size_t b = 0; b < t->sync.count; b++) {
        struct cost_shape shape =
            cost_shape_of(formula, topology, hosts, t->sync.counts[b], &options);
        ms += 1000 * cost_time_s(formula, &shape, &link);
    }
    return isfinite(ms) ? ms : 0;
}

/* The next common link rate that is at least twice as fast. */
static double faster(double bits_per_s)
{
    static const double rates[] = {1e9, 10e9, 25e9, 100e9, 400e9};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (rates[i] >= 2 * bits_per_s)
            return rates[i];
    }
    return 2 * bits_per_s;
}

static void ask_model(const struct trainer *t, struct bottleneck_facts *facts)
{
    double link = t->config->link_rate;
    const int *hosts = comm_hosts(t->sync.comm);
    int workers = t->topology.workers;
    struct topology spread;
    if (link <= 0 || facts->workers < 2)
        return;
    facts->link_bits_per_s = link;
    facts->faster_bits_per_s = faster(link);
    facts->model = model_ms(t, &t->topology, hosts, link);
    facts->model_faster = model_ms(t, &t->topology, hosts, facts->faster_bits_per_s);
    facts->model_spread = facts->model;
    facts->dedicated_servers = t->topology.servers > 0 && t->topology.servers < workers &&
                               t->config->placement == PLACEMENT_DEDICATED;
    if (facts->dedicated_servers &&
        topology_init(&spread, 2 * workers, workers, PLACEMENT_DEDICATED) == STATUS_OK)
        facts->model_spread = model_ms(t, &spread, NULL, link);
}

/* -------- processors -------------------------------------------------------------------------- */

/* A worker's processor times in seconds. A machine's times are the sums over its cores. They are 0
 * if another rank watches the machine or if too little time passed. */
struct cpu_use {
    double waits_s, busy_s;      /* while steps waited for averaging; busy part of it */
    double steps_s, processes_s; /* in steps; part in which processes ran */
    double own_s;                /* of this process, in steps */
    int64_t machine, ranks;      /* machine number; ranks that share its cores */
};

enum cpu_period { CPU_INTERVAL, CPU_RUN, CPU_PERIODS };

/* A worker sends this to all workers. */
struct worker_report {
    double times[STEP_TIME_KINDS]; /* of the interval */
    struct cpu_use cpus[CPU_PERIODS];
};

static struct cpu_use use_of(const struct report_cpus *cpus, const struct world *world)
{
    struct cpu_use use = {
        .own_s = cpus->process_s, .machine = world->machine, .ranks = world->sharing_cpus};
    double processes_s;
    if (cpu_watch_seconds(&cpus->waits, &use.waits_s, &processes_s))
        use.busy_s = use.waits_s * cpu_watch_share(&cpus->waits);
    else
        use.waits_s = 0;
    if (!cpu_watch_seconds(&cpus->steps, &use.steps_s, &use.processes_s))
        use.steps_s = 0;
    return use;
}

/* The share of a machine's cores used during steps by processes other than its ranks. -1: not
 * known. Either too little time passed, or a dedicated server shares the cores (workers do not know
 * its time). */
static double others_on(const struct worker_report *all, size_t workers, enum cpu_period period,
                        const struct cpu_use *machine)
{
    double others_s = machine->processes_s;
    int64_t ranks = 0;
    for (size_t r = 0; r < workers; r++) {
        if (all[r].cpus[period].machine == machine->machine) {
            others_s -= all[r].cpus[period].own_s;
            ranks++;
        }
    }
    if (machine->steps_s <= 0 || ranks < machine->ranks)
        return -1;
    return fmin(fmax(others_s / machine->steps_s, 0), 1);
}

/* Takes the machine whose cores were busiest. Waits inside MPI and NCCL keep cores busy, so their
 * share says nothing. */
static void judge_cpus(const struct trainer *t, const struct worker_report *all, size_t workers,
                       enum cpu_period period, struct bottleneck_facts *facts)
{
    facts->cpu_busy = facts->cpu_other = -1;
    for (size_t r = 0; r < workers && t->backend->uses_transport; r++) {
        const struct cpu_use *use = &all[r].cpus[period];
        double busy = use->waits_s > 0 ? use->busy_s / use->waits_s : -1;
        if (busy > facts->cpu_busy) {
            facts->cpu_busy = busy;
            facts->cpu_other = others_on(all, workers, period, use);
        }
    }
}

static void add_ticks(struct cpu_watch *sum, const struct cpu_watch *watch)
{
    sum->passed.busy += watch->passed.busy;
    sum->passed.total += watch->passed.total;
    sum->passed.processes += watch->passed.processes;
}

void train_cpus_start(struct trainer *t)
{
    struct report_cpus *cpus = &t->report.cpus;
    *cpus = (struct report_cpus){0};
    cpu_time_start(&cpus->own);
    if (cpu_share_watches(t->world))
        cpu_watch_start(&cpus->steps);
}

void train_cpus_wait(struct trainer *t)
{
    bool is_long = t->sync.exposed.ns >= CPU_WATCH_LONG_US * NS_PER_US;
    t->sync.watch = is_long && cpu_share_watches(t->world) ? &t->report.cpus.waits : NULL;
}

void train_cpus_stop(struct trainer *t)
{
    struct report_cpus *cpus = &t->report.cpus, *run = &t->report.run_cpus;
    if (t->report.interval.started_ns == 0) /* no step since the last row */
        *cpus = (struct report_cpus){0};
    else
        cpus->process_s = cpu_time_process_s(&cpus->own);
    cpu_watch_stop(&cpus->steps);
    add_ticks(&run->waits, &cpus->waits);
    add_ticks(&run->steps, &cpus->steps);
    run->process_s += cpus->process_s;
}

/* -------- the bottleneck ---------------------------------------------------------------------- */

/* Adds a row's medians to the run's, weighted by the row's number of steps. */
static void add_row(struct report *report, const struct bottleneck_rank *ranks, size_t workers)
{
    double steps = (double)(report->judged_steps += report->interval.steps);
    double share = (double)report->interval.steps / steps;
    for (size_t r = 0; r < workers; r++) {
        struct bottleneck_rank *of_run = &report->ranks[r];
        of_run->step += share * (ranks[r].step - of_run->step);
        of_run->exposed += share * (ranks[r].exposed - of_run->exposed);
        of_run->data += share * (ranks[r].data - of_run->data);
        of_run->comm += share * (ranks[r].comm - of_run->comm);
        of_run->cpu += share * (ranks[r].cpu - of_run->cpu);
    }
}

enum status train_bottleneck(struct trainer *t)
{
    enum status status = STATUS_OK;
    struct report *report = &t->report;
    const struct group *group = comm_group(t->sync.comm);
    size_t workers = (size_t)comm_workers(t->sync.comm);
    struct worker_report own, *all = calloc(workers, sizeof *all);
    struct bottleneck_rank *ranks = calloc(workers, sizeof *ranks);
    if (!report->ranks)
        report->ranks = calloc(workers, sizeof *report->ranks);
    if (!all || !ranks || !report->ranks)
        TRY(FAIL(STATUS_NO_MEMORY, "no memory for the times of %zu ranks", workers));
    int cores = t->world->cores / t->world->sharing_cpus;
    bool computes_here = !t->config->train.paced && t->config->train.real_ms == 0 &&
                         device_memory_is_host(t->device);
    memset(&own, 0, sizeof own);
    step_times_own(&report->times, own.times);
    own.cpus[CPU_INTERVAL] = use_of(&report->cpus, t->world);
    own.cpus[CPU_RUN] = use_of(&report->run_cpus, t->world);
    TRY(world_gather(t->world, group, &own, sizeof own, all));
    for (size_t r = 0; r < workers; r++)
        ranks[r] = (struct bottleneck_rank){.step = all[r].times[STEP_TIME_ALL],
                                            .exposed = all[r].times[STEP_TIME_EXPOSED],
                                            .data = all[r].times[STEP_TIME_DATA],
                                            .comm = all[r].times[STEP_TIME_COMM],
                                            .cpu = all[r].times[STEP_TIME_CPU]};
    struct bottleneck_facts facts = {
        .ranks = ranks,
        .workers = workers,
        .steps = report->interval.steps,
        .backend = t->backend->name,
        .loaders = (int)t->config->train.data_threads,
        .cores = cores > 1 ? cores : 1,
        .threads = computes_here ? t->threads : 0,
        .waits = !computes_here,
        .compressed = t->config->compress != COMPRESS_NONE,
    };
    ask_model(t, &facts);
    judge_cpus(t, all, workers, CPU_INTERVAL, &facts);
    report->bottleneck = bottleneck_of(&facts);
    if (report->interval.steps > 0) /* otherwise there are no times */
        add_row(report, ranks, workers);
    report->facts = facts;
    report->facts.ranks = report->ranks;
    report->facts.steps = report->judged_steps;
    judge_cpus(t, all, workers, CPU_RUN, &report->facts);
    report->run_bottleneck = bottleneck_of(&report->facts);
    bottleneck_describe(&report->facts, &report->run_bottleneck, report->bottleneck_text,
                        sizeof report->bottleneck_text);
out:
    free(all);
    free(ranks);
    return status;
}
