/*
 * A stand-in for the functions of cuDNN that psring calls. It computes true convolutions on the
 * host in double precision and rounds the result once. If the requested arithmetic allows a GPU to
 * use TF32, it rounds the inputs to TF32 first. It is a separate library, opened at run time like
 * cuDNN, and enqueues its work with the program's emulated run-time.
 *
 * EMULATED_CUDNN holds words, separated by blanks, that name faults. PASS is forward, data or
 * filter:
 *   no-create    the handle cannot be created
 *   random       no algorithm is deterministic
 *   grows        fewer images need more workspace
 *   tf32         the arithmetic is TF32, whatever psring requests
 *   unwritten    the last element of each result is not written
 *   wrong-PASS   the pass omits the last image
 *   fail-PASS    the pass fails
 *   odd-N        wrong-forward, but only for batches of N images
 * EMULATED_CUDNN_RANK: the faults apply only to this rank of Open MPI.
 * EMULATED_CUDNN_VERSION: the version number. EMULATED_CUDNN_CUDA: the major CUDA of the build.
 * EMULATED_CUDNN_LOG: a file that gets a line for each requested pass.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/device/cuda/cudnn.h"
#include "tests/emulation/emulation.h"

static const unsigned NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NOT_SUPPORTED = 3000,
                      EXECUTION_FAILED = 5000, SUCCESS = DNN_SUCCESS;

struct cudnnTensorStruct {
    int n, c, h, w;
};

struct cudnnFilterStruct {
    int k, c, h, w;
};

struct cudnnConvolutionStruct {
    int pad;
    unsigned math;
};

/* The state of the process's only handle. */
static char handle;
static cudaStream_t stream;

static bool told(const char *word)
{
    const char *words = getenv("EMULATED_CUDNN"), *rank = getenv("OMPI_COMM_WORLD_RANK"),
               *only = getenv("EMULATED_CUDNN_RANK");
    if (only && (!rank || strcmp(rank, only) != 0))
        return false;
    return words && (std::string(" ") + words + " ").find(std::string(" ") + word + " ") !=
                        std::string::npos;
}

static bool told(const char *what, const char *pass)
{
    return told((std::string(what) + "-" + pass).c_str());
}

/* -------- shapes and algorithms --------------------------------------------------------------- */

static bool fits(const cudnnTensorStruct *x, const cudnnFilterStruct *w,
                 const cudnnConvolutionStruct *convolution, const cudnnTensorStruct *y)
{
    int more = 2 * convolution->pad + 1;
    return x->n == y->n && x->c == w->c && y->c == w->k && y->h == x->h + more - w->h &&
           y->w == x->w + more - w->w;
}

/* The first suitable algorithm comes last. Those before it are not deterministic, need tensor cores
 * or too much memory, or cannot be run. */
enum { GOOD = 1, TOO_LARGE = 2, IMPOSSIBLE = 4 };

static unsigned name_all(int wanted, int *named, struct dnn_algorithm *all)
{
    unsigned steady = told("random") ? 0 : DNN_DETERMINISTIC;
    const struct dnn_algorithm list[] = {
        {0, SUCCESS, -1, 0, 0, DNN_FMA_MATH, {}},
        {5, SUCCESS, -1, 0, steady, DNN_TENSOR_OP_MATH_ALLOW_CONVERSION, {}},
        {5, SUCCESS, -1, 0, steady, DNN_TENSOR_OP_MATH, {}},
        {TOO_LARGE, SUCCESS, -1, (size_t)1 << 32, steady, DNN_FMA_MATH, {}},
        {IMPOSSIBLE, NOT_SUPPORTED, -1, 0, steady, DNN_FMA_MATH, {}},
        {GOOD, SUCCESS, -1, 4096, steady, DNN_DEFAULT_MATH, {}},
    };
    *named = 0;
    for (const struct dnn_algorithm &one : list) {
        if (*named < wanted)
            all[(*named)++] = one;
    }
    return SUCCESS;
}

static unsigned workspace_of(int images, unsigned algorithm, size_t *bytes)
{
    *bytes = algorithm == TOO_LARGE ? (size_t)1 << 32
             : told("grows")        ? (size_t)4096 * (size_t)(1000 - images)
                                    : (size_t)4096 + 64 * (size_t)images;
    return algorithm == IMPOSSIBLE ? NOT_SUPPORTED : SUCCESS;
}

/* -------- a pass ------------------------------------------------------------------------------ */

/* Copies device memory, with the rounding of the arithmetic. */
static std::vector<float> read(const void *from, size_t count, unsigned math)
{
    std::vector<float> values((const float *)from, (const float *)from + count);
    if (math != DNN_FMA_MATH || told("tf32")) {
        for (float &value : values)
            value = emulation_tf32(value);
    }
    return values;
}

static size_t count_of(const cudnnTensorStruct &t)
{
    return (size_t)t.n * (size_t)t.c * (size_t)t.h * (size_t)t.w;
}

static size_t count_of(const cudnnFilterStruct &w)
{
    return (size_t)w.k * (size_t)w.c * (size_t)w.h * (size_t)w.w;
}

/* Calls `each` for every pixel of y of `images` images and every tap of the window that lies in x.
 * The arguments are the offsets of the first channel in x and y, and the offset in the first
 * filter. */
template <typename Each>
static void for_taps(const cudnnTensorStruct &x, const cudnnFilterStruct &w,
                     const cudnnTensorStruct &y, int pad, int images, Each each)
{
    for (int n = 0; n < images; n++) {
        for (int row = 0; row < y.h; row++) {
            for (int column = 0; column < y.w; column++) {
                size_t out = (((size_t)n * y.h + row) * y.w + column) * y.c;
                for (int r = 0; r < w.h; r++) {
                    for (int s = 0; s < w.w; s++) {
                        int h = row + r - pad, v = column + s - pad;
                        if (h >= 0 && h < x.h && v >= 0 && v < x.w)
                            each((((size_t)n * x.h + h) * x.w + v) * x.c, out,
                                 ((size_t)r * w.w + s) * w.c);
                    }
                }
            }
        }
    }
}

static void write(const std::vector<double> &sums, float alpha, float beta, float *to)
{
    size_t count = sums.size() - (told("unwritten") ? 1 : 0);
    for (size_t i = 0; i < count; i++)
        to[i] = (float)((double)alpha * sums[i] + (beta != 0 ? (double)(beta * to[i]) : 0));
}

static void note(const char *pass, int images, unsigned algorithm, unsigned math)
{
    const char *path = getenv("EMULATED_CUDNN_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s images %d algorithm %u math %u\n", pass, images, algorithm, math);
    fclose(file);
}

/* Checks the call like cuDNN does, and overwrites the whole workspace. */
static unsigned begin(const char *pass, const cudnnTensorStruct *x, const cudnnFilterStruct *w,
                      const cudnnConvolutionStruct *convolution, const cudnnTensorStruct *y,
                      unsigned algorithm, void *workspace, size_t bytes)
{
    size_t needed;
    if (!fits(x, w, convolution, y))
        return BAD_PARAM;
    if (workspace_of(x->n, algorithm, &needed) != SUCCESS || bytes < needed || told("fail", pass))
        return EXECUTION_FAILED;
    note(pass, x->n, algorithm, convolution->math);
    emulation_enqueue("workspace", {}, stream, [=] { memset(workspace, 0xff, bytes); });
    return SUCCESS;
}

extern "C" {

size_t cudnnGetVersion(void)
{
    const char *number = getenv("EMULATED_CUDNN_VERSION");
    return number ? (size_t)atol(number) : 91900;
}

size_t cudnnGetCudartVersion(void)
{
    const char *major = getenv("EMULATED_CUDNN_CUDA");
    return major ? 1000 * (size_t)atol(major) : CUDART_VERSION;
}

const char *cudnnGetErrorString(unsigned status)
{
    return status == NOT_INITIALIZED ? "EMULATED_NOT_INITIALIZED" : "EMULATED_ERROR";
}

unsigned cudnnCreate(dnn_handle *dnn)
{
    if (told("no-create"))
        return NOT_INITIALIZED;
    *dnn = (dnn_handle)&handle;
    return SUCCESS;
}

unsigned cudnnDestroy(dnn_handle)
{
    return SUCCESS;
}

unsigned cudnnSetStream(dnn_handle, CUstream_st *its_stream)
{
    stream = its_stream;
    return stream ? SUCCESS : BAD_PARAM;
}

unsigned cudnnCreateTensorDescriptor(dnn_tensor *tensor)
{
    *tensor = new cudnnTensorStruct();
    return SUCCESS;
}

unsigned cudnnDestroyTensorDescriptor(dnn_tensor tensor)
{
    delete tensor;
    return SUCCESS;
}

unsigned cudnnSetTensor4dDescriptor(dnn_tensor tensor, unsigned format, unsigned type, int n, int c,
                                    int h, int w)
{
    *tensor = {n, c, h, w};
    return format == DNN_TENSOR_NHWC && type == DNN_DATA_FLOAT ? SUCCESS : NOT_SUPPORTED;
}

unsigned cudnnCreateFilterDescriptor(dnn_filter *filter)
{
    *filter = new cudnnFilterStruct();
    return SUCCESS;
}

unsigned cudnnDestroyFilterDescriptor(dnn_filter filter)
{
    delete filter;
    return SUCCESS;
}

unsigned cudnnSetFilter4dDescriptor(dnn_filter filter, unsigned type, unsigned format, int k, int c,
                                    int h, int w)
{
    *filter = {k, c, h, w};
    return format == DNN_TENSOR_NHWC && type == DNN_DATA_FLOAT ? SUCCESS : NOT_SUPPORTED;
}

unsigned cudnnCreateConvolutionDescriptor(dnn_convolution *convolution)
{
    *convolution = new cudnnConvolutionStruct();
    return SUCCESS;
}

unsigned cudnnDestroyConvolutionDescriptor(dnn_convolution convolution)
{
    delete convolution;
    return SUCCESS;
}

unsigned cudnnSetConvolution2dDescriptor(dnn_convolution convolution, int pad_h, int pad_w,
                                         int stride_h, int stride_w, int dilation_h, int dilation_w,
                                         unsigned mode, unsigned type)
{
    convolution->pad = pad_h;
    return pad_h == pad_w && stride_h == 1 && stride_w == 1 && dilation_h == 1 && dilation_w == 1 &&
                   mode == DNN_CROSS_CORRELATION && type == DNN_DATA_FLOAT
               ? SUCCESS
               : NOT_SUPPORTED;
}

unsigned cudnnSetConvolutionMathType(dnn_convolution convolution, unsigned math)
{
    convolution->math = math;
    return SUCCESS;
}

unsigned cudnnGetConvolutionForwardAlgorithm_v7(dnn_handle, dnn_tensor x, dnn_filter w,
                                                dnn_convolution convolution, dnn_tensor y,
                                                int wanted, int *named, struct dnn_algorithm *all)
{
    return fits(x, w, convolution, y) ? name_all(wanted, named, all) : BAD_PARAM;
}

unsigned cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn_handle, dnn_filter w, dnn_tensor dy,
                                                     dnn_convolution convolution, dnn_tensor dx,
                                                     int wanted, int *named,
                                                     struct dnn_algorithm *all)
{
    return fits(dx, w, convolution, dy) ? name_all(wanted, named, all) : BAD_PARAM;
}

unsigned cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn_handle, dnn_tensor x, dnn_tensor dy,
                                                       dnn_convolution convolution, dnn_filter dw,
                                                       int wanted, int *named,
                                                       struct dnn_algorithm *all)
{
    return fits(x, dw, convolution, dy) ? name_all(wanted, named, all) : BAD_PARAM;
}

unsigned cudnnGetConvolutionForwardWorkspaceSize(dnn_handle, dnn_tensor x, dnn_filter,
                                                 dnn_convolution, dnn_tensor, unsigned algorithm,
                                                 size_t *bytes)
{
    return workspace_of(x->n, algorithm, bytes);
}

unsigned cudnnGetConvolutionBackwardDataWorkspaceSize(dnn_handle, dnn_filter, dnn_tensor dy,
                                                      dnn_convolution, dnn_tensor,
                                                      unsigned algorithm, size_t *bytes)
{
    return workspace_of(dy->n, algorithm, bytes);
}

unsigned cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn_handle, dnn_tensor x, dnn_tensor,
                                                        dnn_convolution, dnn_filter,
                                                        unsigned algorithm, size_t *bytes)
{
    return workspace_of(x->n, algorithm, bytes);
}

unsigned cudnnConvolutionForward(dnn_handle, const void *alpha, dnn_tensor x_shape, const void *x,
                                 dnn_filter w_shape, const void *w, dnn_convolution convolution,
                                 unsigned algorithm, void *workspace, size_t bytes,
                                 const void *beta, dnn_tensor y_shape, void *y)
{
    cudnnTensorStruct xs = *x_shape, ys = *y_shape;
    cudnnFilterStruct ws = *w_shape;
    cudnnConvolutionStruct c = *convolution;
    float a = *(const float *)alpha, b = *(const float *)beta;
    unsigned status = begin("forward", &xs, &ws, &c, &ys, algorithm, workspace, bytes);
    if (status != SUCCESS)
        return status;
    emulation_enqueue("cudnn forward", {}, stream, [=] {
        std::vector<float> in = read(x, count_of(xs), c.math),
                           weights = read(w, count_of(ws), c.math);
        std::vector<double> sums(count_of(ys));
        size_t filter = (size_t)ws.h * ws.w * ws.c;
        bool wrong = told("wrong-forward") || told(("odd-" + std::to_string(xs.n)).c_str());
        for_taps(xs, ws, ys, c.pad, xs.n - wrong, [&](size_t i, size_t o, size_t t) {
            for (int k = 0; k < ws.k; k++) {
                for (int channel = 0; channel < xs.c; channel++)
                    sums[o + k] +=
                        (double)in[i + channel] * (double)weights[k * filter + t + channel];
            }
        });
        write(sums, a, b, (float *)y);
    });
    return SUCCESS;
}

unsigned cudnnConvolutionBackwardData(dnn_handle, const void *alpha, dnn_filter w_shape,
                                      const void *w, dnn_tensor y_shape, const void *dy,
                                      dnn_convolution convolution, unsigned algorithm,
                                      void *workspace, size_t bytes, const void *beta,
                                      dnn_tensor x_shape, void *dx)
{
    cudnnTensorStruct xs = *x_shape, ys = *y_shape;
    cudnnFilterStruct ws = *w_shape;
    cudnnConvolutionStruct c = *convolution;
    float a = *(const float *)alpha, b = *(const float *)beta;
    unsigned status = begin("data", &xs, &ws, &c, &ys, algorithm, workspace, bytes);
    if (status != SUCCESS)
        return status;
    emulation_enqueue("cudnn data", {}, stream, [=] {
        std::vector<float> out = read(dy, count_of(ys), c.math),
                           weights = read(w, count_of(ws), c.math);
        std::vector<double> sums(count_of(xs));
        size_t filter = (size_t)ws.h * ws.w * ws.c;
        for_taps(xs, ws, ys, c.pad, xs.n - told("wrong-data"), [&](size_t i, size_t o, size_t t) {
            for (int k = 0; k < ws.k; k++) {
                for (int channel = 0; channel < xs.c; channel++)
                    sums[i + channel] +=
                        (double)out[o + k] * (double)weights[k * filter + t + channel];
            }
        });
        write(sums, a, b, (float *)dx);
    });
    return SUCCESS;
}

unsigned cudnnConvolutionBackwardFilter(dnn_handle, const void *alpha, dnn_tensor x_shape,
                                        const void *x, dnn_tensor y_shape, const void *dy,
                                        dnn_convolution convolution, unsigned algorithm,
                                        void *workspace, size_t bytes, const void *beta,
                                        dnn_filter w_shape, void *dw)
{
    cudnnTensorStruct xs = *x_shape, ys = *y_shape;
    cudnnFilterStruct ws = *w_shape;
    cudnnConvolutionStruct c = *convolution;
    float a = *(const float *)alpha, b = *(const float *)beta;
    unsigned status = begin("filter", &xs, &ws, &c, &ys, algorithm, workspace, bytes);
    if (status != SUCCESS)
        return status;
    emulation_enqueue("cudnn filter", {}, stream, [=] {
        std::vector<float> in = read(x, count_of(xs), c.math), out = read(dy, count_of(ys), c.math);
        std::vector<double> sums(count_of(ws));
        size_t filter = (size_t)ws.h * ws.w * ws.c;
        for_taps(xs, ws, ys, c.pad, xs.n - told("wrong-filter"), [&](size_t i, size_t o, size_t t) {
            for (int k = 0; k < ws.k; k++) {
                for (int channel = 0; channel < xs.c; channel++)
                    sums[k * filter + t + channel] += (double)in[i + channel] * (double)out[o + k];
            }
        });
        write(sums, a, b, (float *)dw);
    });
    return SUCCESS;
}

} /* extern "C" */
