#include "experiments/compute/bench_compute_report.h"

#include <math.h>

#include "common/base/fields.h"
#include "experiments/measure/info.h"
#include "experiments/measure/result.h"

/* The step as a line: what it computes is what its parts do. */
static struct compute_line whole_step(const struct compute_result *result)
{
    const struct compute_pass *forward = &result->sum.forward, *backward = &result->sum.backward;
    return (struct compute_line){.name = "step",
                                 .forward = {.ms = result->step_ms,
                                             .flops = forward->flops + backward->flops,
                                             .bytes = forward->bytes + backward->bytes}};
}

/* -------- the table --------------------------------------------------------------------------- */

static void print_pass(FILE *out, const struct compute_result *result,
                       const struct compute_pass *pass)
{
    double of_sgemm = compute_of_sgemm(result, pass->flops, pass->ms);
    fprintf(out, " %9.3f %10.2f %9.2f", pass->ms, pass->flops * 1e-6, pass->bytes * 1e-6);
    if (isfinite(of_sgemm))
        fprintf(out, " %8.2f", of_sgemm);
    else
        fprintf(out, " %8s", "-");
}

static void print_line(FILE *out, const struct compute_result *result,
                       const struct compute_line *line)
{
    fprintf(out, " %-10s", line->name);
    print_pass(out, result, &line->forward);
    print_pass(out, result, &line->backward);
    fprintf(out, "\n");
}

void bench_compute_table(FILE *out, const struct compute_result *result)
{
    struct compute_line step = whole_step(result);
    fprintf(out,
            "# psring bench --compute: %s, batch %zu, device %s, convolutions %s, %d thread%s, %d "
            "rank%s at once\n",
            result->model, result->batch, result->device, result->convolutions, result->threads,
            result->threads == 1 ? "" : "s", result->ranks, result->ranks == 1 ? "" : "s");
    if (result->sgemm_one > 0)
        fprintf(out, "# sgemm, 2048 x 2048 x 2048: %.1f GFLOP/s on one thread, %.1f on %d\n",
                result->sgemm_one * 1e-9, result->sgemm_all * 1e-9, result->threads);
    fprintf(out,
            "# medians of %zu steps, rank 0's; of sgemm: FLOPs over time, over that rate; MB: each "
            "tensor read or written\n# once, the least that has to move. sum: of the lines above; "
            "step: timed as a whole, forward, backward\n# and optimizer in the first four columns, "
            "the slowest rank's.\n#\n",
            result->steps);
    fprintf(out, "#%-10s %39s %39s\n", "", "forward", "backward");
    fprintf(out, "#%-10s %9s %10s %9s %8s %9s %10s %9s %8s\n", "layer", "ms", "MFLOP", "MB",
            "of sgemm", "ms", "MFLOP", "MB", "of sgemm");
    for (size_t i = 0; i < result->count; i++)
        print_line(out, result, &result->lines[i]);
    print_line(out, result, &result->sum);
    fprintf(out, " %-10s", step.name);
    print_pass(out, result, &step.forward);
    fprintf(out, "\n# %.1f images/s, all ranks together\n", result->images_per_s);
}

/* -------- CSV --------------------------------------------------------------------------------- */

static double known(double value)
{
    return value > 0 ? value : (double)NAN;
}

/* The columns, in order. */
static void list_fields(const struct compute_result *result, const struct compute_line *line,
                        double images_per_s, struct fields *fields)
{
    const struct compute_pass *forward = &line->forward, *backward = &line->backward;
    fields_start(fields);
    fields_text(fields, "model", result->model);
    fields_text(fields, "device", result->device);
    fields_uint(fields, "ranks", (uint64_t)result->ranks);
    fields_uint(fields, "threads", (uint64_t)result->threads);
    fields_uint(fields, "batch", result->batch);
    fields_uint(fields, "steps", result->steps);
    fields_text(fields, "layer", line->name);
    fields_double(fields, "forward_ms", known(forward->ms));
    fields_double(fields, "forward_flops", known(forward->flops));
    fields_double(fields, "forward_bytes", known(forward->bytes));
    fields_double(fields, "forward_of_sgemm",
                  compute_of_sgemm(result, forward->flops, forward->ms));
    fields_double(fields, "backward_ms", known(backward->ms));
    fields_double(fields, "backward_flops", known(backward->flops));
    fields_double(fields, "backward_bytes", known(backward->bytes));
    fields_double(fields, "backward_of_sgemm",
                  compute_of_sgemm(result, backward->flops, backward->ms));
    fields_double(fields, "sgemm_flops_per_s", known(result->sgemm_one));
    fields_double(fields, "sgemm_threads_flops_per_s", known(result->sgemm_all));
    fields_double(fields, "images_per_s", images_per_s);
    fields_text(fields, "convolutions", result->convolutions);
}

static enum status csv_line(struct csv *csv, const struct compute_result *result,
                            const struct compute_line *line, double images_per_s)
{
    struct fields fields;
    list_fields(result, line, images_per_s, &fields);
    return fields_csv_write(&fields, csv);
}

enum status bench_compute_csv(const char *path, const struct compute_result *result)
{
    enum status status;
    struct csv *csv = NULL;
    struct fields fields;
    struct compute_line step = whole_step(result);
    list_fields(result, &step, result->images_per_s, &fields);
    TRY(fields_csv_open(&fields, &csv, path));
    for (size_t i = 0; i < result->count; i++)
        TRY(csv_line(csv, result, &result->lines[i], (double)NAN));
    TRY(csv_line(csv, result, &result->sum, (double)NAN));
    TRY(fields_csv_write(&fields, csv));
    TRY(csv_close(&csv));
out:
    csv_close(&csv);
    return status;
}

/* -------- JSON -------------------------------------------------------------------------------- */

/* Adds a number, or null where it is not known. */
static bool add_number(cJSON *object, const char *name, double value)
{
    return isfinite(value) ? cJSON_AddNumberToObject(object, name, value) != NULL
                           : cJSON_AddNullToObject(object, name) != NULL;
}

static bool add_pass_json(cJSON *line, const char *name, const struct compute_result *result,
                          const struct compute_pass *pass)
{
    cJSON *object = cJSON_AddObjectToObject(line, name);
    return object && add_number(object, "ms", known(pass->ms)) &&
           add_number(object, "flops", known(pass->flops)) &&
           add_number(object, "bytes", known(pass->bytes)) &&
           add_number(object, "of_sgemm", compute_of_sgemm(result, pass->flops, pass->ms));
}

static bool add_line_json(cJSON *lines, const struct compute_result *result,
                          const struct compute_line *line)
{
    cJSON *object = cJSON_CreateObject();
    return object && cJSON_AddItemToArray(lines, object) &&
           cJSON_AddStringToObject(object, "name", line->name) &&
           add_pass_json(object, "forward", result, &line->forward) &&
           add_pass_json(object, "backward", result, &line->backward);
}

static enum status write_json(const struct config *config, const struct compute_result *result)
{
    cJSON *document = info_json(config);
    struct compute_line step = whole_step(result);
    bool whole = cJSON_AddItemToObject(document, "config", result_config_json(config));
    cJSON *compute = cJSON_AddObjectToObject(document, "compute");
    whole = whole && add_number(compute, "threads", result->threads) &&
            add_number(compute, "ranks", result->ranks) &&
            add_number(compute, "steps", (double)result->steps) &&
            cJSON_AddStringToObject(compute, "convolutions", result->convolutions) &&
            add_number(compute, "sgemm_flops_per_s", known(result->sgemm_one)) &&
            add_number(compute, "sgemm_threads_flops_per_s", known(result->sgemm_all)) &&
            add_number(compute, "images_per_s", result->images_per_s) &&
            add_pass_json(compute, "step", result, &step.forward);
    cJSON *layers = cJSON_AddArrayToObject(compute, "layers");
    for (size_t i = 0; whole && i < result->count; i++)
        whole = add_line_json(layers, result, &result->lines[i]);
    enum status status = result_write_json(config->json, whole && layers ? document : NULL);
    cJSON_Delete(document);
    return status;
}

enum status bench_compute_report(const struct config *config, const struct compute_result *result)
{
    enum status status;
    bench_compute_table(stdout, result);
    TRY(result_flush_stdout());
    if (config->csv)
        TRY(bench_compute_csv(config->csv, result));
    if (config->json)
        TRY(write_json(config, result));
out:
    return status;
}
