/*
 * What it costs to choose by the model. A case is what a user has: a network, so many workers on
 * their hosts, machines for servers beside them, a size. Its candidates are the ways that were
 * measured there on no more machines. The model chooses the one that it predicts to be fastest;
 * its regret is the measured time of that over the fastest measured, less 1. Candidates are also
 * rows that were not fitted because others kept the CPUs busy: who chooses does not know that
 * either. MPI_Allreduce is none: which algorithm it takes is not chosen by psring.
 */
#ifndef PSRING_EXPERIMENTS_PREDICT_REGRET_H
#define PSRING_EXPERIMENTS_PREDICT_REGRET_H

#include <stdio.h>

#include "experiments/fit/model.h"

/* A choice between the candidates of a case. */
struct predict_decision {
    const struct predict_row *chosen, *fastest;
    double chosen_s, fastest_s; /* measured; of rows of one way the geometric mean, by runs */
    int machines;
};

struct predict_regret {
    size_t cases;
    size_t fastest, near, far; /* that regret nothing; at most NEAR; more than FAR */
    double sum_log;            /* of 1 + regret */
    struct predict_decision worst;
};

#define PREDICT_REGRET_NEAR 0.03
#define PREDICT_REGRET_FAR 0.10

/* Chosen over fastest, less 1. */
double predict_decision_regret(const struct predict_decision *decision);

/*
 * Adds up all cases of two ways or more in which no candidate has another use than `use` (fitted or
 * held out). `backend` NULL, or the only one that the model may choose: cases without it do not
 * count. `out` NULL, or where each case of more than PREDICT_REGRET_NEAR is printed.
 * STATUS_NO_MEMORY is logged.
 */
enum status predict_regret_of(struct predict_regret *regret, const struct predict_models *models,
                              const struct predict_rows *rows, enum predict_use use,
                              const char *backend, FILE *out);
/* The geometric mean of 1 + regret, less 1. */
double predict_regret_mean(const struct predict_regret *regret);

/* Of held-out cases, which models->choice keeps, and of fitted ones, beside what always the ring
 * would cost. */
enum status predict_print_regret(FILE *out, struct predict_models *models,
                                 const struct predict_rows *rows);

#endif
