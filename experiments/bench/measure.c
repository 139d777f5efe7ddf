#include "experiments/bench/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/clock.h"
#include "common/base/util.h"
#include "common/base/stats.h"
#include "common/net/address.h"
#include "common/net/cpu_watch.h"

/* -------- values whose sums are known --------------------------------------------------------- */

enum { BLOCK = 1024 }; /* elements checked at a time: the sums stay in the first-level cache */

/* A hash of rank and round, the same for all elements. */
static uint32_t salt_of(int rank, uint64_t round)
{
    return (uint32_t)rank * 0x85EBCA6Bu + (uint32_t)round * 0xC2B2AE35u;
}

struct bench_values bench_values(int workers, enum compress compress)
{
    int64_t exact = compress_exact_integer(compress);
    int bits = 0;
    while (bits < BENCH_VALUE_BITS_MAX && (int64_t)workers << bits <= exact)
        bits++;
    return (struct bench_values){workers, bits};
}

/* The top `bits` bits of a multiplicative hash, around 0. 32-bit arithmetic only, so that the loops
 * below become vector instructions. */
static inline int32_t value_at(uint32_t index, uint32_t salt, int bits)
{
    uint32_t hash = index * 0x9E3779B1u + salt;
    hash = (hash ^ hash >> 15) * 0x2C1B3C6Du;
    return (int32_t)(hash >> (32 - bits)) - (1 << (bits - 1));
}

void bench_fill(float *data, size_t count, struct bench_values values, int rank, uint64_t round)
{
    CHECK(values.bits > 0);
    uint32_t salt = salt_of(rank, round);
    for (size_t i = 0; i < count; i++)
        data[i] = (float)value_at((uint32_t)i, salt, values.bits);
}

uint64_t bench_count_wrong(const float *data, size_t count, struct bench_values values,
                           uint64_t round)
{
    uint64_t wrong = 0;
    CHECK(values.bits > 0);
    for (size_t start = 0; start < count; start += BLOCK) {
        size_t length = count - start < BLOCK ? count - start : BLOCK;
        int32_t sums[BLOCK] = {0};
        for (int rank = 0; rank < values.workers; rank++) {
            uint32_t salt = salt_of(rank, round);
            for (size_t i = 0; i < length; i++)
                sums[i] += value_at((uint32_t)(start + i), salt, values.bits);
        }
        for (size_t i = 0; i < length; i++)
            wrong += !(data[start + i] == (float)sums[i]);
    }
    return wrong;
}

/* -------- bytes that the kernel has sent ------------------------------------------------------ */

enum status wire_open(struct wire *wire, const struct world *world, const char *subnet)
{
    enum status status;
    union address address;
    char text[ADDRESS_TEXT_BYTES];
    wire->interface[0] = '\0';
    TRY(world_choose_address(world, subnet, &address));
    if (address_interface(&address, wire->interface, sizeof wire->interface) != STATUS_OK)
        log_warn(
            "bench: found no interface with this rank's address %s, so its host's bytes are not "
            "counted: wire_tx_bytes_max stays empty",
            address_text(&address, text));
    if (strcmp(wire->interface, "lo") == 0)
        wire->interface[0] = '\0';
out:
    return status;
}

/* A line is "  eth0: received bytes packets errs drop fifo frame compressed multicast sent..." */
static bool parse_line(const char *line, const char *interface, uint64_t *bytes)
{
    size_t length = strlen(interface);
    line += strspn(line, " ");
    if (length == 0 || strncmp(line, interface, length) != 0 || line[length] != ':')
        return false;
    return sscanf(line + length + 1, "%*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64, bytes) == 1;
}

bool wire_parse(const char *text, const char *interface, uint64_t *bytes)
{
    for (const char *line = text; *line;) {
        if (parse_line(line, interface, bytes))
            return true;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return false;
}

bool wire_sent_bytes(const struct wire *wire, uint64_t *bytes)
{
    char line[512];
    bool found = false;
    FILE *file = fopen("/proc/net/dev", "r");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file))
        found = wire_parse(line, wire->interface, bytes);
    fclose(file);
    return found;
}

/* -------- the reports of all ranks ------------------------------------------------------------ */

/* Bytes per operation. Every operation must move the same, or the mean would describe none. */
static enum status per_operation(const struct world *world, int rank, const char *role,
                                 const struct transport_counters *counters, uint64_t operations,
                                 struct cost_traffic *traffic)
{
    if (counters->sent_bytes % operations || counters->received_bytes % operations) {
        if (world->rank == 0)
            log_error("bench: rank %d's %s sent %" PRIu64 " and received %" PRIu64
                      " payload bytes in %" PRIu64 " operations; expected the same in each",
                      rank, role, counters->sent_bytes, counters->received_bytes, operations);
        return STATUS_PROTOCOL;
    }
    *traffic = (struct cost_traffic){counters->sent_bytes / operations,
                                     counters->received_bytes / operations};
    return STATUS_OK;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The timed share of a rank's time. A server does not know which operations are timed. */
static double timed_share(const struct bench_report *report, int64_t iters, uint64_t operations)
{
    bool server = report->iters == 0;
    return server ? (double)iters / (double)operations : 1;
}

/* The share of the CPUs watched by rank `watch` that no rank used; -1: not known. */
static double other_share(const struct bench_report *all, int size, int watch, uint64_t operations)
{
    const struct bench_report *seen = &all[watch];
    double others_s = seen->loop_processes_s;
    if (!seen->loop_known)
        return -1;
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].machine == seen->machine)
            others_s -= all[rank].process_s * timed_share(&all[rank], all[0].iters, operations);
    }
    return fmin(fmax(others_s / seen->loop_total_s, 0), 1);
}

int bench_rack(const struct bench_connection *connection)
{
    const struct topology *topology = comm_topology(connection->comm);
    int rack_ranks = connection->options.rack_ranks, rank = connection->world->rank;
    int node = topology_node(topology, rank, NODE_WORKER);
    if (node < 0)
        node = topology_node(topology, rank, NODE_SERVER);
    return rack_ranks > 0 ? topology_rack(topology, rack_ranks, node) : 0;
}

/* The bytes of one operation over the uplinks of racks: adds up a rack, which is ranks in a row. */
static void add_uplink(struct bench_measurement *measurement, const struct bench_report *all,
                       int rank, uint64_t operations, struct cost_traffic *rack)
{
    const struct comm_counters *counters = &all[rank].counters;
    if (rank == 0 || all[rank].rack != all[rank - 1].rack)
        *rack = (struct cost_traffic){0};
    rack->sent_bytes += counters->worker.uplink_sent_bytes + counters->server.uplink_sent_bytes;
    rack->received_bytes +=
        counters->worker.uplink_received_bytes + counters->server.uplink_received_bytes;
    measurement->uplink_bytes = larger(measurement->uplink_bytes,
                                       larger(rack->sent_bytes, rack->received_bytes) / operations);
}

enum status bench_report_gather(struct bench_measurement *measurement, struct world *world,
                                int64_t warmup, const struct bench_report *mine)
{
    enum status status;
    struct bench_report *all = NULL;
    struct cost_traffic rack = {0};
    size_t size = (size_t)world->size;
    all = calloc(size, sizeof *all);
    measurement->ranks = calloc(size, sizeof *measurement->ranks);
    if (!all || !measurement->ranks)
        TRY(FAIL(STATUS_NO_MEMORY, "bench: no memory for the reports of %d ranks", world->size));
    TRY(world_gather(world, NULL, mine, sizeof *mine, all));
    measurement->iters = all[0].iters; /* rank 0 is always a worker */
    measurement->cpu_busy = measurement->cpu_other = -1;
    measurement->wire_known = true;
    uint64_t operations = (uint64_t)(measurement->iters + warmup);
    for (int rank = 0; rank < world->size; rank++) {
        struct bench_rank_traffic *traffic = &measurement->ranks[rank];
        const struct comm_counters *counters = &all[rank].counters;
        TRY(per_operation(world, rank, "worker", &counters->worker, operations, &traffic->worker));
        TRY(per_operation(world, rank, "server", &counters->server, operations, &traffic->server));
        cost_keep_most(&measurement->worker_most, traffic->worker);
        cost_keep_most(&measurement->server_most, traffic->server);
        cost_keep_most(
            &measurement->rank_most,
            (struct cost_traffic){traffic->worker.sent_bytes + traffic->server.sent_bytes,
                                  traffic->worker.received_bytes + traffic->server.received_bytes});
        add_uplink(measurement, all, rank, operations, &rack);
        measurement->wrong += all[rank].wrong;
        measurement->cpu_s +=
            all[rank].cpu_s * timed_share(&all[rank], measurement->iters, operations);
        if (all[rank].cpu_busy > measurement->cpu_busy) {
            measurement->cpu_busy = all[rank].cpu_busy;
            measurement->cpu_other = other_share(all, world->size, rank, operations);
        }
        measurement->wire_known = measurement->wire_known && all[rank].wire_known;
        measurement->wire_sent_bytes_max =
            larger(measurement->wire_sent_bytes_max, all[rank].wire_bytes / operations);
    }
out:
    free(all);
    return status;
}

/* -------- the operations ---------------------------------------------------------------------- */

/* A worker's loop. */
struct bench_run {
    struct comm *comm;
    struct world *world;
    struct device *device; /* NULL: the host */
    const char *subnet;
    const struct bench_plan *plan;
    struct bench_connection *connection;
    int64_t series;   /* operations between two barriers, at least 1 */
    float *host;      /* (series, plan->count) */
    float *data;      /* (series, plan->count): device memory; equals `host` without a device */
    double *times_us; /* (plan->iters, or BENCH_ITERS_MOST): this worker's, of whole series */
    /* (the same) Start and end of this worker, less the time that it computed, in us: with a common
     * clock since the first operation's instant, else since this worker left the barrier. */
    double *begins_us, *ends_us;
    double *rests_us; /* time since the previous operation, negated, by this worker's clock */
    int64_t end_ns;   /* end of the previous operation; 0: there is none */
    int64_t base_ns;
    struct bench_values values;
    int64_t iters;
    uint64_t wrong;
    /* The CPUs' ticks: in the whole loop, and in the operations without filling and checking. The
     * latter only if operations are so long that reading /proc/stat does not prolong them. */
    struct cpu_watch loop, operations;
    bool watches;
    struct cpu_time cpu; /* of this process, since the warm-up */
    double process_s;    /* of everything that it did since then */
    double last_us;      /* of the last operation */
};

/* Allocates zeroed memory; not NULL for a count of 0. Logs if memory is short. */
static void *allocate(size_t count, size_t size)
{
    void *memory = count > SIZE_MAX / size ? NULL : memory_array(count * size);
    if (!memory)
        log_error("bench: out of memory for %zu elements of %zu bytes; choose a smaller last size "
                  "(-e)",
                  count, size);
    return memory;
}

static enum status allocated(const void *memory)
{
    return memory ? STATUS_OK : STATUS_NO_MEMORY;
}

/* -------- memory of the vectors --------------------------------------------------------------- */

int64_t bench_series_iters(size_t count)
{
    size_t fit = BENCH_SERIES_BYTES / (count * sizeof(float) + 1);
    return fit < 2 ? 2 : fit < BENCH_SERIES_MOST ? (int64_t)fit : BENCH_SERIES_MOST;
}

/* Elements of the vectors of `operations` operations. */
static size_t elements_of(const struct bench_run *run, int64_t operations)
{
    return run->plan->count * (size_t)operations;
}

static enum status allocate_vectors(struct bench_run *run)
{
    enum status status = STATUS_OK;
    size_t count = elements_of(run, run->series);
    TRY(allocated(run->host = allocate(count, sizeof *run->host)));
    run->data = run->host;
    if (run->device) {
        void *memory;
        run->data = NULL;
        TRY(device_alloc(run->device, "a vector", count * sizeof *run->data, &memory));
        run->data = memory;
    }
out:
    return status;
}

static void free_vectors(struct bench_run *run)
{
    if (run->device)
        device_free(run->device, run->data);
    free(run->host);
}

/* Fills the vectors of the operations from `round` on. */
static enum status fill_vectors(struct bench_run *run, uint64_t round, int64_t operations)
{
    size_t count = run->plan->count;
    for (int64_t i = 0; i < operations; i++)
        bench_fill(run->host + elements_of(run, i), count, run->values, comm_rank(run->comm),
                   round + (uint64_t)i);
    if (!run->device)
        return STATUS_OK;
    device_upload(run->device, run->data, run->host,
                  elements_of(run, operations) * sizeof *run->host);
    return device_sync(run->device);
}

/* Adds the wrong elements of these vectors. */
static enum status check_vectors(struct bench_run *run, uint64_t round, int64_t operations)
{
    enum status status = STATUS_OK;
    size_t count = run->plan->count;
    if (run->device)
        TRY(device_download(run->device, run->host, run->data,
                            elements_of(run, operations) * sizeof *run->host));
    for (int64_t i = 0; i < operations; i++)
        run->wrong += bench_count_wrong(run->host + elements_of(run, i), count, run->values,
                                        round + (uint64_t)i);
out:
    return status;
}

/* -------- the loop ---------------------------------------------------------------------------- */

/* Waits instead of computing. Returns the time it took, which may be a little more than asked. */
static int64_t compute(const struct bench_plan *plan)
{
    if (!plan->overlap)
        return 0;
    int64_t start_ns = clock_now_ns();
    clock_sleep_until_ns(start_ns + (int64_t)(plan->compute_us * (double)NS_PER_US));
    return clock_now_ns() - start_ns;
}

/* The operations themselves, one after the other. *computed_ns: how long the caller computed. */
static enum status operate(struct bench_run *run, uint64_t round, int64_t operations,
                           int64_t *computed_ns)
{
    enum status status = STATUS_OK;
    *computed_ns = 0;
    for (int64_t i = 0; i < operations; i++) {
        if (i > 0)
            activity_set(run->world->activity, ACTIVITY_MAIN, ACTIVITY_MEASURE, round + (uint64_t)i,
                         0);
        TRY(bench_operation_start(run->connection, run->plan, run->data + elements_of(run, i)));
        *computed_ns += compute(run->plan);
        TRY(bench_operation_wait(run->connection, run->plan));
    }
    if (run->device)
        TRY(device_sync(run->device));
out:
    return status;
}

/* `operations` operations back to back, after one barrier. `round`: the number of the first,
 * counted from 0 with warm-up. `at`: the index of their time, or negative for warm-up. */
static enum status run_round(struct bench_run *run, uint64_t round, int64_t operations, int64_t at)
{
    enum status status;
    struct comm *comm = run->comm;
    bool watch = run->watches && run->last_us >= CPU_WATCH_LONG_US;
    TRY(fill_vectors(run, round, operations));
    activity_set(run->world->activity, ACTIVITY_MAIN, ACTIVITY_MEASURE, round, 0);
    int64_t instant_ns;
    TRY(bench_start_agree(&run->connection->start, &instant_ns));
    bool skewed = run->plan->skew_ms > 0;
    if (watch && !skewed)
        cpu_watch_start(&run->operations);
    int64_t left_ns = bench_start_wait(&run->connection->start, instant_ns);
    if (round == 0)
        run->base_ns = instant_ns;
    if (skewed)
        bench_start_delay(left_ns, bench_start_skew_ns(run->plan->skew_ms, comm_rank(comm), round));
    if (watch && skewed) /* not while this worker is late */
        cpu_watch_start(&run->operations);
    cpu_time_enter(&run->cpu);
    int64_t start_ns = clock_now_ns();
    int64_t zero_ns = run->connection->start.common_clock ? run->base_ns
                      : skewed                            ? left_ns
                                                          : start_ns;
    int64_t computed_ns;
    TRY(operate(run, round, operations, &computed_ns));
    int64_t end_ns = clock_now_ns() - computed_ns;
    cpu_time_leave(&run->cpu);
    run->last_us = (double)(end_ns - start_ns) / (double)NS_PER_US;
    if (at >= 0) {
        bool rested = run->end_ns > 0 && run->series == 1; /* in a series links hardly rest */
        run->rests_us[at] = rested ? -(double)(start_ns - run->end_ns) / (double)NS_PER_US : 0;
        run->times_us[at] = run->last_us;
        run->begins_us[at] = (double)(start_ns - zero_ns) / (double)NS_PER_US;
        run->ends_us[at] = run->begins_us[at] + run->last_us;
    }
    run->end_ns = end_ns + computed_ns;
    if (watch)
        cpu_watch_stop(&run->operations);
    /* A rank that is done first must not check yet: other ranks may need this core for their last
     * message. With eight ranks on two cores, early checks made operations of 354 ms 4% longer. */
    TRY(comm_barrier(comm));
    TRY(check_vectors(run, round, operations));
out:
    return status;
}

int64_t bench_auto_iters(double time_us)
{
    const double enough = 20, short_us = 0.1e6, budget_us = 2e6;
    double fill = fmax(enough, short_us / fmax(time_us, 1e-3));
    double fit = ceil(budget_us / fmax(time_us, 1e-3));
    return (int64_t)fmin(fmax(fmin(fill, fit), BENCH_ITERS_LEAST), BENCH_ITERS_MOST);
}

/* Chooses from the slowest worker's mean of the first operations, so that all workers agree. */
static enum status choose_iters(struct bench_run *run)
{
    enum status status;
    double time_us = 0;
    for (int i = 0; i < BENCH_ITERS_LEAST; i++)
        time_us += run->times_us[i] / BENCH_ITERS_LEAST;
    TRY(world_max(run->world, comm_group(run->comm), &time_us, 1));
    run->iters = bench_auto_iters(time_us);
out:
    return status;
}

static enum status run_worker(struct bench_run *run)
{
    enum status status = STATUS_OK;
    uint64_t round = 0;
    for (int64_t i = 0; i < run->plan->warmup; i++)
        TRY(run_round(run, round++, 1, -1));
    cpu_time_start(&run->cpu);
    run->watches = cpu_share_watches(run->world);
    if (run->watches)
        cpu_watch_start(&run->loop);
    run->iters = run->plan->iters > 0 ? run->plan->iters : BENCH_ITERS_LEAST;
    for (int64_t i = 0; i < run->iters; i++, round += (uint64_t)run->series) {
        TRY(run_round(run, round, run->series, i));
        if (run->plan->iters == 0 && i + 1 == BENCH_ITERS_LEAST)
            TRY(choose_iters(run));
    }
    cpu_watch_stop(&run->loop);
    run->process_s = cpu_time_process_s(&run->cpu);
    TRY(comm_finish(run->comm));
out:
    return status;
}

/* The times of operations, from the start of the last worker to the end of the slowest; for a
 * series the mean of its operations. */
static enum status combine_times(struct bench_run *run)
{
    enum status status;
    size_t iters = (size_t)run->iters;
    TRY(world_max(run->world, comm_group(run->comm), run->begins_us, iters));
    TRY(world_max(run->world, comm_group(run->comm), run->ends_us, iters));
    TRY(world_max(run->world, comm_group(run->comm), run->rests_us, iters)); /* the shortest */
    for (size_t i = 0; i < iters; i++)
        run->times_us[i] = fmax(run->ends_us[i] - run->begins_us[i], 0) / (double)run->series;
out:
    return status;
}

static double cpu_busy(const struct bench_run *run)
{
    double share = cpu_watch_share(&run->operations);
    return share >= 0 ? share : cpu_watch_share(&run->loop);
}

/* Runs all operations of a server. */
static enum status run_server(struct bench_run *run)
{
    cpu_time_start(&run->cpu);
    cpu_time_enter(&run->cpu);
    enum status status = comm_serve(run->comm);
    cpu_time_leave(&run->cpu);
    run->process_s = cpu_time_process_s(&run->cpu);
    return status;
}

/* Counts the bytes that the interface sends from before the first operation to after the last. */
static enum status run_role(struct bench_run *run, struct bench_report *report)
{
    enum status status;
    struct comm *comm = run->comm;
    struct world *world = run->world;
    struct wire wire;
    uint64_t before = 0, after = 0;
    TRY(wire_open(&wire, world, run->subnet));
    TRY(world_barrier(world, NULL));
    bool known = wire_sent_bytes(&wire, &before);
    if (comm_is_server(comm))
        TRY(run_server(run));
    else
        TRY(run_worker(run));
    TRY(world_barrier(world, NULL));
    report->cpu_s = cpu_time_s(&run->cpu); /* its server has answered the last worker */
    report->wire_known = known && wire_sent_bytes(&wire, &after);
    report->wire_bytes = after - before;
    report->wrong = run->wrong;
    report->iters = run->iters * run->series;
    report->cpu_busy = cpu_busy(run);
    report->machine = world->machine;
    report->rack = bench_rack(run->connection);
    report->process_s = run->process_s;
    report->loop_known =
        cpu_watch_seconds(&run->loop, &report->loop_total_s, &report->loop_processes_s);
    TRY(bench_counters(run->connection, run->plan, &report->counters));
out:
    return status;
}

static enum status choose_values(struct bench_values *values, const struct world *world,
                                 int workers, enum compress compress)
{
    *values = bench_values(workers, compress);
    if (values->bits > 0)
        return STATUS_OK;
    if (world->rank == 0)
        log_error("bench: %d workers: their sum is not exact in %s, so results cannot be checked; "
                  "use at most %d workers, or omit --compress",
                  workers, compress_names[compress], compress_exact_integer(compress));
    return STATUS_USAGE;
}

enum status bench_measure(struct bench_measurement *measurement,
                          struct bench_connection *connection, const struct bench_plan *plan)
{
    enum status status;
    struct comm *comm = connection->comm;
    struct world *world = connection->world;
    struct bench_report report = {0};
    struct bench_run run = {.comm = comm,
                            .world = world,
                            .device = connection->options.device,
                            .subnet = connection->options.subnet,
                            .plan = plan,
                            .series = plan->series > 1 ? plan->series : 1,
                            .connection = connection};
    struct comm_layout layout = {
        .counts = plan->buckets ? plan->buckets->counts : &plan->count,
        .buckets = plan->buckets ? plan->buckets->number : 1,
        .scale = 1, /* the sum itself: exact */
        .overlap = plan->overlap || (plan->buckets && plan->buckets->number > 1),
        .order = plan->buckets ? plan->buckets->order : NULL,
    };
    size_t room = (size_t)(plan->iters > 0 ? plan->iters : BENCH_ITERS_MOST);
    *measurement = (struct bench_measurement){0};
    CHECK(plan->iters >= 0 && plan->warmup >= 0);
    CHECK(run.series == 1 || (!plan->buckets && !plan->overlap && plan->skew_ms <= 0));
    TRY(choose_values(&run.values, world, comm_workers(comm), connection->options.compress));
    TRY(allocate_vectors(&run));
    layout.memory = run.data;
    layout.memory_count = elements_of(&run, run.series);
    TRY(allocated(run.times_us = measurement->times_us = allocate(room, sizeof(double))));
    TRY(allocated(run.begins_us = allocate(room, sizeof(double))));
    TRY(allocated(run.ends_us = allocate(room, sizeof(double))));
    TRY(allocated(run.rests_us = allocate(room, sizeof(double))));
    TRY(comm_plan(comm, &layout));
    TRY(run_role(&run, &report));
    if (!comm_is_server(comm))
        TRY(combine_times(&run));
    TRY(bench_report_gather(measurement, world, plan->warmup, &report));
    measurement->iters /= run.series;
    comm_algorithm(comm, measurement->algorithm);
    size_t rests = measurement->iters > 0 ? (size_t)measurement->iters : 0;
    measurement->rest_us = rests > 0 ? fmax(-stats_median(run.rests_us, rests), 0) : 0;
out:
    if (status != STATUS_OK) /* its threads may still read or write the vector */
        bench_abandon(connection);
    free(run.begins_us);
    free(run.ends_us);
    free(run.rests_us);
    free_vectors(&run);
    if (status != STATUS_OK)
        bench_measurement_free(measurement);
    return status;
}

void bench_measurement_free(struct bench_measurement *measurement)
{
    free(measurement->times_us);
    free(measurement->ranks);
    *measurement = (struct bench_measurement){0};
}
