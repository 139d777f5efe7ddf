/*
 * Input: a digit from 0 to 4 that selects a command, then the words of a command line, each ended
 * by a zero byte. Or the digit 5, then the lines of an elastic job.
 *
 * - A command line is accepted, or refused with STATUS_USAGE or STATUS_UNSUPPORTED.
 * - The given options as text (options_visit) give the same values again.
 * - A server accepts the job of every accepted worker, and takes over the worker's options.
 * - An accepted job has a backend with servers. Each server has an address that the members can
 *   parse. A job sets no option outside the list: above all, no file.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "common/net/address.h"
#include "experiments/config/config.h"
#include "experiments/config/config_table.h"
#include "experiments/elastic/elastic.h"

enum { WORDS_MOST = 64, JOB_BYTES = 4000, SERVER_BYTES = 300 };

/* -------- options as text --------------------------------------------------------------------- */

struct copy {
    struct config_table *from, *to;
    struct config config; /* what `to` has parsed */
    int visited;
};

static void set(void *context, const char *name, const char *value)
{
    struct copy *copy = context;
    if (copy->from->given[copy->visited++])
        CHECK(options_set(&copy->to->options, name, value, &copy->config) == STATUS_OK);
}

static bool same_value(const struct option_spec *spec, const void *one, const void *two)
{
    one = (const char *)one + spec->offset;
    two = (const char *)two + spec->offset;
    switch (spec->type) {
    case OPTION_FLAG:
        return *(const bool *)one == *(const bool *)two;
    case OPTION_INT:
    case OPTION_SIZE:
        return memcmp(one, two, sizeof(int64_t)) == 0;
    case OPTION_DOUBLE:
    case OPTION_RATE:
        return !(*(const double *)one < *(const double *)two) &&
               !(*(const double *)one > *(const double *)two);
    case OPTION_STRING:
        return strcmp(*(const char *const *)one, *(const char *const *)two) == 0;
    case OPTION_CHOICE:
        return *(const int *)one == *(const int *)two;
    }
    return false;
}

static void check_values(enum config_command command, int argc, char **argv)
{
    struct config_table from, to;
    struct config config = {.command = command};
    struct copy copy = {.from = &from, .to = &to, .config = config};
    bool helped;
    config_table_init(&from, command);
    config_table_init(&to, command);
    CHECK(options_parse(&from.options, argc, argv, &config, &helped) == STATUS_OK);
    if (helped)
        return;
    CHECK(options_parse(&to.options, 1, argv, &copy.config, &helped) == STATUS_OK);
    options_visit(&from.options, &config, set, &copy);
    for (int i = 0; from.specs[i].name; i++)
        CHECK(!from.given[i] || same_value(&from.specs[i], &config, &copy.config));
}

/* -------- elastic jobs ------------------------------------------------------------------------ */

/* Every server has an address that the members accept. */
static void check_servers(const struct config *config)
{
    char text[SERVER_BYTES], host[ADDRESS_HOST_BYTES];
    int port;
    CHECK(config->servers >= 1);
    for (int i = 0; i < config->servers; i++) {
        CHECK(config_server(config, i, text, sizeof text));
        CHECK(address_parse(text, host, sizeof host, &port) && port > 0);
    }
    CHECK(!config_server(config, (int)config->servers, text, sizeof text));
}

static enum status read_job(const struct config *serve, struct config *config, char *job)
{
    enum status status = elastic_options_read(config, serve, job);
    CHECK(status == STATUS_OK || status == STATUS_USAGE || status == STATUS_UNSUPPORTED);
    if (status != STATUS_OK)
        return status;
    CHECK(config->command == CONFIG_TRAIN && config->elastic.join);
    CHECK(config_backend(config)->uses_servers);
    check_servers(config);
    CHECK(!config->json && !config->csv && !config->data && !config->train.metrics);
    CHECK(!config->train.checkpoint && !config->train.timeline && !config->learning.recipe);
    CHECK(!config->cost_model && !config->rendezvous && !config->token);
    CHECK(config->verbose == serve->verbose && !(config->timeout < serve->timeout) &&
          !(config->timeout > serve->timeout));
    return status;
}

static void check_job_of(const struct config *worker, const struct config *serve)
{
    struct config server;
    char job[JOB_BYTES];
    if (!elastic_options_write(worker, job, sizeof job))
        return;
    CHECK(read_job(serve, &server, job) == STATUS_OK);
    CHECK(strcmp(worker->elastic.join, server.elastic.join) == 0);
    CHECK(worker->backend == server.backend && worker->transport == server.transport);
    CHECK(worker->servers == server.servers && worker->model == server.model);
    CHECK(worker->reduce_order == server.reduce_order && worker->compress == server.compress);
    CHECK(worker->segment_bytes == server.segment_bytes);
    CHECK(worker->push_window == server.push_window);
    CHECK(worker->error_feedback == server.error_feedback);
    CHECK(worker->learning.optimizer == server.learning.optimizer);
    CHECK(worker->device == server.device && worker->share_gpu == server.share_gpu);
    CHECK(worker->train.paced == server.train.paced);
    CHECK(memcmp(&worker->link_rate, &server.link_rate, sizeof(double)) == 0);
    CHECK(memcmp(&worker->bucket_mb, &server.bucket_mb, sizeof(double)) == 0);
    CHECK(memcmp(&worker->train.paced_ms, &server.train.paced_ms, sizeof(double)) == 0);
}

/* -------- the input --------------------------------------------------------------------------- */

static void check_command_line(enum config_command command, const struct config *serve, int argc,
                               char **argv)
{
    struct config config;
    bool helped;
    enum status status = config_parse(command, argc, argv, &config, &helped);
    CHECK(status == STATUS_OK || status == STATUS_USAGE || status == STATUS_UNSUPPORTED);
    bool joins = command == CONFIG_TRAIN && config.elastic.join;
    if (status == STATUS_OK && !helped && joins && !config.elastic.survives) {
        check_servers(&config);
        check_job_of(&config, serve);
    }
    if (status == STATUS_OK)
        check_values(command, argc, argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum config_command commands[] = {CONFIG_TRAIN, CONFIG_BENCH, CONFIG_INFO,
                                                   CONFIG_SERVE, CONFIG_PREDICT};
    enum { COMMANDS = sizeof commands / sizeof *commands };
    char name[] = "fuzz", *argv[WORDS_MOST + 2] = {name};
    struct config serve, config;
    bool helped;
    int argc = 1;
    if (size == 0)
        return 0;
    fuzz_quiet();
    clearenv(); /* it has defaults of options */
    CHECK(config_parse(CONFIG_SERVE, 1, argv, &serve, &helped) == STATUS_OK);
    char *text = calloc(size, 1); /* a zero byte follows the input */
    CHECK(text);
    memcpy(text, data + 1, size - 1);
    int selected = data[0] % (COMMANDS + 1);
    if (selected == COMMANDS) {
        read_job(&serve, &config, text);
    } else {
        for (size_t at = 0; at < size - 1 && argc <= WORDS_MOST; at += strlen(text + at) + 1)
            argv[argc++] = text + at;
        check_command_line(commands[selected], &serve, argc, argv);
    }
    free(text);
    return 0;
}
