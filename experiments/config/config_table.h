/*
 * What the files of this folder share. The option table: every option of every command, with its
 * field in struct config, its default, its limits and its line of --help. The checks of what one
 * option's type and range cannot say. Recipes, and the manual page, which are made of the table.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_CONFIG_TABLE_H
#define PSRING_EXPERIMENTS_CONFIG_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "experiments/config/config.h"

enum { CONFIG_OPTIONS_MAX = 92, CONFIG_HELP_BYTES = 256 };

/* The words of --placement and --reduce-order, in the order of their enums; NULL ends them. */
extern const char *const config_placement_words[], *const config_reduce_order_words[];
/* The words of --nccl-algo, in the order of enum config_nccl_algo; NULL ends them. */
extern const char *const config_nccl_algo_words[];

struct config_row {
    unsigned runs; /* that obey the option: enum config_run, or-ed */
    /* What the run's backend must be able to do for the option to be obeyed: offsetof a bool of
     * struct backend, common/comm/backend.h; 0: nothing. */
    size_t ability;
    const char *neutral;     /* the value that asks such a backend for nothing; NULL: each does */
    struct option_spec spec; /* with a group alone: the heading of the rows that follow */
};

/* The options of one command, as options.h wants them. */
struct config_table {
    struct option_spec specs[CONFIG_OPTIONS_MAX + 1];
    bool given[CONFIG_OPTIONS_MAX]; /* by number in `specs`, as the next two */
    const struct config_row *rows[CONFIG_OPTIONS_MAX];
    char help[CONFIG_OPTIONS_MAX][CONFIG_HELP_BYTES]; /* of those that have an ability */
    struct options options; /* borrows from the rest: do not copy a table */
};

/* Whether argv has the option. */
bool config_table_given(const struct config_table *table, const char *name);

/* Fills `table` with the options of `command`, none of them given yet. */
void config_table_init(struct config_table *table, enum config_command command);

/* Checks the options of config->command and fills the fields that follow from others (paced,
 * servers). STATUS_USAGE has been logged: option, found, expected, what to do. */
enum status config_check(struct config *config);

/* Do the options suit that many processes? STATUS_USAGE has been logged. */
enum status config_check_world(const struct config *config, int world_size);

/* Whether each rank may have its own value of this option. */
bool config_is_free(const char *name);

/*
 * Recipes: well-known ways to train, each a name for the values of several options. Where
 * config->recipe names one: sets its options, but for those that were given. "list" prints all
 * recipes to stdout and sets *listed. STATUS_USAGE (logged): there is none of that name.
 */
enum status recipes_apply(const struct config_table *table, struct config *config, bool *listed);

/*
 * psring's manual page and its completion in bash, both made from the option table, so that they
 * name the options that there are: psring --manual and psring --completion print them, and the
 * build writes them to psring.1 and psring.bash.
 */

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
