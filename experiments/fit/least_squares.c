#include "experiments/fit/least_squares.h"

#include <math.h>

enum { SUBSETS = 1 << PREDICT_TERMS };

void normal_add(struct normal *normal, const struct predict_terms *terms, double measured,
                double weight)
{
    for (int t = 0; t < PREDICT_TERMS; t++) {
        normal->right[t] += weight * terms->of[t] * measured;
        for (int u = 0; u < PREDICT_TERMS; u++)
            normal->matrix[t][u] += weight * terms->of[t] * terms->of[u];
    }
}

/* The terms in `subset` alone, by Cholesky's decomposition; false: they are not independent, or
 * one would be negative. */
static bool solve_subset(const struct normal *normal, unsigned subset, double x[PREDICT_TERMS])
{
    const double singular = 1e-9;
    double factor[PREDICT_TERMS][PREDICT_TERMS], y[PREDICT_TERMS];
    int terms[PREDICT_TERMS], n = 0;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        x[t] = 0;
        if (subset >> t & 1)
            terms[n++] = t;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = normal->matrix[terms[i]][terms[j]];
            for (int k = 0; k < j; k++)
                sum -= factor[i][k] * factor[j][k];
            if (i == j && sum <= singular)
                return false;
            factor[i][j] = i == j ? sqrt(sum) : sum / factor[j][j];
        }
    }
    for (int i = 0; i < n; i++) {
        y[i] = normal->right[terms[i]];
        for (int k = 0; k < i; k++)
            y[i] -= factor[i][k] * y[k];
        y[i] /= factor[i][i];
    }
    for (int i = n - 1; i >= 0; i--) {
        double sum = y[i];
        for (int k = i + 1; k < n; k++)
            sum -= factor[k][i] * x[terms[k]];
        x[terms[i]] = sum / factor[i][i];
        if (x[terms[i]] < 0)
            return false;
    }
    return true;
}

/* The best of all subsets. Scaled so that the matrix has ones on its diagonal. */
struct predict_terms normal_solve(const struct normal *unscaled)
{
    struct normal normal = {0};
    struct predict_terms best = {0};
    const double as_good = 1e-9; /* two terms that cannot be told apart: the first one */
    double scale[PREDICT_TERMS], most = 0;
    for (int t = 0; t < PREDICT_TERMS; t++) {
        double square = unscaled->matrix[t][t];
        scale[t] = square > 0 ? 1 / sqrt(square) : 0;
    }
    for (int t = 0; t < PREDICT_TERMS; t++) {
        normal.right[t] = unscaled->right[t] * scale[t];
        for (int u = 0; u < PREDICT_TERMS; u++)
            normal.matrix[t][u] = unscaled->matrix[t][u] * scale[t] * scale[u];
    }
    for (unsigned subset = 1; subset < SUBSETS; subset++) {
        double x[PREDICT_TERMS], gain = 0;
        if (!solve_subset(&normal, subset, x))
            continue;
        for (int t = 0; t < PREDICT_TERMS; t++)
            gain += x[t] * normal.right[t];
        if (gain <= most * (1 + as_good))
            continue;
        most = gain;
        for (int t = 0; t < PREDICT_TERMS; t++)
            best.of[t] = x[t] * scale[t];
    }
    return best;
}
