/*
 * Whose convolutions a device computes with: cuDNN's or psring's own (conv.c), which are there
 * always and are what cuDNN's are compared with. Decided for each shape when it is prepared, and
 * for each size of its batches when it is expected or first computed, by what does not change from
 * run to run: never by time.
 */
#ifndef PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H
#define PSRING_COMMON_DEVICE_CUDA_CONV_CHOICE_H

#include "common/device/cuda/conv_cudnn.h"

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

/*
 * The shape by both, for a batch of random numbers in [-1, 1); waits for the device.
 * *error: cuDNN failed, in words that are gone with `dnn`, and *difference is not set. Errors of
 * the device, or no memory: logged.
 */
enum status cuda_conv_compare(struct cuda *cuda, struct cuda_dnn_conv *dnn,
                              const struct conv2d *shape, size_t batch,
                              struct cuda_conv_difference *difference, const char **error);

#endif
