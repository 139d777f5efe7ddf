#include "experiments/train/train_csv.h"

const char *const train_csv_columns[] = {
    "backend",
    "transport",
    "device",
    "network",
    "compute",
    "workers",
    "servers",
    "placement",
    "sync",
    "model",
    "dataset",
    "epoch",
    "step",
    "images",
    "seconds",
    "images_per_s",
    "step_ms_median",
    "compute_ms_median",
    "comm_ms_median",
    "exposed_comm_ms_median",
    "train_loss",
    "test_loss",
    "test_accuracy",
    "weights_sha256",
    "batch",
    "optimizer",
    "lr",
    "seed",
    "reduce_order",
    "bucket_mb",
    "threads",
    "compress",
    "error_feedback",
    "gpu_memory_bytes",
    "gpu_utilization",
};
const size_t train_csv_column_count = sizeof train_csv_columns / sizeof train_csv_columns[0];

enum status train_csv_open(struct csv **csv, const char *path, enum csv_mode mode)
{
    return csv_open(csv, path, mode, train_csv_columns, train_csv_column_count);
}

enum status train_csv_write(struct csv *csv, const struct train_row *row)
{
    csv_text(csv, row->backend);
    csv_text(csv, row->transport);
    csv_text(csv, row->device);
    csv_text(csv, row->network);
    csv_text(csv, row->compute);
    csv_uint(csv, row->workers);
    csv_uint(csv, row->servers);
    csv_text(csv, row->placement);
    csv_text(csv, row->sync);
    csv_text(csv, row->model);
    csv_text(csv, row->dataset);
    csv_uint(csv, row->epoch);
    csv_uint(csv, row->step);
    csv_uint(csv, row->images);
    csv_double(csv, row->seconds);
    csv_double(csv, row->images_per_s);
    csv_double(csv, row->step_ms_median);
    csv_double(csv, row->compute_ms_median);
    csv_double(csv, row->comm_ms_median);
    csv_double(csv, row->exposed_comm_ms_median);
    csv_double(csv, row->train_loss);
    csv_double(csv, row->test_loss);
    csv_double(csv, row->test_accuracy);
    csv_text(csv, row->weights_sha256);
    csv_uint(csv, row->batch);
    csv_text(csv, row->optimizer);
    csv_double(csv, row->lr);
    csv_uint(csv, row->seed);
    csv_text(csv, row->reduce_order);
    csv_double(csv, row->bucket_mb);
    csv_uint(csv, row->threads);
    csv_text(csv, row->compress);
    csv_text(csv, row->error_feedback);
    if (row->gpu.memory_bytes > 0)
        csv_uint(csv, row->gpu.memory_bytes);
    else
        csv_text(csv, NULL);
    csv_double(csv, row->gpu.utilization);
    return csv_end_row(csv);
}
