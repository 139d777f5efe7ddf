/*
 * psring's manual page and its completion in bash, both made from the option table, so that they
 * name the options that there are: psring --manual and psring --completion print them, and the
 * build writes them to psring.1 and psring.bash.
 */
#ifndef PSRING_EXPERIMENTS_MANUAL_H
#define PSRING_EXPERIMENTS_MANUAL_H

#include <stddef.h>
#include <stdio.h>

#include "experiments/config/config.h"

struct manual_command {
    const char *name, *summary;
    enum config_command options; /* 0: it has arguments of its own, which its --help lists: */
    const char *own_options;     /* files and these words, with spaces between */
};

/* In roff, for man(1). */
void manual_print(FILE *out, const struct manual_command *commands, size_t count);

/* A script for bash to source: commands, their options, the words of a choice, files and folders.
 */
void manual_print_completion(FILE *out, const struct manual_command *commands, size_t count);

#endif
