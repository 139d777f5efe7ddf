#include "experiments/fit/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/status.h"
#include "common/base/stats.h"

static bool is_same_point(const struct predict_row *a, const struct predict_row *b)
{
    const struct {
        const char *one, *other;
    } words[] = {{a->backend, b->backend},
                 {a->transport, b->transport},
                 {a->network, b->network},
                 {a->placement, b->placement},
                 {a->algorithm, b->algorithm},
                 {a->compress, b->compress},
                 {a->api, b->api},
                 {a->model, b->model},
                 {a->nccl, b->nccl},
                 {a->device, b->device},
                 {a->error_feedback, b->error_feedback}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].one, words[i].other) != 0)
            return false;
    }
    return a->workers == b->workers && a->servers == b->servers && a->hosts == b->hosts &&
           a->neighbours_apart == b->neighbours_apart && a->bytes == b->bytes &&
           a->nominal_bytes_per_s == b->nominal_bytes_per_s;
}

/* The median of one field of `runs` rows, of those in which it is known (not 0); else 0. */
static double median_of(const struct predict_row *const *points, size_t runs, size_t field,
                        double *scratch)
{
    size_t known = 0;
    for (size_t i = 0; i < runs; i++) {
        double value;
        memcpy(&value, (const char *)points[i] + field, sizeof value);
        if (value > 0)
            scratch[known++] = value;
    }
    return known > 0 ? stats_median(scratch, known) : 0;
}

/* Of their times. */
static double deviation_of(const struct predict_row *const *points, size_t runs)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < runs; i++)
        mean += points[i]->median_s / (double)runs;
    for (size_t i = 0; i < runs; i++)
        squares += (points[i]->median_s - mean) * (points[i]->median_s - mean);
    return sqrt(squares / (double)(runs - 1));
}

static struct predict_row joined(const struct predict_row *const *points, size_t runs,
                                 double *scratch)
{
    struct predict_row row = *points[0];
    double deviation = deviation_of(points, runs);
    row.runs = (int)runs;
    row.median_s = median_of(points, runs, offsetof(struct predict_row, median_s), scratch);
    row.rest_s = median_of(points, runs, offsetof(struct predict_row, rest_s), scratch);
    row.cpu_busy = median_of(points, runs, offsetof(struct predict_row, cpu_busy), scratch);
    row.cpu_other = median_of(points, runs, offsetof(struct predict_row, cpu_other), scratch);
    double own = median_of(points, runs, offsetof(struct predict_row, noise_s), scratch);
    /* Of two it is their mean; of more the median's error is sqrt(pi/2) of the mean's. */
    row.noise_s = (runs > 2 ? 1.2533 : 1) * fmax(own, deviation) / sqrt((double)runs);
    row.run_spread = deviation / row.median_s;
    row.terms.rest_s = row.rest_s;
    return row;
}

enum status predict_rows_join(struct predict_rows *rows)
{
    enum status status = STATUS_OK;
    size_t kept = 0;
    const struct predict_row **points = malloc((rows->count + 1) * sizeof *points);
    double *scratch = malloc((rows->count + 1) * sizeof *scratch);
    bool *taken = calloc(rows->count + 1, sizeof *taken);
    if (!points || !scratch || !taken) {
        log_error("predict: no memory to join %zu rows", rows->count);
        status = STATUS_NO_MEMORY;
        goto out;
    }
    for (size_t i = 0; i < rows->count;
         i++) { /* what is kept lies below i, and no run of a later one */
        size_t runs = 0;
        if (taken[i])
            continue;
        for (size_t j = i; rows->rows[i].use == PREDICT_FIT && j < rows->count; j++) {
            if (taken[j] || rows->rows[j].use != PREDICT_FIT ||
                !is_same_point(&rows->rows[i], &rows->rows[j]))
                continue;
            taken[j] = true;
            points[runs++] = &rows->rows[j];
        }
        struct predict_row row = rows->rows[i];
        if (runs > 1)
            row = joined(points, runs, scratch);
        rows->rows[kept++] = row;
    }
    rows->count = kept;
out:
    free(points);
    free(scratch);
    free(taken);
    return status;
}
