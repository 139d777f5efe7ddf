/* A worker's options as text for the servers, and back. */
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "experiments/config/config_table.h"
#include "experiments/elastic/elastic.h"

struct lines {
    const struct config_table *table;
    unsigned run;
    int visited;
    char *text;
    size_t size, used;
};

static void add_line(void *context, const char *name, const char *value)
{
    struct lines *lines = context;
    const struct config_row *row = lines->table->rows[lines->visited++];
    bool flag = row->spec.type == OPTION_FLAG;
    if (config_is_free(name) || !(row->runs & lines->run) || !value[0] ||
        (flag && strcmp(value, "true") != 0))
        return;
    size_t left = lines->used < lines->size ? lines->size - lines->used : 0;
    lines->used += (size_t)snprintf(lines->text + lines->used, left, "--%s%s%s\n", name,
                                    flag ? "" : "=", flag ? "" : value);
}

bool elastic_options_write(const struct config *config, char *text, size_t size)
{
    struct config_table table;
    config_table_init(&table, config->command);
    struct lines lines = {.table = &table,
                          .run = config->train.paced ? CONFIG_RUN_PACED : CONFIG_RUN_REAL,
                          .text = text,
                          .size = size};
    text[0] = '\0';
    options_visit(&table.options, config, add_line, &lines);
    return lines.used < size;
}

static bool has_line(const char *lines, const char *line)
{
    size_t length = strlen(line);
    while (*lines && (strncmp(lines, line, length) != 0 || lines[length] != '\n'))
        lines += strcspn(lines, "\n") + 1;
    return *lines;
}

/* Fills `usual` with what an equal command without these options would have: the defaults, those of
 * the recipe, and what follows from other options. */
static enum status fill_usual(const struct config *config, struct config *usual)
{
    enum status status;
    static char name[] = "train";
    char *argv[] = {name, NULL};
    struct config_table table;
    bool done;
    config_table_init(&table, config->command);
    *usual = config_initial(config->command);
    TRY(options_parse(&table.options, 1, argv, usual, &done));
    usual->learning.recipe = config->learning.recipe;
    TRY(recipes_apply(&table, usual, &done));
    usual->learning.recipe = NULL; /* it must be given */
    usual->train.paced = config->train.paced;
    usual->servers = config->servers;
out:
    return status;
}

bool elastic_options_line(const struct config *config, char *text, size_t size)
{
    char own[ELASTIC_JOB_BYTES], left_out[ELASTIC_JOB_BYTES], *rest;
    struct config usual;
    struct line line = line_in(text, size);
    if (fill_usual(config, &usual) != STATUS_OK ||
        !elastic_options_write(config, own, sizeof own) ||
        !elastic_options_write(&usual, left_out, sizeof left_out))
        return false;
    for (char *option = strtok_r(own, "\n", &rest); option; option = strtok_r(NULL, "\n", &rest)) {
        if (!has_line(left_out, option))
            line_add(&line, "%s%s", line.used > 0 ? " " : "", option);
    }
    return line.used + 1 < size;
}

/* Whether an option decides which messages a server gets. --device and --share-gpu do not: a server
 * adds on the CPU, and its host may have no GPU. */
static bool concerns_servers(const char *line)
{
    static const char *const names[] = {
        "join",     "backend",       "transport",   "sync",      "reduce-order",
        "compress", "segment-bytes", "push-window", "link-rate", "error-feedback",
        "compute",  "model",         "bucket-mb",   "optimizer"};
    if (strncmp(line, "--", 2) != 0)
        return false;
    const char *name = line + 2;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 && name[length] == '=')
            return true;
    }
    return false;
}

enum status elastic_options_read(struct config *config, const struct config *serve, char *job)
{
    enum status status = STATUS_OK;
    static char name[] = "train";
    char *argv[CONFIG_OPTIONS_MAX + 2] = {name};
    int argc = 1;
    bool helped, cuda = false, shared = false;
    char *rest;
    for (char *line = strtok_r(job, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        cuda = cuda || strcmp(line, "--device=cuda") == 0;
        shared = shared || strcmp(line, "--share-gpu") == 0;
        if (argc <= CONFIG_OPTIONS_MAX && concerns_servers(line))
            argv[argc++] = line;
    }
    TRY(config_parse(CONFIG_TRAIN, argc, argv, config, &helped));
    if (!config->elastic.join)
        return FAIL(STATUS_USAGE, "the job of the first worker: found no --join, expected the "
                                  "list of its servers; start all from one build of psring");
    if (cuda)
        config->device = DEVICE_CUDA;
    config->share_gpu = shared; /* all ranks choose the workers' GPUs in the same way */
    config->elastic.checkpoint = serve->elastic.checkpoint;
    config->subnet = serve->subnet;
    config->timeout = serve->timeout;
    config->stall_warning = serve->stall_warning;
    config->startup_timeout = serve->startup_timeout;
    config->verbose = serve->verbose;
    log_set_level(config->verbose ? LOG_DEBUG : LOG_INFO);
out:
    return status;
}
