/*
 * psring-simulate: all-reduces by psring's own code, in SimGrid instead of on a network. smpirun
 * starts it; experiments/simulate.sh makes the platforms and calls it. It takes the options of
 * psring bench that say what is averaged, by which backend, and --csv. With --model-gradients it
 * makes the steps of bench; waiting and computation are simulated time.
 *
 * theory_time_us of a row has the platform's latencies, and assumes equal links (--link-rate).
 *
 * A simulation has no randomness, and an operation leaves no state behind, so one operation of each
 * size is timed. With few workers, sums are checked as in bench. With more workers, and for a
 * model's gradients, all ranks share one vector, because separate vectors would not fit into
 * memory.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base/clock.h"
#include "common/base/util.h"
#include "experiments/simulate/simulated_world.h"
#include "experiments/bench/bench.h"
#include "experiments/bench/info.h"
#include "experiments/bench/measure.h"
#include "experiments/bench/row.h"
#include "experiments/bench/model_gradients.h"
#include "experiments/config/config.h"
#include "models/published.h"

enum { RANKS_CHECKED = 64 }; /* larger worlds share one vector */

struct simulation {
    const struct config *config;
    struct world *world;
    struct bench_connection connection;
    float *data; /* of the largest size */
    bool checks;
    struct csv *csv; /* only on rank 0 with --csv */
    struct bench_verdict verdict;
};

static enum status allocate(struct simulation *simulation, uint64_t most_bytes)
{
    enum status status = STATUS_OK;
    struct world *world = simulation->world;
    bool own = simulation->checks || world->rank == 0;
    simulation->data = own ? memory_array(most_bytes) : NULL;
    if (!simulation->checks)
        TRY(world_broadcast(world, NULL, &simulation->data, sizeof(void *)));
    if (!simulation->data)
        return FAIL(STATUS_NO_MEMORY, "simulate: no memory for a vector of %llu bytes",
                    (unsigned long long)most_bytes);
    if (!simulation->checks)
        simulated_share_payloads(world, simulation->data);
out:
    return status;
}

/* One operation of a worker. *time_us: from the common begin until the last worker is done. */
static enum status average(struct simulation *simulation, const struct bench_plan *plan,
                           double *time_us, uint64_t *wrong)
{
    enum status status;
    size_t count = plan->count;
    struct comm *comm = simulation->connection.comm;
    struct bench_values values =
        bench_values(comm_workers(comm), simulation->connection.options.compress);
    if (simulation->checks && values.bits > 0)
        bench_fill(simulation->data, count, values, comm_rank(comm), 0);
    TRY(comm_barrier(comm));
    int64_t start_ns = clock_now_ns();
    TRY(bench_operation_start(&simulation->connection, plan, simulation->data));
    TRY(bench_operation_wait(&simulation->connection, plan));
    *time_us = (double)(clock_now_ns() - start_ns) / (double)NS_PER_US;
    TRY(world_max(simulation->world, comm_group(comm), time_us, 1));
    if (simulation->checks && values.bits > 0)
        *wrong = bench_count_wrong(simulation->data, count, values, 0);
    TRY(comm_finish(comm));
out:
    return status;
}

/* Prints the cost of the simulation itself so far. */
static void print_cost(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("# this machine: %.1f s of processor time, %.2f GB of memory\n",
           (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6,
           (double)used.ru_maxrss * 1024e-9);
}

/* `model`: the model of the steps, or NULL. */
static enum status report_row(struct simulation *simulation, const struct bench_plan *plan,
                              struct bench_measurement *measured, const struct bench_model *model)
{
    enum status status;
    const struct config *config = simulation->config;
    const struct bench_link link = {.nominal = config->link_rate / 8};
    struct bench_row row;
    TRY(bench_describe(&row, config, &link, &simulation->connection, plan, measured));
    if (model)
        bench_model_describe(model, config, &row);
    row.transport = "simulated";
    row.cpu_busy = -1;
    simulation->verdict.wrong += measured->wrong;
    bench_verdict_add(&simulation->verdict, 0, &row);
    if (simulation->verdict.rows == 1)
        bench_table_head(stdout, &row);
    bench_table_line(stdout, &row);
    if (simulation->csv)
        TRY(bench_csv_write(simulation->csv, &row));
out:
    return status;
}

static enum status run_plan(struct simulation *simulation, const struct bench_plan *plan,
                            const struct bench_model *model)
{
    enum status status;
    struct bench_connection *connection = &simulation->connection;
    struct bench_report report = {0};
    struct bench_measurement measured = {0};
    const struct bench_buckets *buckets = plan->buckets;
    const struct comm_layout layout = {
        .counts = buckets ? buckets->counts : &plan->count,
        .buckets = buckets ? buckets->number : 1,
        .scale = 1,
        .overlap = buckets && buckets->number > 1,
        .order = buckets ? buckets->order : NULL,
    };
    double time_us = 0;
    TRY(comm_plan(connection->comm, &layout));
    TRY(world_barrier(simulation->world, NULL));
    if (comm_is_server(connection->comm)) {
        TRY(comm_serve(connection->comm));
    } else {
        report.iters = 1;
        TRY(average(simulation, plan, &time_us, &report.wrong));
    }
    TRY(world_barrier(simulation->world, NULL));
    comm_counters(connection->comm, &report.counters);
    report.rack = bench_rack(connection);
    TRY(bench_report_gather(&measured, simulation->world, 0, &report));
    measured.wire_known = false;
    measured.times_us = &time_us;
    if (simulation->world->rank == 0)
        TRY(report_row(simulation, plan, &measured, model));
out:
    measured.times_us = NULL;
    bench_measurement_free(&measured);
    return status;
}

/* Refuses hierarchical with several ranks on a host: such ranks would wait in the kernel and block
 * all others. */
static enum status check_hosts(const struct config *config, struct world *world)
{
    enum status status;
    double together = world->local_size > 1;
    TRY(world_max(world, NULL, &together, 1));
    if (together > 0 && strcmp(config_backend(config)->name, "hierarchical") == 0) {
        log_error(
            "--backend hierarchical: several ranks on one host of the platform, expected one on "
            "each; give each rank its own host in the hostfile");
        status = STATUS_USAGE;
    }
out:
    return status;
}

static enum status run_sizes(struct simulation *simulation, const struct comm_options *options)
{
    enum status status = STATUS_OK;
    const struct config *config = simulation->config;
    uint64_t bytes = 0, most_bytes = 0;
    for (size_t index = 0; bench_size(config, index, &bytes); index++)
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    simulation->checks = simulation->world->size <= RANKS_CHECKED;
    TRY(allocate(simulation, most_bytes));
    TRY(bench_connect(&simulation->connection, simulation->world, config_backend(config), options,
                      most_bytes / sizeof(float)));
    for (size_t index = 0; bench_size(config, index, &bytes); index++) {
        const struct bench_plan plan = {.count = bytes / sizeof(float), .iters = 1};
        TRY(run_plan(simulation, &plan, NULL));
    }
    return bench_disconnect(&simulation->connection);
out:
    bench_abandon(&simulation->connection);
    return status;
}

static enum status gradient_bytes(const struct config *config, uint64_t *bytes)
{
    enum status status;
    struct net_layer *layers = NULL;
    size_t layer_count;
    TRY(published_layers(config->bench.model_gradients, &layers, &layer_count));
    *bytes = 0;
    for (size_t l = 0; l < layer_count; l++)
        *bytes += layers[l].count * sizeof(float);
out:
    free(layers);
    return status;
}

/* Runs the steps of a model. If a step leaves buckets to the next one, two warm-up steps reach
 * steady state, otherwise one. */
static enum status run_model(struct simulation *simulation, const struct comm_options *options)
{
    enum status status;
    struct bench_model model = {0};
    struct config config = *simulation->config;
    struct bench_plan plan;
    uint64_t bytes;
    config.bench.iters = 1;
    config.bench.warmup = config.bench.sync_step ? 1 : 2;
    TRY(gradient_bytes(&config, &bytes));
    TRY(allocate(simulation, bytes));
    TRY(bench_model_steps(&model, &config, simulation->world, options, simulation->data));
    simulation->connection = model.connection;
    plan = model.plan;
    plan.warmup = 0;
    TRY(run_plan(simulation, &plan, &model));
out:
    bench_model_close(&model);
    return status;
}

static enum status run(struct simulation *simulation)
{
    enum status status = STATUS_OK;
    const struct config *config = simulation->config;
    struct comm_options options;
    TRY(check_hosts(config, simulation->world));
    config_comm_options(config, config_backend(config), &options);
    options.transport = TRANSPORT_MPI; /* replaced by the transport of SimGrid */
    if (simulation->world->rank == 0 && config->csv)
        TRY(bench_csv_open(&simulation->csv, config->csv));
    TRY((config->bench.model_gradients ? run_model : run_sizes)(simulation, &options));
    TRY(world_broadcast(simulation->world, NULL, &simulation->verdict, sizeof simulation->verdict));
    if (simulation->world->rank == 0)
        print_cost();
    status = bench_verdict_status(&simulation->verdict);
out:
    if (simulation->csv && csv_close(&simulation->csv) != STATUS_OK && status == STATUS_OK)
        status = STATUS_IO;
    if (simulation->checks || simulation->world->rank == 0)
        free(simulation->data);
    return status;
}

/* Rank 0 checks the options first and ends the run if they are wrong. */
static enum status parse(int argc, char **argv, struct config *config, struct world *world,
                         bool *helped)
{
    enum status status = STATUS_OK;
    if (world->rank > 0)
        TRY(world_barrier(world, NULL));
    TRY(config_parse(CONFIG_BENCH, argc, argv, config, helped));
    if (world->rank == 0)
        TRY(world_barrier(world, NULL));
    if (!*helped)
        TRY(config_resolve(config, world));
out:
    return status;
}

int main(int argc, char **argv)
{
    enum status status;
    struct config config = {0};
    struct simulation simulation = {.config = &config};
    bool helped = false;
    TRY(world_open(&simulation.world, &argc, &argv, NULL));
    TRY(parse(argc, argv, &config, simulation.world, &helped));
    if (!helped)
        TRY(run(&simulation));
    TRY(result_flush_stdout());
out:
    if (status != STATUS_OK && simulation.world)
        world_abort(simulation.world, status == STATUS_USAGE ? 2 : 1);
    world_close(&simulation.world);
    return status == STATUS_OK ? 0 : 1;
}
