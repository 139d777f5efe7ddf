/* Predicted beside the measured steps of train.csv: paced ones, to which nothing is fitted. */
#ifndef PSRING_EXPERIMENTS_PREDICT_TRAINED_H
#define PSRING_EXPERIMENTS_PREDICT_TRAINED_H

#include <stdio.h>

#include "experiments/fit/model.h"

/* The paced steps of these train.csv, or folders with one (commas between), beside what the models
 * say of them; those of one point, of several runs or parts of one, are one, their median
 * (fit/runs.h). Errors: logged. */
enum status predict_print_trained(FILE *out, const struct predict_models *models,
                                  const char *files);

#endif
