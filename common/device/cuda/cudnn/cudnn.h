/*
 * cuDNN's convolutions, opened at run time where cuDNN 8.9 or 9 is found. A plan is a shape with a
 * number of images, and for each of its three passes an algorithm that gives the same bits each
 * time, in float32 (TF32 only if asked for). A pass allocates nothing, waits for nothing and goes
 * to the one stream, so that it can be recorded in a graph. From the device's thread.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDNN_CUDNN_H
#define PSRING_COMMON_DEVICE_CUDA_CUDNN_CUDNN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/ops.h"

struct CUstream_st;
struct cuda_dnn;
struct cuda_dnn_plan;

enum { CUDA_DNN_TEXT_BYTES = 512 };

/* "9.19.0, built with CUDA 13.0: FILE", or why there is none that can be used (then false). */
bool cuda_dnn_describe(char text[CUDA_DNN_TEXT_BYTES]);

/* All passes go to `stream`. STATUS_UNSUPPORTED: `reason` says why, nothing is logged. */
enum status cuda_dnn_new(struct cuda_dnn **dnn, struct CUstream_st *stream, bool tf32,
                         char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_free(struct cuda_dnn **dnn);

/* "9.19.0" */
const char *cuda_dnn_version(const struct cuda_dnn *dnn);

/*
 * What cuDNN's heuristics name first for each pass, of that which is deterministic and needs no
 * more than `workspace_most` bytes; or, where `like` is not NULL, the algorithms of that plan, of
 * the same shape, for another number of images. Relu and pooling are not part of it. Asks the host
 * alone. STATUS_UNSUPPORTED: `reason` says why, nothing is logged. Borrows `dnn`.
 */
enum status cuda_dnn_plan_new(struct cuda_dnn_plan **plan, struct cuda_dnn *dnn,
                              const struct conv2d *conv, size_t images,
                              const struct cuda_dnn_plan *like, size_t workspace_most,
                              char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_plan_free(struct cuda_dnn_plan **plan);

/* Bytes of device memory that each pass may use; aligned to 256. */
size_t cuda_dnn_plan_workspace(const struct cuda_dnn_plan *plan);
/* "forward IMPLICIT_GEMM, ..." */
void cuda_dnn_plan_describe(const struct cuda_dnn_plan *plan, char text[CUDA_DNN_TEXT_BYTES]);

/*
 * x (N, H, W, C), y its window outputs without bias, w and dw as cuDNN has them: (filters, kernel,
 * kernel, channels). Each returns NULL, or which function failed and cuDNN's word for it.
 */
const char *cuda_dnn_forward(struct cuda_dnn_plan *plan, const float *x, const float *w,
                             void *workspace, float *y);
const char *cuda_dnn_input_gradient(struct cuda_dnn_plan *plan, const float *w, const float *dy,
                                    void *workspace, float *dx);
/* With `add`, to what dw holds. */
const char *cuda_dnn_weight_gradient(struct cuda_dnn_plan *plan, const float *x, const float *dy,
                                     void *workspace, bool add, float *dw);

#endif
