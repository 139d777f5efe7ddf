/* train.csv: one row per epoch or per logging interval of a training run. */
#ifndef PSRING_EXPERIMENTS_TRAIN_CSV_H
#define PSRING_EXPERIMENTS_TRAIN_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/csv.h"
#include "common/base/status.h"
#include "common/device/device.h"

/* A row, in the order of the columns. A text that is NULL and a double that is NAN stay empty. */
struct train_row {
    const char *backend, *transport, *device, *network, *compute;
    uint64_t workers, servers;
    const char *placement, *sync, *model, *dataset;
    uint64_t epoch;                /* from 1: how many epochs are done, the running one included */
    uint64_t step;                 /* steps done since the run began, over all epochs */
    uint64_t images;               /* images seen since the run began, over all workers */
    double seconds;                /* wall time of training steps since the run began */
    double images_per_s;           /* over the interval of this row, all workers together */
    double step_ms_median;         /* over the interval; of each step the slowest rank */
    double compute_ms_median;      /* forward, backward and update */
    double comm_ms_median;         /* averaging, on whichever thread */
    double exposed_comm_ms_median; /* what the trainer waited for; NAN in one process */
    double train_loss;
    double test_loss, test_accuracy; /* NAN where the interval ended without a test */
    const char *weights_sha256;      /* of the parameters after the row's last step */
    /* Beyond the fixed columns. */
    uint64_t batch; /* per worker */
    const char *optimizer;
    double lr;
    uint64_t seed;
    const char *reduce_order;
    double bucket_mb;
    uint64_t threads;           /* of this rank; --threads 0 resolved */
    const char *compress;       /* "none", "fp16", "bf16" */
    const char *error_feedback; /* "on", "off"; "none" uncompressed */
    struct device_usage gpu;    /* worker 0's, as its last step ended; what is not known is empty */
};

/* csv_open() with the columns. */
enum status train_csv_open(struct csv **csv, const char *path);

enum status train_csv_write(struct csv *csv, const struct train_row *row);

#endif
