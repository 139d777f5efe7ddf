#include "models/cnn.h"

#include <string.h>

#define CONV(filters, size, pad)                                                                   \
    {                                                                                              \
        .kind = LAYER_CONV, .units = (filters), .kernel = (size), .padding = (pad)                 \
    }
#define DENSE(outputs)                                                                             \
    {                                                                                              \
        .kind = LAYER_DENSE, .units = (outputs)                                                    \
    }
#define RELU                                                                                       \
    {                                                                                              \
        .kind = LAYER_RELU                                                                         \
    }
#define POOL                                                                                       \
    {                                                                                              \
        .kind = LAYER_POOL                                                                         \
    }
#define DROPOUT(probability)                                                                       \
    {                                                                                              \
        .kind = LAYER_DROPOUT, .rate = (probability)                                               \
    }
#define END                                                                                        \
    {                                                                                              \
        .kind = LAYER_END                                                                          \
    }

/* Keras' example mnist_cnn.py: 1,199,882 parameters. */
static const struct layer_spec keras_cnn[] = {
    CONV(32, 3, 0), RELU, CONV(64, 3, 0), RELU,      POOL, DROPOUT(.25f),
    DENSE(128),     RELU, DROPOUT(.5f),   DENSE(10), END,
};

/* After LeCun, Bottou, Bengio, Haffner 1998, figure 2, with relu and max-pooling instead of
 * sigmoids and averages: 61,706 parameters. */
static const struct layer_spec lenet[] = {
    CONV(6, 5, 2), RELU, POOL,      CONV(16, 5, 0), RELU,      POOL,
    DENSE(120),    RELU, DENSE(84), RELU,           DENSE(10), END,
};

/* Two hidden layers: 535,818 parameters. */
static const struct layer_spec mlp[] = {
    DENSE(512), RELU, DROPOUT(.2f), DENSE(256), RELU, DROPOUT(.2f), DENSE(10), END,
};

/* As many parameters as ResNet-50, with little to compute: for communication. 25,484,682. */
static const struct layer_spec wide_cnn[] = {
    CONV(32, 3, 1), RELU,         POOL,        CONV(64, 3, 1), RELU,         POOL,      DENSE(4096),
    RELU,           DROPOUT(.5f), DENSE(3072), RELU,           DROPOUT(.5f), DENSE(10), END,
};

/* Name, summary, layers. */
#define ZOO(MODEL)                                                                                 \
    MODEL("keras-cnn", "Keras' MNIST CNN, 1.2 M parameters", keras_cnn)                            \
    MODEL("lenet", "LeNet-5 with relu and max-pooling, 62 k parameters", lenet)                    \
    MODEL("mlp", "two hidden layers, 0.5 M parameters", mlp)                                       \
    MODEL("wide-cnn", "wide dense layers, 25 M parameters, for communication", wide_cnn)

#define ZOO_CNN(name, summary, layers) {name, summary, {28, 28, 1}, layers},
#define ZOO_NAME(name, summary, layers) name,

static const struct cnn zoo[] = {ZOO(ZOO_CNN)};

const char *const cnn_names[] = {ZOO(ZOO_NAME) NULL};

const struct cnn *cnn_find(const char *name)
{
    for (size_t i = 0; i < sizeof zoo / sizeof *zoo; i++) {
        if (strcmp(zoo[i].name, name) == 0)
            return &zoo[i];
    }
    return NULL;
}

struct cnn_fused cnn_fusible(const struct layer_spec *layers)
{
    struct cnn_fused fused = {0};
    bool conv = layers->kind == LAYER_CONV;
    if (!conv && layers->kind != LAYER_DENSE)
        return fused;
    layers++;
    fused.relu = layers->kind == LAYER_RELU;
    layers += fused.relu;
    fused.pool = conv && layers->kind == LAYER_POOL;
    return fused;
}
