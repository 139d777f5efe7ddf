#include "experiments/report/report_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "experiments/report/page.h"
#include "experiments/report/run_data.h"
#include "experiments/report/words.h"

static const char help[] =
    "usage: psring report DIR\n"
    "Writes DIR/report.html, one page that needs no other file and no network, from what\n"
    "experiments/run_scaling.sh or run_consistency.sh has left in DIR: measurements beside "
    "theory,\n"
    "an animation of the recorded steps, a calculator, what was run on what. Each part is there\n"
    "if its file is: bench.csv, train.csv, consistency.csv, summary.txt, provenance.json, the\n"
    "figures of plots/draw.sh, trace-ring.json and trace-ps.json, model.json, predict.csv,\n"
    "simulate.csv.\n\n"
    "  -h, --help      Print this and exit.\n";

/* Sections that scripts fill are in the page if the data for them are. */
static enum status put_sections(struct page *page, const cJSON *data)
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
    return status;
}

static enum status write_report(const char *dir)
{
    enum status status;
    cJSON *data = NULL;
    struct page page = {0};
    char *path = run_data_path(dir, "report.html");
    TRY(path ? STATUS_OK : STATUS_NO_MEMORY);
    TRY(run_data_read(dir, &data));
    TRY(page_put_assets(&page));
    TRY(page_put_json(&page, data));
    TRY(put_sections(&page, data));
    TRY(words_put_summary(&page, dir));
    TRY(words_put_figures(&page, dir));
    TRY(words_put_provenance(&page, dir));
    TRY(page_write(&page, "Parameter server against ring all-reduce", "report.html", path));
    printf("%s\n", path);
out:
    page_free(&page);
    cJSON_Delete(data);
    free(path);
    return status;
}

enum status report_command(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return STATUS_OK;
    }
    if (argc != 2 || argv[1][0] == '-') {
        log_error(
            "psring report: expected one folder, which a run has left; see psring report --help");
        return STATUS_USAGE;
    }
    return write_report(argv[1]);
}
