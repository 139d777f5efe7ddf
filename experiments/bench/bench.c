#include "experiments/bench/bench.h"

#include <math.h>
#include <stdbool.h>

#include "common/base/util.h"
#include "experiments/bench/measure.h"
#include "experiments/bench/model_gradients.h"
#include "experiments/bench/row.h"
#include "experiments/config/backends.h"
#include "experiments/bench/baselines.h"
#include "experiments/bench/info.h"
#include "experiments/bench/probe.h"
#include "ring/baselines/baselines.h"

uint64_t bench_whole_bytes(uint64_t bytes)
{
    return (bytes + sizeof(float) - 1) / sizeof(float) * sizeof(float);
}

uint64_t bench_next_bytes(uint64_t bytes, double factor)
{
    uint64_t next = bench_whole_bytes((uint64_t)ceil((double)bytes * factor));
    return next > bytes ? next : bytes + sizeof(float);
}

/* The outputs of rank 0; on other ranks nothing is open. */
struct outputs {
    struct csv *csv;
    const char *json_path;
    cJSON *document; /* the whole JSON file; rewritten after every row */
    cJSON *rows;     /* borrowed from `document` */
    bool other_run;  /* the next row is of another backend or transport than the last */
};

static enum status outputs_open(struct outputs *outputs, const struct config *config)
{
    enum status status = STATUS_OK;
    if (config->csv)
        TRY(bench_csv_open(&outputs->csv, config->csv));
    if (config->json) {
        outputs->json_path = config->json;
        outputs->document = info_json(config);
        bool whole = cJSON_AddItemToObject(outputs->document, "config", result_config_json(config));
        outputs->rows = cJSON_AddArrayToObject(outputs->document, "rows");
        whole = whole && outputs->rows;
        TRY(result_write_json(config->json, whole ? outputs->document : NULL));
    }
out:
    return status;
}

static enum status outputs_add(struct outputs *outputs, const struct bench_row *row, bool first)
{
    enum status status = STATUS_OK;
    if (first)
        bench_table_head(stdout, row);
    else if (outputs->other_run)
        bench_table_run(stdout, row);
    outputs->other_run = false;
    bench_table_line(stdout, row);
    TRY(result_flush_stdout());
    if (outputs->csv)
        TRY(bench_csv_write(outputs->csv, row));
    if (outputs->document) {
        bool whole = cJSON_AddItemToArray(outputs->rows, bench_row_json(row));
        TRY(result_write_json(outputs->json_path, whole ? outputs->document : NULL));
    }
out:
    return status;
}

static enum status outputs_close(struct outputs *outputs)
{
    cJSON_Delete(outputs->document);
    outputs->document = NULL;
    return csv_close(&outputs->csv);
}

/*
 * Repeats as many operations as `alone` has, while the caller computes for as long as one of them
 * took. Sorts the times of `alone`, and adds to its wrong elements. *exposed_us: the median of the
 * added time.
 */
static enum status measure_overlap(struct bench_connection *connection,
                                   const struct bench_plan *plan, struct bench_measurement *alone,
                                   double *compute_us, double *exposed_us)
{
    enum status status;
    struct bench_measurement measured = {0};
    struct bench_plan overlapped = *plan;
    struct stats_summary summary;
    stats_summarise(alone->times_us, (size_t)alone->iters, &summary);
    overlapped.overlap = true;
    overlapped.iters = alone->iters;
    overlapped.compute_us = *compute_us = summary.median; /* the same on all workers */
    TRY(bench_measure(&measured, connection, &overlapped));
    stats_summarise(measured.times_us, (size_t)measured.iters, &summary);
    *exposed_us = summary.median;
    alone->wrong += measured.wrong;
out:
    bench_measurement_free(&measured);
    return status;
}

static enum status run_size(const struct config *config, const struct bench_link *link,
                            struct bench_connection *connection, const struct bench_plan *plan,
                            struct outputs *outputs, struct bench_verdict *verdict)
{
    enum status status;
    struct bench_measurement measured = {0};
    struct bench_row row;
    double compute_us = 0, exposed_us = 0;
    TRY(bench_measure(&measured, connection, plan));
    if (config->bench.overlap)
        TRY(measure_overlap(connection, plan, &measured, &compute_us, &exposed_us));
    verdict->wrong += measured.wrong;
    if (connection->world->rank == 0) {
        TRY(bench_describe(&row, config, link, connection, plan, &measured));
        if (config->bench.overlap) {
            row.overlap = true;
            row.compute_us_median = compute_us;
            row.exposed_us_median = exposed_us;
        }
        bench_verdict_add(verdict, config->bench.require_efficiency, &row);
        TRY(outputs_add(outputs, &row, verdict->rows == 1 && !plan->library));
    }
out:
    bench_measurement_free(&measured);
    return status;
}

/* Opens a worker's GPU for the vectors, if one was asked for. A CPU needs no device. */
static enum status open_device(struct device **device, const struct config *config)
{
    struct device_options options;
    if (config->device == DEVICE_CPU || config->gpu < 0)
        return STATUS_OK;
    config_device_options(config, &options);
    return device_open(device, &options);
}

bool bench_size(const struct config *config, size_t index, uint64_t *bytes)
{
    if (config->size_count > 0) {
        if (index < config->size_count)
            *bytes = bench_whole_bytes(config->size_list[index]);
        return index < config->size_count;
    }
    *bytes = index == 0 ? bench_whole_bytes(config->bench.min_bytes)
                        : bench_next_bytes(*bytes, config->bench.factor);
    return *bytes <= bench_whole_bytes(config->bench.max_bytes);
}

/* Consecutive sizes that share one connection. */
struct stretch {
    struct config config; /* with their pick */
    struct comm_options options;
    size_t first, end;
    uint64_t before; /* the size before the first */
    size_t largest;  /* elements */
};

static bool alike(const struct config_pick *one, const struct config_pick *other)
{
    return one->backend == other->backend && one->transport == other->transport &&
           one->servers == other->servers && one->placement == other->placement &&
           one->radix == other->radix;
}

/* Moves `stretch` (initially all zero) to the next sizes. False: there are none. */
static bool next_stretch(struct stretch *stretch, const struct config *config,
                         const struct comm_options *options)
{
    uint64_t bytes = stretch->before;
    size_t at = stretch->end;
    for (size_t index = stretch->first; index < at; index++)
        bench_size(config, index, &bytes);
    *stretch = (struct stretch){.config = *config, .first = at, .end = at, .before = bytes};
    while (bench_size(config, stretch->end, &bytes)) {
        if (config->picks && !alike(&config->picks[at], &config->picks[stretch->end]))
            break;
        stretch->largest = size_larger(stretch->largest, bytes / sizeof(float));
        stretch->end++;
    }
    if (config->picks && stretch->end > at)
        config_apply(&stretch->config, &config->picks[at]);
    config_comm_options(&stretch->config, config_backend(&stretch->config), &stretch->options);
    stretch->options.device = options->device;
    return stretch->end > at;
}

static enum status run_sizes(const struct stretch *stretch, struct world *world,
                             struct bench_link link, struct bench_connection *connection,
                             struct outputs *outputs, struct bench_verdict *verdict)
{
    enum status status = STATUS_OK;
    const struct config *config = &stretch->config;
    struct bench_plan plan = {.iters = config->bench.iters,
                              .warmup = config->bench.warmup,
                              .skew_ms = config->bench.skew_ms};
    uint64_t bytes = stretch->before;
    for (size_t index = stretch->first; index < stretch->end; index++) {
        bench_size(config, index, &bytes);
        plan.count = bytes / sizeof(float);
        plan.series = config->bench.back_to_back ? bench_series_iters(plan.count) : 1;
        if (config->bench.baselines)
            TRY(limits_server(&link.machine, world, config->subnet,
                              (int64_t)(config->timeout * 1000), bytes));
        const int interfaces = config->bench.via_library ? 2 : 1;
        for (int library = 0; library < interfaces; library++) {
            plan.library = library;
            TRY(run_size(config, &link, connection, &plan, outputs, verdict));
        }
    }
out:
    return status;
}

static enum status run_stretch(const struct stretch *stretch, struct world *world,
                               const struct bench_link *link, struct outputs *outputs,
                               struct bench_verdict *verdict)
{
    enum status status;
    struct bench_connection connection = {0};
    TRY(bench_connect(&connection, world, config_backend(&stretch->config), &stretch->options,
                      stretch->largest));
    if (stretch->config.bench.via_library)
        TRY(bench_connect_library(&connection, stretch->config.secure));
    outputs->other_run = true;
    TRY(run_sizes(stretch, world, *link, &connection, outputs, verdict));
    return bench_disconnect(&connection);
out:
    bench_abandon(&connection);
    return status;
}

static enum status sweep(const struct config *config, struct world *world,
                         const struct comm_options *options, const struct bench_link *link,
                         struct outputs *outputs, struct bench_verdict *verdict)
{
    enum status status = STATUS_OK;
    struct stretch stretch = {0};
    while (next_stretch(&stretch, config, options))
        TRY(run_stretch(&stretch, world, link, outputs, verdict));
out:
    return status;
}

static enum status run_model(const struct config *config, struct world *world,
                             const struct comm_options *options, const struct bench_link *link,
                             struct outputs *outputs, struct bench_verdict *verdict)
{
    enum status status;
    struct bench_model model;
    struct bench_row row;
    TRY(bench_model_measure(&model, config, world, options));
    verdict->wrong = model.averaging.wrong;
    if (world->rank == 0) {
        TRY(bench_describe(&row, config, link, &model.connection, &model.plan, &model.averaging));
        bench_model_describe(&model, config, &row);
        bench_verdict_add(verdict, config->bench.require_efficiency, &row);
        TRY(outputs_add(outputs, &row, true));
    }
out:
    bench_model_close(&model);
    return status;
}

/* Reports the verdict, once, on rank 0. */
static enum status conclude(const struct bench_verdict *verdict, struct outputs *outputs)
{
    enum status status;
    bench_table_foot(stdout, verdict);
    if (verdict->wrong > 0)
        log_error("bench: %llu elements differ from the exact sum; do not use the results of this "
                  "backend",
                  (unsigned long long)verdict->wrong);
    if (verdict->rows_differ > 0)
        log_error("bench: at %zu size%s the counted bytes differ from theory; the times of this "
                  "backend do not describe its algorithm",
                  verdict->rows_differ, verdict->rows_differ == 1 ? "" : "s");
    bench_verdict_log_missed(verdict);
    TRY(outputs_close(outputs));
out:
    return status;
}

enum status bench_run(struct config *config, struct world *world)
{
    enum status status = STATUS_OK;
    struct outputs outputs = {0};
    struct bench_verdict verdict = {0};
    struct bench_link link = {.nominal = config->link_rate / 8};
    struct comm_options options;
    struct device *device = NULL;
    if (config->bench.probe == CONFIG_PROBE_ONLY)
        return probe_hosts(world, config->subnet, (int64_t)(config->timeout * 1000));
    config_comm_options(config, config_backend(config), &options);
    TRY(open_device(&device, config));
    options.device = device;
    if (world->rank == 0)
        TRY(library_check(config->bench.mpi_algorithm));
    if (world->rank == 0)
        TRY(outputs_open(&outputs, config));
    if (config_probes(config, world))
        TRY(probe_link(world, config->subnet, (int64_t)(config->timeout * 1000), &link.probed));
    if (config->bench.baselines) {
        link.machine.stream_bytes_per_s = link.probed;
        TRY(limits_measure(&link.machine, world, config->subnet, (int64_t)(config->timeout * 1000),
                           link.probed <= 0));
    }
    TRY((config->bench.model_gradients ? run_model : sweep)(config, world, &options, &link,
                                                            &outputs, &verdict));
    if (world->rank == 0)
        TRY(conclude(&verdict, &outputs));
    /* A failing rank ends all others. Wait until rank 0 has written everything. */
    TRY(world_broadcast(world, NULL, &verdict, sizeof verdict));
    status = bench_verdict_status(&verdict);
out:
    outputs_close(&outputs);
    device_close(&device);
    return status;
}
