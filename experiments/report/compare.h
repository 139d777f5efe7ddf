/* Two runs' all-reduces, side by side: which are in both, and how their times differ. */
#ifndef PSRING_EXPERIMENTS_REPORT_COMPARE_H
#define PSRING_EXPERIMENTS_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/csv.h"
#include "experiments/rows/starts.h"

/* One all-reduce of the same kind and size in both, with all its starts. */
struct compare_pair {
    size_t before, after; /* the first rows of the tables */
    struct measured time_before, time_after;
    struct comparison found; /* after over before */
};

struct compare {
    struct csv_table before, after; /* bench.csv of both */
    struct compare_pair *pairs;     /* in the order of `after` */
    size_t count;
    size_t ambiguous; /* left out: one of the tables tells apart what the other does not */
    size_t wrong;     /* pairs with a row whose sums are wrong */
};

/*
 * Pairs rows of DIR_AFTER/bench.csv with those of DIR_BEFORE/bench.csv that have the same backend,
 * transport, device, workers, servers, placement, bytes, algorithm, compression, hosts and their
 * order, interface and model, as far as both have these columns. Rows alike are starts of one
 * configuration. The intervals cover starts and hold for all pairs together (starts.h). A network
 * that is in both runs is compared with itself, else one run's network with the other's. Rows
 * that only one table distinguishes are in no pair. STATUS_INPUT (logged): a file is missing or
 * damaged, or no row is in both. Needs compare_free, also after an error. O(rows of one times rows
 * of the other).
 */
enum status compare_read(struct compare *compare, const char *dir_before, const char *dir_after);
void compare_free(struct compare *compare);

/* One sentence, if pairs are of two networks; else false, and "". Cut to `size`. */
bool compare_networks(const struct compare *compare, char *text, size_t size);

/* "ring over tcp", "ps over zmq, 2 dedicated, fp16", ... of a pair, cut to `size`. */
void compare_name(const struct compare *compare, const struct compare_pair *pair, char *text,
                  size_t size);

#endif
