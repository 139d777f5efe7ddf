/*
 * The option table: every option of every command, with its field in struct config, its default,
 * its limits and its line of --help. Private to config.c.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_TABLE_H
#define PSRING_EXPERIMENTS_CONFIG_TABLE_H

#include <stdbool.h>

#include "common/base/options.h"
#include "experiments/config/config.h"

enum { CONFIG_OPTIONS_MAX = 64 };

/* The words of --placement and --reduce-order, in the order of their enums; NULL ends them. */
extern const char *const config_placement_words[], *const config_reduce_order_words[];

/* The options of one command, as options.h wants them. */
struct config_table {
    struct option_spec specs[CONFIG_OPTIONS_MAX + 1];
    bool given[CONFIG_OPTIONS_MAX]; /* by number in `specs` */
    struct options options;         /* borrows the two above: do not copy a table */
};

/* Fills `table` with the options of `command`, none of them given yet. */
void config_table_init(struct config_table *table, enum config_command command);

#endif
