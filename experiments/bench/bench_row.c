#include "experiments/bench/bench_row.h"

#include <math.h>

#include "common/base/check.h"
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
    double bound_s = cost_bound_s(row->workers, count, row->link_bytes_per_s);
    double wire_share = (double)row->element_bytes / sizeof(float);
    return wire_share * bound_s / (row->time_us.median * 1e-6);
}

double bench_row_hidden(const struct bench_row *row)
{
    return fmin(fmax(1 - row->exposed_us_median / row->time_us.median, 0), 1);
}

bool bench_row_cpu_limited(const struct bench_row *row)
{
    return row->cpu_busy > CPU_SHARE_LIMITED;
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

enum field_kind { FIELD_TEXT, FIELD_UINT, FIELD_DOUBLE, FIELD_UNKNOWN };

struct field {
    const char *name;
    enum field_kind kind;
    const char *text;
    uint64_t whole;
    double real;
};

enum { FIELDS_MAX = 64 };

struct fields {
    struct field list[FIELDS_MAX];
    size_t count;
};

static void add(struct fields *fields, struct field field)
{
    CHECK(fields->count < FIELDS_MAX);
    fields->list[fields->count++] = field;
}

static void add_text(struct fields *fields, const char *name, const char *text)
{
    add(fields, (struct field){.name = name, .kind = FIELD_TEXT, .text = text});
}

static void add_uint(struct fields *fields, const char *name, uint64_t whole)
{
    add(fields, (struct field){.name = name, .kind = FIELD_UINT, .whole = whole});
}

static void add_uint_if(struct fields *fields, const char *name, bool known, uint64_t whole)
{
    enum field_kind kind = known ? FIELD_UINT : FIELD_UNKNOWN;
    add(fields, (struct field){.name = name, .kind = kind, .whole = whole});
}

static void add_double(struct fields *fields, const char *name, double real)
{
    enum field_kind kind = isfinite(real) ? FIELD_DOUBLE : FIELD_UNKNOWN;
    add(fields, (struct field){.name = name, .kind = kind, .real = real});
}

static double known_rate(double bytes_per_s)
{
    return bytes_per_s > 0 ? bytes_per_s : (double)NAN;
}

/* The columns of bench.csv, in order. Others rely on the names and the order up to `wrong`. */
static void list_fields(const struct bench_row *row, struct fields *fields)
{
    bool known = row->bytes_known;
    fields->count = 0;
    add_text(fields, "backend", row->backend);
    add_text(fields, "transport", row->transport);
    add_text(fields, "device", row->device);
    add_text(fields, "network", row->network);
    add_uint(fields, "workers", (uint64_t)row->workers);
    add_uint(fields, "servers", (uint64_t)row->servers);
    add_text(fields, "placement", row->placement);
    add_uint(fields, "bytes", row->bytes);
    add_uint(fields, "iters", row->iters);
    add_double(fields, "time_us_min", row->time_us.min);
    add_double(fields, "time_us_median", row->time_us.median);
    add_double(fields, "time_us_p95", row->time_us.p95);
    add_double(fields, "time_us_max", row->time_us.max);
    add_double(fields, "algbw_bytes_per_s", bench_row_algbw(row));
    add_double(fields, "busbw_bytes_per_s", bench_row_busbw(row));
    add_double(fields, "link_bytes_per_s", known_rate(row->link_bytes_per_s));
    add_double(fields, "efficiency", bench_row_efficiency(row));
    add_uint_if(fields, "worker_sent_bytes", known, row->worker.sent_bytes);
    add_uint_if(fields, "worker_recv_bytes", known, row->worker.received_bytes);
    add_uint_if(fields, "server_sent_bytes", known, row->server.sent_bytes);
    add_uint_if(fields, "server_recv_bytes", known, row->server.received_bytes);
    add_uint_if(fields, "theory_worker_sent_bytes", known, row->theory_worker.sent_bytes);
    add_uint_if(fields, "theory_server_sent_bytes", known, row->theory_server.sent_bytes);
    add_uint_if(fields, "wire_tx_bytes_max", row->wire_known, row->wire_sent_bytes_max);
    add_uint(fields, "wrong", row->wrong);

    add_double(fields, "time_us_median_low", row->time_us_median_low);
    add_double(fields, "time_us_median_high", row->time_us_median_high);
    add_uint(fields, "warmup", row->warmup);
    add_uint_if(fields, "theory_worker_recv_bytes", known, row->theory_worker.received_bytes);
    add_uint_if(fields, "theory_server_recv_bytes", known, row->theory_server.received_bytes);
    add_double(fields, "theory_time_us", row->theory_time_us);
    add_double(fields, "nominal_link_bytes_per_s", known_rate(row->nominal_link_bytes_per_s));
    add_text(fields, "link_source", row->link_source);
    add_double(fields, "cpu_busy", row->cpu_busy >= 0 ? row->cpu_busy : (double)NAN);
    add_text(fields, "mpi_algorithm", row->mpi_algorithm);
    add_text(fields, "nccl_algorithm", row->nccl_algorithm);
    add_double(fields, "memory_add_bytes_per_s", known_rate(row->limits.add_bytes_per_s));
    add_double(fields, "memory_reduce_bytes_per_s", known_rate(row->limits.reduce_bytes_per_s));
    add_double(fields, "raw_round_trip_us",
               row->limits.round_trip_us > 0 ? row->limits.round_trip_us : (double)NAN);
    add_double(fields, "stream_bytes_per_s", known_rate(row->limits.stream_bytes_per_s));
    add_uint_if(fields, "rank_sent_bytes", known, row->rank.sent_bytes);
    add_uint_if(fields, "theory_rank_sent_bytes", known, row->theory_rank.sent_bytes);
    add_text(fields, "compress", row->compress);
    add_text(fields, "error_feedback", row->error_feedback);
    add_double(fields, "compute_us_median", row->compute_us_median);
    add_double(fields, "exposed_us_median", row->exposed_us_median);
}

/* -------- CSV and JSON ------------------------------------------------------------------------ */

enum status bench_csv_open(struct csv **csv, const char *path)
{
    struct fields fields;
    const char *names[FIELDS_MAX];
    list_fields(&(struct bench_row){.workers = 1}, &fields);
    for (size_t i = 0; i < fields.count; i++)
        names[i] = fields.list[i].name;
    return csv_open(csv, path, CSV_APPEND, names, fields.count);
}

enum status bench_csv_write(struct csv *csv, const struct bench_row *row)
{
    struct fields fields;
    list_fields(row, &fields);
    for (size_t i = 0; i < fields.count; i++) {
        const struct field *field = &fields.list[i];
        switch (field->kind) {
        case FIELD_TEXT:
            csv_text(csv, field->text);
            break;
        case FIELD_UINT:
            csv_uint(csv, field->whole);
            break;
        case FIELD_DOUBLE:
            csv_double(csv, field->real);
            break;
        case FIELD_UNKNOWN:
            csv_text(csv, NULL);
            break;
        }
    }
    return csv_end_row(csv);
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
