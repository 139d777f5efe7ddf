/* psring predict: fits the model of cost to bench.csv, holds it against rows that were not fitted,
 * and predicts what was not measured. One process. See README.md. */
#ifndef PSRING_EXPERIMENTS_PREDICT_H
#define PSRING_EXPERIMENTS_PREDICT_H

#include "common/base/status.h"
#include "experiments/config/config.h"

/* Logs its errors. */
enum status predict_command(struct config *config);

#endif
