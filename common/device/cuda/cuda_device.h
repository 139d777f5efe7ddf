/*
 * The CUDA device. Only its files include this header. Everything is queued on one compute stream.
 * Operations follow each other there, so scratch memory belongs to the running operation.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CUDA_DEVICE_H
#define PSRING_COMMON_DEVICE_CUDA_CUDA_DEVICE_H

#include <cuda_runtime_api.h>
#include <stdatomic.h>

#include "common/device/cuda/blas.h"
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/nvml.h"
#include "common/device/device.h"

enum {
    CUDA_SLOTS = 16,
    CUDA_SLOT_BYTES = 64 * 1024,
};

/* Uploads use pinned slots in turn, so that neither the caller nor the device waits for a small
 * one. */
struct cuda_slots {
    char *memory; /* (CUDA_SLOTS, CUDA_SLOT_BYTES), pinned */
    cudaEvent_t free[CUDA_SLOTS];
    unsigned next;
};

/* The step that device_repeat has recorded. */
struct cuda_graph {
    enum device_graph use;
    device_work *work;
    void *context;
    bool warm; /* `work` has run once */
    cudaGraphExec_t exec;
    bool capturing;
};

struct cuda {
    struct device device; /* first: a struct device * of this kind is a struct cuda * */
    int index;
    cudaStream_t compute;
    struct cuda_blas *blas;
    void *blas_workspace;
    enum status failure; /* the first one */
    _Atomic bool told;   /* a failure has been logged; keeps other threads from logging it too */
    float *scratch;      /* (scratch_count), grown by the prepare entries */
    size_t scratch_count;
    struct kernel_room room;
    double *squares; /* (2), for kernel_lars */
    struct cuda_slots slots;
    struct cuda_graph graph;
    struct cuda_nvml *nvml; /* NULL: the driver does not report the load of the GPU */
};

static inline struct cuda *cuda_of(struct device *device)
{
    return (struct cuda *)(void *)device;
}

extern const struct device_ops cuda_ops;
extern const struct stream_ops cuda_stream_ops;

/* Keeps and logs the first failure. `error` is a cudaError_t. True if nothing has failed so far. */
bool cuda_keep(struct cuda *cuda, int error, const char *what);

/* The status of an allocation; STATUS_NO_MEMORY is not logged. After an error *memory is NULL. */
enum status cuda_allocated(int error, const char *what, void **memory);

/* Grows scratch memory to `count` floats. Waits for the device if it has to grow. */
enum status cuda_reserve(struct cuda *cuda, size_t count);

/* One product. */
void cuda_multiply(struct cuda *cuda, const struct cuda_blas_product *product);

/*
 * The same with k cut into slices of `slice` (the last may be shorter), which are multiplied at
 * once. The result c (slices, m, n) has one product per slice, which kernel_sum_slices adds. Uncut,
 * a product with a small result and a long k would keep only a few multiprocessors busy.
 */
void cuda_multiply_sliced(struct cuda *cuda, const struct cuda_blas_product *product, size_t slice);

/* Returns the length of a slice of k, so that the slices' (m, n) products together fill a GPU. All
 * slices are equal if k has a divisor near that length. Depends on the shapes alone, because the
 * order of sums does. */
size_t cuda_slice(size_t m, size_t n, size_t k);

/* ops.h has the contracts of these. */
enum status cuda_conv2d_prepare(struct device *, struct conv2d *, size_t batch_max);
void cuda_conv2d_forward(struct device *, const struct conv2d *, size_t batch, const float *x,
                         const float *w, const float *bias, float *y, uint8_t *index);
void cuda_conv2d_backward(struct device *, const struct conv2d *, size_t batch,
                          const struct backward *);
enum status cuda_dense_prepare(struct device *, const struct dense *, size_t batch_max);
size_t cuda_dense_rows(const struct device *, const struct dense *);
void cuda_dense_forward(struct device *, const struct dense *, size_t batch, struct dense_rows,
                        const float *x, const float *w, const float *bias, float *y);
void cuda_dense_backward(struct device *, const struct dense *, size_t batch, struct dense_rows,
                         const struct backward *);

#endif
