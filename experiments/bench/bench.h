/*
 * psring bench: times one all-reduce for each size, checks every element of every result against
 * the exact sum, and compares times and bytes with theory. The caller computes nothing meanwhile,
 * so all of the time is exposed communication.
 *
 * --overlap measures every size a second time, on a comm with a separate thread. Meanwhile the
 * caller waits for as long as the all-reduce took alone, as if it computed. The time that the
 * all-reduce adds is exposed, the remainder is hidden (as in OSU's osu_iallreduce). With
 * --via-library every size is measured again through common/psring.h. With --model-gradients ranks
 * exchange a model's gradients instead, as train does (model_gradients.h).
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
 * --json row by row, so an interrupted run keeps its finished rows. STATUS_PROTOCOL on all ranks,
 * after the whole sweep, if any element was wrong or bytes differ from theory. Errors: logged; the
 * caller then ends all ranks.
 *
 * --backend auto picks a backend for each size. Consecutive sizes with equal picks share one
 * connection.
 */
enum status bench_run(struct config *config, struct world *world);

/*
 * The sizes of a sweep are whole float32 elements: -b, -e and every size between are rounded up to
 * a multiple of 4. Each size is `factor` times the one before, and at least one element more.
 */
uint64_t bench_whole_bytes(uint64_t bytes);
uint64_t bench_next_bytes(uint64_t bytes, double factor);

/* Replaces `bytes` by the next size, the one at `index`. False after the last. */
bool bench_size(const struct config *config, size_t index, uint64_t *bytes);

/*
 * psring bench --layers: the time of a training step, layer by layer, compared with the rate at
 * which this machine multiplies matrices. Ranks exchange nothing; several ranks compute at once.
 */

/* One pass through a layer for a whole batch. */
struct compute_pass {
    double ms;    /* median */
    double flops; /* multiply and add count as two */
    double bytes; /* the least that has to move: every tensor read or written once */
};

/* A layer as computed; relu and pooling are fused into the layer before. Two lines follow the
 * layers: the loss (one operation computes value and gradient) and the optimizer. */
struct compute_line {
    const char *name;
    struct compute_pass forward, backward;
};

struct compute_result {
    const char *model, *device;
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

/* FLOPs over time, divided by the rate of sgemm on as many threads. NAN if there is nothing to
 * multiply, or the device is not a CPU. */
double compute_of_sgemm(const struct compute_result *result, double flops, double ms);

/* Collective over the world. Rank 0 prints the table and writes --csv (appended) and --json.
 * Errors: logged. */
enum status bench_compute_run(struct config *config, struct world *world);

/* Output of bench --layers as a table and as CSV. */

/* Lines that start with '#', then one for each layer, for their sum and for the whole step. */
void bench_compute_table(FILE *out, const struct compute_result *result);

/* Appends a row for each layer, then "sum" and "step"; a time or rate that is not known is empty.
 */
enum status bench_compute_csv(const char *path, const struct compute_result *result);

#endif
