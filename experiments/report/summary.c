#include "experiments/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/cpu_watch.h"
#include "experiments/bench/results.h"

/* -------- the head ---------------------------------------------------------------------------- */

static void print_link(const struct results *results, FILE *out)
{
    double nominal = results->nominal;
    if (isnan(nominal) && results->unprobed > 0)
        nominal = results->link_most;
    if (!isnan(nominal))
        fprintf(out, ": %.0f Mbit/s (%.1f MB/s) each way for each host", nominal * 8 / 1e6,
                nominal / 1e6);
    if (results->probed == 0) {
        fprintf(out, ", nominal");
        return;
    }
    fprintf(out, "\nmeasured in the same runs, TCP streams both ways at once: ");
    if (!isnan(results->rate))
        fprintf(out, "%.1f Mbit/s (%.2f MB/s)", results->rate * 8 / 1e6, results->rate / 1e6);
    if (results->link_most >= results->link_least * 1.005 || isnan(results->rate))
        fprintf(out, "%s%.1f to %.1f Mbit/s", isnan(results->rate) ? "" : ", the median of ",
                results->link_least * 8 / 1e6, results->link_most * 8 / 1e6);
    if (results->unprobed > 0)
        fprintf(out, "\n%zu of %zu measurements had no probe and use the rate of the others",
                results->unprobed, results->probed + results->unprobed);
}

static struct text training_name(const struct run *run, const struct training *training)
{
    struct text name;
    trainings_name(&run->trainings, training, name.text, sizeof name.text);
    /* cppcheck-suppress uninitvar ; trainings_name fills it */
    return name;
}

static void print_wrong(const struct run *run, FILE *out)
{
    const struct results *results = &run->results;
    if (results->wrong > 0)
        fprintf(out, "WRONG: %s %s from the exact sum.\n",
                text_counted(results->wrong, "element").text,
                results->wrong == 1 ? "differs" : "differ");
    if (run->agreement == AGREEMENT_WRONG)
        fprintf(out,
                "WRONG: two trainings that must end with the same weights, bit for bit, do not.\n"
                "  %s, %s and %s\n",
                text_counted(run->one->workers, "worker").text, training_name(run, run->one).text,
                training_name(run, run->two).text);
    if (run->state == STATE_WRONG)
        fprintf(out, "Do not use this run. Its times are not shown.\n");
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (!(point->wrong > 0))
            continue;
        fprintf(out, "  - ");
        text_print_point(out, point);
        fprintf(out, "%s\n", text_counted(point->wrong, "wrong element").text);
    }
}

/* Whether both are sizes of one configuration, disturbed in the same way. */
static bool disturbed_alike(const struct point *one, const struct point *other)
{
    return one->workers == other->workers && strcmp(one->who, other->who) == 0 &&
           strcmp(one->variant, other->variant) == 0 && strcmp(one->unsteady, other->unsteady) == 0;
}

/* A line for each measurement: a disturbed probe concerns all its sizes. */
static void print_disturbed(const struct results *results, FILE *out)
{
    size_t alike;
    for (size_t p = 0; p < results->point_count; p += alike) {
        const struct point *point = &results->points[p];
        for (alike = 1; p + alike < results->point_count; alike++) {
            if (!disturbed_alike(point, &results->points[p + alike]))
                break;
        }
        if (!*point->unsteady)
            continue;
        fprintf(out, "Not steady: ");
        text_print_point(out, point);
        fprintf(out, "%s%s\n", point->unsteady, alike > 1 ? "; further sizes, too" : "");
    }
}

static const char *transport_of(const struct run *run, const char *backend)
{
    const char *transport = results_transport(&run->results, backend);
    return transport ? transport : "-";
}

void summary_print_head(const struct run *run, FILE *out)
{
    const struct results *results = &run->results;
    const char *network = run_network(run);
    print_wrong(run, out);
    fprintf(out, "network=%s", *network ? network : "unknown");
    if (!isnan(results->link_least) && results->row_count > 0)
        print_link(results, out);
    else if (strncmp(network, "loopback", 8) == 0)
        fprintf(out, ": no per-node limit, topology effects do not show");
    if (rates_has_shape(network))
        fprintf(out,
                "\nThe cluster has a shape, %s. Efficiency assumes equal links. Theory contains "
                "racks, if their hosts have equal links.",
                strchr(network, '/') + 1);
    fprintf(out, "\n");
    if (run->cores > 0)
        fprintf(out, "%d cores; ", run->cores);
    fprintf(out, "ps over %s, ring over %s\n", transport_of(run, "ps"), transport_of(run, "ring"));
    if (run->state != STATE_WRONG && results->elements > 0)
        fprintf(out, "Checked: all %s elements of the timed all-reduces are the exact sums\n",
                text_count(results->elements).text);
    if (results->other_ways > 0)
        fprintf(out, "Not shown: %s of psring bench --skew or --back-to-back\n",
                text_counted((double)results->other_ways, "measurement").text);
    if (results->elsewhere > 0)
        fprintf(out, "Not shown: %s of another network; write each network to its own folder\n",
                text_counted((double)results->elsewhere, "measurement").text);
    if (run->failed > 0)
        fprintf(out, "INCOMPLETE: %s failed; log.txt has the messages\n",
                text_counted(run->failed, "measurement").text);
    if (!run->provenance)
        fprintf(out, "No provenance.json: the run was interrupted, or is none of run_scaling.sh\n");
    if (run->state != STATE_WRONG)
        print_disturbed(results, out);
}

/* -------- the answer -------------------------------------------------------------------------- */

static void summary_print_answer(const struct answer *answer, FILE *out)
{
    fprintf(out, "  %s\n", answer->lead);
    for (size_t c = 0; c < answer->count; c++)
        fprintf(out, "  - %s\n", answer->claims[c].text);
    if (answer->note)
        fprintf(out, "  %s\n", answer->note);
}

/* -------- times ------------------------------------------------------------------------------- */

static const struct {
    enum column column;
    int width;
} cells[] = {
    {COLUMN_PS1, 10}, {COLUMN_PSW, 10},    {COLUMN_INW, 13}, {COLUMN_MIXED, 19}, {COLUMN_RING, 9},
    {COLUMN_RHD, 9},  {COLUMN_DIRECT, 12}, {COLUMN_TREE, 9}, {COLUMN_MPI, 14},
};
enum { CELLS = sizeof cells / sizeof *cells };

/* A sweep leaves some columns empty. */
static bool is_measured(const struct results *results, enum column column)
{
    for (size_t w = 0; w < results->worker_count; w++) {
        for (size_t s = 0; s < results->size_count; s++) {
            if (results_column(results, column, results->workers[w], results->sizes[s]))
                return true;
        }
    }
    return false;
}

static void print_row_head(const struct results *results, FILE *out)
{
    fprintf(out, " %8s", "message");
    for (size_t c = 0; c < CELLS; c++) {
        if (is_measured(results, cells[c].column))
            fprintf(out, " %*s", cells[c].width, results_column_title(cells[c].column));
    }
}

static void print_row(const struct results *results, int workers, uint64_t bytes, FILE *out)
{
    fprintf(out, " %8s", text_size((double)bytes).text);
    for (size_t c = 0; c < CELLS; c++) {
        if (is_measured(results, cells[c].column))
            fprintf(out, " %*s", cells[c].width,
                    text_point(results_column(results, cells[c].column, workers, bytes)).text);
    }
}

static void print_legend(const struct results *results, FILE *out)
{
    bool limited = false, disturbed = false;
    for (size_t p = 0; p < results->point_count; p++) {
        limited = limited || results->points[p].time.state == STATE_LIMITED;
        disturbed = disturbed || results->points[p].time.state == STATE_DISTURBED;
    }
    if (limited)
        fprintf(out,
                "\n  * CPU-limited: the processors were more than %.0f%% busy, so they may be the "
                "limit, "
                "not the\n  network. MPI_Allreduce waits by spinning, so it always looks busy.\n",
                100 * CPU_SHARE_LIMITED);
    if (disturbed)
        fprintf(out,
                "\n  + the machine was busy with other work: without other processes its "
                "processors would have been less than\n  %.0f%% busy. Measure again when it is "
                "quiet.\n",
                100 * CPU_SHARE_LIMITED);
    fprintf(out,
            "\n  no difference: the 95%% intervals overlap, the difference is below the spread "
            "between starts, or the ratio is 1.00.\n"
            "  (ratio): no verdict, because one of the two has only one start, fewer than six "
            "iterations, or is not steady.\n");
}

static void print_times(const struct results *results, int *section, FILE *out)
{
    summary_heading(section, out, "One all-reduce: time (median of the slowest rank)");
    fprintf(out, "  %2s", "W");
    print_row_head(results, out);
    fprintf(out, "    1 server / ring  by theory  ring's efficiency\n");
    for (size_t i = 0; i < results->worker_count; i++) {
        const int workers = results->workers[i];
        const uint64_t bytes = results_focus(results, workers);
        const struct point *ps = results_column(results, COLUMN_PS1, workers, bytes);
        const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
        struct text verdict = text_verdict(ps, ring, 2);
        verdict.text[strcspn(verdict.text, " ")] =
            verdict.text[0] == 'n' ? ' ' : 0; /* omit the interval; the next table has it */
        fprintf(out, "  %2d", workers);
        print_row(results, workers, bytes, out);
        fprintf(out, " %18s %10s %18s\n", verdict.text,
                ps && ring ? text_ratio(ps->theory_us, ring->theory_us).text : "-",
                ring ? text_percent(ring->efficiency).text : "-");
    }
    print_legend(results, out);
    if (isnan(results->link_least))
        return;
    fprintf(
        out,
        "\n  MPI_Allreduce: the fastest of its algorithms. Efficiency: the shortest possible time "
        "of any\n");
    if (results->probed > 0)
        fprintf(out, "  all-reduce among the workers / the time taken. The link rate is what TCP "
                     "streams reached in the same runs.\n  It is a measurement, too, so a "
                     "little over 100%% is possible.\n");
    else
        fprintf(out,
                "  all-reduce among the workers on these links / the time taken; TCP's headers "
                "leave about 96%%.\n");
}

static int by_time(const void *a, const void *b)
{
    const struct point *one = *(const struct point *const *)a;
    const struct point *two = *(const struct point *const *)b;
    return (one->time.median_us > two->time.median_us) -
           (one->time.median_us < two->time.median_us);
}

/* Prints every configuration with the most workers, the fastest first. */
static void print_all(const struct results *results, int *section, FILE *out)
{
    const int workers = results->workers[results->worker_count - 1];
    const uint64_t bytes = results_focus(results, workers);
    const struct point *ring = results_column(results, COLUMN_RING, workers, bytes);
    const struct point **list = malloc((results->point_count + 1) * sizeof *list);
    size_t count = 0;
    for (size_t p = 0; list && p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (point->part == PART_PLAIN && point->workers == workers && point->bytes == bytes &&
            judge_has_time(point->time.state))
            list[count++] = point;
    }
    if (count >= 2) {
        qsort(list, count, sizeof *list, by_time);
        summary_heading(section, out, "All configurations, %s, %s, the least median first",
                        text_counted(workers, "worker").text, text_size((double)bytes).text);
        fprintf(out, "                                starts      time      95%% interval   by "
                     "theory  / ring "
                     "                efficiency  machines  a machine\n");
    }
    for (size_t i = 0; count >= 2 && i < count; i++) {
        const struct point *point = list[i];
        fprintf(out, "  %-28s %7d %9s %17s %11s  %-20s %12s %9d %10s\n", point->name,
                point->time.starts, text_point(point).text, text_interval(&point->time).text,
                text_time(point->theory_us).text,
                point == ring ? "" : text_verdict(point, ring, 2).text,
                text_percent(point->efficiency).text, point->machines,
                text_percent(point->efficiency * point->workers / point->machines).text);
    }
    if (count >= 2)
        fprintf(out, "\n  a machine: efficiency x W / machines, because dedicated servers need "
                     "machines, too.\n"
                     "  The interval covers starts as well as iterations.\n");
    free(list);
}

/* -------- bytes ------------------------------------------------------------------------------- */

static struct text both(const struct point *point, bool server)
{
    struct text text = {"- | -"};
    if (point)
        snprintf(text.text, sizeof text.text, "%.30s | %.30s",
                 text_count(server ? point->server_sent : point->worker_sent).text,
                 text_count(server ? point->server_theory : point->worker_theory).text);
    return text;
}

static void print_bytes(const struct results *results, int *section, FILE *out)
{
    size_t differ = 0, known = 0;
    summary_heading(section, out,
                    "The same all-reduce: bytes sent by one node, counted | by theory");
    fprintf(out,
            "  workers             ring, a worker          1 server: a worker         1 server: "
            "the server\n");
    for (size_t i = 0; i < results->worker_count; i++) {
        const int workers = results->workers[i];
        const uint64_t bytes = results_focus(results, workers);
        const struct point *ps = results_column(results, COLUMN_PS1, workers, bytes);
        fprintf(out, "  %7d %26s  %26s  %27s\n", workers,
                both(results_column(results, COLUMN_RING, workers, bytes), false).text,
                both(ps, false).text, both(ps, true).text);
    }
    for (size_t r = 0; r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (row->part > PART_SLOTS)
            continue;
        known += row->worker_theory > 0;
        differ += row->worker_theory > 0 && row->worker_sent != row->worker_theory;
        differ += row->server_theory > 0 && row->server_sent != row->server_theory;
    }
    if (differ > 0)
        fprintf(out, "\n  %s over all sizes %s from theory.\n",
                text_counted((double)differ, "count").text, differ == 1 ? "differs" : "differ");
    else if (known > 0)
        fprintf(out,
                "\n  Over all sizes and configurations, every count equals theory to the byte.\n");
}

/* -------- by size ----------------------------------------------------------------------------- */

static size_t sizes_at(const struct results *results, int workers)
{
    size_t count = 0;
    for (size_t p = 0; p < results->point_count; p++)
        count += results->points[p].part == PART_PLAIN && results->points[p].workers == workers &&
                 strcmp(results->points[p].who, "ring") == 0;
    return count;
}

static void print_sizes(const struct results *results, int *section, FILE *out)
{
    int workers = results->workers[results->worker_count - 1];
    for (size_t i = results->worker_count; i > 0; i--) {
        if (sizes_at(results, results->workers[i - 1]) > sizes_at(results, workers))
            workers = results->workers[i - 1];
    }
    summary_heading(section, out, "Time by size, %s", text_counted(workers, "worker").text);
    fprintf(out, " ");
    print_row_head(results, out);
    fprintf(out, "   (algorithm)    1 server / ring\n");
    for (size_t s = 0; s < results->size_count; s++) {
        const uint64_t bytes = results->sizes[s];
        const struct point *mpi = results_column(results, COLUMN_MPI, workers, bytes);
        bool any = mpi != NULL;
        for (int c = 0; c < COLUMNS; c++)
            any = any || results_column(results, (enum column)c, workers, bytes);
        if (!any)
            continue;
        fprintf(out, " ");
        print_row(results, workers, bytes, out);
        fprintf(out, " %13s   %s\n", mpi ? mpi->who + strlen("mpi ") : "",
                text_verdict(results_column(results, COLUMN_PS1, workers, bytes),
                             results_column(results, COLUMN_RING, workers, bytes), 2)
                    .text);
    }
}

/* -------- winners ----------------------------------------------------------------------------- */

/* A way within this share of the fastest is as good. */
static const double as_good = 0.03;

/* The ways of one number of workers and one size that were measured and have a theory. */
struct cell {
    const struct point *fastest, *named; /* named: the fastest by theory */
    size_t ways;
};

static bool is_way(const struct point *point, int workers, uint64_t bytes)
{
    return point->part == PART_PLAIN && point->workers == workers && point->bytes == bytes &&
           judge_has_time(point->time.state) && point->theory_us > 0;
}

static struct cell cell_of(const struct results *results, int workers, uint64_t bytes)
{
    struct cell cell = {0};
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (!is_way(point, workers, bytes))
            continue;
        if (!cell.fastest || point->time.median_us < cell.fastest->time.median_us)
            cell.fastest = point;
        if (!cell.named || point->theory_us < cell.named->theory_us)
            cell.named = point;
        cell.ways++;
    }
    return cell;
}

/* Prints the fastest way and all without a difference from it. In parentheses: some way has no
 * verdict compared with it. */
static void print_fastest(const struct results *results, const struct cell *cell, FILE *out)
{
    const struct point *fastest = cell->fastest;
    bool known = true;
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        known = known && (!is_way(point, fastest->workers, fastest->bytes) || point == fastest ||
                          answer_compare(point, fastest).verdict != VERDICT_NONE);
    }
    fprintf(out, "   W=%d: %s%s", fastest->workers, known ? "" : "(", fastest->name);
    for (size_t p = 0; p < results->point_count; p++) {
        const struct point *point = &results->points[p];
        if (is_way(point, fastest->workers, fastest->bytes) && point != fastest &&
            answer_compare(point, fastest).verdict == VERDICT_SAME)
            fprintf(out, ", %s", point->name);
    }
    fprintf(out, "%s", known ? "" : ")");
}

static double lost(const struct cell *cell)
{
    return cell->named->time.median_us / cell->fastest->time.median_us - 1;
}

/* Prints the fastest way by size and workers, and how often theory names it. */
static void print_winners(const struct results *results, int *section, FILE *out)
{
    size_t count = 0, good = 0;
    double worst = 0;
    if (isnan(results->link_least)) /* without links there is no theory */
        return;
    for (size_t s = 0; s < results->size_count; s++) {
        bool begun = false;
        for (size_t w = 0; w < results->worker_count; w++) {
            const struct cell cell = cell_of(results, results->workers[w], results->sizes[s]);
            if (cell.ways < 2)
                continue;
            if (count++ == 0)
                summary_heading(section, out, "The fastest way, by message and workers W");
            if (!begun)
                fprintf(out, "  %8s", text_size((double)results->sizes[s]).text);
            begun = true;
            print_fastest(results, &cell, out);
            good += lost(&cell) <= as_good;
            worst = fmax(worst, lost(&cell));
            if (lost(&cell) > as_good)
                fprintf(out, " (theory: %s, %.0f%% slower)", cell.named->name, 100 * lost(&cell));
        }
        if (begun)
            fprintf(out, "\n");
    }
    if (count > 0)
        fprintf(out,
                "\n  Several names: no difference between the first and the others. In "
                "parentheses: some way\n  has no verdict against the first, because one of the two "
                "has one start, is not steady, or has fewer than six "
                "iterations.\n  Of the ways measured, theory names the one with the least median, "
                "or one at most %.0f%% slower, "
                "in %zu of %zu cells; in the worst\n  cell its choice is %.0f%% slower. Theory "
                "leaves out the processors.\n",
                100 * as_good, good, count, 100 * worst);
}

/* -------- training ---------------------------------------------------------------------------- */

static const struct training *paced(const struct run *run, const char *who, int workers)
{
    return trainings_find(&run->trainings, TRAINING_PACED, who, workers);
}

/* Prints the cells of one number of workers: images/s, or with `limits` what limits each. */
static void print_trained(const struct run *run, int workers, bool limits, FILE *out)
{
    static const int widths[] = {10, 10, 13, 9, 14};
    char psw[32], inw[32];
    snprintf(psw, sizeof psw, "ps dedicated %d", workers);
    snprintf(inw, sizeof inw, "ps colocated %d", workers);
    const char *const names[] = {"ps dedicated 1", psw, inw, "ring", "mpi default"};
    fprintf(out, "  %7d", workers);
    for (int n = 0; n < 5; n++) {
        const struct training *training = paced(run, names[n], workers);
        const char *text = !training                     ? "-"
                           : limits && !*training->limit ? "-"
                           : limits                      ? training->limit
                                                         : NULL;
        fprintf(out, " %*s", widths[n], text ? text : text_count(training->images_per_s).text);
    }
}

static int next_workers(const struct run *run, int after)
{
    int next = 0;
    for (size_t t = 0; t < run->trainings.count; t++) {
        const struct training *training = &run->trainings.list[t];
        if (training->kind == TRAINING_PACED && training->workers > after &&
            (next == 0 || training->workers < next))
            next = training->workers;
    }
    return next;
}

static void print_throughput(const struct run *run, int *section, FILE *out)
{
    const struct training *any = NULL;
    bool limits = false;
    for (size_t t = 0; t < run->trainings.count; t++) {
        if (run->trainings.list[t].kind != TRAINING_PACED)
            continue;
        any = &run->trainings.list[t];
        limits = limits || *any->limit;
    }
    if (!any)
        return;
    const char *model = csv_table_field(&run->trainings.table, any->row, "model");
    summary_heading(section, out, "Training %s with %g ms of computation a step: images/s",
                    *model ? model : "keras-cnn", any->paced_ms);
    fprintf(out, "  workers %10s %10s %13s %9s %14s    if averaging were free\n",
            results_column_title(COLUMN_PS1), results_column_title(COLUMN_PSW),
            results_column_title(COLUMN_INW), results_column_title(COLUMN_RING),
            results_column_title(COLUMN_MPI));
    for (int w = next_workers(run, 0); w > 0; w = next_workers(run, w)) {
        print_trained(run, w, false, out);
        fprintf(out, " %25s\n", text_count(w * any->batch / any->paced_ms * 1e3).text);
    }
    if (limits) {
        fprintf(out, "\n  What limits each, as its run reports:\n");
        for (int w = next_workers(run, 0); w > 0; w = next_workers(run, w)) {
            print_trained(run, w, true, out);
            fprintf(out, "\n");
        }
    }
    fprintf(out,
            "\n  Computation is a timed wait here, so workers that share cores do not slow each "
            "other down.\n  The gradients have their real size and travel over the real "
            "links. One start each.\n");
    if (run->trainings.paced_left_out > 0)
        fprintf(out,
                "  Not shown: %s of another model, computation, transport, compression, network, "
                "synchronization,\n  straggler, batch or seed than the first in train.csv.\n",
                text_counted((double)run->trainings.paced_left_out, "training").text);
}

static void print_accuracy(const struct run *run, int *section, FILE *out)
{
    const struct csv_table *table = &run->trainings.table;
    size_t count = 0;
    for (size_t t = 0; t < run->trainings.count; t++) {
        const struct training *training = &run->trainings.list[t];
        if (training->kind != TRAINING_REAL)
            continue;
        if (count++ == 0)
            summary_heading(section, out, "Training for real: accuracy on the test images");
        fprintf(out, "  %-15s %s: %.2f%% after %s images of %s (test loss %.4f, %.0f s)\n",
                training_name(run, training).text, text_counted(training->workers, "worker").text,
                100 * training->accuracy, text_count(training->images).text,
                csv_table_field(table, training->row, "dataset"), training->loss,
                training->seconds);
    }
    const bool more = count > 2; /* than the pair that is compared */
    if (run->agreement == AGREEMENT_BITS && more)
        fprintf(out, "\n  Those with equal settings and known weights ended with the same weights, "
                     "bit for bit.\n");
    else if (run->agreement == AGREEMENT_BITS)
        fprintf(out,
                "\n  Both ended with the same weights, bit for bit (SHA-256 %.12s). With the "
                "same order of sums,\n  the topology changes only the time.\n",
                csv_table_field(table, run->one->row, "weights_sha256"));
    else if (run->agreement == AGREEMENT_ROUNDING && more)
        fprintf(
            out,
            "\n  The weights of %s and %s (%s) differ, as sums in different orders do. This run "
            "cannot show whether that is the only reason.\n",
            training_name(run, run->one).text, training_name(run, run->two).text,
            text_counted(run->one->workers, "worker").text);
    else if (run->agreement == AGREEMENT_ROUNDING)
        fprintf(out,
                "\n  Their weights differ, as sums in different orders do. This run cannot show "
                "whether that is the only reason.\n");
    else if (run->agreement == AGREEMENT_SETTINGS && more)
        fprintf(out, "\n  These trainings are not compared: no two have equal settings and known "
                     "weights.\n");
    else if (run->agreement == AGREEMENT_SETTINGS && !run->setting)
        fprintf(out, "\n  These trainings are not compared: not all of their settings are known to "
                     "be equal.\n");
    else if (run->agreement == AGREEMENT_SETTINGS)
        fprintf(out, "\n  These trainings are not compared: they differ in %s ('%s' and '%s').\n",
                run->setting, csv_table_field(table, run->one->row, run->setting),
                csv_table_field(table, run->two->row, run->setting));
}

/* -------- the whole --------------------------------------------------------------------------- */

void summary_print_tables(const struct run *run, FILE *out)
{
    const struct results *results = &run->results;
    const bool times = run->state != STATE_WRONG;
    int section = 0;
    if (results->worker_count > 0) {
        if (times) {
            print_times(results, &section, out);
            print_all(results, &section, out);
        }
        print_bytes(results, &section, out);
        if (times) {
            print_sizes(results, &section, out);
            print_winners(results, &section, out);
        }
    }
    if (times) {
        if (results->worker_count > 0)
            summary_print_processors(run, &section, out);
        summary_print_variants(run, &section, out);
        summary_print_overlap(run, &section, out);
        summary_print_slots(run, &section, out);
        summary_print_published(run, &section, out);
        summary_print_gpus(run, &section, out);
        summary_print_map(run, &section, out);
        print_throughput(run, &section, out);
        print_accuracy(run, &section, out);
    }
    summary_print_left_out(run, &section, out);
}

void summary_print(const struct run *run, FILE *out)
{
    if (run->has_results || run->has_trainings) {
        struct answer answer;
        answer_make(&answer, run);
        fprintf(out, "psring: parameter server against ring all-reduce\n");
        for (int i = 0; i < ANSWER_BRIEF_LINES && *answer.brief[i]; i++)
            fprintf(out, "  %s\n", answer.brief[i]);
        summary_print_head(run, out);
        if (*answer.lead) {
            fprintf(out, "\nThe answer\n\n");
            summary_print_answer(&answer, out);
        }
        summary_print_tables(run, out);
        fprintf(out, "\nAll numbers: bench.csv and train.csv; figures: *.svg and *.png\n");
    }
    if (run->has_consistency && run->state != STATE_WRONG)
        consistency_print(&run->consistency, run->provenance, out);
}

/* -------- what to measure again --------------------------------------------------------------- */

struct unsteady {
    const struct result_row *row;
    const struct point *point;
    int several; /* 1: the point has further starts */
};

/* First what the answer compares, with the most workers: the ring, the yardstick, then what has
 * several starts. */
static int by_weight(const void *a, const void *b)
{
    const struct unsteady *one = a, *two = b;
    if (one->row->part != two->row->part)
        return one->row->part == PART_PLAIN ? -1 : 1;
    if (one->row->workers != two->row->workers)
        return two->row->workers - one->row->workers;
    const int ring = strcmp(one->point->who, "ring") == 0;
    const int other = strcmp(two->point->who, "ring") == 0;
    if (ring != other)
        return other - ring;
    if (one->several != two->several)
        return two->several - one->several;
    return (one->row > two->row) - (one->row < two->row);
}

/* Prints the name in the plan of run_scaling.sh: "ps-dedicated-1+mpi". */
static void print_plan_name(const struct point *point, FILE *out)
{
    char name[128];
    snprintf(name, sizeof name, "%s", point->who);
    text_replace(name, ' ', '-');
    fprintf(out, "%s", name);
    for (const char *word = point->variant; *word;) {
        word += strncmp(word, "over ", 5) == 0 ? 5 : 0;
        fprintf(out, "+%.*s", (int)strcspn(word, ","), word);
        word += strcspn(word, ",");
        word += strspn(word, ", ");
    }
}

static int has_starts(const struct results *results, size_t point)
{
    size_t starts = 0;
    for (size_t r = 0; r < results->row_count; r++)
        starts += results->rows[r].point == point;
    return starts > 1;
}

void summary_print_unsteady(const struct run *run, FILE *out)
{
    const struct results *results = &run->results;
    struct unsteady *list = malloc((results->row_count + 1) * sizeof *list);
    size_t count = 0;
    for (size_t r = 0; list && r < results->row_count; r++) {
        const struct result_row *row = &results->rows[r];
        if (*row->unsteady && (row->part == PART_PLAIN || row->part == PART_VARIANT))
            list[count++] = (struct unsteady){row, &results->points[row->point],
                                              has_starts(results, row->point)};
    }
    if (count > 0)
        qsort(list, count, sizeof *list, by_weight);
    for (size_t l = 0; l < count; l++) {
        print_plan_name(list[l].point, out);
        fprintf(out, " %d %td %s\n", list[l].row->workers, list[l].row - results->rows + 2,
                list[l].row->unsteady);
    }
    free(list);
}
