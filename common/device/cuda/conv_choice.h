/*
 * A convolution's shape computed by cuDNN: its algorithms do the products. Kernels of psring do
 * bias, relu and pooling in one pass over the window outputs, and the bias gradient.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H
#define PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H

#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cudnn.h"

struct cuda_dnn_conv;

enum { CUDA_DNN_CONV_BATCHES = 16 }; /* most batch sizes that a shape has plans for */

/* Plans the shape for batches of up to batch_max images and reserves scratch memory for it.
 * STATUS_UNSUPPORTED: `reason` holds the cause and nothing is logged. Borrows `dnn`. */
enum status cuda_dnn_conv_new(struct cuda_dnn_conv **conv, struct cuda *cuda, struct cuda_dnn *dnn,
                              const struct conv2d *shape, size_t batch_max,
                              char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_conv_free(struct cuda_dnn_conv **conv);

/* Returns NULL if cuDNN can do this batch, else the reason (valid until the next call). A batch
 * size other than batch_max uses the same algorithms, which may need more workspace than is
 * reserved. Runs on the host alone. The caller must not request a batch that cuDNN cannot do. */
const char *cuda_dnn_conv_cannot(struct cuda_dnn_conv *conv, size_t batch);

/* The smallest batch that uses the same plans in the same way as this one. If it has several
 * blocks, their gradients are added. */
size_t cuda_dnn_conv_sample(const struct cuda_dnn_conv *conv, size_t batch);

/* Describes algorithms and workspace for the log. */
void cuda_dnn_conv_describe(const struct cuda_dnn_conv *conv, char text[CUDA_DNN_TEXT_BYTES]);

/*
 * As the operations of ops.h. The shape is conv's; relu and pooling are `c`'s. Each returns NULL or
 * the text of the first failure. After a failure nothing more is queued.
 */
const char *cuda_dnn_conv_forward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                  const float *x, const float *w, const float *bias, float *y,
                                  uint8_t *index);
const char *cuda_dnn_conv_backward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                   const struct backward *b);

/*
 * The choice between cuDNN's convolutions and psring's own (conv.c). psring's own always exist and
 * are the reference for cuDNN's. The choice is made for each shape when it is prepared, and for
 * each batch size when it is expected or first computed. It depends only on what is equal in each
 * run, never on time.
 */

struct cuda_conv_choice;

/* The first shape that is prepared opens cuDNN. Errors are logged. */
enum status cuda_conv_choice_new(struct cuda_conv_choice **choice, enum device_conv wanted,
                                 bool tf32);
void cuda_conv_choice_free(struct cuda_conv_choice **choice);

/* See device_convolutions. */
const char *cuda_convolutions(const struct device *device);

/* psring's own convolution; contracts as in ops.h. Without may_keep forward keeps nothing for
 * backward. */
enum status cuda_own_conv2d_prepare(struct device *, struct conv2d *, size_t batch_max,
                                    bool may_keep);
void cuda_own_conv2d_forward(struct device *, const struct conv2d *, size_t batch, const float *x,
                             const float *w, const float *bias, float *y, uint8_t *index);
void cuda_own_conv2d_backward(struct device *, const struct conv2d *, size_t batch,
                              const struct backward *);

/* Computes y and index of `images` images from their window outputs. y == window is allowed without
 * pooling. */
void cuda_conv_finish(struct cuda *cuda, const struct conv2d *c, size_t images, const float *window,
                      const float *bias, float *y, uint8_t *index);
/* Returns the gradient by the window outputs of `images` of b's images, from `first` on. With
 * pooling it is written to `window`; without, it is b->dy, changed in place if relu is fused. Also
 * sums it into dbias, which first == 0 overwrites and later calls add to. */
const float *cuda_conv_window_gradient(struct cuda *cuda, const struct conv2d *c, size_t first,
                                       size_t images, const struct backward *b, float *window);

struct cuda_conv_difference {
    double worst; /* the largest difference, relative to the root mean square of psring's values */
    const char *part;
};

#endif
