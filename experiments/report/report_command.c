#include "experiments/report/report_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "experiments/report/figures.h"
#include "experiments/report/page.h"
#include "experiments/report/parts.h"
#include "experiments/report/run.h"
#include "experiments/report/run_data.h"
#include "experiments/report/summary.h"

static const char help[] =
    "usage: psring report [OPTION] DIR\n"
    "Writes DIR/report.html, one page that needs no other file and no network, from what\n"
    "experiments/run_scaling.sh or run_consistency.sh has left in DIR: measurements next to\n"
    "theory, an animation of the recorded steps, a calculator, what was run on what. Each part is\n"
    "there if its file is: bench.csv, train.csv, consistency.csv, provenance.json, the figures of\n"
    "plots/draw.sh, trace-ring.json and trace-ps.json, model.json, predict.csv, simulate.csv.\n"
    "Rows of bench.csv that differ in nothing but what was measured are starts of one\n"
    "configuration. Ends with 1 if sums are wrong. The page then opens with that and shows no\n"
    "times.\n\n"
    "  --text          Print summary.txt instead: the same rows as sentences and tables.\n"
    "  --unsteady      Print instead which measurements something disturbed, a line each:\n"
    "                  CONFIGURATION WORKERS START REASON.\n"
    "  --figures TO    Write instead the files that plots/draw.sh draws from, into the folder TO.\n"
    "  -h, --help      Print this and exit.\n";

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

static enum status report(const char *dir, const char *option, const char *to)
{
    enum status status;
    struct run run;
    TRY(run_read(&run, dir));
    if (!option)
        TRY(write_page(&run));
    else if (strcmp(option, "--figures") == 0)
        TRY(figures_write(&run, to));
    else if (strcmp(option, "--text") == 0)
        summary_print(&run, stdout);
    else
        summary_print_unsteady(&run, stdout);
    if (run.state == STATE_WRONG && (!option || strcmp(option, "--text") == 0)) {
        log_error("%s: the results are WRONG; the first lines of the summary say what", dir);
        status = STATUS_WRONG;
    }
out:
    run_free(&run);
    return status;
}

enum status report_command(int argc, char **argv)
{
    const char *option = NULL, *to = NULL;
    int at = 1;
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return STATUS_OK;
    }
    if (at < argc && (strcmp(argv[at], "--text") == 0 || strcmp(argv[at], "--unsteady") == 0)) {
        option = argv[at++];
    } else if (at + 1 < argc && strcmp(argv[at], "--figures") == 0) {
        option = argv[at];
        to = argv[at + 1];
        at += 2;
    }
    if (argc != at + 1 || argv[at][0] == '-') {
        log_error(
            "psring report: expected one folder, which a run has left; see psring report --help");
        return STATUS_USAGE;
    }
    return report(argv[at], option, to);
}
