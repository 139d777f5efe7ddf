#include "common/device/cuda/cudnn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/status.h"

struct cuda_dnn {
    struct dnn_library library;
    dnn_handle handle;
    bool tf32;
};

enum pass { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, PASSES };

/* The method of one pass of a plan. Each pass has a separate mode of arithmetic. */
struct method {
    dnn_convolution convolution;
    unsigned algorithm, math;
    size_t workspace; /* bytes */
};

struct cuda_dnn_plan {
    struct cuda_dnn *dnn;
    dnn_tensor x, y;
    dnn_filter w;
    struct method methods[PASSES];
    char error[128]; /* of the last pass that failed */
};

static const char *const pass_names[] = {[FORWARD] = "forward",
                                         [INPUT_GRADIENT] = "gradient by the input",
                                         [WEIGHT_GRADIENT] = "gradient by the weights"};

/* By number. Source: NVIDIA, cuDNN API, cudnnConvolutionFwdAlgo_t and the two backward types. */
enum { ALGORITHMS = 8 };
static const char *const algorithm_names[PASSES][ALGORITHMS] = {
    [FORWARD] = {"IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
                 "WINOGRAD", "WINOGRAD_NONFUSED"},
    [INPUT_GRADIENT] = {"ALGO_0", "ALGO_1", "FFT", "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"},
    [WEIGHT_GRADIENT] = {"ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED",
                         "FFT_TILING"},
};

static const char *algorithm_name(enum pass pass, unsigned algorithm)
{
    const char *name = algorithm < ALGORITHMS ? algorithm_names[pass][algorithm] : NULL;
    return name ? name : "an unnamed algorithm";
}

/* -------- the library ------------------------------------------------------------------------- */

bool cuda_dnn_describe(char text[CUDA_DNN_TEXT_BYTES])
{
    struct dnn_library library;
    if (!dnn_find(&library, text))
        return false;
    size_t cuda = library.call.get_cudart_version();
    snprintf(text, CUDA_DNN_TEXT_BYTES, "%s, built with CUDA %zu.%zu: %.400s", library.version,
             cuda / 1000, cuda % 1000 / 10, library.path);
    return true;
}

enum status cuda_dnn_new(struct cuda_dnn **out_dnn, struct CUstream_st *stream, bool tf32,
                         char reason[CUDA_DNN_TEXT_BYTES])
{
    unsigned error;
    struct cuda_dnn *dnn = calloc(1, sizeof *dnn);
    *out_dnn = NULL;
    if (!dnn)
        return FAIL(STATUS_NO_MEMORY, "cuDNN: out of memory");
    dnn->tf32 = tf32;
    if (!dnn_find(&dnn->library, reason)) {
        free(dnn);
        return STATUS_UNSUPPORTED;
    }
    const struct dnn_calls *call = &dnn->library.call;
    if ((error = call->create(&dnn->handle)) != DNN_SUCCESS ||
        (error = call->set_stream(dnn->handle, stream)) != DNN_SUCCESS) {
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "%.300s, version %s, cannot be started (%s)",
                 dnn->library.path, dnn->library.version, call->get_error_string(error));
        cuda_dnn_free(&dnn);
        return STATUS_UNSUPPORTED;
    }
    *out_dnn = dnn;
    return STATUS_OK;
}

void cuda_dnn_free(struct cuda_dnn **out_dnn)
{
    struct cuda_dnn *dnn = *out_dnn;
    *out_dnn = NULL;
    if (dnn && dnn->handle)
        dnn->library.call.destroy(dnn->handle);
    free(dnn);
}

const char *cuda_dnn_version(const struct cuda_dnn *dnn)
{
    return dnn->library.version;
}

/* -------- algorithms -------------------------------------------------------------------------- */

enum { CHOICES_MOST = 32 };

static unsigned ask_choices(const struct cuda_dnn_plan *plan, enum pass pass, int *named,
                            struct dnn_algorithm *choices)
{
    const struct dnn_calls *call = &plan->dnn->library.call;
    dnn_handle handle = plan->dnn->handle;
    dnn_convolution convolution = plan->methods[pass].convolution;
    return pass == FORWARD ? call->forward_choices(handle, plan->x, plan->w, convolution, plan->y,
                                                   CHOICES_MOST, named, choices)
           : pass == INPUT_GRADIENT ? call->data_choices(handle, plan->w, plan->y, convolution,
                                                         plan->x, CHOICES_MOST, named, choices)
                                    : call->filter_choices(handle, plan->x, plan->y, convolution,
                                                           plan->w, CHOICES_MOST, named, choices);
}

static unsigned ask_workspace(const struct cuda_dnn_plan *plan, enum pass pass, size_t *bytes)
{
    const struct dnn_calls *call = &plan->dnn->library.call;
    dnn_handle handle = plan->dnn->handle;
    const struct method *m = &plan->methods[pass];
    return pass == FORWARD ? call->forward_workspace(handle, plan->x, plan->w, m->convolution,
                                                     plan->y, m->algorithm, bytes)
           : pass == INPUT_GRADIENT
               ? call->data_workspace(handle, plan->w, plan->y, m->convolution, plan->x,
                                      m->algorithm, bytes)
               : call->filter_workspace(handle, plan->x, plan->y, m->convolution, plan->w,
                                        m->algorithm, bytes);
}

/* Takes the algorithm in that arithmetic. False if cuDNN does not support it within the
 * workspace. */
static bool take(struct cuda_dnn_plan *plan, enum pass pass, unsigned algorithm, unsigned math,
                 size_t workspace_most)
{
    struct method *m = &plan->methods[pass];
    m->algorithm = algorithm;
    m->math = math;
    return plan->dnn->library.call.set_math(m->convolution, math) == DNN_SUCCESS &&
           ask_workspace(plan, pass, &m->workspace) == DNN_SUCCESS &&
           m->workspace <= workspace_most;
}

/*
 * Without TF32 this requests FMA for each algorithm, whatever arithmetic the heuristics name for
 * it, and skips the algorithms that they name for tensor cores. With TF32 it requests the named
 * arithmetic. Neither of these rounds values in memory to shorter numbers.
 */
static bool choose(struct cuda_dnn_plan *plan, enum pass pass, size_t workspace_most,
                   char reason[CUDA_DNN_TEXT_BYTES])
{
    struct dnn_algorithm choices[CHOICES_MOST];
    int named = 0, deterministic = 0;
    bool tf32 = plan->dnn->tf32;
    unsigned error = ask_choices(plan, pass, &named, choices);
    for (int i = 0; error == DNN_SUCCESS && i < named; i++) {
        const struct dnn_algorithm *c = &choices[i];
        if (c->status != DNN_SUCCESS || c->math == DNN_TENSOR_OP_MATH_ALLOW_CONVERSION ||
            (c->math == DNN_TENSOR_OP_MATH && !tf32) || c->determinism != DNN_DETERMINISTIC)
            continue;
        deterministic++;
        if (take(plan, pass, c->algorithm, tf32 ? c->math : DNN_FMA_MATH, workspace_most))
            return true;
    }
    if (error != DNN_SUCCESS)
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "cuDNN names no algorithm for the %s (%s)",
                 pass_names[pass], plan->dnn->library.call.get_error_string(error));
    else
        snprintf(
            reason, CUDA_DNN_TEXT_BYTES,
            "cuDNN names %d algorithms for the %s: %d are deterministic and in %s, and none of "
            "these can be done in %zu MiB of workspace",
            named, pass_names[pass], deterministic, tf32 ? "TF32" : "float32",
            workspace_most >> 20);
    return false;
}

/* -------- plans ------------------------------------------------------------------------------- */

static int dnn_int(size_t value)
{
    CHECK(value <= INT_MAX);
    return (int)value;
}

/* Returns 0 or cuDNN's error. */
static unsigned describe_shape(struct cuda_dnn_plan *plan, const struct conv2d *c, size_t images)
{
    unsigned error;
    const struct dnn_calls *call = &plan->dnn->library.call;
    int n = dnn_int(images), channels = dnn_int(c->channels), filters = dnn_int(c->filters);
    int kernel = dnn_int(c->kernel), padding = dnn_int(c->padding);
    int height = dnn_int(conv2d_window_size(c, c->height));
    int width = dnn_int(conv2d_window_size(c, c->width));
    (void)((error = call->create_tensor(&plan->x)) || (error = call->create_tensor(&plan->y)) ||
           (error = call->create_filter(&plan->w)) ||
           (error = call->set_tensor(plan->x, DNN_TENSOR_NHWC, DNN_DATA_FLOAT, n, channels,
                                     dnn_int(c->height), dnn_int(c->width))) ||
           (error = call->set_tensor(plan->y, DNN_TENSOR_NHWC, DNN_DATA_FLOAT, n, filters, height,
                                     width)) ||
           (error = call->set_filter(plan->w, DNN_DATA_FLOAT, DNN_TENSOR_NHWC, filters, channels,
                                     kernel, kernel)));
    for (int pass = 0; pass < PASSES && error == DNN_SUCCESS; pass++) {
        dnn_convolution *convolution = &plan->methods[pass].convolution;
        (void)((error = call->create_convolution(convolution)) ||
               (error = call->set_convolution(*convolution, padding, padding, 1, 1, 1, 1,
                                              DNN_CROSS_CORRELATION, DNN_DATA_FLOAT)) ||
               (error = call->set_math(*convolution,
                                       plan->dnn->tf32 ? DNN_DEFAULT_MATH : DNN_FMA_MATH)));
    }
    return error;
}

enum status cuda_dnn_plan_new(struct cuda_dnn_plan **out_plan, struct cuda_dnn *dnn,
                              const struct conv2d *conv, size_t images,
                              const struct cuda_dnn_plan *like, size_t workspace_most,
                              char reason[CUDA_DNN_TEXT_BYTES])
{
    struct cuda_dnn_plan *plan = calloc(1, sizeof *plan);
    *out_plan = NULL;
    if (!plan)
        return FAIL(STATUS_NO_MEMORY, "cuDNN: out of memory");
    plan->dnn = dnn;
    unsigned error = describe_shape(plan, conv, images);
    bool good = error == DNN_SUCCESS;
    if (!good)
        snprintf(reason, CUDA_DNN_TEXT_BYTES, "cuDNN does not support the shape (%s)",
                 dnn->library.call.get_error_string(error));
    for (int pass = 0; pass < PASSES && good; pass++) {
        if (!like) {
            good = choose(plan, pass, workspace_most, reason);
            continue;
        }
        const struct method *m = &like->methods[pass];
        good = take(plan, pass, m->algorithm, m->math, workspace_most);
        if (!good)
            snprintf(reason, CUDA_DNN_TEXT_BYTES, "%s cannot be done in %zu bytes of workspace",
                     algorithm_name(pass, m->algorithm), workspace_most);
    }
    if (!good)
        cuda_dnn_plan_free(&plan);
    *out_plan = plan;
    return good ? STATUS_OK : STATUS_UNSUPPORTED;
}

void cuda_dnn_plan_free(struct cuda_dnn_plan **out_plan)
{
    struct cuda_dnn_plan *plan = *out_plan;
    *out_plan = NULL;
    if (!plan)
        return;
    const struct dnn_calls *call = &plan->dnn->library.call;
    for (int pass = 0; pass < PASSES; pass++) {
        if (plan->methods[pass].convolution)
            call->destroy_convolution(plan->methods[pass].convolution);
    }
    if (plan->w)
        call->destroy_filter(plan->w);
    if (plan->y)
        call->destroy_tensor(plan->y);
    if (plan->x)
        call->destroy_tensor(plan->x);
    free(plan);
}

size_t cuda_dnn_plan_workspace(const struct cuda_dnn_plan *plan)
{
    size_t most = 0;
    for (int pass = 0; pass < PASSES; pass++)
        most = plan->methods[pass].workspace > most ? plan->methods[pass].workspace : most;
    return most;
}

void cuda_dnn_plan_describe(const struct cuda_dnn_plan *plan, char text[CUDA_DNN_TEXT_BYTES])
{
    size_t used = 0;
    for (int pass = 0; pass < PASSES; pass++)
        used +=
            (size_t)snprintf(text + used, CUDA_DNN_TEXT_BYTES - used, "%s %s, ", pass_names[pass],
                             algorithm_name(pass, plan->methods[pass].algorithm));
    snprintf(text + used, CUDA_DNN_TEXT_BYTES - used, "%.1f MiB of workspace",
             (double)cuda_dnn_plan_workspace(plan) * 0x1p-20);
}

/* -------- passes ------------------------------------------------------------------------------ */

static const char *result(struct cuda_dnn_plan *plan, const char *function, unsigned error)
{
    if (error == DNN_SUCCESS)
        return NULL;
    snprintf(plan->error, sizeof plan->error, "%s: %s", function,
             plan->dnn->library.call.get_error_string(error));
    return plan->error;
}

const char *cuda_dnn_forward(struct cuda_dnn_plan *plan, const float *x, const float *w,
                             void *workspace, float *y)
{
    const float one = 1.0f, zero = 0.0f;
    const struct method *m = &plan->methods[FORWARD];
    return result(plan, "cudnnConvolutionForward",
                  plan->dnn->library.call.forward(plan->dnn->handle, &one, plan->x, x, plan->w, w,
                                                  m->convolution, m->algorithm, workspace,
                                                  m->workspace, &zero, plan->y, y));
}

const char *cuda_dnn_input_gradient(struct cuda_dnn_plan *plan, const float *w, const float *dy,
                                    void *workspace, float *dx)
{
    const float one = 1.0f, zero = 0.0f;
    const struct method *m = &plan->methods[INPUT_GRADIENT];
    return result(plan, "cudnnConvolutionBackwardData",
                  plan->dnn->library.call.backward_data(
                      plan->dnn->handle, &one, plan->w, w, plan->y, dy, m->convolution,
                      m->algorithm, workspace, m->workspace, &zero, plan->x, dx));
}

const char *cuda_dnn_weight_gradient(struct cuda_dnn_plan *plan, const float *x, const float *dy,
                                     void *workspace, bool add, float *dw)
{
    const float one = 1.0f, zero = 0.0f;
    const struct method *m = &plan->methods[WEIGHT_GRADIENT];
    return result(plan, "cudnnConvolutionBackwardFilter",
                  plan->dnn->library.call.backward_filter(
                      plan->dnn->handle, &one, plan->x, x, plan->y, dy, m->convolution,
                      m->algorithm, workspace, m->workspace, add ? &one : &zero, plan->w, dw));
}
