/*
 * Compares common/device/cuda/cudnn.h with cuDNN's own headers, if they are installed. The file is
 * compiled with all warnings as errors, and never run. In C, cuDNN's enumerations are unsigned int.
 */
#include <cudnn.h>

#include "common/device/cuda/cudnn.h"

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME(DNN_SUCCESS, CUDNN_STATUS_SUCCESS);
SAME(DNN_DATA_FLOAT, CUDNN_DATA_FLOAT);
SAME(DNN_TENSOR_NHWC, CUDNN_TENSOR_NHWC);
SAME(DNN_CROSS_CORRELATION, CUDNN_CROSS_CORRELATION);
SAME(DNN_DETERMINISTIC, CUDNN_DETERMINISTIC);
SAME(DNN_DEFAULT_MATH, CUDNN_DEFAULT_MATH);
SAME(DNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH);
SAME(DNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
SAME(DNN_FMA_MATH, CUDNN_FMA_MATH);

/* The names in cudnn.c are indexed by these numbers. */
SAME(0, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM);
SAME(1, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
SAME(2, CUDNN_CONVOLUTION_FWD_ALGO_GEMM);
SAME(3, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT);
SAME(4, CUDNN_CONVOLUTION_FWD_ALGO_FFT);
SAME(5, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING);
SAME(6, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD);
SAME(7, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED);
SAME(8, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
SAME(0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0);
SAME(1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1);
SAME(2, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT);
SAME(3, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING);
SAME(4, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD);
SAME(5, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED);
SAME(6, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT);
SAME(0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0);
SAME(1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1);
SAME(2, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT);
SAME(3, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3);
SAME(4, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD);
SAME(5, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED);
SAME(6, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING);
SAME(7, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT);

#define SAME_PLACE(type, ours, theirs)                                                             \
    _Static_assert(offsetof(struct dnn_algorithm, ours) == offsetof(type, theirs) &&               \
                       sizeof(((struct dnn_algorithm *)0)->ours) == sizeof(((type *)0)->theirs),   \
                   #type "." #theirs)
#define SAME_ALGORITHM(type)                                                                       \
    _Static_assert(sizeof(struct dnn_algorithm) == sizeof(type), #type);                           \
    SAME_PLACE(type, algorithm, algo);                                                             \
    SAME_PLACE(type, status, status);                                                              \
    SAME_PLACE(type, time, time);                                                                  \
    SAME_PLACE(type, memory, memory);                                                              \
    SAME_PLACE(type, determinism, determinism);                                                    \
    SAME_PLACE(type, math, mathType);                                                              \
    SAME_PLACE(type, reserved, reserved)
SAME_ALGORITHM(cudnnConvolutionFwdAlgoPerf_t);
SAME_ALGORITHM(cudnnConvolutionBwdDataAlgoPerf_t);
SAME_ALGORITHM(cudnnConvolutionBwdFilterAlgoPerf_t);

/* The parameters of the three functions that fill the struct above: psring's types, but with
 * cuDNN's struct. */
typedef unsigned choices_forward(dnn_handle, dnn_tensor, dnn_filter, dnn_convolution, dnn_tensor,
                                 int, int *, cudnnConvolutionFwdAlgoPerf_t *);
typedef unsigned choices_data(dnn_handle, dnn_filter, dnn_tensor, dnn_convolution, dnn_tensor, int,
                              int *, cudnnConvolutionBwdDataAlgoPerf_t *);
typedef unsigned choices_filter(dnn_handle, dnn_tensor, dnn_tensor, dnn_convolution, dnn_filter,
                                int, int *, cudnnConvolutionBwdFilterAlgoPerf_t *);
choices_forward *const psring_test_cudnn_forward = cudnnGetConvolutionForwardAlgorithm_v7;
choices_data *const psring_test_cudnn_data = cudnnGetConvolutionBackwardDataAlgorithm_v7;
choices_filter *const psring_test_cudnn_filter = cudnnGetConvolutionBackwardFilterAlgorithm_v7;

/* All other functions: a pointer of a different type would be an error. */
const struct dnn_calls psring_test_cudnn_calls = {
    .get_version = cudnnGetVersion,
    .get_cudart_version = cudnnGetCudartVersion,
    .get_error_string = cudnnGetErrorString,
    .create = cudnnCreate,
    .destroy = cudnnDestroy,
    .set_stream = cudnnSetStream,
    .create_tensor = cudnnCreateTensorDescriptor,
    .destroy_tensor = cudnnDestroyTensorDescriptor,
    .set_tensor = cudnnSetTensor4dDescriptor,
    .create_filter = cudnnCreateFilterDescriptor,
    .destroy_filter = cudnnDestroyFilterDescriptor,
    .set_filter = cudnnSetFilter4dDescriptor,
    .create_convolution = cudnnCreateConvolutionDescriptor,
    .destroy_convolution = cudnnDestroyConvolutionDescriptor,
    .set_convolution = cudnnSetConvolution2dDescriptor,
    .set_math = cudnnSetConvolutionMathType,
    .forward_workspace = cudnnGetConvolutionForwardWorkspaceSize,
    .data_workspace = cudnnGetConvolutionBackwardDataWorkspaceSize,
    .filter_workspace = cudnnGetConvolutionBackwardFilterWorkspaceSize,
    .forward = cudnnConvolutionForward,
    .backward_data = cudnnConvolutionBackwardData,
    .backward_filter = cudnnConvolutionBackwardFilter,
};
