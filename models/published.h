/*
 * Models that are not trained here, but whose gradients are exchanged (psring bench
 * --model-gradients). They have the tensors of the published definitions, in the order of
 * registration. The backward pass completes the last tensor first. PyTorch's
 * DistributedDataParallel assumes this order too, with branches or without.
 *
 * A tensor is a struct net_layer: its place in the arena, and the operations of the passes that
 * read it or compute its gradient. The operations are for one standard input: an image of 224 x 224
 * (inception-v3: 299 x 299), 512 tokens (bert-large), 1,024 tokens (gpt2). They count the products
 * of convolutions, linear layers and attention, a multiplication and an addition as two. Backward
 * takes twice the forward operations, except in a layer that reads the input. Normalisation,
 * activations and losses are not counted. Two kinds of products are layers without parameters:
 * attention's, and those with a matrix whose gradient comes later (the embedding, which the last
 * layer shares).
 *
 * Sources: torchvision, models/resnet.py (ResNet-50 and ResNet-101 V1.5), models/vgg.py
 * (configuration D) and models/inception.py (Inception V3 without the auxiliary classifier). He et
 * al. 2016, "Deep Residual Learning". Simonyan and Zisserman 2015. Szegedy et al. 2016, "Rethinking
 * the Inception Architecture", whose table 1 the code follows. Hugging Face transformers,
 * BertForPreTraining with the configuration of bert-large-uncased (Devlin et al. 2019) and
 * GPT2LMHeadModel with that of gpt2 (Radford et al. 2019).
 */
#ifndef PSRING_MODELS_PUBLISHED_H
#define PSRING_MODELS_PUBLISHED_H

#include <stddef.h>

#include "common/base/status.h"
#include "models/net.h"

enum published {
    PUBLISHED_NONE, /* no model: value of an option that is not given */
    PUBLISHED_RESNET50,
    PUBLISHED_VGG16,
    PUBLISHED_BERT_LARGE,
    PUBLISHED_GPT2,
    PUBLISHED_RESNET101,
    PUBLISHED_INCEPTION_V3,
};

/* "none", "resnet50", ... by number, ended by NULL. */
extern const char *const published_names[];

/* "an image of 224 x 224" */
const char *published_input(enum published model);

/* All layers, in the order of the arena; *count is their number. The caller frees *layers.
 * STATUS_NO_MEMORY is logged. */
enum status published_layers(enum published model, struct net_layer **layers, size_t *count);

#endif
