#include "experiments/bench_table.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CELL = 24 };

/* Bytes, or "-" where they are not known. */
static const char *bytes_cell(char *cell, bool known, uint64_t bytes)
{
    if (known)
        snprintf(cell, CELL, "%" PRIu64, bytes);
    else
        snprintf(cell, CELL, "-");
    return cell;
}

static const char *time_cell(char *cell, double time_us)
{
    if (isfinite(time_us))
        snprintf(cell, CELL, "%.1f", time_us);
    else
        snprintf(cell, CELL, "-");
    return cell;
}

static const char *percent_cell(char *cell, double share)
{
    if (isfinite(share))
        snprintf(cell, CELL, "%.1f%%", 100 * share);
    else
        snprintf(cell, CELL, "-");
    return cell;
}

void bench_table_head(FILE *out, const struct bench_row *row)
{
    fprintf(out, "# psring bench: %s", row->backend);
    if (row->servers > 0)
        fprintf(out, " with %d %s server%s", row->servers, row->placement,
                row->servers == 1 ? "" : "s");
    fprintf(out, ", transport %s, %d worker%s, network %s", row->transport, row->workers,
            row->workers == 1 ? "" : "s", row->network);
    if (row->link_bytes_per_s > 0)
        fprintf(out, " at %.6g Mbit/s a link", row->link_bytes_per_s * 8e-6);
    fprintf(out, ", %" PRIu64 " iterations after %" PRIu64 "\n", row->iters, row->warmup);
    if (row->workers == 1 && strcmp(row->placement, "dedicated") != 0)
        fprintf(out, "# one worker: nothing is sent; start with mpirun -n 4\n");
    if (strcmp(row->network, "loopback") == 0)
        fprintf(out, "# network=loopback: no per-node limit, topology effects do not show\n");
    fprintf(out,
            "# time: the slowest worker's; in theory: of its bytes alone, on this link. busbw = "
            "algbw x 2(W-1)/W.\n"
            "# of bound: the time of the fastest possible all-reduce on this link over the median. "
            "sent: payload per\n# operation, the most of any rank.\n#\n");
    static const char *const heads[2][12] = {
        {"", "", "median", "p95", "in theory", "algbw", "busbw", "of", "worker sent", "in theory",
         "server sent", "in theory"},
        {"bytes", "floats", "us", "us", "us", "MB/s", "MB/s", "bound", "bytes", "bytes", "bytes",
         "bytes"},
    };
    for (int line = 0; line < 2; line++) {
        const char *const *head = heads[line];
        fprintf(out, "#%11s %11s %12s %12s %12s %9s %9s %8s %12s %12s %12s %12s%s\n", head[0],
                head[1], head[2], head[3], head[4], head[5], head[6], head[7], head[8], head[9],
                head[10], head[11], line ? "   wrong" : "");
    }
}

void bench_table_line(FILE *out, const struct bench_row *row)
{
    char theory[CELL], bound[CELL], worker[CELL], theory_worker[CELL], server[CELL],
        theory_server[CELL];
    bool known = row->bytes_known;
    fprintf(out,
            " %11" PRIu64 " %11" PRIu64 " %12.1f %12.1f %12s %9.2f %9.2f %8s %12s %12s %12s %12s "
            "%7" PRIu64 "\n",
            row->bytes, row->bytes / sizeof(float), row->time_us.median, row->time_us.p95,
            time_cell(theory, row->theory_time_us), bench_row_algbw(row) * 1e-6,
            bench_row_busbw(row) * 1e-6, percent_cell(bound, bench_row_efficiency(row)),
            bytes_cell(worker, known, row->worker.sent_bytes),
            bytes_cell(theory_worker, known, row->theory_worker.sent_bytes),
            bytes_cell(server, known, row->server.sent_bytes),
            bytes_cell(theory_server, known, row->theory_server.sent_bytes), row->wrong);
}

enum status bench_verdict_status(const struct bench_verdict *verdict)
{
    return verdict->wrong == 0 && verdict->rows_differ == 0 ? STATUS_OK : STATUS_PROTOCOL;
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
