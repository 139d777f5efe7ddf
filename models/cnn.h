/* What a network is made of, in words, and the zoo of networks known by name. */
#ifndef PSRING_MODELS_CNN_H
#define PSRING_MODELS_CNN_H

#include <stdbool.h>
#include <stddef.h>

/* Of one image or one activation: row-major (height, width, channels). */
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

/* One layer. The shape of its input is that of the output before it; dense flattens. */
struct layer_spec {
    enum layer_kind kind;
    size_t units;           /* conv: filters; dense: outputs */
    size_t kernel, padding; /* conv */
    float rate;             /* dropout: probability of zero */
};

/* The softmax and its loss follow the last layer and are not listed. */
struct cnn {
    const char *name, *summary;
    struct shape input;
    const struct layer_spec *layers; /* ended by LAYER_END */
};

/* Which of the layers that follow a convolution or a dense layer are computed with it. */
struct cnn_fused {
    bool relu, pool;
};

/* What may be fused into layers[0]: a relu directly after it and, for a convolution, then a pool.
 */
struct cnn_fused cnn_fusible(const struct layer_spec *layers);

/* Names of the zoo, ended by NULL: the choices of --model. */
extern const char *const cnn_names[];

/* NULL if there is none of that name. */
const struct cnn *cnn_find(const char *name);

#endif
