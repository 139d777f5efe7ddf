/*
 * A convolution's shape as cuDNN computes it: the products by its algorithms; bias, relu and
 * pooling by psring's own kernels, as one pass over the window outputs; the bias' gradient as own,
 * too.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H
#define PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H

#include "common/device/cuda/cuda_device.h"
#include "common/device/cuda/cudnn.h"

struct cuda_dnn_conv;

enum { CUDA_DNN_CONV_BATCHES = 16 }; /* sizes of batches that a shape has plans for at most */

/* Plans the shape for batches of up to batch_max images and reserves scratch memory for it.
 * STATUS_UNSUPPORTED: `reason` says why, nothing is logged. Borrows `dnn`. */
enum status cuda_dnn_conv_new(struct cuda_dnn_conv **conv, struct cuda *cuda, struct cuda_dnn *dnn,
                              const struct conv2d *shape, size_t batch_max,
                              char reason[CUDA_DNN_TEXT_BYTES]);
void cuda_dnn_conv_free(struct cuda_dnn_conv **conv);

/* NULL, or why such a batch cannot be done, in words that the next call overwrites: one of another
 * size than batch_max takes the same algorithms, which may need more workspace than is reserved.
 * Asks the host alone. What cannot be done must not be asked for. */
const char *cuda_dnn_conv_cannot(struct cuda_dnn_conv *conv, size_t batch);

/* The smallest batch that is done by the same plans as this one, and as it does: of several blocks
 * the gradients are added up. */
size_t cuda_dnn_conv_sample(const struct cuda_dnn_conv *conv, size_t batch);

/* Algorithms and workspace, for people. */
void cuda_dnn_conv_describe(const struct cuda_dnn_conv *conv, char text[CUDA_DNN_TEXT_BYTES]);

/*
 * As the operations of ops.h, of the shape but for relu and pooling, which are `c`'s. NULL, or the
 * words of the first failure, after which nothing more is asked for.
 */
const char *cuda_dnn_conv_forward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                  const float *x, const float *w, const float *bias, float *y,
                                  uint8_t *index);
const char *cuda_dnn_conv_backward(struct cuda_dnn_conv *conv, const struct conv2d *c, size_t batch,
                                   const struct backward *b);

/*
 * Whose convolutions a device computes with: cuDNN's or psring's own (conv.c), which are there
 * always and are what cuDNN's are compared with. Decided for each shape when it is prepared, and
 * for each size of its batches when it is expected or first computed, by what does not change from
 * run to run: never by time.
 */

struct cuda_conv_choice;

/* cuDNN is opened by the first shape that is prepared. Errors: logged. */
enum status cuda_conv_choice_new(struct cuda_conv_choice **choice, enum device_conv wanted,
                                 bool tf32);
void cuda_conv_choice_free(struct cuda_conv_choice **choice);

/* See device_convolutions. */
const char *cuda_convolutions(const struct device *device);

/* psring's own; contracts as in ops.h. Without may_keep forward leaves nothing to backward. */
enum status cuda_own_conv2d_prepare(struct device *, struct conv2d *, size_t batch_max,
                                    bool may_keep);
void cuda_own_conv2d_forward(struct device *, const struct conv2d *, size_t batch, const float *x,
                             const float *w, const float *bias, float *y, uint8_t *index);
void cuda_own_conv2d_backward(struct device *, const struct conv2d *, size_t batch,
                              const struct backward *);

/* y and index of so many images from their window outputs; y == window is allowed without pooling.
 */
void cuda_conv_finish(struct cuda *cuda, const struct conv2d *c, size_t images, const float *window,
                      const float *bias, float *y, uint8_t *index);
/* The gradient by the window outputs of b's images from `first` on, in `window` where there is
 * pooling, and its sums: dbias, added up from first == 0 on. */
const float *cuda_conv_window_gradient(struct cuda *cuda, const struct conv2d *c, size_t first,
                                       size_t images, const struct backward *b, float *window);

struct cuda_conv_difference {
    double worst; /* the largest difference, of the root mean square of psring's own numbers */
    const char *part;
};

#endif
