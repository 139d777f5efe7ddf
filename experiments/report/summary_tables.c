#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/text.h"
#include "experiments/report/report.h"

void summary_heading(int *section, FILE *out, const char *format, ...)
{
    va_list arguments;
    fprintf(out, "\n%d. ", ++*section);
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fprintf(out, "\n\n");
}

/* "ring, over zmq, fp16", cut to `size`. */
static const char *name_of(const struct point *point, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", point->name, *point->variant ? ", " : "", point->variant);
    return text;
}

static size_t count_of(const struct results *results, enum part part)
{
    size_t count = 0;
    for (size_t p = 0; p < results->point_count; p++)
        count += results->points[p].part == part;
    return count;
}

/* -------- processors, transports, overlap ----------------------------------------------------- */

static struct text seconds_of(const struct point *point)
{
    struct text text = {"-"};
    if (point && !isnan(point->cpu_s_per_gb))
        snprintf(text.text, sizeof text.text, point->cpu_s_per_gb < 100 ? "%.3g" : "%.0f",
                 point->cpu_s_per_gb);
    return text;
}

void summary_print_processors(const struct run *run, int *section, FILE *out)
{
    static const char *const transports[] = {"zmq", "mpi", "tcp"};
    const struct results *results = &run->results;
    const int workers = results_compared_workers(results);
    bool known = false;
    for (size_t p = 0; p < results->point_count; p++)
        known = known ||
                (results->points[p].part <= PART_SLOTS && !isnan(results->points[p].cpu_s_per_gb));
    if (!known)
        return;
    summary_heading(section, out, "Processor seconds of all ranks for a GB of messages, %d workers",
                    workers);
    fprintf(out, "             1 server, over                   ring, over\n"
                 "   message       zmq       mpi       tcp        zmq       mpi       tcp   "
                 "MPI_Allreduce\n");
    for (size_t s = 0; s < results->size_count; s++) {
        const uint64_t bytes = results->sizes[s];
        if (results_focus(results, workers) == 0)
            continue;
        fprintf(out, "  %8s", text_size((double)bytes).text);
        for (int t = 0; t < 3; t++)
            fprintf(
                out, " %9s",
                seconds_of(results_over(results, COLUMN_PS1, transports[t], workers, bytes)).text);
        fprintf(out, " ");
        for (int t = 0; t < 3; t++)
            fprintf(
                out, " %9s",
                seconds_of(results_over(results, COLUMN_RING, transports[t], workers, bytes)).text);
        fprintf(out, " %15s\n",
                seconds_of(results_column(results, COLUMN_MPI, workers, bytes)).text);
    }
    fprintf(out, "\n  User and system time of workers and servers, which is lost for computation. "
                 "Spinning waits count, too: all\n  waits of MPI_Allreduce, and the first 50 us "
                 "of tcp if each rank has a core.\n");
}

void summary_print_variants(const struct run *run, int *section, FILE *out)
{
    const struct results *results = &run->results;
    char name[128];
    if (count_of(results, PART_VARIANT) == 0)
        return;
    summary_heading(section, out, "Over a further transport, and with compressed messages");
    fprintf(out,
            "                                  W  message       time  plain time   / plain        "
            "        by theory\n");
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part != PART_VARIANT)
            continue;
        const struct point *plain =
            results_find(results, PART_PLAIN, point->who, "", point->workers, point->bytes);
        fprintf(out, "  %-28s %4d %8s %10s %11s   %-20s %11s\n", name_of(point, name, sizeof name),
                point->workers, text_size((double)point->bytes).text, text_point(point).text,
                text_point(plain).text, text_verdict(point, plain, 2).text,
                text_ratio(point->theory_us, plain ? plain->theory_us : (double)NAN).text);
    }
    fprintf(out, "\n  The same topology, code and numbers: only the library that carries the "
                 "messages differs by transport.\n");
}

void summary_print_overlap(const struct run *run, int *section, FILE *out)
{
    const struct results *results = &run->results;
    bool any = false;
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        char name[128];
        if (point->part > PART_SLOTS || !(point->compute_us > 0))
            continue;
        if (!any) {
            summary_heading(
                section, out,
                "Overlap with a computation as long as the all-reduce: the hidden share of "
                "its time");
            fprintf(
                out,
                "                                  W  message      alone     exposed    hidden\n");
        }
        any = true;
        const double hidden = 1 - point->exposed_us / point->time.median_us;
        fprintf(out, "  %-28s %4d %8s %10s %11s %9s\n", name_of(point, name, sizeof name),
                point->workers, text_size((double)point->bytes).text,
                text_time(point->time.median_us).text, text_time(point->exposed_us).text,
                text_percent(isnan(hidden) ? hidden : fmin(fmax(hidden, 0), 1)).text);
    }
    if (any)
        fprintf(out, "\n  The computation is a timed wait, so it takes no processor from the "
                     "all-reduce.\n");
}

/* -------- several workers a host, published models -------------------------------------------- */

void summary_print_slots(const struct run *run, int *section, FILE *out)
{
    const struct results *results = &run->results;
    char name[128];
    if (count_of(results, PART_SLOTS) == 0)
        return;
    summary_heading(section, out, "Several workers a host");
    fprintf(out, "                                     message       time      95%% interval   by "
                 "theory   / theory\n");
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part != PART_SLOTS)
            continue;
        fprintf(out, "  %-34s %8s %10s %17s %11s %10s\n", name_of(point, name, sizeof name),
                text_size((double)point->bytes).text, text_point(point).text,
                text_interval(&point->time).text, text_time(point->theory_us).text,
                text_ratio(point->time.median_us, point->theory_us).text);
    }
    fprintf(out,
            "\n  Theory: the bytes on the busiest host's link, at B bytes/s, with H hosts and W "
            "workers. Hierarchical: 2(H-1)/H\n"
            "  M/B, the minimum. The ring of all workers, in the order of hosts: 2(W-1)/W "
            "M/B. In the worst order each\n"
            "  neighbour is on another host, so multiply by the workers of a host.\n");
}

/* Prints the models that would take too long, or (`memory`) need too much memory. */
static void print_not_measured(const struct run *run, bool memory, const char *reason, FILE *out)
{
    char who[64], name[64], model[64], amount[32], before[64] = "";
    int workers;
    for (const char *entry = run->too_long; *entry; entry = text_next_entry(entry)) {
        const bool found = sscanf(entry, "%63s %d %63s %31[^;]", who, &workers, model, amount) == 4;
        char *gigabytes = found ? strstr(amount, "GB") : NULL;
        if (!found || (gigabytes != NULL) != memory)
            continue;
        if (gigabytes)
            *gigabytes = 0;
        text_replace(who, '-', ' ');
        results_name(name, sizeof name, who, workers);
        if (strcmp(model, before) == 0)
            fprintf(out, ", ");
        else
            fprintf(out, "%s  not measured, %s: %s: ", *before ? "\n" : "", reason, model);
        fprintf(out, "%s %s %s", name, amount, memory ? "GB" : "s");
        memcpy(before, model, sizeof before);
    }
    if (*before)
        fprintf(out, "\n");
}

void summary_print_published(const struct run *run, int *section, FILE *out)
{
    const struct results *results = &run->results;
    const size_t count = count_of(results, PART_PUBLISHED);
    if (count == 0 && !*run->too_long)
        return;
    summary_heading(section, out,
                    "Gradients of published models, in buckets, as training exchanges them");
    if (count > 0)
        fprintf(out, "                                        W  gradients buckets  averaging   by "
                     "theory    compute    exposed    scaling\n");
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part != PART_PUBLISHED)
            continue;
        char name[128];
        fprintf(out, "  %-14s %-20s %4d %10s %7.0f %10s %11s %10s %10s %10s\n", point->row->model,
                name_of(point, name, sizeof name), point->workers,
                text_size((double)point->bytes).text, point->buckets, text_point(point).text,
                text_time(point->theory_us).text, text_time(point->compute_us).text,
                text_time(point->exposed_us).text, text_percent(point->scaling).text);
    }
    print_not_measured(run, false, "it would take too long", out);
    print_not_measured(run, true, "it needs more memory than there is", out);
    if (count > 0)
        fprintf(
            out,
            "\n  A step averages during its computation, a timed wait that is distributed over the "
            "tensors by their operations.\n"
            "  Exposed: step - computation. Scaling: computation / step. Averaging: all "
            "buckets, without computation.\n"
            "  These are single values without an interval.\n");
}

/* -------- GPUs -------------------------------------------------------------------------------- */

static struct text gpu_time(const struct results *results, const char *who, int workers,
                            uint64_t bytes)
{
    return text_point(results_find(results, PART_GPU, who, "", workers, bytes));
}

static int by_size(const void *a, const void *b)
{
    const struct point *one = *(const struct point *const *)a;
    const struct point *two = *(const struct point *const *)b;
    if (one->workers != two->workers)
        return one->workers - two->workers;
    return (one->bytes > two->bytes) - (one->bytes < two->bytes);
}

static void print_gpu_rows(const struct results *results, FILE *out)
{
    const struct point **points = malloc((results->point_count + 1) * sizeof *points);
    size_t count = 0;
    for (size_t p = 0; points && p < results->point_count; p++) {
        if (results->points[p].part == PART_GPU)
            points[count++] = &results->points[p];
    }
    if (count > 0)
        qsort(points, count, sizeof *points, by_size);
    for (size_t p = 0; p < count; p++) {
        const int workers = points[p]->workers;
        const uint64_t bytes = points[p]->bytes;
        char inside[32];
        if (p > 0 && by_size(&points[p - 1], &points[p]) == 0)
            continue;
        snprintf(inside, sizeof inside, "ps colocated %d", workers);
        fprintf(out, "  %4d %9s %10s %10s %10s %12s %10s %14s %13s\n", workers,
                text_size((double)bytes).text, gpu_time(results, "nccl", workers, bytes).text,
                gpu_time(results, "nccl tree", workers, bytes).text,
                gpu_time(results, "ring", workers, bytes).text,
                gpu_time(results, inside, workers, bytes).text,
                gpu_time(results, "ps dedicated 1", workers, bytes).text,
                gpu_time(results, "mpi default", workers, bytes).text,
                gpu_time(results, "hierarchical", workers, bytes).text);
    }
    free(points);
}

/* Prints only the check of sums, because the ranks took turns on the GPU. */
static void print_shared(const struct results *results, int *section, FILE *out)
{
    double elements = 0;
    char names[512];
    struct line line = line_in(names, sizeof names);
    if (count_of(results, PART_SHARED_GPU) == 0)
        return;
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (row->part != PART_SHARED_GPU)
            continue;
        if (row->iters > 0)
            elements += (double)row->bytes / 4 * row->iters;
        bool before = false;
        for (size_t other = 0; other < r; other++) {
            const struct result_row *one = &results->rows[other];
            before = before ||
                     (one->part == PART_SHARED_GPU && strcmp(one->backend, row->backend) == 0 &&
                      strcmp(one->nccl, row->nccl) == 0);
        }
        if (!before)
            line_add(&line, *row->nccl ? "%s%s (%s)" : "%s%s", line.used > 0 ? ", " : "",
                     row->backend, row->nccl);
    }
    summary_heading(section, out, "On one GPU that ranks share");
    fprintf(out,
            "  %.0f elements were averaged to check the sums, by %s.\n"
            "  The ranks took turns on the GPU, so their times mean nothing and are not shown.\n",
            elements, names);
}

void summary_print_gpus(const struct run *run, int *section, FILE *out)
{
    const struct results *results = &run->results;
    const char *algorithm = "";
    size_t unknown = 0, variants = 0, trained = 0;
    const size_t count = count_of(results, PART_GPU);
    for (size_t p = 0; p < results->point_count; p++)
        variants += results->points[p].part == PART_GPU && *results->points[p].variant;
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (row->part != PART_GPU || strcmp(row->backend, "nccl") != 0)
            continue;
        unknown += !*row->nccl;
        algorithm = strncmp(row->nccl, "ring/", 5) == 0 ? row->nccl : algorithm;
    }
    if (count > 0) {
        summary_heading(section, out, "Between GPUs, a worker each");
        fprintf(out, "  GPUs   message       nccl  nccl tree %10s %12s %10s %14s  hierarchical\n",
                results_column_title(COLUMN_RING), results_column_title(COLUMN_INW),
                results_column_title(COLUMN_PS1), results_column_title(COLUMN_MPI));
        print_gpu_rows(results, out);
        fprintf(out,
                "\n  nccl averages in GPU memory%s%s%s; the other backends use host memory (MPI "
                "uses GPU "
                "memory\n  if it reports support for that).\n",
                *algorithm ? ", with " : "", algorithm, *algorithm ? " (from its log)" : "");
    }
    if (variants > 0)
        fprintf(out, "  Not shown: %s over a further transport or compressed.\n",
                text_counted((double)variants, "configuration").text);
    if (unknown > 0)
        fprintf(
            out,
            "  Not shown: %zu of nccl with an unknown algorithm, because NCCL's log is missing.\n",
            unknown);
    for (size_t t = 0; t < run->trainings.count; t++) {
        const struct training *training = &run->trainings.list[t];
        char name[160];
        if (training->kind != TRAINING_GPU)
            continue;
        trainings_name(&run->trainings, training, name, sizeof name);
        fprintf(out, "%s  %-20s %d GPUs: %.2f%% after %.0f images of %s, %.0f s\n",
                trained++ == 0 ? "\n" : "", name, training->workers, 100 * training->accuracy,
                training->images, csv_table_field(&run->trainings.table, training->row, "dataset"),
                training->seconds);
    }
    print_shared(results, section, out);
}

/* -------- the winner map ---------------------------------------------------------------------- */

/* The rows of winner_map.csv that the table shows. */
static const int map_workers[] = {4, 16, 64, 256, 1024};
static const double map_sizes[] = {65536, 4194304}, map_trips_ms[] = {0, 10};
static const struct {
    const char *title, *wiring, *machines;
} map_parts[] = {
    {"workers alone", "flat", "workers alone"},
    {"workers alone, in racks", "racks", "workers alone"},
    {"four workers a host", "shared hosts", "workers alone"},
    {"with as many spare machines", "flat", "as many spare machines"},
    {"with a server in the switch", "flat", "a server in the switch"},
};

/* The way of one cell, of the first network in the file; "-": none. */
static const char *map_way(const struct csv_table *map, size_t part, double size, double trip_ms,
                           int workers)
{
    const char *network = csv_table_field(map, 0, "network");
    for (size_t row = 0; row < map->rows; row++) {
        if (csv_table_number(map, row, "workers") == workers &&
            csv_table_number(map, row, "bytes") == size &&
            csv_table_number(map, row, "added_rtt_ms") == trip_ms &&
            strcmp(csv_table_field(map, row, "network"), network) == 0 &&
            strcmp(csv_table_field(map, row, "wiring"), map_parts[part].wiring) == 0 &&
            strcmp(csv_table_field(map, row, "machines"), map_parts[part].machines) == 0)
            return csv_table_field(map, row, "way");
    }
    return "-";
}

static void print_map(const struct csv_table *map, FILE *out)
{
    enum { WORKERS = sizeof map_workers / sizeof *map_workers };
    fprintf(out, "  %8s %10s", "message", "round trip");
    for (int w = 0; w < WORKERS; w++)
        fprintf(out, "  %*s%-*d", 2, "W=", 14, map_workers[w]);
    for (size_t part = 0; part < sizeof map_parts / sizeof *map_parts; part++) {
        fprintf(out, "\n  %s\n", map_parts[part].title);
        for (int line = 0; line < 4; line++) {
            double size = map_sizes[line / 2], trip_ms = map_trips_ms[line % 2];
            fprintf(out, "  %8s %10s", text_size(size).text, trip_ms > 0 ? "+ 10 ms" : "as here");
            for (int w = 0; w < WORKERS; w++) {
                char name[64];
                results_name(name, sizeof name, map_way(map, part, size, trip_ms, map_workers[w]),
                             map_workers[w]);
                fprintf(out, "  %-*s", w + 1 < WORKERS ? 16 : 0, name);
            }
            fprintf(out, "\n");
        }
    }
    fprintf(out, "\n  The simplest way within 3%% of the fastest, for a machine for each process. "
                 "All sizes: winner_map.csv.\n");
}

void summary_print_map(const struct run *run, int *section, FILE *out)
{
    struct csv_table map = {0};
    char *path = run_data_path(run->dir, "winner_map.csv");
    if (path && access(path, R_OK) == 0 && csv_table_read(&map, path) == STATUS_OK &&
        map.rows > 0) {
        summary_heading(section, out, "Predicted: the fastest way on other clusters");
        char basis[256];
        print_map(&map, out);
        run_basis(run, basis, sizeof basis);
        fprintf(out, "%s%s%s", *basis ? "  " : "", basis, *basis ? "\n" : "");
    }
    csv_table_free(&map);
    free(path);
}

/* -------- what was left out ------------------------------------------------------------------- */

void summary_print_left_out(const struct run *run, int *section, FILE *out)
{
    char who[64], name[64];
    int workers, machines, before = 0;
    if (!*run->left_out)
        return;
    summary_heading(section, out, "What %d machines cannot measure", run->machine_count);
    for (const char *entry = run->left_out; *entry; entry = text_next_entry(entry)) {
        const bool found = sscanf(entry, "%63s %d %d", who, &workers, &machines) == 3;
        if (!found)
            continue;
        text_replace(who, '-', ' ');
        results_name(name, sizeof name, who, workers);
        if (workers != before)
            fprintf(out, "%s  %s: %d machines for %s", before > 0 ? "\n" : "",
                    text_counted(workers, "worker").text, machines, name);
        else
            fprintf(out, "; %d for %s", machines, name);
        before = workers;
    }
    fprintf(out, "\n");
}
