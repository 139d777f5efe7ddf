/* The published models: totals as in the authors' tables, and the order of the tensors. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "models/published.h"

struct totals {
    size_t layers, tensors, parameters;
    double forward, backward;
};

/* Totals of the layers from `first` on. Each layer begins where the one before it ends. */
static struct totals totals_from(enum published model, size_t first)
{
    struct totals totals = {0};
    struct net_layer *layers;
    size_t count, place = 0;
    cr_assert_eq(published_layers(model, &layers, &count), STATUS_OK);
    for (size_t l = 0; l < count; l++) {
        cr_assert_eq(layers[l].first, place);
        cr_assert(layers[l].name && layers[l].gradient_parts == 1);
        place += layers[l].count;
        if (l < first)
            continue;
        totals.layers++;
        totals.tensors += layers[l].count > 0;
        totals.parameters += layers[l].count;
        totals.forward += layers[l].forward_flops;
        totals.backward += layers[l].backward_flops;
    }
    free(layers);
    return totals;
}

/* Source: torchvision's tables ResNet50_Weights, ResNet101_Weights, VGG16_Weights and
 * Inception_V3_Weights, num_params and _ops. _ops counts multiplications with an addition, in units
 * of 1e9: 4.089, 7.801, 15.470 and 5.713. The 27,161,264 parameters of Inception_V3 include the
 * auxiliary classifier, which is not part of the model here. It has 3,326,696 (768 to 128 by 1x1,
 * 128 to 768 by 5x5, both normalised, 768 to 1000). */
Test(published, image_models)
{
    struct totals resnet = totals_from(PUBLISHED_RESNET50, 0);
    cr_assert_eq(resnet.parameters, 25557032);
    cr_assert_eq(resnet.tensors, 161); /* 53 convolutions, 53 normalisations, one linear layer */
    cr_assert_float_eq(resnet.forward / 2e9, 4.089, 0.0005);
    struct totals vgg = totals_from(PUBLISHED_VGG16, 0);
    cr_assert_eq(vgg.parameters, 138357544);
    cr_assert_eq(vgg.tensors, 32);
    cr_assert_float_eq(vgg.forward / 2e9, 15.470, 0.0005);
    struct totals resnet101 = totals_from(PUBLISHED_RESNET101, 0);
    cr_assert_eq(resnet101.parameters, 44549160);
    cr_assert_eq(resnet101.tensors, 104 * 3 + 2);
    cr_assert_float_eq(resnet101.forward / 2e9, 7.801, 0.0005);
    struct totals inception = totals_from(PUBLISHED_INCEPTION_V3, 0);
    cr_assert_eq(inception.parameters, 27161264 - 3326696);
    cr_assert_eq(inception.tensors, 94 * 3 + 2); /* 94 convolutions, each normalised */
    cr_assert_float_eq(inception.forward / 2e9, 5.713, 0.0005);
    /* All layers except the first need a gradient by their input. */
    cr_assert_float_eq(2 * vgg.forward - vgg.backward, 2.0 * 3 * 64 * 9 * 224 * 224, 1);
    cr_assert_float_eq(2 * resnet.forward - resnet.backward, 2.0 * 3 * 64 * 49 * 112 * 112, 1);
}

/* BertModel (with the pooler) has 335,141,888 parameters. BertForPreTraining has 336,226,108, as in
 * the checkpoint of bert-large-uncased. GPT2LMHeadModel with shared embeddings has 124,439,808. */
Test(published, language_models)
{
    struct totals bert = totals_from(PUBLISHED_BERT_LARGE, 0);
    cr_assert_eq(bert.parameters, 336226108);
    cr_assert_eq(bert.tensors, 5 + 24 * 16 + 2 + 7);
    const size_t heads = 5 + 24 * 17 + 2; /* attention is a layer without a tensor */
    struct totals after_pooler = totals_from(PUBLISHED_BERT_LARGE, heads);
    cr_assert_eq(bert.parameters - after_pooler.parameters, 335141888);
    struct totals gpt2 = totals_from(PUBLISHED_GPT2, 0);
    cr_assert_eq(gpt2.parameters, 124439808);
    cr_assert_eq(gpt2.tensors, 148);
    /* 6 FLOPs for each parameter and token, without the lookups of embeddings, plus attention's
     * products (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1). */
    double weights = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
    double expected = 1024 * (6 * weights + 12.0 * 6 * 2 * 1024 * 768);
    cr_assert_float_eq((gpt2.forward + gpt2.backward) / expected, 1, 1e-12);
}

/* The last tensor, the classifier's, is complete first. An embedding is complete last. */
Test(published, order)
{
    struct net_layer *layers;
    size_t count;
    cr_assert_eq(published_layers(PUBLISHED_RESNET50, &layers, &count), STATUS_OK);
    cr_assert(layers[count - 1].count == 1000 && layers[count - 2].count == 2048 * 1000);
    cr_assert(layers[0].count == 3 * 64 * 49);
    free(layers);
    cr_assert_eq(published_layers(PUBLISHED_GPT2, &layers, &count), STATUS_OK);
    cr_assert(layers[count - 1].count == 0 && layers[count - 1].forward_flops > 0);
    cr_assert(layers[0].count == 50257 * 768 && layers[0].backward_flops == 0);
    free(layers);
}
