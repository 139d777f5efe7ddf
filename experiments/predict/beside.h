/* Predicted beside measured: what was fitted and held out, each error, and how many held-out rows
 * lie in their interval. */
#ifndef PSRING_EXPERIMENTS_PREDICT_BESIDE_H
#define PSRING_EXPERIMENTS_PREDICT_BESIDE_H

#include <stdio.h>

#include "experiments/fit/model.h"

/* Errors of one kind of rows. */
struct predict_score {
    size_t rows;
    size_t judged, within; /* rows that have an interval, and of these, in it */
    double sum_log;        /* of 1 + |error| */
    double worst;          /* |error|; error = predicted / measured - 1 */
    const struct predict_row *worst_row;
};

void predict_score_add(struct predict_score *score, const struct predict_row *row,
                       struct predict_interval interval);
/* The geometric mean of 1 + |error|, less 1. */
double predict_score_mean(const struct predict_score *score);

/* "ps dedicated 2 fp16": how a row averaged, but for its transport. */
enum { PREDICT_WAY_WORDS = 4 * PREDICT_WORD };
void predict_row_words(const struct predict_row *row, char *text, size_t size);

void predict_print_constants(FILE *out, const struct predict_model *model);
void predict_print_beside(FILE *out, const struct predict_models *models,
                          const struct predict_rows *rows);

/* predict.csv; rows that no model describes are left out. Errors: logged. */
enum status predict_write_beside(const char *path, const struct predict_models *models,
                                 const struct predict_rows *rows);

#endif
