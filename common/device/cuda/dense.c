/*
 * Dense layers on CUDA. The forward product has a small result and a long sum (128 x 128 out of
 * 9,216 in keras-cnn's large layer). It is therefore cut along the inputs, and the pass that adds
 * the slices also does bias and relu. The two products of the backward pass have large results.
 */
#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/kernels/kernels.h"

static size_t slice_of(const struct dense *dense, size_t batch)
{
    return cuda_slice(batch, dense->outputs, dense->inputs);
}

static size_t forward_scratch(const struct dense *dense, size_t batch)
{
    return size_divide_up(dense->inputs, slice_of(dense, batch)) * batch * dense->outputs;
}

/* Looks at every batch size up to the largest. A smaller batch has fewer rows but is cut into more
 * slices, so its need is not always smaller. */
enum status cuda_dense_prepare(struct device *device, const struct dense *dense, size_t batch_max)
{
    CHECK(dense->inputs > 0 && dense->outputs > 0);
    size_t most = 0;
    for (size_t batch = 1; batch <= batch_max; batch++)
        most = size_larger(most, forward_scratch(dense, batch));
    return cuda_reserve(cuda_of(device), most);
}

/* All rows at once keep a GPU busy; communication overlaps with other layers instead. */
size_t cuda_dense_rows(const struct device *device, const struct dense *dense)
{
    (void)device;
    return dense->inputs;
}

void cuda_dense_forward(struct device *device, const struct dense *dense, size_t batch,
                        struct dense_rows rows, const float *x, const float *w, const float *bias,
                        float *y)
{
    CHECK(rows.first == 0 && rows.end == dense->inputs);
    struct cuda *cuda = cuda_of(device);
    size_t slice = slice_of(dense, batch), slices = size_divide_up(dense->inputs, slice);
    float *partial = slices > 1 ? cuda->scratch : y;
    struct cuda_blas_product product = {.m = batch,
                                        .n = dense->outputs,
                                        .k = dense->inputs,
                                        .a = x,
                                        .lda = dense->inputs,
                                        .b = w,
                                        .ldb = dense->outputs,
                                        .c = partial,
                                        .ldc = dense->outputs};
    struct slice_sum sum = {.count = batch * dense->outputs,
                            .slices = slices,
                            .width = dense->outputs,
                            .bias = bias,
                            .relu = dense->relu};
    CHECK(slices == 1 || forward_scratch(dense, batch) <= cuda->scratch_count);
    cuda_multiply_sliced(cuda, &product, slice);
    cuda_keep(cuda, kernel_sum_slices(cuda->compute, &sum, partial, y), "dense");
}

void cuda_dense_backward(struct device *device, const struct dense *dense, size_t batch,
                         struct dense_rows rows, const struct backward *b)
{
    struct cuda *cuda = cuda_of(device);
    size_t inputs = dense->inputs, outputs = dense->outputs;
    CHECK(rows.first == 0 && rows.end == inputs);
    struct column_sum sum = {.rows = batch, .width = outputs};
    cuda_keep(cuda,
              kernel_sum_columns(cuda->compute, &sum, dense->relu ? b->y : NULL, b->dy, b->dbias,
                                 cuda->room),
              "dense, backward: relu and bias");
    cuda_multiply(cuda, &(struct cuda_blas_product){.a_transposed = true,
                                                    .m = inputs,
                                                    .n = outputs,
                                                    .k = batch,
                                                    .a = b->x,
                                                    .lda = inputs,
                                                    .b = b->dy,
                                                    .ldb = outputs,
                                                    .c = b->dw,
                                                    .ldc = outputs});
    if (b->dx)
        cuda_multiply(cuda, &(struct cuda_blas_product){.b_transposed = true,
                                                        .m = batch,
                                                        .n = inputs,
                                                        .k = outputs,
                                                        .a = b->dy,
                                                        .lda = outputs,
                                                        .b = b->w,
                                                        .ldb = outputs,
                                                        .c = b->dx,
                                                        .ldc = inputs});
}
