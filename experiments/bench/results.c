#include "experiments/bench/results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/stats.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "ring/halving_schedule.h"

/* -------- the rate of the links --------------------------------------------------------------- */

/* One rate of the links for all rows of a run, and which rows were disturbed. */
#define SAME_LINK 1.02         /* a probe that differs by more from the others was disturbed */
#define POSSIBLE 1.05          /* a time cannot be below theory by more */
#define SCATTER 1.15           /* iterations scatter if their interval's ends differ by more */
enum { LONG_BYTES = 1000000 }; /* shorter messages depend on the links' buffers */

bool rates_has_shape(const char *network)
{
    return strncmp(network, "vcluster:", 9) == 0 && strchr(network, '/');
}

static bool is_counted(const struct result_row *row)
{
    return row->part <= PART_SLOTS;
}

/* Rows of one group have one rate. The group is 0, or the number of machines if links differ. */
static int group_of(const struct results *results, const struct result_row *row)
{
    bool alike = strncmp(results->network, "hosts", 5) != 0 && !rates_has_shape(results->network);
    return alike ? 0 : results->points[row->point].machines;
}

/* The median probe of the row's group; NAN: no probe. `rates`: buffer for all rows. */
static double rate_of(const struct results *results, const struct result_row *of, double *rates)
{
    size_t count = 0;
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (is_counted(row) && row->link > 0 && strcmp(row->link_source, "probe") == 0 &&
            group_of(results, row) == group_of(results, of))
            rates[count++] = row->link;
    }
    return count > 0 ? stats_median(rates, count) : (double)NAN;
}

/* Adds the row to the rates and sources of all links. */
static void note_link(struct results *results, const struct result_row *row)
{
    if (!isnan(row->nominal_link))
        results->nominal = row->nominal_link;
    if (!(row->link > 0))
        return;
    if (strcmp(row->link_source, "probe") == 0)
        results->probed++;
    else
        results->unprobed++;
    results->link_least = fmin(results->link_least, row->link);
    results->link_most = fmax(results->link_most, row->link);
}

static void note_steadiness(const struct results *results, struct result_row *row, double share)
{
    const bool probed = strcmp(row->link_source, "probe") == 0;
    if (probed && (share > SAME_LINK || share * SAME_LINK < 1)) {
        snprintf(row->unsteady, sizeof row->unsteady, "its probe found %.1f Mbit/s",
                 row->link * 8 / 1e6);
        return;
    }
    /* Times are judged at the size that the tables show. */
    if (row->bytes < LONG_BYTES || row->bytes != results_focus(results, row->workers))
        return;
    if (probed && !rates_has_shape(results->network) && row->median_us * POSSIBLE < row->theory_us)
        snprintf(row->unsteady, sizeof row->unsteady, "less time than its bytes take");
    else if (row->low_us > 0 && row->high_us > row->low_us * SCATTER)
        snprintf(row->unsteady, sizeof row->unsteady, "its iterations scatter");
}

/*
 * Every psring bench probes the links. A disturbance of a second during one probe would compare its
 * rows with a different theory than the other rows. Therefore efficiency and theory of all rows are
 * scaled to the median of all probes. On real machines and in clusters with a shape links differ;
 * there the median is that of the runs on as many machines. Sets `unsteady` of the rows, and the
 * fields of the results about links. STATUS_NO_MEMORY is logged. O(rows^2).
 */
static enum status rates_settle(struct results *results)
{
    double *rates = malloc((results->row_count + 1) * sizeof *rates);
    const bool loopback = strncmp(results->network, "loopback", 8) == 0;
    if (!rates)
        return FAIL(STATUS_NO_MEMORY, "out of memory for the rates of %zu rows",
                    results->row_count);
    results->link_least = results->link_most = results->nominal = (double)NAN;
    for (size_t r = 0; r < results->row_count; r++) {
        struct result_row *row = &results->rows[r];
        if (!is_counted(row))
            continue;
        note_link(results, row);
        double share = 1, rate = rate_of(results, row, rates);
        if (row->link > 0 && rate > 0) {
            share = row->link / rate;
            row->efficiency *= share;
            row->theory_us *= share;
            results->last_rate = rate;
            if (group_of(results, row) == 0)
                results->rate = rate;
        }
        if (!loopback)
            note_steadiness(results, row, share);
    }
    free(rates);
    return STATUS_OK;
}

/* -------- rows of bench.csv ------------------------------------------------------------------- */

static int count_of(const struct csv_table *table, size_t row, const char *name)
{
    const double most = 1e6;
    double number = csv_table_number(table, row, name);
    return number > 0 && number <= most ? (int)number : 0;
}

struct evidence results_evidence(const struct csv_table *table, size_t row)
{
    return (struct evidence){
        .wrong = csv_table_number(table, row, "wrong"),
        .time_us = csv_table_number(table, row, "time_us_median"),
        .cpu_busy = csv_table_number(table, row, "cpu_busy"),
        .cpu_other = csv_table_number(table, row, "cpu_other"),
        .starts = 1,
    };
}

struct start results_start(const struct csv_table *table, size_t row)
{
    struct start start = {csv_table_number(table, row, "time_us_median"),
                          csv_table_number(table, row, "time_us_median_low"),
                          csv_table_number(table, row, "time_us_median_high")};
    /* Earlier versions wrote an interval for any number of iterations. */
    if (csv_table_number(table, row, "iters") < STATS_INTERVAL_LEAST)
        start.low_us = start.high_us = (double)NAN;
    return start;
}

static struct result_row read_row(const struct csv_table *table, size_t row)
{
    const struct evidence evidence = results_evidence(table, row);
    const struct start start = results_start(table, row);
    double bytes = csv_table_number(table, row, "bytes");
    return (struct result_row){
        .backend = csv_table_field(table, row, "backend"),
        .transport = csv_table_field(table, row, "transport"),
        .device = csv_table_field(table, row, "device"),
        .network = csv_table_field(table, row, "network"),
        .placement = csv_table_field(table, row, "placement"),
        .algorithm = csv_table_field(table, row, "mpi_algorithm"),
        .compress = csv_table_field(table, row, "compress"),
        .interface = csv_table_field(table, row, "interface"),
        .feedback = csv_table_field(table, row, "error_feedback"),
        .model = csv_table_field(table, row, "model_gradients"),
        .nccl = csv_table_field(table, row, "nccl_algorithm"),
        .link_source = csv_table_field(table, row, "link_source"),
        .workers = count_of(table, row, "workers"),
        .servers = count_of(table, row, "servers"),
        .hosts = count_of(table, row, "hosts"),
        .inter_host_hops = count_of(table, row, "inter_host_hops"),
        .bytes = bytes > 0 && bytes < 1e18 ? (uint64_t)bytes : 0,
        .iters = csv_table_number(table, row, "iters"),
        .median_us = start.median_us,
        .low_us = start.low_us,
        .high_us = start.high_us,
        .theory_us = csv_table_number(table, row, "theory_time_us"),
        .efficiency = csv_table_number(table, row, "efficiency"),
        .link = csv_table_number(table, row, "link_bytes_per_s"),
        .nominal_link = csv_table_number(table, row, "nominal_link_bytes_per_s"),
        .cpu_busy = evidence.cpu_busy,
        .cpu_other = evidence.cpu_other,
        .cpu_s_per_gb = csv_table_number(table, row, "cpu_s_per_gb"),
        .wrong = evidence.wrong,
        .worker_sent = csv_table_number(table, row, "worker_sent_bytes"),
        .worker_theory = csv_table_number(table, row, "theory_worker_sent_bytes"),
        .server_sent = csv_table_number(table, row, "server_sent_bytes"),
        .server_theory = csv_table_number(table, row, "theory_server_sent_bytes"),
        .buckets = csv_table_number(table, row, "buckets"),
        .compute_us = csv_table_number(table, row, "compute_us_median"),
        .exposed_us = csv_table_number(table, row, "exposed_us_median"),
        .scaling = csv_table_number(table, row, "scaling_efficiency"),
        .skew_ms = csv_table_number(table, row, "skew_ms"),
        .series_iters = csv_table_number(table, row, "series_iters"),
        .radix = count_of(table, row, "radix"),
        .state = judge_row(&evidence),
    };
}

static bool shares_hosts(const struct result_row *row)
{
    return row->hosts > 1 && row->hosts < row->workers;
}

static enum part part_of(const struct result_row *row, const char *network)
{
    if (strcmp(row->network, "time-slicing") == 0)
        return PART_SHARED_GPU;
    if (row->skew_ms > 0 || row->series_iters > 1)
        return PART_OTHER_WAY;
    if (strcmp(row->interface, "library") == 0)
        return PART_LEFT_OUT;
    if (strcmp(row->device, "cuda") == 0)
        return PART_GPU;
    if (strcmp(row->network, network) != 0)
        return PART_LEFT_OUT;
    return *row->model ? PART_PUBLISHED : shares_hosts(row) ? PART_SLOTS : PART_PLAIN;
}

/* -------- its configuration ------------------------------------------------------------------- */

void results_configuration(char *text, size_t size, const char *backend, const char *placement,
                           int servers, int radix, const char *algorithm)
{
    if (strcmp(backend, "mpi") == 0)
        snprintf(text, size, "mpi %s", *algorithm ? algorithm : "default");
    else if (strcmp(backend, "ps") == 0)
        snprintf(text, size, "ps %s %d", placement, servers);
    else if (radix > 0)
        snprintf(text, size, "%s radix %d", backend, radix);
    else
        snprintf(text, size, "%s", backend);
}

/* How many servers a kind has. For rhd: its radix. */
enum amount { NONE, ONE, TWO, HALF_AS_MANY, AS_MANY };

/* The kinds of configurations that columns and series show: a kind for each column, then those of a
 * series only. */
static const struct kind {
    const char *backend, *placement;
    enum amount amount;
    int series;
    const char *name; /* in the summary, the page and the figures */
} kinds[] = {
    [COLUMN_PS1] = {"ps", "dedicated", ONE, 1, "1 server"},
    [COLUMN_PSW] = {"ps", "dedicated", AS_MANY, 4, "W servers"},
    [COLUMN_IN1] = {"ps", "colocated", ONE, 5, "1 in a worker"},
    [COLUMN_INW] = {"ps", "colocated", AS_MANY, 8, "W in workers"},
    [COLUMN_MIXED] = {"ps", "mixed", HALF_AS_MANY, 9, "W in workers + W/2"},
    [COLUMN_RING] = {"ring", "", NONE, 10, "ring"},
    [COLUMN_RHD] = {"rhd", "", TWO, 11, "rhd"},
    [COLUMN_DIRECT] = {"rhd", "", AS_MANY, 15, "rhd radix W"},
    [COLUMN_TREE] = {"tree", "", NONE, 13, "tree"},
    [COLUMN_MPI] = {"mpi", "", NONE, 12, "MPI_Allreduce"},
    [COLUMNS] = {"ps", "dedicated", HALF_AS_MANY, 3, "W/2 servers"},
    {"ps", "dedicated", TWO, 2, "2 servers"},
    {"ps", "colocated", HALF_AS_MANY, 7, "W/2 in workers"},
    {"ps", "colocated", TWO, 6, "2 in workers"},
    {"ps", "switch", ONE, 14, "1 in the switch"},
};

static int amount_of(enum amount amount, int workers)
{
    const int amounts[] = {[ONE] = 1, [TWO] = 2, [HALF_AS_MANY] = workers / 2, [AS_MANY] = workers};
    return amounts[amount];
}

void results_series(int *series, const char *backend, const char *placement, int servers, int radix,
                    int workers)
{
    const bool halves = strcmp(backend, "rhd") == 0;
    const int has = halves ? (radix > 2 ? radix : 2) : servers;
    const int in_fact = halves ? halving_parts(workers, radix) : servers; /* W, if W is prime */
    int count = 0;
    memset(series, 0, SERIES_MOST * sizeof *series);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && count < SERIES_MOST; k++) {
        const struct kind *kind = &kinds[k];
        if (strcmp(backend, kind->backend) == 0 &&
            (halves || kind->amount == NONE || strcmp(placement, kind->placement) == 0) &&
            (kind->amount == NONE || has == amount_of(kind->amount, workers) ||
             in_fact == amount_of(kind->amount, workers)))
            series[count++] = kind->series;
    }
}

const char *results_series_name(int series)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (kinds[k].series == series)
            return kinds[k].name;
    }
    return NULL;
}

/* Names a configuration without a series. */
static void name_other(struct line *line, const char *way, const char *placement, int servers)
{
    if (strcmp(placement, "dedicated") == 0)
        line_add(line, "%d server%s", servers, servers == 1 ? "" : "s");
    else if (strcmp(placement, "colocated") == 0)
        line_add(line, "%d in workers", servers);
    else if (strcmp(placement, "mixed") == 0)
        line_add(line, "W in workers + %d", servers);
    else if (strcmp(placement, "switch") == 0)
        line_add(line, "%d in the switch", servers);
    else
        line_add(line, "%s", way);
}

void results_name(char *text, size_t size, const char *who, int workers)
{
    struct line line = line_in(text, size);
    char way[48], backend[16] = "", placement[16] = "";
    int number = 0, series[SERIES_MOST];
    const size_t length = strcspn(who, ",");
    snprintf(way, sizeof way, "%.*s", (int)length, who);
    (void)sscanf(way, "%15s %15s %d", backend, placement, &number);
    const bool servers = strcmp(backend, "ps") == 0, halves = strcmp(backend, "rhd") == 0;
    results_series(series, backend, placement, servers ? number : 0, halves ? number : 0, workers);
    if (series[0] > 0)
        line_add(&line, "%s", results_series_name(series[0]));
    else
        name_other(&line, way, servers ? placement : "", number);
    if (strcmp(backend, "mpi") == 0)
        line_add(&line, " (%s)", way + strlen("mpi "));
    line_add(&line, "%s", who + length);
}

/* The name follows NCCL's log, not the request. Without a log the row is in neither column. */
static const char *gpu_name(const struct result_row *row)
{
    if (strcmp(row->backend, "nccl") != 0 || strncmp(row->nccl, "ring/", 5) == 0)
        return NULL;
    return strncmp(row->nccl, "tree/", 5) == 0 ? "nccl tree" : "nccl otherwise";
}

/* 0: 2, or not of rhd. */
static int radix_of(const struct result_row *row)
{
    return row->radix > 2 ? row->radix : 0;
}

static void name_row(const struct result_row *row, struct point *point)
{
    struct line line = line_in(point->who, sizeof point->who);
    char name[48];
    results_configuration(name, sizeof name, row->backend, row->placement, row->servers,
                          radix_of(row), row->algorithm);
    const char *other = row->part == PART_GPU ? gpu_name(row) : NULL;
    line_add(&line, "%s", other ? other : name);
    if (row->part != PART_SLOTS && (row->part != PART_PUBLISHED || !shares_hosts(row)))
        return;
    line_add(&line, ", %d on %d hosts", row->workers, row->hosts);
    /* In the order of hosts, the ring crosses between hosts once per host. */
    if (row->inter_host_hops > row->hosts && row->inter_host_hops == row->workers)
        line_add(&line, ", worst order");
    else if (row->inter_host_hops > row->hosts)
        line_add(&line, ", %d neighbours apart", row->inter_host_hops);
}

const char *results_transport(const struct results *results, const char *backend)
{
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (strcmp(row->backend, backend) == 0 &&
            (row->part == PART_PLAIN || row->part == PART_VARIANT || row->part == PART_SLOTS))
            return row->transport;
    }
    return NULL;
}

/* The own transport of the row's backend: that of its first row. Rows of models and of GPUs have
 * separate first rows. */
static const char *own_transport(const struct results *results, const struct result_row *row)
{
    const struct result_row *first = results->rows;
    if (row->part == PART_PLAIN || row->part == PART_SLOTS)
        return results_transport(results, row->backend);
    while (first->part != row->part || strcmp(first->backend, row->backend) != 0)
        first++;
    return first->transport;
}

static void name_variant(const struct results *results, const struct result_row *row,
                         struct point *point)
{
    struct line line = line_in(point->variant, sizeof point->variant);
    if (row->part > PART_GPU)
        return;
    if (strcmp(row->transport, own_transport(results, row)) != 0)
        line_add(&line, "over %s", row->transport);
    if (*row->compress && strcmp(row->compress, "none") != 0)
        line_add(&line, "%s%s%s", line.used > 0 ? ", " : "", row->compress,
                 strcmp(row->feedback, "off") == 0 ? ", no feedback" : "");
    if (line.used > 0 && row->part == PART_PLAIN)
        point->part = PART_VARIANT;
}

/* -------- points ------------------------------------------------------------------------------ */

static double known(double first, double second)
{
    return isnan(first) ? second : first;
}

/* Values that are equal for all starts come from the first start that has them. For the share of
 * busy processors the largest counts. */
static void add_facts(struct point *point, const struct result_row *row)
{
    point->theory_us = known(point->theory_us, row->theory_us);
    point->efficiency = known(point->efficiency, row->efficiency * row->median_us);
    point->cpu_busy = fmax(point->cpu_busy, row->cpu_busy);
    point->cpu_other = fmax(point->cpu_other, row->cpu_other);
    point->cpu_s_per_gb = known(point->cpu_s_per_gb, row->cpu_s_per_gb);
    point->wrong += row->wrong > 0 ? row->wrong : 0;
    point->worker_sent = known(point->worker_sent, row->worker_sent);
    point->worker_theory = known(point->worker_theory, row->worker_theory);
    point->server_sent = known(point->server_sent, row->server_sent);
    point->server_theory = known(point->server_theory, row->server_theory);
    point->buckets = known(point->buckets, row->buckets);
    point->compute_us = known(point->compute_us, row->compute_us);
    point->exposed_us = known(point->exposed_us, row->exposed_us);
    point->scaling = known(point->scaling, row->scaling);
    if (!*point->unsteady)
        memcpy(point->unsteady, row->unsteady, sizeof point->unsteady);
}

/* Combines the point's times, once all its rows are known. `starts`: buffer for all rows. */
static void combine(struct results *results, size_t index, struct start *starts)
{
    struct point *point = &results->points[index];
    const double none = (double)NAN;
    size_t count = 0;
    enum state worst = STATE_EXACT;
    point->theory_us = point->efficiency = point->cpu_busy = point->cpu_other = none;
    point->cpu_s_per_gb = point->worker_sent = point->worker_theory = point->server_sent = none;
    point->server_theory = point->buckets = point->compute_us = point->exposed_us = none;
    point->scaling = none;
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (row->point != index)
            continue;
        add_facts(point, row);
        if (row->state > worst && row->state != STATE_SINGLE_START)
            worst = row->state;
        if (row->state != STATE_INCOMPLETE)
            starts[count++] = (struct start){row->median_us, row->low_us, row->high_us};
    }
    if (count > 0 && isfinite(starts[0].median_us))
        starts_combine(starts, count, &point->time);
    else
        point->time = (struct measured){.median_us = none,
                                        .low_us = none,
                                        .high_us = none,
                                        .own_low_us = none,
                                        .own_high_us = none};
    if (worst != STATE_EXACT)
        point->time.state = worst;
    point->efficiency /= point->time.median_us;
}

static bool is_same(const struct point *a, const struct point *b)
{
    return a->part == b->part && a->workers == b->workers && a->bytes == b->bytes &&
           strcmp(a->who, b->who) == 0 && strcmp(a->variant, b->variant) == 0 &&
           strcmp(a->row->model, b->row->model) == 0 &&
           (isnan(a->row->buckets) || isnan(b->row->buckets) ||
            fabs(a->row->buckets - b->row->buckets) < 0.5) &&
           strcmp(a->row->network, b->row->network) == 0;
}

static void find_points(struct results *results)
{
    for (size_t r = 0; r < results->row_count; r++) {
        struct result_row *row = &results->rows[r];
        const bool own = strcmp(row->placement, "dedicated") == 0 ||
                         strcmp(row->placement, "mixed") == 0 ||
                         strcmp(row->placement, "switch") == 0;
        struct point point = {
            .part = row->part,
            .row = row,
            .workers = row->workers,
            .servers = row->servers,
            .machines = (shares_hosts(row) ? row->hosts : row->workers) + (own ? row->servers : 0),
            .bytes = row->bytes,
        };
        name_row(row, &point);
        results_name(point.name, sizeof point.name, point.who, point.workers);
        name_variant(results, row, &point);
        row->part = point.part;
        results_series(point.series, row->backend, row->placement, row->servers, radix_of(row),
                       row->workers);
        size_t p = 0;
        while (p < results->point_count && !is_same(&results->points[p], &point))
            p++;
        if (p == results->point_count)
            results->points[results->point_count++] = point;
        row->point = p;
    }
}

static int by_number(const void *a, const void *b)
{
    const uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;
    return (one > two) - (one < two);
}

static int by_count(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The different sizes and numbers of workers of plain points. */
static void find_axes(struct results *results)
{
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        size_t s = 0, w = 0;
        if (point->part != PART_PLAIN || point->workers == 0)
            continue;
        while (s < results->size_count && results->sizes[s] != point->bytes)
            s++;
        while (w < results->worker_count && results->workers[w] != point->workers)
            w++;
        if (s == results->size_count)
            results->sizes[results->size_count++] = point->bytes;
        if (w == results->worker_count)
            results->workers[results->worker_count++] = point->workers;
    }
    if (results->size_count > 0)
        qsort(results->sizes, results->size_count, sizeof *results->sizes, by_number);
    if (results->worker_count > 0)
        qsort(results->workers, results->worker_count, sizeof *results->workers, by_count);
}

/* Adds up wrong elements over all rows: rows of a shared GPU and of the library must be right, too.
 */
static void add_up(struct results *results)
{
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        results->wrong += row->wrong > 0 ? row->wrong : 0;
        results->other_ways += row->part == PART_OTHER_WAY;
        results->elsewhere += row->part == PART_LEFT_OUT && strcmp(row->interface, "library") != 0;
        if (row->part < PART_SHARED_GPU && row->wrong >= 0 && row->iters > 0)
            results->elements += (double)row->bytes / 4 * row->iters;
        if (row->state == STATE_WRONG)
            results->worst = STATE_WRONG;
    }
}

/* The worst state of the points whose times are shown. */
static void find_worst(struct results *results)
{
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part < PART_SHARED_GPU && point->time.state > results->worst)
            results->worst = point->time.state;
    }
}

/* At one size the starts of all configurations differ by about as much, so their spread is pooled
 * by size. */
static void widen_all(struct results *results)
{
    for (size_t p = 0; p < results->point_count; p++) {
        struct point *point = &results->points[p];
        struct spread spread = {0};
        for (size_t o = 0; o < results->point_count; o++) {
            const struct point *other = &results->points[o];
            if (other->bytes == point->bytes && other->part <= PART_SLOTS &&
                judge_has_time(other->time.state))
                spread_add(&spread, &other->time);
        }
        if (point->part <= PART_SLOTS)
            starts_widen(&point->time, &spread, 1);
    }
}

enum status results_read_table(struct csv_table *table, const char *path)
{
    static const char *const renamed[][2] = {{"neighbours_apart", "inter_host_hops"},
                                             {"rest_us_median", "link_idle_us_median"},
                                             {"api", "interface"},
                                             {"limit", "bottleneck"},
                                             {"limit_rank", "bottleneck_rank"},
                                             {"limit_ms", "bottleneck_ms"},
                                             {"limit_step_ms", "judged_step_ms"},
                                             {"better_step_ms", "improved_step_ms"},
                                             {"steps_left_out", "steps_skipped"},
                                             {"on_target", "target_reached"},
                                             {"raw_round_trip_us", "zmq_rtt_us"},
                                             {"socket_round_trip_us", "tcp_rtt_us"},
                                             {"loaders", "data_threads"},
                                             {"prefetch", "prefetch_batches"}};
    enum status status = csv_table_read(table, path);
    for (size_t c = 0; c < table->columns; c++)
        for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
            if (strcmp(table->names[c], renamed[i][0]) == 0)
                table->names[c] = renamed[i][1];
    return status;
}

/* The network of the first row that is of neither a GPU nor the library. */
static const char *network_of(const struct results *results)
{
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): read_row fills all rows */
        if (strcmp(row->network, "time-slicing") != 0 && strcmp(row->interface, "library") != 0 &&
            strcmp(row->device, "cuda") != 0)
            return row->network;
    }
    return results->row_count > 0 ? results->rows[0].network : "";
}

enum status results_read(struct results *results, const char *path)
{
    enum status status;
    struct start *starts = NULL;
    *results = (struct results){.network = "", .rate = (double)NAN, .last_rate = (double)NAN};
    TRY(results_read_table(&results->table, path));
    const size_t room = results->table.rows + 1;
    results->rows = calloc(room, sizeof *results->rows);
    results->points = calloc(room, sizeof *results->points);
    results->workers = calloc(room, sizeof *results->workers);
    results->sizes = calloc(room, sizeof *results->sizes);
    starts = calloc(room, sizeof *starts);
    if (!results->rows || !results->points || !results->workers || !results->sizes || !starts)
        TRY(FAIL(STATUS_NO_MEMORY, "%s: out of memory for %zu rows", path, room));
    for (size_t r = 0; r < results->table.rows; r++)
        results->rows[results->row_count++] = read_row(&results->table, r);
    results->network = network_of(results);
    for (size_t r = 0; r < results->row_count; r++)
        results->rows[r].part = part_of(&results->rows[r], results->network);
    find_points(results);
    find_axes(results);
    TRY(rates_settle(results));
    add_up(results);
    for (size_t p = 0; p < results->point_count; p++)
        combine(results, p, starts);
    widen_all(results);
    find_worst(results);
out:
    free(starts);
    return status;
}

void results_free(struct results *results)
{
    csv_table_free(&results->table);
    free(results->rows);
    free(results->points);
    free(results->workers);
    free(results->sizes);
    *results = (struct results){0};
}

/* -------- look-up for tables and sentences ---------------------------------------------------- */

const struct point *results_find(const struct results *results, enum part part, const char *who,
                                 const char *variant, int workers, uint64_t bytes)
{
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part == part && point->workers == workers && point->bytes == bytes &&
            strcmp(point->who, who) == 0 && strcmp(point->variant, variant) == 0)
            return point;
    }
    return NULL;
}

void results_column_name(enum column column, int workers, char *text, size_t size)
{
    const struct kind *kind = &kinds[column];
    const int amount = amount_of(kind->amount, workers);
    results_configuration(text, size, kind->backend, kind->placement, amount,
                          column == COLUMN_DIRECT ? amount : 0, "");
}

const char *results_column_title(enum column column)
{
    return kinds[column].name;
}

const struct point *results_column(const struct results *results, enum column column, int workers,
                                   uint64_t bytes)
{
    char who[48];
    const struct point *fastest = NULL;
    if (column != COLUMN_MPI) {
        results_column_name(column, workers, who, sizeof who);
        return results_find(results, PART_PLAIN, who, "", workers, bytes);
    }
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part == PART_PLAIN && strncmp(point->who, "mpi ", 4) == 0 &&
            point->workers == workers && point->bytes == bytes &&
            (!fastest || (judge_has_time(point->time.state) &&
                          (!judge_has_time(fastest->time.state) ||
                           point->time.median_us < fastest->time.median_us))))
            fastest = point;
    }
    return fastest;
}

bool results_is_drawn(const struct results *results, const struct point *point)
{
    return point->part == PART_PLAIN && point->workers > 1 && judge_has_time(point->time.state) &&
           (strncmp(point->who, "mpi ", 4) != 0 ||
            point == results_column(results, COLUMN_MPI, point->workers, point->bytes));
}

bool results_is_sound(const struct point *point)
{
    return !*point->unsteady && point->time.state < STATE_DISTURBED;
}

const struct point *results_over(const struct results *results, enum column column,
                                 const char *transport, int workers, uint64_t bytes)
{
    char who[48], variant[48];
    results_column_name(column, workers, who, sizeof who);
    const char *own = results_transport(results, kinds[column].backend);
    if (own && strcmp(own, transport) == 0)
        return results_find(results, PART_PLAIN, who, "", workers, bytes);
    snprintf(variant, sizeof variant, "over %s", transport);
    return results_find(results, PART_VARIANT, who, variant, workers, bytes);
}

uint64_t results_focus(const struct results *results, int workers)
{
    uint64_t most = 0;
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part != PART_PLAIN || point->workers != workers)
            continue;
        if (point->bytes == RESULTS_MODEL_BYTES)
            return point->bytes;
        most = point->bytes > most ? point->bytes : most;
    }
    return most;
}

int results_compared_workers(const struct results *results)
{
    int most = 0;
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part == PART_VARIANT && strncmp(point->variant, "over ", 5) == 0 &&
            !strchr(point->variant, ',') && point->workers > most)
            most = point->workers;
    }
    return most > 0                    ? most
           : results->worker_count > 0 ? results->workers[results->worker_count - 1]
                                       : 0;
}
