/*
 * cuDNN's convolutions. cuDNN 8.9 or 9 is opened at run time if it is found. A plan is a shape with
 * a number of images. For each of its three passes it has an algorithm that gives the same bits
 * each time, in float32 (TF32 only on request). A pass allocates nothing, waits for nothing and
 * uses one stream, so that a graph can record it. From the device's thread.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDNN_H
#define PSRING_COMMON_DEVICE_CUDA_CUDNN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/base/status.h"
#include "common/device/ops.h"

struct CUstream_st;
struct cuda_dnn;
struct cuda_dnn_plan;

enum { CUDA_DNN_TEXT_BYTES = 512 };

/* Writes "9.19.0, built with CUDA 13.0: FILE" to `text`. If no cuDNN can be used, writes the reason
 * and returns false. */
bool cuda_dnn_describe(char text[CUDA_DNN_TEXT_BYTES]);

/* All passes go to `stream`. STATUS_UNSUPPORTED: `reason` holds the cause and nothing is logged. */
enum status cuda_dnn_new(struct cuda_dnn **dnn, struct CUstream_st *stream, bool tf32,
                         char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_free(struct cuda_dnn **dnn);

/* "9.19.0" */
const char *cuda_dnn_version(const struct cuda_dnn *dnn);

/*
 * Plans a shape for a number of images. Without `like` each pass takes the first algorithm that
 * cuDNN's heuristics name and that is deterministic and needs at most `workspace_most` bytes. With
 * `like`, a plan of the same shape for another number of images, each pass takes that plan's
 * algorithm. Relu and pooling are not included. Runs on the host alone. STATUS_UNSUPPORTED:
 * `reason` holds the cause and nothing is logged. Borrows `dnn`.
 */
enum status cuda_dnn_plan_new(struct cuda_dnn_plan **plan, struct cuda_dnn *dnn,
                              const struct conv2d *conv, size_t images,
                              const struct cuda_dnn_plan *like, size_t workspace_most,
                              char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_plan_free(struct cuda_dnn_plan **plan);

/* Bytes of device memory that each pass may use, aligned to 256. */
size_t cuda_dnn_plan_workspace(const struct cuda_dnn_plan *plan);
/* "forward IMPLICIT_GEMM, ..." */
void cuda_dnn_plan_describe(const struct cuda_dnn_plan *plan, char text[CUDA_DNN_TEXT_BYTES]);

/*
 * x (N, H, W, C); y is its window outputs without bias. w and dw have cuDNN's layout (filters,
 * kernel, kernel, channels). Each returns NULL, or the name of the failed function and cuDNN's
 * error text.
 */
const char *cuda_dnn_forward(struct cuda_dnn_plan *plan, const float *x, const float *w,
                             void *workspace, float *y);
const char *cuda_dnn_input_gradient(struct cuda_dnn_plan *plan, const float *w, const float *dy,
                                    void *workspace, float *dx);
/* With `add`, adds to dw. */
const char *cuda_dnn_weight_gradient(struct cuda_dnn_plan *plan, const float *x, const float *dy,
                                     void *workspace, bool add, float *dw);

/*
 * The part of cuDNN's API that psring uses, declared here so that no cuDNN header is needed. These
 * are the separate convolution functions, which are equal in 8.9 and 9 (where NVIDIA calls them
 * deprecated). Each name is cuDNN's without the "cudnn". An enumeration is an unsigned int in C's
 * ABI. Source: NVIDIA, cuDNN API, cudnn_ops and cudnn_cnn.
 */

struct CUstream_st;
struct cudnnContext;
struct cudnnTensorStruct;
struct cudnnFilterStruct;
struct cudnnConvolutionStruct;

enum dnn_constant {
    DNN_SUCCESS = 0,           /* cudnnStatus_t */
    DNN_DATA_FLOAT = 0,        /* cudnnDataType_t */
    DNN_TENSOR_NHWC = 1,       /* cudnnTensorFormat_t; of a filter: (filters, k, k, channels) */
    DNN_CROSS_CORRELATION = 1, /* cudnnConvolutionMode_t: the window is not flipped */
    DNN_DETERMINISTIC = 1,     /* cudnnDeterminism_t */
};

/*
 * cudnnMathType_t, for float32. From Ampere on, DEFAULT and TENSOR_OP allow TF32. FMA restricts
 * cuDNN to kernels of fused multiply-adds. ALLOW_CONVERSION also lets cuDNN round values in memory
 * to shorter numbers.
 */
enum dnn_math {
    DNN_DEFAULT_MATH = 0,
    DNN_TENSOR_OP_MATH = 1,
    DNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    DNN_FMA_MATH = 3,
};

/* cudnnConvolutionFwdAlgoPerf_t, BwdDataAlgoPerf_t and BwdFilterAlgoPerf_t, which are identical. */
struct dnn_algorithm {
    unsigned algorithm, status;
    float time;
    size_t memory;
    unsigned determinism, math;
    int reserved[3];
};

typedef struct cudnnContext *dnn_handle;
typedef struct cudnnTensorStruct *dnn_tensor;
typedef struct cudnnFilterStruct *dnn_filter;
typedef struct cudnnConvolutionStruct *dnn_convolution;

struct dnn_calls {
    size_t (*get_version)(void);
    size_t (*get_cudart_version)(void);
    const char *(*get_error_string)(unsigned status);
    unsigned (*create)(dnn_handle *);
    unsigned (*destroy)(dnn_handle);
    unsigned (*set_stream)(dnn_handle, struct CUstream_st *);

    unsigned (*create_tensor)(dnn_tensor *);
    unsigned (*destroy_tensor)(dnn_tensor);
    unsigned (*set_tensor)(dnn_tensor, unsigned format, unsigned type, int n, int c, int h, int w);
    unsigned (*create_filter)(dnn_filter *);
    unsigned (*destroy_filter)(dnn_filter);
    unsigned (*set_filter)(dnn_filter, unsigned type, unsigned format, int k, int c, int h, int w);
    unsigned (*create_convolution)(dnn_convolution *);
    unsigned (*destroy_convolution)(dnn_convolution);
    unsigned (*set_convolution)(dnn_convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                                int dilation_h, int dilation_w, unsigned mode, unsigned type);
    unsigned (*set_math)(dnn_convolution, unsigned math);

    /* The algorithms that the heuristics name for a shape, best first. Computes nothing. */
    unsigned (*forward_choices)(dnn_handle, dnn_tensor x, dnn_filter w, dnn_convolution,
                                dnn_tensor y, int wanted, int *named, struct dnn_algorithm *);
    unsigned (*data_choices)(dnn_handle, dnn_filter w, dnn_tensor dy, dnn_convolution,
                             dnn_tensor dx, int wanted, int *named, struct dnn_algorithm *);
    unsigned (*filter_choices)(dnn_handle, dnn_tensor x, dnn_tensor dy, dnn_convolution,
                               dnn_filter dw, int wanted, int *named, struct dnn_algorithm *);
    unsigned (*forward_workspace)(dnn_handle, dnn_tensor x, dnn_filter w, dnn_convolution,
                                  dnn_tensor y, unsigned algorithm, size_t *bytes);
    unsigned (*data_workspace)(dnn_handle, dnn_filter w, dnn_tensor dy, dnn_convolution,
                               dnn_tensor dx, unsigned algorithm, size_t *bytes);
    unsigned (*filter_workspace)(dnn_handle, dnn_tensor x, dnn_tensor dy, dnn_convolution,
                                 dnn_filter dw, unsigned algorithm, size_t *bytes);

    /* out = alpha result + beta out; alpha and beta are floats on the host. */
    unsigned (*forward)(dnn_handle, const void *alpha, dnn_tensor, const void *x, dnn_filter,
                        const void *w, dnn_convolution, unsigned algorithm, void *workspace,
                        size_t workspace_bytes, const void *beta, dnn_tensor, void *y);
    unsigned (*backward_data)(dnn_handle, const void *alpha, dnn_filter, const void *w, dnn_tensor,
                              const void *dy, dnn_convolution, unsigned algorithm, void *workspace,
                              size_t workspace_bytes, const void *beta, dnn_tensor, void *dx);
    unsigned (*backward_filter)(dnn_handle, const void *alpha, dnn_tensor, const void *x,
                                dnn_tensor, const void *dy, dnn_convolution, unsigned algorithm,
                                void *workspace, size_t workspace_bytes, const void *beta,
                                dnn_filter, void *dw);
};

/* How psring finds cuDNN and the functions above on this machine. */

struct dnn_library {
    void *handle; /* the library stays loaded */
    struct dnn_calls call;
    char version[16]; /* "9.19.0" */
    char path[PATH_MAX];
};

/*
 * Finds the first suitable library in this order:
 * - the one that was found when psring was configured
 * - the loader's (LD_LIBRARY_PATH, ldconfig)
 * - cuBLAS's folder, and ../../cudnn/lib from there (the layout of NVIDIA's Python packages)
 * - the packages of the Pythons in /usr, /usr/local and /opt, where PyTorch's is
 *
 * False: `reason` lists the places searched, or the defect of what was found.
 */
bool dnn_find(struct dnn_library *library, char reason[CUDA_DNN_TEXT_BYTES]);

#endif
