/* Descriptions of networks, and the zoo of networks known by name. */
#ifndef PSRING_MODELS_CNN_H
#define PSRING_MODELS_CNN_H

#include <stdbool.h>
#include <stddef.h>

/* Shape of one image or one activation: row-major (height, width, channels). */
struct shape {
    size_t height, width, channels;
};

static inline size_t shape_count(struct shape shape)
{
    return shape.height * shape.width * shape.channels;
}

enum layer_kind {
    LAYER_END, /* ends a list of layers */
    LAYER_CONV,
    LAYER_POOL,
    LAYER_DENSE,
    LAYER_RELU,
    LAYER_DROPOUT,
};

/* One layer. Its input has the shape of the previous layer's output. Dense layers flatten it. */
struct layer_spec {
    enum layer_kind kind;
    size_t units;           /* conv: filters; dense: outputs */
    size_t kernel, padding; /* conv */
    float rate;             /* dropout: probability of zero */
};

/* The list excludes the softmax and its loss, which follow the last layer. */
struct cnn {
    const char *name, *summary;
    struct shape input;
    const struct layer_spec *layers; /* ended by LAYER_END */
};

/* The layers that are computed together with the convolution or dense layer before them. */
struct cnn_fused {
    bool relu, pool;
};

/* The layers that may be fused into layers[0]: a relu directly after it, then for a convolution a
 * pool. */
struct cnn_fused cnn_fusible(const struct layer_spec *layers);

/* Names of the zoo, ended by NULL: the choices of --model. */
extern const char *const cnn_names[];

/* NULL if no network has that name. */
const struct cnn *cnn_find(const char *name);

#endif
