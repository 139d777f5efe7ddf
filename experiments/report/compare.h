/* Two runs' all-reduces, side by side: which are in both, and how their times differ. */
#ifndef PSRING_EXPERIMENTS_REPORT_COMPARE_H
#define PSRING_EXPERIMENTS_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/csv_table.h"

/* One all-reduce of the same kind and size in both. */
struct compare_pair {
    size_t before, after; /* rows of the tables */
    double before_us, after_us;
    double ratio;     /* after over before */
    double low, high; /* what both medians' 95% intervals allow of it; NAN: not known */
    bool differs;     /* the intervals do not overlap; false if they are not known */
};

struct compare {
    struct csv_table before, after; /* bench.csv of both */
    struct compare_pair *pairs;     /* in the order of `after` */
    size_t count;
    size_t ambiguous; /* left out: one of the tables tells apart what the other does not */
};

/*
 * Pairs rows of DIR_AFTER/bench.csv with those of DIR_BEFORE/bench.csv that have the same backend,
 * transport, device, workers, servers, placement, bytes, algorithm, compression, hosts and their
 * order, interface and model, as far as both have these columns; of several alike the last. Where a
 * network is in both, each has its own; else one run's network stands against the other's. What one
 * table tells apart and the other does not is in no pair. STATUS_INPUT (logged): a file is missing
 * or damaged, or no row is in both. Needs compare_free whatever it returns. O(rows of one times
 * rows of the other).
 */
enum status compare_read(struct compare *compare, const char *dir_before, const char *dir_after);
void compare_free(struct compare *compare);

/* One sentence, if pairs are of two networks; else false, and "". Cut to `size`. */
bool compare_networks(const struct compare *compare, char *text, size_t size);

/* "ring over tcp", "ps over zmq, 2 dedicated, fp16", ... of a pair, cut to `size`. */
void compare_name(const struct compare *compare, const struct compare_pair *pair, char *text,
                  size_t size);

#endif
