/*
 * Launchers of the CUDA kernels (the *.cu of this folder), callable from C. Each queues a kernel on
 * `stream` and returns the launch's cudaError_t (0: success). Pointers are device memory, with the
 * layouts of ops.h. Kernels are compiled without contraction of multiplications and additions, so
 * that elementwise operations give the CPU's bits. This costs no time, because memory limits all of
 * them. The order of every sum depends on the shapes alone: a repeated step gives the same bits.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_KERNELS_KERNELS_H
#define PSRING_COMMON_DEVICE_CUDA_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/device/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/*
 * Device memory in which the threads of one launch exchange sums (tree.h). `arrived` holds zeros
 * before and after a launch. All launches of a stream share one.
 */
enum { KERNEL_ROOM_ITEMS = 1 << 16, KERNEL_ROOM_ITEM_BYTES = 104 };
enum {
    KERNEL_ROOM_SUMS_BYTES = KERNEL_ROOM_ITEMS / 4 * 5 * KERNEL_ROOM_ITEM_BYTES,
    KERNEL_ROOM_ARRIVED_BYTES = KERNEL_ROOM_ITEMS * 4
};
struct kernel_room {
    void *sums;        /* KERNEL_ROOM_SUMS_BYTES */
    unsigned *arrived; /* KERNEL_ROOM_ARRIVED_BYTES */
};

/* 0 if this build has code for the current GPU. */
int kernel_probe(void);

/* -------- elementwise ------------------------------------------------------------------------- */
int kernel_fill(struct CUstream_st *stream, size_t count, float value, float *to);
int kernel_scale(struct CUstream_st *stream, size_t count, float factor, float *values);
int kernel_relu(struct CUstream_st *stream, size_t count, const float *x, float *y);
int kernel_relu_backward(struct CUstream_st *stream, size_t count, const float *y, const float *dy,
                         float *dx);
int kernel_dropout(struct CUstream_st *stream, const struct dropout *dropout, size_t count,
                   const float *x, float *y);
int kernel_gather(struct CUstream_st *stream, const struct gather *gather, size_t batch,
                  const uint32_t *samples, float *images, uint8_t *labels);

/* -------- sums -------------------------------------------------------------------------------- */

/* y[i] = sum over s of partial[s x count + i], s in order, + bias[i % width] (NULL: none), then
 * relu. With `add`, adds y's old value before relu. y == partial is allowed. */
struct slice_sum {
    size_t count, slices, width;
    const float *bias;
    bool relu, add;
};
int kernel_sum_slices(struct CUstream_st *stream, const struct slice_sum *sum, const float *partial,
                      float *y);

/* totals (width) = the sums of the columns of x (rows, width). With `add`, adds them to totals. If
 * y (rows, width; relu's outputs) is not NULL, x first becomes 0 where y is not positive. */
struct column_sum {
    size_t rows, width;
    bool add;
};
int kernel_sum_columns(struct CUstream_st *stream, const struct column_sum *sum, const float *y,
                       float *x, float *totals, struct kernel_room room);

/* -------- convolution and pooling ------------------------------------------------------------- */

/* columns (batch x windows, kernel x kernel x channels): each row is one window of x. */
int kernel_lower(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                 const float *x, float *columns);
/* dx: each element is the sum of its copies in dcolumns, which has the layout of columns. */
int kernel_gather_columns(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                          const float *dcolumns, float *dx);
/*
 * The same convolution without columns, for images of one channel and windows of 3 x 3 or 5 x 5.
 * kernel_direct_can tests for these. There is forward, and all of backward except dx; ops.h has
 * what they compute.
 */
bool kernel_direct_can(const struct conv2d *conv, size_t batch);
int kernel_direct_forward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                          const float *x, const float *w, const float *bias, float *y,
                          uint8_t *index);
int kernel_direct_backward(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                           const struct backward *backward, struct kernel_room room);

/* y and index from window outputs without bias. Requires conv->pool. */
int kernel_finish_pooled(struct CUstream_st *stream, const struct conv2d *conv, size_t batch,
                         const float *window, const float *bias, float *y, uint8_t *index);
/* dx (N, height, width, channels) of pooling. If y (relu's outputs) is not NULL, the gradient is 0
 * where y is not positive. totals (channels), if not NULL, get the sums of dx. */
struct bias_sum {
    float *totals;
    bool add; /* adds to totals */
    struct kernel_room room;
};
int kernel_spread(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                  const float *dy, const float *y, const uint8_t *index, float *dx,
                  const struct bias_sum *sum);
int kernel_maxpool(struct CUstream_st *stream, const struct pool2d *pool, size_t batch,
                   const float *x, float *y, uint8_t *index);

/* -------- loss and optimizers ----------------------------------------------------------------- */
int kernel_softmax_cross_entropy(struct CUstream_st *stream, size_t batch, size_t classes,
                                 double divisor, const float *logits, const uint8_t *labels,
                                 float *dlogits, struct loss_sum *sum, struct kernel_room room);
int kernel_adam_count(struct CUstream_st *stream, const struct update *adam);
/* sums (2): device memory for lars' sums of squares of the parameters and of the gradients. */
int kernel_update(struct CUstream_st *stream, const struct update *update, size_t count,
                  float *parameters, const float *gradients, float *state, double *sums,
                  struct kernel_room room);

#ifdef __cplusplus
}
#endif

#endif
