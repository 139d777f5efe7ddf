/* For tests of the options: a command line in one string, which must be accepted or refused. */
#ifndef PSRING_TESTS_LIB_CONFIG_LIB_H
#define PSRING_TESTS_LIB_CONFIG_LIB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "experiments/config/config.h"
#include "tests/lib/capture.h"

/* The .init of a suite: removes the caller's environment variables from the tests. */
static inline void config_clean_environment(void)
{
    static const char *const names[] = {
        "PSRING_DATA",  "PSRING_NETWORK",     "PSRING_LINK_BITS",
        "PSRING_RACKS", "PSRING_BIND_SUBNET", "OMPI_COMM_WORLD_RANK",
        "PMIX_RANK",    "PMI_RANK",           "SLURM_PROCID",
        "RANK",         "WORLD_SIZE",         "MASTER_ADDR",
        "MASTER_PORT",  "LOCAL_RANK",         "TORCHELASTIC_USE_AGENT_STORE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

/* Parses the words of `line`. The config borrows from it, so it is valid until the next call. */
static inline enum status parse(enum config_command command, struct config *config,
                                const char *line)
{
    static char words[512];
    char *argv[64] = {words};
    int argc = 1;
    bool helped = false;
    snprintf(words, sizeof words, "command %s", line);
    strtok(words, " ");
    for (char *word; (word = strtok(NULL, " "));)
        argv[argc++] = word;
    argv[argc] = NULL;
    return config_parse(command, argc, argv, config, &helped);
}

static inline void accept(enum config_command command, struct config *config, const char *line)
{
    cr_assert(parse(command, config, line) == STATUS_OK, "refused: %s", line);
}

/* Expects a usage error, reported in one line that contains `words`. */
static inline void refuse(enum config_command command, const char *line, const char *words)
{
    struct config config;
    assert_refused(parse(command, &config, line), STATUS_USAGE, words);
}

#endif
