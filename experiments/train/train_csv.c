#include "experiments/train/train_csv.h"

#include "common/base/fields.h"

/* The columns of train.csv, in order. Others rely on the names and the order up to weights_sha256.
 */
static void list_fields(const struct train_row *row, struct fields *fields)
{
    fields_start(fields);
    fields_text(fields, "backend", row->backend);
    fields_text(fields, "transport", row->transport);
    fields_text(fields, "device", row->device);
    fields_text(fields, "network", row->network);
    fields_text(fields, "compute", row->compute);
    fields_uint(fields, "workers", row->workers);
    fields_uint(fields, "servers", row->servers);
    fields_text(fields, "placement", row->placement);
    fields_text(fields, "sync", row->sync);
    fields_text(fields, "model", row->model);
    fields_text(fields, "dataset", row->dataset);
    fields_uint(fields, "epoch", row->epoch);
    fields_uint(fields, "step", row->step);
    fields_uint(fields, "images", row->images);
    fields_double(fields, "seconds", row->seconds);
    fields_double(fields, "images_per_s", row->images_per_s);
    fields_double(fields, "step_ms_median", row->step_ms_median);
    fields_double(fields, "compute_ms_median", row->compute_ms_median);
    fields_double(fields, "comm_ms_median", row->comm_ms_median);
    fields_double(fields, "exposed_comm_ms_median", row->exposed_comm_ms_median);
    fields_double(fields, "train_loss", row->train_loss);
    fields_double(fields, "test_loss", row->test_loss);
    fields_double(fields, "test_accuracy", row->test_accuracy);
    fields_text(fields, "weights_sha256", row->weights_sha256);
    fields_uint(fields, "batch", row->batch);
    fields_text(fields, "optimizer", row->optimizer);
    fields_double(fields, "lr", row->lr);
    fields_uint(fields, "seed", row->seed);
    fields_text(fields, "reduce_order", row->reduce_order);
    fields_double(fields, "bucket_mb", row->bucket_mb);
    fields_uint(fields, "threads", row->threads);
    fields_text(fields, "compress", row->compress);
    fields_text(fields, "error_feedback", row->error_feedback);
    fields_uint_if(fields, "gpu_memory_bytes", row->gpu.memory_bytes > 0, row->gpu.memory_bytes);
    fields_double(fields, "gpu_utilization", row->gpu.utilization);
}

enum status train_csv_open(struct csv **csv, const char *path)
{
    struct fields fields;
    list_fields(&(struct train_row){0}, &fields);
    return fields_csv_open(&fields, csv, path);
}

enum status train_csv_write(struct csv *csv, const struct train_row *row)
{
    struct fields fields;
    list_fields(row, &fields);
    return fields_csv_write(&fields, csv);
}
