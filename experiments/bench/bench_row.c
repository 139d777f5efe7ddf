#include "experiments/bench/bench_row.h"

#include <math.h>

#include "common/base/fields.h"
#include "experiments/measure/cpu_share.h"

/* -------- what follows from the measurement --------------------------------------------------- */

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
    int links = row->hosts > 1 ? row->hosts : row->workers; /* loopback is as if each had one */
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

double bench_row_scaling(const struct bench_row *row)
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
            equal(row->rank, row->theory_rank));
}

/* -------- the list of fields ------------------------------------------------------------------ */

static double known_rate(double bytes_per_s)
{
    return bytes_per_s > 0 ? bytes_per_s : (double)NAN;
}

/* The columns of bench.csv, in order. Others rely on the names and the order up to `wrong`. */
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
    fields_double(fields, "link_bytes_per_s", known_rate(row->link_bytes_per_s));
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
    fields_double(fields, "nominal_link_bytes_per_s", known_rate(row->nominal_link_bytes_per_s));
    fields_text(fields, "link_source", row->link_source);
    fields_double(fields, "cpu_busy", row->cpu_busy >= 0 ? row->cpu_busy : (double)NAN);
    fields_text(fields, "mpi_algorithm", row->mpi_algorithm);
    fields_text(fields, "nccl_algorithm", row->nccl_algorithm);
    fields_double(fields, "memory_add_bytes_per_s", known_rate(row->limits.add_bytes_per_s));
    fields_double(fields, "memory_reduce_bytes_per_s", known_rate(row->limits.reduce_bytes_per_s));
    fields_double(fields, "raw_round_trip_us",
                  row->limits.round_trip_us > 0 ? row->limits.round_trip_us : (double)NAN);
    fields_double(fields, "socket_round_trip_us",
                  row->limits.socket_trip_us > 0 ? row->limits.socket_trip_us : (double)NAN);
    fields_double(fields, "stream_bytes_per_s", known_rate(row->limits.stream_bytes_per_s));
    fields_uint_if(fields, "rank_sent_bytes", known, row->rank.sent_bytes);
    fields_uint_if(fields, "theory_rank_sent_bytes", known, row->theory_rank.sent_bytes);
    fields_text(fields, "compress", row->compress);
    fields_text(fields, "error_feedback", row->error_feedback);
    fields_double(fields, "compute_us_median", row->compute_us_median);
    fields_double(fields, "exposed_us_median", row->exposed_us_median);
    fields_uint_if(fields, "hosts", row->hosts > 0, (uint64_t)row->hosts);
    fields_uint_if(fields, "neighbours_apart", row->hosts > 0, (uint64_t)row->neighbours_apart);
    fields_double(fields, "cpu_s_per_gb", bench_row_cpu_s_per_gb(row));
    fields_text(fields, "api", row->library ? "library" : "comm");
    fields_text(fields, "model_gradients", row->model.name);
    fields_uint_if(fields, "buckets", row->model.name, row->model.buckets);
    fields_double(fields, "backward_us", row->model.name ? row->model.backward_us : (double)NAN);
    fields_double(fields, "scaling_efficiency", bench_row_scaling(row));
    bool watched = row->cpu_busy >= 0 && row->cpu_other >= 0;
    fields_double(fields, "cpu_other", watched ? row->cpu_other : (double)NAN);
    fields_double(fields, "rest_us_median",
                  row->rest_us_median > 0 ? row->rest_us_median : (double)NAN);
    fields_double(fields, "time_us_p99", row->time_us.p99);
    fields_double(fields, "skew_ms", row->skew_ms);
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
