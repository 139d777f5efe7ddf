/* What a net is made of, shared by net.c (its steps) and net_new.c (how it is built). */
#ifndef PSRING_MODELS_NET_PARTS_H
#define PSRING_MODELS_NET_PARTS_H

#include "models/layer.h"
#include "models/net.h"

enum { LAYERS_MAX = 64 };

struct net {
    struct device *device;
    struct shape input, output;
    size_t batch_max;

    size_t layer_count;
    struct layer *layers; /* (LAYERS_MAX) */
    struct net_layer table[LAYERS_MAX];
    size_t tensor_count;
    struct net_tensor tensors[LAYERS_MAX * LAYER_TENSORS];

    size_t parameter_count;
    float *parameters, *gradients; /* the arenas; device memory, as all below */
    float *y[LAYERS_MAX];          /* (batch_max, out) of each layer */
    float *dlogits;                /* (batch_max, output) */
    float *dy[2];                  /* gradients by activations, in turn: (batch_max, largest) */
    struct loss_sum *sum;
    uint64_t *step_at; /* the step that dropout draws for; an input (inputs.h) */
    uint64_t step_set; /* what it holds */

    net_pass_hook *watch; /* NULL: nobody watches */
    void *watch_context;
    net_range_hook *needs; /* NULL: the parameters are there */
    void *needs_context;

    /* The last net_forward, which net_backward continues. */
    struct net_step step;
    size_t batch;
    const float *x[LAYERS_MAX]; /* what each layer read */
};

#endif
