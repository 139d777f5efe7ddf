/*
 * psring bench: times one all-reduce by size, checks every element of every result against the
 * exact sum, and holds times and bytes against theory. Nothing is computed meanwhile: all of the
 * time is exposed communication. With --overlap every size is measured a second time, on a comm
 * with a thread of its own, while the caller waits, as if it computed, for as long as the
 * all-reduce took alone; what the all-reduce adds to that is exposed, the rest hidden (as in OSU's
 * osu_iallreduce). With --via-library every size is measured once more through common/psring.h.
 * With
 * --model-gradients a model's gradients are exchanged instead, as train does (model_gradients.h).
 */
#ifndef PSRING_EXPERIMENTS_BENCH_BENCH_H
#define PSRING_EXPERIMENTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"
#include "common/net/world.h"
#include "experiments/config/config.h"

/*
 * Collective over the world. Rank 0 prints the table to stdout and writes --csv (appended) and
 * --json row by row, so that what is finished stays if the run is interrupted. STATUS_PROTOCOL on
 * all ranks if any element was wrong or bytes differ from theory, after the whole sweep. Errors:
 * logged; the caller then ends all ranks.
 */
/* With --backend auto, sizes have their own picks, and those of one after the other that are alike
 * one connection. */
enum status bench_run(struct config *config, struct world *world);

/*
 * The sizes of a sweep are whole float32 elements: -b and -e are rounded up to a multiple of 4, and
 * so is every size between, which is `factor` times the one before and at least one element more.
 */
uint64_t bench_whole_bytes(uint64_t bytes);
uint64_t bench_next_bytes(uint64_t bytes, double factor);

/* The size after `bytes`, the one of number `index`; false after the last. */
bool bench_size(const struct config *config, size_t index, uint64_t *bytes);

/*
 * psring bench --layers: where the time of a training step goes, layer by layer, held against what
 * this machine multiplies matrices at. Nothing is exchanged; several ranks compute at once.
 */

/* One pass through a layer for a whole batch. */
struct compute_pass {
    double ms;    /* median */
    double flops; /* multiply and add count as two */
    double bytes; /* the least that has to move: every tensor read or written once */
};

/* A layer as computed (relu and pooling are fused into the one before), or what follows them:
 * the loss, whose one operation gives value and gradient, and the optimizer. */
struct compute_line {
    const char *name;
    struct compute_pass forward, backward;
};

struct compute_result {
    const char *model, *device, *convolutions;
    int threads, ranks;
    size_t batch, steps;        /* images a rank; steps that each time is the median of */
    struct compute_line *lines; /* rank 0's; the last but one is the loss, the last the optimizer */
    size_t count;
    struct compute_line sum; /* of the lines */
    double step_ms;          /* a whole step, timed without the layers: the slowest rank's median */
    double images_per_s;     /* of all ranks */
    /* FLOP/s of rank 0, medians of products between the steps: one thread, and as many as the
     * device has. */
    double sgemm_one, sgemm_all;
};

/* FLOPs over time, over what sgemm reaches on as many threads; NAN where there is nothing to
 * multiply, or the device is no CPU. */
double compute_of_sgemm(const struct compute_result *result, double flops, double ms);

/* Collective over the world. Rank 0 prints the table and writes --csv (appended) and --json.
 * Errors: logged. */
enum status bench_compute_run(struct config *config, struct world *world);

/* What bench --layers has measured, as a table, as CSV and as JSON. */

/* Lines that start with '#', then one for each layer, for their sum and for the whole step. */
void bench_compute_table(FILE *out, const struct compute_result *result);

/* Appends a row for each layer, then "sum" and "step"; a time or rate that is not known is empty.
 */
enum status bench_compute_csv(const char *path, const struct compute_result *result);

#endif
