#include "experiments/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "experiments/report/run.h"

static void put(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, " %.10g", value);
    else
        fprintf(out, " NaN");
}

static void put_point(FILE *out, const struct point *point)
{
    const struct measured *time = &point->time;
    const double efficiency_a_machine = point->efficiency * point->workers / point->machines;
    for (int s = 0; s < SERIES_MOST && point->series[s] > 0; s++) {
        fprintf(out, "%d %d %d %" PRIu64, point->series[s], s == 0, point->workers, point->bytes);
        const double values[] = {
            time->median_us / 1e3, point->theory_us / 1e3,  point->efficiency,
            efficiency_a_machine,  point->worker_sent,      point->worker_theory,
            point->server_sent,    point->server_theory,    time->low_us / 1e3,
            time->high_us / 1e3,   !results_is_sound(point)};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            put(out, values[v]);
        fprintf(out, "\n");
    }
}

static void put_seconds(FILE *out, int topology, int transport, const struct point *point)
{
    if (point && judge_has_time(point->time.state) && isfinite(point->cpu_s_per_gb))
        fprintf(out, "%d %d %d %" PRIu64 " %.10g\n", topology, transport, point->workers,
                point->bytes, point->cpu_s_per_gb);
}

static void put_processors(FILE *out, const struct results *results)
{
    static const char *const transports[] = {"zmq", "mpi", "tcp"};
    const int workers = results_compared_workers(results);
    for (size_t s = 0; s < results->size_count; s++) {
        const uint64_t bytes = results->sizes[s];
        for (int t = 0; t < 3; t++) {
            put_seconds(out, 1, t + 1,
                        results_over(results, COLUMN_PS1, transports[t], workers, bytes));
            put_seconds(out, 2, t + 1,
                        results_over(results, COLUMN_RING, transports[t], workers, bytes));
        }
        put_seconds(out, 3, 2, results_column(results, COLUMN_MPI, workers, bytes));
    }
}

/* Writes the paced trainings. Returns the last, for its constants, or NULL. */
static const struct training *put_trainings(FILE *out, const struct trainings *trainings)
{
    const struct training *last = NULL;
    for (size_t t = 0; t < trainings->count; t++) {
        const struct training *training = &trainings->list[t];
        if (training->kind != TRAINING_PACED || !(training->images_per_s > 0))
            continue;
        last = training;
        for (int s = 0; s < SERIES_MOST && training->series[s] > 0; s++)
            fprintf(out, "%d %d %d %.10g\n", training->series[s], s == 0, training->workers,
                    training->images_per_s);
    }
    return last;
}

static void put_names(FILE *out)
{
    fprintf(out, "array LABEL[%d]\n", SERIES_LAST);
    for (int series = 1; series <= SERIES_LAST; series++)
        fprintf(out, "LABEL[%d] = \"%s\"\n", series, results_series_name(series));
}

static bool end(FILE *file, const char *dir, const char *name)
{
    bool failed = ferror(file) != 0;
    failed = fclose(file) != 0 || failed;
    if (failed)
        log_error("%s/%s: cannot be written completely; make room, or choose another folder", dir,
                  name);
    return !failed;
}

/*
 * Writes these files into the folder `dir`:
 *
 *     points.txt      one all-reduce per line, in the order of COLUMNS in style.gp:
 *                     series own workers bytes time_ms theory_ms efficiency efficiency_a_machine
 *                     worker_sent worker_theory server_sent server_theory low_ms high_ms doubtful
 *     training.txt    one paced training per line: series own workers images_per_s
 *     processors.txt  one all-reduce per line: topology transport workers bytes cpu_s_per_gb
 *                     topology: 1 one dedicated server, 2 ring, 3 MPI_Allreduce
 *                     transport: 1 zmq, 2 mpi, 3 tcp
 *     facts.gp        constants of the trainings
 *     network.txt     name of the network
 *     names.gp        array LABEL: the name of each series
 *     modes.txt, consistency_facts.gp: only with consistency.csv
 *
 * Series are those of results_series. A configuration has one line per series, and `own` is 1 in
 * the first of them. NaN: unknown. A run whose state is WRONG has no line, and neither has a row
 * whose time must not be shown. STATUS_IO is logged.
 */
static enum status figures_write(const struct run *run, const char *dir)
{
    enum { POINTS, TRAINING, PROCESSORS, FACTS, NETWORK, NAMES, FILES };
    static const char *const names[FILES] = {"points.txt", "training.txt", "processors.txt",
                                             "facts.gp",   "network.txt",  "names.gp"};
    FILE *files[FILES] = {NULL};
    const struct training *last = NULL;
    bool good = true;
    for (int f = 0; f < FILES; f++) {
        files[f] = run_open(dir, names[f]);
        good = good && files[f];
    }
    if (good && run->state != STATE_WRONG) {
        for (size_t p = 0; p < run->results.point_count; p++) {
            if (results_is_drawn(&run->results, &run->results.points[p]))
                put_point(files[POINTS], &run->results.points[p]);
        }
        put_processors(files[PROCESSORS], &run->results);
        last = put_trainings(files[TRAINING], &run->trainings);
    }
    if (good) {
        const char *model = last ? csv_table_field(&run->trainings.table, last->row, "model") : "";
        model = *model ? model : "keras-cnn";
        const bool plain = strspn(model, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(model);
        fprintf(files[FACTS], "PACED_MS = %g; BATCH = %g; TRAINED = \"%s\"\n",
                last ? last->paced_ms : 0, last && isfinite(last->batch) ? last->batch : 0,
                plain ? model : ""); /* gnuplot executes what some characters begin */
        fprintf(files[NETWORK], "%s\n", run_network(run));
        put_names(files[NAMES]);
    }
    for (int f = 0; f < FILES; f++)
        good = (!files[f] || end(files[f], dir, names[f])) && good;
    if (good && run->has_consistency && run->state != STATE_WRONG)
        return consistency_write_figure(&run->consistency, dir);
    return good ? STATUS_OK : STATUS_IO;
}

/* -------- the summary ------------------------------------------------------------------------- */

static void put_paragraph(FILE *out, const char *text)
{
    fputs("<p>", out);
    page_put_text(out, text);
    fputs("</p>\n", out);
}

/* Inserts the text that `print` writes about the run. */
static enum status put_printed(struct page *page, const char *name, const struct run *run,
                               void (*print)(const struct run *run, FILE *out))
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (memory) {
        print(run, memory);
        fclose(memory);
    }
    enum status status = !text ? STATUS_NO_MEMORY : *text ? page_put(page, name, text) : STATUS_OK;
    free(text);
    return status;
}

/* The ring, one server, and the first configuration that was faster than the ring. */
static enum status put_claim(struct page *page, const struct answer *answer)
{
    FILE *out = page_begin(page, "claim");
    if (!out)
        return STATUS_NO_MEMORY;
    put_paragraph(out, answer->lead);
    if (answer->has_one_server)
        put_paragraph(out, answer->claims[0].text);
    for (size_t c = answer->has_one_server; c < answer->count; c++) {
        if (answer->claims[c].verdict == VERDICT_FASTER) {
            put_paragraph(out, answer->claims[c].text);
            break;
        }
    }
    put_paragraph(out, answer_names);
    return page_end(page);
}

static enum status put_answer(struct page *page, const struct answer *answer)
{
    FILE *out = page_begin(page, "answer");
    if (!out)
        return STATUS_NO_MEMORY;
    put_paragraph(out, answer->lead);
    fputs("<ul>\n", out);
    for (size_t c = 0; c < answer->count; c++) {
        fputs("<li>", out);
        page_put_text(out, answer->claims[c].text);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
    if (answer->note)
        put_paragraph(out, answer->note);
    return page_end(page);
}

static void print_consistency(const struct run *run, FILE *out)
{
    consistency_print(&run->consistency, run->provenance, out);
}

/*
 * Inserts the parts of the summary into the page. The head is "wrong" if the run's state is WRONG,
 * otherwise "head". "claim" has the sentences about the ring, one server, and the first
 * configuration faster than the ring. "answer" has the whole answer, "tables" the remaining
 * summary. Empty parts are not inserted.
 */
static enum status parts_put_summary(struct page *page, const struct run *run)
{
    enum status status = STATUS_OK;
    struct answer answer;
    if (run->has_results || run->has_trainings) {
        answer_make(&answer, run);
        TRY(put_printed(page, run->state == STATE_WRONG ? "wrong" : "head", run,
                        summary_print_head));
        if (*answer.lead) {
            TRY(put_claim(page, &answer));
            TRY(put_answer(page, &answer));
        }
        TRY(put_printed(page, "tables", run, summary_print_tables));
    } else {
        TRY(put_printed(page, "tables", run, print_consistency));
    }
out:
    return status;
}

/* -------- provenance.json --------------------------------------------------------------------- */

static void put_fact(FILE *out, const cJSON *fact)
{
    char *value = cJSON_IsString(fact) ? strdup(fact->valuestring) : cJSON_Print(fact);
    fputs("<dt>", out);
    page_put_text(out, fact->string);
    fputs("</dt><dd>", out);
    page_put_text(out, value ? value : "");
    fputs("</dd>\n", out);
    free(value);
}

/* Inserts provenance.json: "facts" has its texts and numbers, "provenance" the whole file. */
static enum status parts_put_provenance(struct page *page, const struct run *run)
{
    enum status status = STATUS_OK;
    FILE *out;
    const cJSON *fact;
    char *text = run->provenance ? run_data_text(run->dir, "provenance.json", NULL) : NULL;
    if (!text)
        return STATUS_OK;
    TRY((out = page_begin(page, "facts")) ? STATUS_OK : STATUS_NO_MEMORY);
    cJSON_ArrayForEach(fact, run->provenance)
    {
        if (cJSON_IsNumber(fact) || (cJSON_IsString(fact) && *fact->valuestring))
            put_fact(out, fact);
    }
    TRY(page_end(page));
    TRY(page_put(page, "provenance", text));
out:
    free(text);
    return status;
}

/* -------- figures ----------------------------------------------------------------------------- */

static const struct {
    const char *insert, *file, *alt; /* alternative text of the picture */
} figures[] = {
    {"figure time_vs_workers", "time_vs_workers.svg",
     "Time of one all-reduce by number of workers and topology, with lines of theory. The numbers "
     "are in table 1 below."},
    {"figure time_vs_size", "time_vs_size.svg",
     "Time of one all-reduce by message size. The numbers are in table 4 below."},
    {"figure efficiency_vs_workers", "efficiency_vs_workers.svg",
     "Efficiency of the workers' links and of all machines, by number of workers. The numbers are "
     "in table 2 below."},
    {"figure efficiency_vs_size", "efficiency_vs_size.svg", "Efficiency by message size."},
    {"figure bytes_per_node", "bytes_per_node.svg",
     "Payload that one node sends in one all-reduce, counted, and lines of theory. The numbers are "
     "in table 3 below."},
    {"figure cpu_vs_size", "cpu_vs_size.svg",
     "Processor time of all ranks per GB of messages, over each transport."},
    {"figure winner_map", "winner_map.svg",
     "The fastest way to average by number of workers, message size, distance, racks and machines "
     "for servers, as predicted. The numbers are in winner_map.csv."},
    {"figure throughput", "throughput.svg",
     "Images per second of paced training by number of workers. The numbers are in the table of "
     "training below."},
    {"figure consistency", "consistency.svg",
     "Images per second, and seconds to the target accuracy, of each kind of consistency, with "
     "and without a slow worker."},
};

static void put_base64(FILE *out, const unsigned char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);
        fputc(digits[three >> 18], out);
        fputc(digits[three >> 12 & 63], out);
        fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
        fputc(left > 2 ? digits[three & 63] : '=', out);
    }
}

/* Inserts the figures that gnuplot wrote to DIR as images within the page: "figure NAME". */
static enum status parts_put_figures(struct page *page, const char *dir)
{
    enum status status = STATUS_OK;
    for (size_t f = 0; status == STATUS_OK && f < sizeof figures / sizeof *figures; f++) {
        size_t length;
        char *text = run_data_text(dir, figures[f].file, &length);
        FILE *out = text ? page_begin(page, figures[f].insert) : NULL;
        if (out) {
            fputs("<img src=\"data:image/svg+xml;base64,", out);
            put_base64(out, (const unsigned char *)text, length);
            fputs("\" alt=\"", out);
            page_put_text(out, figures[f].alt);
            fputs("\">", out);
            status = page_end(page);
        } else if (text) {
            status = STATUS_NO_MEMORY;
        }
        free(text);
    }
    return status;
}

struct report_request {
    const char *dir, *figures; /* figures: target folder, or NULL */
    bool text, unsteady;
    run_replay *replay; /* not an option; may be NULL */
};

static const char summary[] =
    "Writes DIR/report.html, one page that needs no other file and no network, from the results\n"
    "of experiments/run_scaling.sh or run_consistency.sh in DIR: measurements and theory, an\n"
    "animation of the recorded steps, a calculator, and the provenance. Each part is included if\n"
    "its file exists: bench.csv, train.csv, consistency.csv, provenance.json, the figures of\n"
    "plots/draw.sh, trace-ring.json and trace-ps.json, model.json, predict.csv, winner_map.csv,\n"
    "simulate.csv.\n"
    "Rows of bench.csv that differ only in their measurements are starts of one configuration.\n"
    "--segment-bytes, --push-window and --reduce-order have no column, so use a folder for each.\n"
    "Exits with 1 if sums are wrong. The page then starts with that and shows no times.";

#define FIELD(name) .offset = offsetof(struct report_request, name)
static const struct option_spec specs[] = {
    {"text", 0, OPTION_FLAG, FIELD(text),
     .help = "Print summary.txt instead: the same rows as sentences and tables."},
    {"unsteady", 0, OPTION_FLAG, FIELD(unsteady),
     .help = "Print the disturbed measurements instead, one per line: CONFIGURATION WORKERS LINE "
             "REASON. LINE is that of bench.csv, from 1."},
    {"figures", 0, OPTION_STRING, FIELD(figures), .metavar = "TO",
     .help = "Write the input files of plots/draw.sh into the folder TO instead."},
    {.name = NULL},
};

/* Inserts the sections that scripts fill, if their data exist. A WRONG run gets no calculator,
 * because its times could be mistaken for those of the run. */
static enum status put_sections(struct page *page, const struct run *run, const cJSON *data)
{
    static const char *const sections[] = {"bench", "train", "consistency", "predict", "simulate"};
    const cJSON *tables = cJSON_GetObjectItemCaseSensitive(data, "tables");
    enum status status = STATUS_OK;
    for (size_t s = 0; status == STATUS_OK && s < sizeof sections / sizeof *sections; s++) {
        if (cJSON_HasObjectItem(tables, sections[s]))
            status = page_put(page, sections[s], "");
    }
    if (status == STATUS_OK && cJSON_HasObjectItem(data, "replays"))
        status = page_put(page, "replays", "");
    if (status == STATUS_OK && run->state != STATE_WRONG)
        status = page_put(page, "times", "");
    return status;
}

/* Inserts the rows on which predictions rest: "basis". */
static enum status put_basis(struct page *page, const struct run *run)
{
    char text[256] = "";
    run_basis(run, text, sizeof text);
    return *text ? page_put(page, "basis", text) : STATUS_OK;
}

static enum status write_page(const struct run *run, run_replay *replay)
{
    enum status status;
    cJSON *data = NULL;
    struct page page = {0};
    char *path = run_data_path(run->dir, "report.html");
    TRY(path ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(run_data_make(run, replay, &data));
    TRY(page_put_assets(&page));
    TRY(page_put_json(&page, data));
    TRY(put_sections(&page, run, data));
    TRY(parts_put_summary(&page, run));
    if (run->state != STATE_WRONG) /* the folder may contain figures of an earlier program */
        TRY(parts_put_figures(&page, run->dir));
    TRY(parts_put_provenance(&page, run));
    TRY(put_basis(&page, run));
    TRY(page_write(&page, "Parameter server against ring all-reduce", "report.html", path));
    printf("%s\n", path);
out:
    page_free(&page);
    cJSON_Delete(data);
    free(path);
    return status;
}

static enum status report(const struct report_request *request)
{
    enum status status;
    struct run run;
    TRY(run_read(&run, request->dir));
    if (request->figures)
        TRY(figures_write(&run, request->figures));
    else if (request->text)
        summary_print(&run, stdout);
    else if (request->unsteady)
        summary_print_unsteady(&run, stdout);
    else
        TRY(write_page(&run, request->replay));
    if (run.state == STATE_WRONG && !request->figures && !request->unsteady) {
        log_error("%s: the results are WRONG; see the first lines of the summary", request->dir);
        status = STATUS_WRONG;
    }
out:
    run_free(&run);
    return status;
}

enum status report_command(int argc, char **argv, run_replay *replay)
{
    enum status status;
    bool helped;
    struct report_request request = {.replay = replay};
    const struct options options = {
        .command = "psring report",
        .summary = summary,
        .specs = specs,
        .operands = "DIR",
        .operands_error = "expected one folder, the results of a run",
        .found = &request.dir,
        .operand_count = 1,
    };
    TRY(options_parse(&options, argc, argv, &request, &helped));
    if (helped)
        return STATUS_OK;
    if (request.text + request.unsteady + (request.figures != NULL) > 1)
        return FAIL(STATUS_USAGE,
                    "psring report: found several of --text, --unsteady and --figures; give one");
    TRY(report(&request));
out:
    return status;
}
