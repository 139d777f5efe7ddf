#include "experiments/report/report_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "experiments/report/figures.h"
#include "experiments/report/page.h"
#include "experiments/report/parts.h"
#include "experiments/report/run.h"
#include "experiments/report/run_data.h"
#include "experiments/report/summary.h"

struct report_request {
    const char *dir, *figures; /* NULL: no figures are asked for */
    bool text, unsteady;
};

static const char summary[] =
    "Writes DIR/report.html, one page that needs no other file and no network, from what\n"
    "experiments/run_scaling.sh or run_consistency.sh has left in DIR: measurements next to\n"
    "theory, an animation of the recorded steps, a calculator, what was run on what. Each part is\n"
    "there if its file is: bench.csv, train.csv, consistency.csv, provenance.json, the figures of\n"
    "plots/draw.sh, trace-ring.json and trace-ps.json, model.json, predict.csv, simulate.csv.\n"
    "Rows of bench.csv that differ in nothing but what was measured are starts of one\n"
    "configuration. Ends with 1 if sums are wrong. The page then opens with that and shows no\n"
    "times.";

#define FIELD(name) .offset = offsetof(struct report_request, name)
static const struct option_spec specs[] = {
    {"text", 0, OPTION_FLAG, FIELD(text),
     .help = "Print summary.txt instead: the same rows as sentences and tables."},
    {"unsteady", 0, OPTION_FLAG, FIELD(unsteady),
     .help = "Print instead which measurements something disturbed, a line each: CONFIGURATION "
             "WORKERS START REASON."},
    {"figures", 0, OPTION_STRING, FIELD(figures), .metavar = "TO",
     .help = "Write instead the files that plots/draw.sh draws from, into the folder TO."},
    {.name = NULL},
};

/* Sections that scripts fill are in the page if the data for them are; the calculator's times would
 * pass for the run's where that is WRONG. */
static enum status put_sections(struct page *page, const struct run *run, const cJSON *data)
{
    static const char *const sections[] = {"bench", "train", "consistency", "predict", "simulate"};
    const cJSON *tables = cJSON_GetObjectItemCaseSensitive(data, "tables");
    enum status status = STATUS_OK;
    for (size_t s = 0; status == STATUS_OK && s < sizeof sections / sizeof *sections; s++) {
        if (cJSON_HasObjectItem(tables, sections[s]))
            status = page_begin(page, sections[s]) ? page_end(page) : STATUS_NO_MEMORY;
    }
    if (status == STATUS_OK && cJSON_HasObjectItem(data, "replays"))
        status = page_begin(page, "replays") ? page_end(page) : STATUS_NO_MEMORY;
    if (status == STATUS_OK && run->state != STATE_WRONG)
        status = page_begin(page, "times") ? page_end(page) : STATUS_NO_MEMORY;
    return status;
}

static enum status write_page(const struct run *run)
{
    enum status status;
    cJSON *data = NULL;
    struct page page = {0};
    char *path = run_data_path(run->dir, "report.html");
    TRY(path ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(run_data_make(run, &data));
    TRY(page_put_assets(&page));
    TRY(page_put_json(&page, data));
    TRY(put_sections(&page, run, data));
    TRY(parts_put_summary(&page, run));
    if (run->state != STATE_WRONG) /* figures of an earlier program may lie there */
        TRY(parts_put_figures(&page, run->dir));
    TRY(parts_put_provenance(&page, run));
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
        TRY(write_page(&run));
    if (run.state == STATE_WRONG && !request->figures && !request->unsteady) {
        log_error("%s: the results are WRONG; the first lines of the summary say what",
                  request->dir);
        status = STATUS_WRONG;
    }
out:
    run_free(&run);
    return status;
}

enum status report_command(int argc, char **argv)
{
    enum status status;
    bool helped;
    struct report_request request = {0};
    const struct options options = {
        .command = "psring report",
        .summary = summary,
        .specs = specs,
        .operands = "DIR",
        .operands_error = "expected one folder, which a run has left",
        .found = &request.dir,
        .operand_count = 1,
    };
    TRY(options_parse(&options, argc, argv, &request, &helped));
    if (helped)
        return STATUS_OK;
    if (request.text + request.unsteady + (request.figures != NULL) > 1) {
        log_error("psring report: found several of --text, --unsteady and --figures; give one");
        return STATUS_USAGE;
    }
    TRY(report(&request));
out:
    return status;
}
