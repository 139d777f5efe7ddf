/* A made-up sweep: the times of each way with known constants, and noise. */
#ifndef PSRING_TESTS_LIB_SWEEP_LIB_H
#define PSRING_TESTS_LIB_SWEEP_LIB_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"
#include "experiments/predict/model.h"

static const struct predict_terms truth = {.of = {[TERM_LATENCY] = 80e-6,
                                                  [TERM_LINK] = 1 / 24e6,
                                                  [TERM_BURST] = 1.3e-3,
                                                  [TERM_FILL_BURST] = 1.3e-3,
                                                  [TERM_REDUCE] = 0.4e-9,
                                                  [TERM_MESSAGE] = 5e-6,
                                                  [TERM_CPU_MESSAGE] = 8e-6,
                                                  [TERM_CPU_BYTE] = 2e-9}};

/* The sum of twelve uniform numbers, minus 6: mean 0, deviation 1. */
static inline double normal(uint64_t seed, uint64_t at)
{
    double sum = -6;
    struct rng_key key = rng_key(seed, RNG_TEST, 0);
    for (uint64_t i = 0; i < 3; i++) {
        struct rng_block block = rng_block(key, at, i);
        for (int w = 0; w < 4; w++)
            sum += (double)rng_uniform(block.word[w]);
    }
    return sum;
}

struct sweep {
    struct predict_rows rows;
    double noise; /* relative deviation */
    uint64_t seed;
};

static inline void add_row(struct sweep *sweep, const char *backend, const char *placement,
                           int workers, int servers, uint64_t bytes)
{
    struct predict_row row = {.workers = workers,
                              .servers = servers,
                              .runs = 1,
                              .bytes = bytes,
                              .nominal_bytes_per_s = 25e6,
                              .model_index = -1};
    struct predict_shape shape;
    struct predict_terms terms, seconds;
    const char *why;
    int hosts[64];
    snprintf(row.backend, sizeof row.backend, "%s", backend);
    snprintf(row.placement, sizeof row.placement, "%s", placement);
    snprintf(row.transport, sizeof row.transport, "zmq");
    snprintf(row.network, sizeof row.network, "vcluster:200mbit");
    cr_assert(predict_shape_of(&row, hosts, &shape, &why), "%s", why);
    cr_assert(predict_terms_of(&shape, &terms));
    seconds = predict_seconds(&terms, &truth);
    double factor = 1 + sweep->noise * normal(sweep->seed, sweep->rows.count);
    row.median_s = predict_parts_of(&seconds).together * factor;
    row.noise_s = row.median_s * sweep->noise;
    cr_assert(sweep->rows.count < sweep->rows.room);
    sweep->rows.rows[sweep->rows.count++] = row;
}

static inline struct predict_terms terms_of(const struct predict_row *row)
{
    struct predict_shape shape;
    struct predict_terms terms;
    const char *why;
    int hosts[64];
    cr_assert(predict_shape_of(row, hosts, &shape, &why) && predict_terms_of(&shape, &terms));
    return terms;
}

/* The time of a row, without noise. */
static inline struct predict_parts parts_of(const struct predict_row *row)
{
    struct predict_terms terms = terms_of(row), seconds = predict_seconds(&terms, &truth);
    return predict_parts_of(&seconds);
}

/* Sets the row's time after an idle time of `rest_s`, without noise. */
static inline void rest(struct predict_row *row, double rest_s)
{
    row->rest_s = rest_s;
    row->median_s = parts_of(row).together;
}

/* Workers 2 to 8, servers 1, half of W, and W, three placements, four sizes. */
static inline void make_sweep(struct sweep *sweep, double noise, uint64_t seed)
{
    static const uint64_t sizes[] = {65536, 262144, 1048576, 25600000};
    *sweep = (struct sweep){.noise = noise, .seed = seed};
    sweep->rows.room = 4096;
    sweep->rows.rows = calloc(sweep->rows.room, sizeof *sweep->rows.rows);
    cr_assert(sweep->rows.rows != NULL);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (int workers = 2; workers <= 8; workers++) {
            add_row(sweep, "ring", "none", workers, 0, sizes[s]);
            add_row(sweep, "rhd", "none", workers, 0, sizes[s]);
            for (int servers = 1; servers <= workers; servers++) {
                if (servers > 1 && servers != workers / 2 && servers != workers)
                    continue;
                add_row(sweep, "ps", "dedicated", workers, servers, sizes[s]);
                add_row(sweep, "ps", "colocated", workers, servers, sizes[s]);
                add_row(sweep, "ps", "mixed", workers, servers, sizes[s]);
            }
        }
    }
}

#endif
