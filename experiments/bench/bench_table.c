#include "experiments/bench/bench_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "experiments/measure/cpu_share.h"

enum { CELL = 40 };

/* Writes what is known into `text`, else "-"; returns it. */
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

/* What a link carries, and how that is known. */
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

/* What is exchanged, and how long a step computes. */
static void print_model(FILE *out, const struct bench_row *row)
{
    fprintf(out,
            "# gradients of %s: %" PRIu64 " numbers in %zu tensors, %zu buckets; a step computes "
            "(waits) for %.6g ms,\n# of which %.6g are its backward pass, spread over the tensors "
            "by their operations for %s.\n# median: of averaging all buckets, while nothing is "
            "computed. exposed: what a step takes beyond computing;\n# hidden: the rest of the "
            "median.\n#\n",
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
                row->neighbours_apart, row->workers);
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
    if (strcmp(row->network, "loopback") == 0)
        fprintf(out, "# network=loopback: no per-node limit, topology effects do not show\n");
    fprintf(
        out,
        "# time: the slowest worker's; 95%%: interval of the median, from 6 iterations on; p95, "
        "p99: "
        "quantiles\n# of the iterations; in theory: of its bytes alone, on this link. busbw = "
        "algbw "
        "x 2(W-1)/W. of bound: the time\n# of the fastest possible all-reduce on this link over "
        "the "
        "median. sent: payload per operation, the most of any\n# rank. CPUs: their busy share; "
        "above %.0f%% the row ends in CPU-limited, and its time says little about the\n# network, "
        "or "
        "in busy with other work, where other processes are the reason.\n# CPU s per GB: processor "
        "seconds of all ranks, servers too, per 1e9 bytes of messages; a wait that spins is\n# in "
        "it, filling and checking are not.\n#\n",
        100 * CPU_SHARE_LIMITED);
    if (row->model.name)
        print_model(out, row);
    else if (row->overlap)
        fprintf(out,
                "# exposed: what the same all-reduce adds to a computation (a wait) as long as "
                "the median, beside which\n# it goes on; hidden: the rest of the median.\n#\n");
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
    if (row->model.name)
        fprintf(out,
                "# a step: %.1f ms computing + %.1f exposed = %.1f ms; scaling efficiency %s\n",
                row->compute_us_median * 1e-3, row->exposed_us_median * 1e-3,
                (row->compute_us_median + row->exposed_us_median) * 1e-3,
                percent_cell(bound, bench_row_scaling(row)));
}

void bench_verdict_require(struct bench_verdict *verdict, double efficiency,
                           const struct bench_row *row)
{
    double found = bench_row_efficiency(row);
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
                  "takes two workers, a size above 0, and a link whose rate is known: give --probe "
                  "on or --link-rate RATE",
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
