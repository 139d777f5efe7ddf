/*
 * Weighted linear least squares with no constant below 0. Which are 0 is found by trying all
 * subsets, which is exact (Lawson and Hanson 1974, "Solving least squares problems", chapter 23,
 * has the problem).
 */
#ifndef PSRING_EXPERIMENTS_FIT_LEAST_SQUARES_H
#define PSRING_EXPERIMENTS_FIT_LEAST_SQUARES_H

#include "experiments/fit/terms.h"

/* Normal equations. {0}: of nothing yet. */
struct normal {
    double matrix[PREDICT_TERMS][PREDICT_TERMS], right[PREDICT_TERMS];
};

/* One more equation: the sum of terms times constants is `measured`. */
void normal_add(struct normal *normal, const struct predict_terms *terms, double measured,
                double weight);

/* The constants. 0 also where nothing says what one is. */
struct predict_terms normal_solve(const struct normal *normal);

#endif
