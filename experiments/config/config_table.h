/*
 * Shared by the files of this folder: the option table, the checks, recipes and the manual page.
 * The table holds every option of every command, with its field in struct config, default, limits
 * and --help text. The checks cover what one option's type and range cannot express. Recipes set
 * options of the table. The manual page is made from it.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_CONFIG_TABLE_H
#define PSRING_EXPERIMENTS_CONFIG_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/options.h"
#include "common/base/status.h"
#include "experiments/config/config.h"

enum { CONFIG_OPTIONS_MAX = 92, CONFIG_HELP_BYTES = 512 };

/* The words of --placement and --reduce-order, in the order of their enums; NULL ends them. */
extern const char *const config_placement_words[], *const config_reduce_order_words[];
/* The words of --nccl-algo, in the order of enum config_nccl_algo; NULL ends them. */
extern const char *const config_nccl_algo_words[];

struct config_row {
    unsigned runs; /* the runs that obey the option: or of enum config_run */
    /* The ability that a backend needs to obey the option: offsetof a bool of struct backend
     * (common/comm/backend.h). 0: none. */
    size_t ability;
    const char *neutral;     /* the value that every backend accepts; NULL: none */
    struct option_spec spec; /* with only `group` set: the heading of the rows that follow */
};

/* The options of one command, as options.h wants them. */
struct config_table {
    struct option_spec specs[CONFIG_OPTIONS_MAX + 1];
    bool given[CONFIG_OPTIONS_MAX]; /* same index as `specs`, like the next two */
    const struct config_row *rows[CONFIG_OPTIONS_MAX];
    char help[CONFIG_OPTIONS_MAX][CONFIG_HELP_BYTES]; /* of options that need an ability */
    struct options options; /* borrows from the other fields: do not copy a table */
};

/* Whether argv has the option. */
bool config_table_given(const struct config_table *table, const char *name);

/* Fills `table` with the options of `command`. Marks none as given. */
void config_table_init(struct config_table *table, enum config_command command);

/* Checks the options of config->command. Fills the fields that follow from others (paced, servers).
 * STATUS_USAGE has been logged: option, found, expected, what to do. */
enum status config_check(struct config *config);

/* Checks that the options suit a world of `world_size`. STATUS_USAGE has been logged. */
enum status config_check_world(const struct config *config, int world_size);

/* Makes a config for options_parse. It holds values of the environment, and the values of options
 * that have no default and are not given. */
struct config config_initial(enum config_command command);

/* Whether each rank may have its own value of this option. */
bool config_is_free(const char *name);

/*
 * Recipes: well-known ways to train. Each is a name for the values of several options. If
 * config->learning.recipe names one, sets its options, except those that were given. "list" prints
 * all recipes to stdout and sets *listed. STATUS_USAGE (logged): no recipe has this name.
 */
enum status recipes_apply(const struct config_table *table, struct config *config, bool *listed);

/*
 * psring's manual page and its completion in bash. Both are made from the option table, so they
 * name exactly its options. psring --manual and psring --completion print them; the build writes
 * them to psring.1 and psring.bash.
 */

struct manual_command {
    const char *name, *summary;
    enum config_command options; /* 0: the command has other arguments, listed by its --help: */
    const char *own_options;     /* files and these words, separated by spaces */
};

/* Prints the page in roff, for man(1). */
void manual_print(FILE *out, const struct manual_command *commands, size_t count);

/* Prints a script for bash to source. It completes commands, options, words of a choice, files and
 * folders. */
void manual_print_completion(FILE *out, const struct manual_command *commands, size_t count);

#endif
