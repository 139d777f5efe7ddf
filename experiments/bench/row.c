#include "experiments/bench/row.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/csv.h"
#include "common/net/cpu_watch.h"
#include "ring/baselines/baselines.h"

/* -------- quantities derived from the measurement --------------------------------------------- */

double bench_row_algbw(const struct bench_row *row)
{
    return (double)row->bytes / (row->time_us.median * 1e-6);
}

double bench_row_busbw(const struct bench_row *row)
{
    return bench_row_algbw(row) * 2 * (row->workers - 1) / row->workers;
}

double bench_row_efficiency(const struct bench_row *row)
{
    if (row->link_bytes_per_s <= 0 || row->workers == 1 || row->bytes == 0)
        return (double)NAN;
    size_t count = row->bytes / sizeof(float);
    int links = row->hosts > 1 ? row->hosts : row->workers; /* loopback: one per worker */
    double bound_s = cost_bound_s(links, count, row->link_bytes_per_s);
    double wire_share = (double)row->element_bytes / sizeof(float);
    return wire_share * bound_s / (row->time_us.median * 1e-6);
}

double bench_row_cpu_s_per_gb(const struct bench_row *row)
{
    double gb = (double)row->bytes * (double)row->iters / 1e9;
    return gb > 0 ? row->cpu_s / gb : (double)NAN;
}

double bench_row_hidden(const struct bench_row *row)
{
    return fmin(fmax(1 - row->exposed_us_median / row->time_us.median, 0), 1);
}

/* Scaling efficiency: a step's computation over the step's time, which is the throughput of each
 * worker compared with a worker alone. NAN for a row of one vector. */
static double bench_row_scaling(const struct bench_row *row)
{
    double step_us = row->compute_us_median + row->exposed_us_median;
    return row->model.name && step_us > 0 ? row->compute_us_median / step_us : (double)NAN;
}

const char *bench_row_cpu_verdict(const struct bench_row *row)
{
    return row->cpu_busy <= CPU_SHARE_LIMITED                   ? ""
           : cpu_share_is_others(row->cpu_busy, row->cpu_other) ? "busy with other work"
                                                                : "CPU-limited";
}

static bool equal(struct cost_traffic a, struct cost_traffic b)
{
    return a.sent_bytes == b.sent_bytes && a.received_bytes == b.received_bytes;
}

bool bench_row_bytes_agree(const struct bench_row *row)
{
    return !row->bytes_known ||
           (equal(row->worker, row->theory_worker) && equal(row->server, row->theory_server) &&
            equal(row->rank, row->theory_rank) && row->uplink_bytes == row->theory_uplink_bytes);
}

/* -------- the list of fields ------------------------------------------------------------------ */

/* 0: not known. */
static double above_0(double value)
{
    return value > 0 ? value : (double)NAN;
}

/* The columns of bench.csv, in order. Readers rely on the names and on the order up to `wrong`. */
static void list_fields(const struct bench_row *row, struct fields *fields)
{
    bool known = row->bytes_known;
    fields_start(fields);
    fields_text(fields, "backend", row->backend);
    fields_text(fields, "transport", row->transport);
    fields_text(fields, "device", row->device);
    fields_text(fields, "network", row->network);
    fields_uint(fields, "workers", (uint64_t)row->workers);
    fields_uint(fields, "servers", (uint64_t)row->servers);
    fields_text(fields, "placement", row->placement);
    fields_uint(fields, "bytes", row->bytes);
    fields_uint(fields, "iters", row->iters);
    fields_double(fields, "time_us_min", row->time_us.min);
    fields_double(fields, "time_us_median", row->time_us.median);
    fields_double(fields, "time_us_p95", row->time_us.p95);
    fields_double(fields, "time_us_max", row->time_us.max);
    fields_double(fields, "algbw_bytes_per_s", bench_row_algbw(row));
    fields_double(fields, "busbw_bytes_per_s", bench_row_busbw(row));
    fields_double(fields, "link_bytes_per_s", above_0(row->link_bytes_per_s));
    fields_double(fields, "efficiency", bench_row_efficiency(row));
    fields_uint_if(fields, "worker_sent_bytes", known, row->worker.sent_bytes);
    fields_uint_if(fields, "worker_recv_bytes", known, row->worker.received_bytes);
    fields_uint_if(fields, "server_sent_bytes", known, row->server.sent_bytes);
    fields_uint_if(fields, "server_recv_bytes", known, row->server.received_bytes);
    fields_uint_if(fields, "theory_worker_sent_bytes", known, row->theory_worker.sent_bytes);
    fields_uint_if(fields, "theory_server_sent_bytes", known, row->theory_server.sent_bytes);
    fields_uint_if(fields, "wire_tx_bytes_max", row->wire_known, row->wire_sent_bytes_max);
    fields_uint(fields, "wrong", row->wrong);

    fields_double(fields, "time_us_median_low", row->time_us_median_low);
    fields_double(fields, "time_us_median_high", row->time_us_median_high);
    fields_uint(fields, "warmup", row->warmup);
    fields_uint_if(fields, "theory_worker_recv_bytes", known, row->theory_worker.received_bytes);
    fields_uint_if(fields, "theory_server_recv_bytes", known, row->theory_server.received_bytes);
    fields_double(fields, "theory_time_us", row->theory_time_us);
    fields_double(fields, "nominal_link_bytes_per_s", above_0(row->nominal_link_bytes_per_s));
    fields_text(fields, "link_source", row->link_source);
    fields_double(fields, "cpu_busy", row->cpu_busy >= 0 ? row->cpu_busy : (double)NAN);
    fields_text(fields, "mpi_algorithm", row->mpi_algorithm);
    fields_text(fields, "nccl_algorithm", row->nccl_algorithm);
    fields_double(fields, "memory_add_bytes_per_s", above_0(row->limits.add_bytes_per_s));
    fields_double(fields, "memory_reduce_bytes_per_s", above_0(row->limits.reduce_bytes_per_s));
    fields_double(fields, "zmq_rtt_us", above_0(row->limits.round_trip_us));
    fields_double(fields, "tcp_rtt_us", above_0(row->limits.socket_trip_us));
    fields_double(fields, "stream_bytes_per_s", above_0(row->limits.stream_bytes_per_s));
    fields_uint_if(fields, "rank_sent_bytes", known, row->rank.sent_bytes);
    fields_uint_if(fields, "theory_rank_sent_bytes", known, row->theory_rank.sent_bytes);
    fields_text(fields, "compress", row->compress);
    fields_text(fields, "error_feedback", row->error_feedback);
    fields_double(fields, "compute_us_median", row->compute_us_median);
    fields_double(fields, "exposed_us_median", row->exposed_us_median);
    fields_uint_if(fields, "hosts", row->hosts > 0, (uint64_t)row->hosts);
    fields_uint_if(fields, "inter_host_hops", row->hosts > 0, (uint64_t)row->inter_host_hops);
    fields_double(fields, "cpu_s_per_gb", bench_row_cpu_s_per_gb(row));
    fields_text(fields, "interface", row->library ? "library" : "comm");
    fields_text(fields, "model_gradients", row->model.name);
    fields_uint_if(fields, "buckets", row->model.name, row->model.buckets);
    fields_double(fields, "backward_us", row->model.name ? row->model.backward_us : (double)NAN);
    fields_double(fields, "scaling_efficiency", bench_row_scaling(row));
    bool watched = row->cpu_busy >= 0 && row->cpu_other >= 0;
    fields_double(fields, "cpu_other", watched ? row->cpu_other : (double)NAN);
    fields_double(fields, "link_idle_us_median", above_0(row->link_idle_us_median));
    fields_double(fields, "time_us_p99", row->time_us.p99);
    fields_double(fields, "skew_ms", row->skew_ms);
    fields_double(fields, "link_rtt_us", above_0(row->round_trip_s * 1e6));
    fields_uint(fields, "series_iters", row->series_iters);
    fields_uint_if(fields, "radix", row->radix > 0, (uint64_t)row->radix);
    bool racks = row->rack_ranks > 0;
    fields_uint_if(fields, "rack_ranks", racks, (uint64_t)row->rack_ranks);
    fields_double(fields, "oversubscribed", racks ? row->oversubscribed : (double)NAN);
    fields_uint_if(fields, "uplink_bytes", racks, row->uplink_bytes);
    fields_uint_if(fields, "theory_uplink_bytes", racks, row->theory_uplink_bytes);
    fields_double(fields, "tcp_server_us", above_0(row->limits.server_us));
}

/* -------- CSV and JSON ------------------------------------------------------------------------ */

enum status bench_csv_open(struct csv **csv, const char *path)
{
    struct fields fields;
    list_fields(&(struct bench_row){.workers = 1}, &fields);
    return fields_csv_open(&fields, csv, path);
}

enum status bench_csv_write(struct csv *csv, const struct bench_row *row)
{
    struct fields fields;
    list_fields(row, &fields);
    return fields_csv_write(&fields, csv);
}

static cJSON *field_json(const struct field *field)
{
    switch (field->kind) {
    case FIELD_TEXT:
        return cJSON_CreateString(field->text ? field->text : "");
    case FIELD_UINT:
        return cJSON_CreateNumber((double)field->whole);
    case FIELD_DOUBLE:
        return cJSON_CreateNumber(field->real);
    case FIELD_UNKNOWN:
        break;
    }
    return cJSON_CreateNull();
}

cJSON *bench_row_json(const struct bench_row *row)
{
    struct fields fields;
    cJSON *object = cJSON_CreateObject();
    list_fields(row, &fields);
    for (size_t i = 0; object && i < fields.count; i++) {
        cJSON *value = field_json(&fields.list[i]);
        if (!cJSON_AddItemToObject(object, fields.list[i].name, value)) {
            cJSON_Delete(value);
            cJSON_Delete(object);
            object = NULL;
        }
    }
    return object;
}

/* -------- from a measurement ------------------------------------------------------------------ */

/* One shape for each bucket of the plan. */
static struct cost_shape *shapes_of(const struct bench_connection *connection,
                                    const struct bench_plan *plan, size_t count)
{
    struct comm *comm = connection->comm;
    struct cost_shape *shapes = calloc(count, sizeof *shapes);
    for (size_t s = 0; shapes && s < count; s++)
        shapes[s] = cost_shape_of(connection->backend->cost, comm_topology(comm), comm_hosts(comm),
                                  plan->buckets ? plan->buckets->counts[s] : plan->count,
                                  comm_options_of(comm));
    return shapes;
}

/* The model's time on this link from bytes and distance: reduction costs nothing. */
static double theory_time_us(const struct cost_formula *formula, const struct cost_shape *shapes,
                             size_t shape_count, double link_bytes_per_s, double round_trip_s)
{
    const struct cost_link link = {.latency_s = round_trip_s / 2, .bytes_per_s = link_bytes_per_s};
    double time_s = 0;
    if (link_bytes_per_s <= 0)
        return (double)NAN;
    for (size_t s = 0; s < shape_count; s++)
        time_s += cost_time_s(formula, &shapes[s], &link);
    return time_s * 1e6;
}

enum status bench_describe(struct bench_row *row, const struct config *config,
                           const struct bench_link *link, const struct bench_connection *connection,
                           const struct bench_plan *plan, struct bench_measurement *measured)
{
    const struct backend *backend = connection->backend;
    const struct comm_options *options = comm_options_of(connection->comm);
    const struct cost_formula *formula = backend->cost;
    size_t shape_count = plan->buckets ? plan->buckets->number : 1;
    struct cost_shape *shapes = shapes_of(connection, plan, shape_count);
    if (!shapes)
        return FAIL(STATUS_NO_MEMORY, "bench: no memory for the shapes of %zu buckets",
                    shape_count);
    double link_bytes_per_s = link->probed > 0 ? link->probed : link->nominal;
    uint64_t series = plan->series > 1 ? (uint64_t)plan->series : 1;
    bool counts_racks = backend->counts_bytes && formula->flows && !plan->library;
    *row = (struct bench_row){
        .backend = backend->name,
        .transport = config_transport_name(config, backend),
        .device = config_device_name(config),
        .network = config->network,
        .placement = config_placement_name(config),
        .compress = compress_names[options->compress],
        .radix = backend->obeys_radix ? options->radix : 0,
        .error_feedback = config_error_feedback_name(config),
        .element_bytes = shapes->element_bytes,
        .workers = shapes->topology.workers,
        .servers = (int)config->servers,
        .hosts = cost_hosts(shapes),
        .inter_host_hops = cost_inter_host_hops(shapes),
        .bytes = plan->count * sizeof(float),
        .iters = (uint64_t)measured->iters * series,
        .series_iters = series,
        .warmup = (uint64_t)plan->warmup,
        .link_bytes_per_s = link_bytes_per_s,
        .nominal_link_bytes_per_s = link->nominal,
        .link_source = link->probed > 0    ? "probe"
                       : link->nominal > 0 ? "nominal"
                                           : NULL,
        .cpu_busy = measured->cpu_busy,
        .cpu_other = measured->cpu_other,
        .link_idle_us_median = measured->rest_us,
        .skew_ms = plan->skew_ms,
        .cpu_s = measured->cpu_s,
        .bytes_known = backend->counts_bytes && cost_bytes_known(formula),
        .worker = measured->worker_most,
        .server = measured->server_most,
        .rank = measured->rank_most,
        .theory_worker = cost_role_traffic(formula, shapes, shape_count, NODE_WORKER),
        .theory_server = cost_role_traffic(formula, shapes, shape_count, NODE_SERVER),
        .theory_rank = cost_rank_traffic(formula, shapes, shape_count),
        .rack_ranks = counts_racks ? options->rack_ranks : 0,
        .oversubscribed = options->oversubscribed,
        .uplink_bytes = counts_racks ? measured->uplink_bytes : 0,
        .theory_uplink_bytes = counts_racks ? cost_uplink_bytes(formula, shapes, shape_count) : 0,
        .wire_known = measured->wire_known,
        .wire_sent_bytes_max = measured->wire_sent_bytes_max,
        .wrong = measured->wrong,
        .nccl_algorithm = measured->algorithm[0] ? measured->algorithm : NULL,
        .mpi_algorithm = backend->takes_mpi_algorithm ? library_algorithm_used() : NULL,
        .limits = link->machine,
        .library = plan->library,
        .theory_time_us =
            theory_time_us(formula, shapes, shape_count, link_bytes_per_s, options->round_trip_s),
        .round_trip_s = options->round_trip_s,
    };
    size_t times = (size_t)measured->iters;
    stats_summarise(measured->times_us, times, &row->time_us);
    row->exposed_us_median = row->time_us.median;
    stats_median_interval(measured->times_us, times, &row->time_us_median_low,
                          &row->time_us_median_high);
    free(shapes);
    return STATUS_OK;
}

/* -------- the table --------------------------------------------------------------------------- */

enum { CELL = 40 };

/* Writes a known value into `text`, else "-"; returns `text`. */
__attribute__((format(printf, 3, 4))) static const char *cell(char text[CELL], bool known,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, CELL, known ? format : "-", arguments);
    va_end(arguments);
    return text;
}

static const char *percent_cell(char text[CELL], double share)
{
    return cell(text, isfinite(share), "%.1f%%", 100 * share);
}

static const char *seconds_cell(char text[CELL], double seconds)
{
    return cell(text, isfinite(seconds), seconds < 100 ? "%.3g" : "%.0f", seconds);
}

/* Prints the rate of a link and its source. */
static void print_link(FILE *out, const struct bench_row *row)
{
    double measured = row->link_bytes_per_s * 8e-6, nominal = row->nominal_link_bytes_per_s * 8e-6;
    if (row->link_bytes_per_s <= 0)
        return;
    fprintf(out, "# a link: %.6g Mbit/s each way", measured);
    if (!row->link_source || strcmp(row->link_source, "probe") != 0)
        fprintf(out, ", nominal: not measured, headers included\n");
    else if (nominal > 0)
        fprintf(out, " of payload, measured by TCP streams in this run; nominal: %.6g\n", nominal);
    else
        fprintf(out, " of payload, measured by TCP streams in this run\n");
}

/* Prints the size of the gradients and the computing time of a step. */
static void print_model(FILE *out, const struct bench_row *row)
{
    fprintf(out,
            "# gradients of %s: %" PRIu64 " numbers in %zu tensors, %zu buckets; a step computes "
            "(waits) for %.6g ms,\n# of which %.6g are its backward pass, spread over the tensors "
            "by their operations for %s.\n# median: of averaging all buckets without computation. "
            "exposed: time of a step beyond its computation;\n# hidden: median less "
            "exposed.\n#\n",
            row->model.name, row->bytes / sizeof(float), row->model.tensors, row->model.buckets,
            row->compute_us_median * 1e-3, row->model.backward_us * 1e-3, row->model.input);
}

void bench_table_run(FILE *out, const struct bench_row *row)
{
    fprintf(out, "# psring bench: %s", row->backend);
    if (strcmp(row->placement, "mixed") == 0)
        fprintf(out, " with a server in every worker and %d spare", row->servers);
    else if (row->servers > 0)
        fprintf(out, " with %d %s server%s", row->servers, row->placement,
                row->servers == 1 ? "" : "s");
    if (row->mpi_algorithm)
        fprintf(out, ", algorithm %s", row->mpi_algorithm);
    if (row->nccl_algorithm)
        fprintf(out, ", algorithm %s by its own log", row->nccl_algorithm);
    if (row->element_bytes < sizeof(float))
        fprintf(out, ", %s on the wire%s", row->compress,
                strcmp(row->error_feedback, "on") == 0 ? " with error feedback" : "");
    fprintf(out, ", transport %s, %d worker%s", row->transport, row->workers,
            row->workers == 1 ? "" : "s");
    if (row->hosts > 1 && row->hosts < row->workers)
        fprintf(out, " on %d hosts, %d of %d neighbours on different ones", row->hosts,
                row->inter_host_hops, row->workers);
    fprintf(out, ", network %s", row->network);
    fprintf(out, ", %" PRIu64 " iterations to warm up\n", row->warmup);
}

void bench_table_head(FILE *out, const struct bench_row *row)
{
    bench_table_run(out, row);
    print_link(out, row);
    limits_print(out, &row->limits);
    bool spare = strcmp(row->placement, "colocated") != 0 && row->servers > 0;
    if (row->workers == 1 && !spare)
        fprintf(out, "# one worker: nothing is sent; start with mpirun -n 4\n");
    if (row->skew_ms > 0)
        fprintf(out,
                "# skew: each worker starts up to %g ms late, by a fixed random pattern; time "
                "counts from the last start\n",
                row->skew_ms);
    if (row->series_iters > 1)
        fprintf(out, "# back to back: iterations follow each other without a barrier; a time is "
                     "that of a series / its iterations\n");
    if (strcmp(row->network, "loopback") == 0)
        fprintf(out, "# network=loopback: no per-node limit, topology effects do not show\n");
    fprintf(
        out,
        "# time: of the slowest worker. 95%% interval: of the median, needs 6 iterations. p95, "
        "p99: quantiles of the\n# iterations. in theory: time of bytes and distance alone. "
        "busbw = "
        "algbw x 2(W-1)/W. of bound: time of the\n# fastest possible all-reduce on this link over "
        "the median. sent: payload per operation, of the rank that sent\n# most. CPUs busy: share "
        "of the CPUs. Above %.0f%% the row ends in \"CPU-limited\", or in \"busy with other "
        "work\" if\n# other processes are the reason. Its time then says little about the "
        "network.\n# CPU s per GB: processor seconds of all ranks (with servers) per 1e9 bytes of "
        "messages, with waits that spin,\n# without filling and checking.\n#\n",
        100 * CPU_SHARE_LIMITED);
    if (row->model.name)
        print_model(out, row);
    else if (row->overlap)
        fprintf(out,
                "# exposed: what the same all-reduce adds to a computation (a wait) as long as "
                "the median; hidden: median\n# less exposed.\n#\n");
    static const char *const heads[2][17] = {
        {"", "", "median", "95% interval", "p95", "p99", "in theory", "algbw", "busbw", "of",
         "worker sent", "in theory", "server sent", "in theory", "CPUs", "CPU s", ""},
        {"bytes", "iters", "us", "us", "us", "us", "us", "MB/s", "MB/s", "bound", "bytes", "bytes",
         "bytes", "bytes", "busy", "per GB", "wrong"},
    };
    for (int line = 0; line < 2; line++) {
        const char *const *head = heads[line];
        fprintf(out,
                "#%11s %7s %12s %21s %12s %12s %12s %9s %9s %8s %12s %12s %12s %12s %6s %8s %7s",
                head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8],
                head[9], head[10], head[11], head[12], head[13], head[14], head[15], head[16]);
        if (row->overlap)
            fprintf(out, " %12s %7s", line == 0 ? "exposed" : "us", line == 0 ? "hidden" : "");
        fprintf(out, "\n");
    }
}

void bench_table_line(FILE *out, const struct bench_row *row)
{
    char theory[CELL], bound[CELL], worker[CELL], theory_worker[CELL], server[CELL],
        theory_server[CELL], interval[CELL], busy[CELL], seconds[CELL];
    bool known = row->bytes_known;
    fprintf(out,
            " %11" PRIu64 " %7" PRIu64 " %12.1f %21s %12.1f %12.1f %12s %9.2f %9.2f %8s %12s %12s "
            "%12s %12s %6s %8s %7" PRIu64,
            row->bytes, row->iters, row->time_us.median,
            cell(interval, isfinite(row->time_us_median_low), "%.1f-%.1f", row->time_us_median_low,
                 row->time_us_median_high),
            row->time_us.p95, row->time_us.p99,
            cell(theory, isfinite(row->theory_time_us), "%.1f", row->theory_time_us),
            bench_row_algbw(row) * 1e-6, bench_row_busbw(row) * 1e-6,
            percent_cell(bound, bench_row_efficiency(row)),
            cell(worker, known, "%" PRIu64, row->worker.sent_bytes),
            cell(theory_worker, known, "%" PRIu64, row->theory_worker.sent_bytes),
            cell(server, known, "%" PRIu64, row->server.sent_bytes),
            cell(theory_server, known, "%" PRIu64, row->theory_server.sent_bytes),
            cell(busy, row->cpu_busy >= 0, "%.0f%%", 100 * row->cpu_busy),
            seconds_cell(seconds, bench_row_cpu_s_per_gb(row)), row->wrong);
    if (row->overlap)
        fprintf(out, " %12.1f %7s", row->exposed_us_median,
                percent_cell(bound, bench_row_hidden(row)));
    const char *verdict = bench_row_cpu_verdict(row);
    fprintf(out, "%s%s%s\n", row->library ? "  libpsring" : "", *verdict ? "  " : "", verdict);
    if (row->limits.server_us > 0)
        fprintf(out, "# a server on plain sockets, with %d workers: %.1f us, %.2f of the median\n",
                row->limits.server_workers, row->limits.server_us,
                row->limits.server_us / row->time_us.median);
    if (row->model.name)
        fprintf(out,
                "# a step: %.1f ms computing + %.1f exposed = %.1f ms; scaling efficiency %s\n",
                row->compute_us_median * 1e-3, row->exposed_us_median * 1e-3,
                (row->compute_us_median + row->exposed_us_median) * 1e-3,
                percent_cell(bound, bench_row_scaling(row)));
}

void bench_verdict_add(struct bench_verdict *verdict, double efficiency,
                       const struct bench_row *row)
{
    double found = bench_row_efficiency(row);
    verdict->rows += !row->library; /* libpsring's row has the same size again */
    verdict->rows_known += row->bytes_known;
    verdict->rows_differ += !bench_row_bytes_agree(row);
    if (efficiency <= 0)
        return;
    verdict->required = efficiency;
    verdict->rows_required++;
    verdict->rows_unknown += isnan(found);
    if (found < efficiency) {
        if (verdict->rows_below++ == 0 || found < verdict->lowest) {
            verdict->lowest = found;
            verdict->lowest_bytes = row->bytes;
        }
    }
}

void bench_verdict_log_missed(const struct bench_verdict *verdict)
{
    if (verdict->rows_below > 0)
        log_error("--require-efficiency %g: %zu of %zu rows are below it, the lowest with %.3f at "
                  "%" PRIu64 " bytes; require less, leave such sizes out, or find what limits them",
                  verdict->required, verdict->rows_below, verdict->rows_required, verdict->lowest,
                  verdict->lowest_bytes);
    if (verdict->rows_unknown > 0)
        log_error("--require-efficiency %g: the efficiency of %zu of %zu rows is not known; it "
                  "takes two workers, a size above 0, and a link of known rate (give --probe on or "
                  "--link-rate RATE)",
                  verdict->required, verdict->rows_unknown, verdict->rows_required);
}

enum status bench_verdict_status(const struct bench_verdict *verdict)
{
    if (verdict->wrong > 0 || verdict->rows_differ > 0)
        return STATUS_PROTOCOL;
    return verdict->rows_below + verdict->rows_unknown > 0 ? STATUS_MISSED : STATUS_OK;
}

void bench_table_foot(FILE *out, const struct bench_verdict *verdict)
{
    fprintf(out, "# %zu size%s; ", verdict->rows, verdict->rows == 1 ? "" : "s");
    if (verdict->wrong == 0)
        fprintf(out, "every element equals the exact sum; ");
    else
        fprintf(out, "%" PRIu64 " elements are WRONG; ", verdict->wrong);
    if (verdict->rows_differ > 0)
        fprintf(out, "bytes DIFFER from theory at %zu of them\n", verdict->rows_differ);
    else if (verdict->rows_known > 0)
        fprintf(out, "bytes are as in theory\n");
    else
        fprintf(out, "the library does not count its bytes\n");
}
