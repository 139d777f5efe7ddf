/*
 * The option table: every option of every command, with its field in struct config, its default,
 * its limits and its line of --help. For config and the manual.
 */
#ifndef PSRING_EXPERIMENTS_CONFIG_TABLE_H
#define PSRING_EXPERIMENTS_CONFIG_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/options.h"
#include "experiments/config/config.h"

enum { CONFIG_OPTIONS_MAX = 92, CONFIG_HELP_BYTES = 256 };

/* The words of --placement and --reduce-order, in the order of their enums; NULL ends them. */
extern const char *const config_placement_words[], *const config_reduce_order_words[];

struct config_row {
    unsigned runs; /* that obey the option: enum config_run, or-ed */
    /* What the run's backend must be able to do for the option to be obeyed: offsetof a bool of
     * struct backend, common/comm/backend.h; 0: nothing. */
    size_t ability;
    const char *neutral; /* the value that asks such a backend for nothing; NULL: each does */
    struct option_spec spec;
};

/* Of commands without ranks, serve and predict, alone; and of vendors' libraries. The others are in
 * config_table.c. */
extern const struct config_row config_apart_rows[], config_vendor_rows[];
extern const size_t config_apart_row_count, config_vendor_row_count;

/* The words of --nccl-algo, in the order of enum config_nccl_algo; NULL ends them. */
extern const char *const config_nccl_algo_words[];

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

#endif
