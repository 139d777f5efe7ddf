#include "models/published.h"

#include <stdlib.h>

#include "common/base/status.h"

const char *const published_names[] = {"none", "resnet50",  "vgg16",        "bert-large",
                                       "gpt2", "resnet101", "inception-v3", NULL};

/* The layers so far. With `layers` NULL they are only counted. */
struct builder {
    struct net_layer *layers;
    size_t used, parameters;
};

static void add(struct builder *builder, const char *name, size_t count, double forward_flops,
                double backward_flops)
{
    if (builder->layers)
        builder->layers[builder->used] = (struct net_layer){
            .name = name,
            .first = builder->parameters,
            .count = count,
            .forward_flops = forward_flops,
            .backward_flops = backward_flops,
            .gradient_parts = 1,
        };
    builder->used++;
    builder->parameters += count;
}

/* -------- layers ------------------------------------------------------------------------------ */

/* Without bias. `kernel`: elements of the kernel. `side`: of the square output. */
static void convolution_by(struct builder *builder, size_t in, size_t out, size_t kernel,
                           size_t side)
{
    size_t count = in * out * kernel;
    double flops = 2 * (double)(count * side * side);
    bool reads_input = builder->used == 0; /* the input needs no gradient */
    add(builder, "convolution", count, flops, reads_input ? flops : 2 * flops);
}

/* kernel x kernel */
static void convolution(struct builder *builder, size_t in, size_t out, size_t kernel, size_t side)
{
    convolution_by(builder, in, out, kernel * kernel, side);
}

static void bias(struct builder *builder, size_t count)
{
    add(builder, "bias", count, 0, 0);
}

/* Batch or layer normalisation: a factor and a summand for each channel. */
static void normalisation(struct builder *builder, size_t width)
{
    add(builder, "normalisation", width, 0, 0);
    bias(builder, width);
}

/* For `rows` vectors: tokens, or one for an image. */
static void linear(struct builder *builder, size_t in, size_t out, size_t rows)
{
    double flops = 2 * (double)(in * out * rows);
    add(builder, "linear", in * out, flops, 2 * flops);
    bias(builder, out);
}

static void embedding(struct builder *builder, size_t rows, size_t width)
{
    add(builder, "embedding", rows * width, 0, 0);
}

/* Products of queries with keys, and of their softmax with values: (tokens, width) each. */
static void attention(struct builder *builder, size_t tokens, size_t width)
{
    double flops = 2 * 2 * (double)(tokens * tokens * width);
    add(builder, "attention", 0, flops, 2 * flops);
}

/* To the vocabulary, with the embedding's matrix. */
static void shared_linear(struct builder *builder, size_t in, size_t out, size_t rows)
{
    double flops = 2 * (double)(in * out * rows);
    add(builder, "shared linear", 0, flops, 2 * flops);
}

/* -------- image models ------------------------------------------------------------------------ */

/* Each stage has half the side of the previous one. In V1.5 the second convolution of a stage's
 * first block has the stride, so the first one still has the previous side. */
static void resnet(struct builder *builder, const size_t blocks[4])
{
    const size_t expansion = 4;
    size_t in = 64, side = 56;
    convolution(builder, 3, in, 7, 112);
    normalisation(builder, in);
    for (size_t stage = 0; stage < 4; stage++) {
        size_t width = (size_t)64 << stage, out = width * expansion;
        size_t side_before = side;
        side = (size_t)56 >> stage;
        for (size_t block = 0; block < blocks[stage]; block++) {
            convolution(builder, in, width, 1, block == 0 ? side_before : side);
            normalisation(builder, width);
            convolution(builder, width, width, 3, side);
            normalisation(builder, width);
            convolution(builder, width, out, 1, side);
            normalisation(builder, out);
            if (block == 0) { /* projects the input to the width of the output */
                convolution(builder, in, out, 1, side);
                normalisation(builder, out);
            }
            in = out;
        }
    }
    linear(builder, in, 1000, 1);
}

static void resnet50(struct builder *builder)
{
    resnet(builder, (const size_t[]){3, 4, 6, 3});
}

static void resnet101(struct builder *builder)
{
    resnet(builder, (const size_t[]){3, 4, 23, 3});
}

static void vgg16(struct builder *builder)
{
    static const struct {
        size_t width, convolutions, side;
    } stages[] = {{64, 2, 224}, {128, 2, 112}, {256, 3, 56}, {512, 3, 28}, {512, 3, 14}};
    size_t in = 3;
    for (size_t s = 0; s < sizeof stages / sizeof *stages; s++) {
        for (size_t c = 0; c < stages[s].convolutions; c++) {
            convolution(builder, in, stages[s].width, 3, stages[s].side);
            bias(builder, stages[s].width);
            in = stages[s].width;
        }
    }
    linear(builder, in * 7 * 7, 4096, 1);
    linear(builder, 4096, 4096, 1);
    linear(builder, 4096, 1000, 1);
}

/* -------- Inception V3: blocks of branches, which read the same input ------------------------- */

/* A normalised convolution of `kernel` elements. Returns the width of its output. */
static size_t unit(struct builder *builder, size_t in, size_t out, size_t kernel, size_t side)
{
    convolution_by(builder, in, out, kernel, side);
    normalisation(builder, out);
    return out;
}

/* Branches: 1x1, 5x5, 3x3 twice, pooling. Returns the total width of all branches. */
static size_t inception_35(struct builder *builder, size_t in, size_t pooled)
{
    const size_t side = 35;
    size_t out = unit(builder, in, 64, 1, side);
    out += unit(builder, unit(builder, in, 48, 1, side), 64, 25, side);
    out += unit(builder, unit(builder, unit(builder, in, 64, 1, side), 96, 9, side), 96, 9, side);
    return out + unit(builder, in, pooled, 1, side);
}

/* From 35 x 35 to 17 x 17. One branch only pools. */
static size_t inception_to_17(struct builder *builder, size_t in)
{
    size_t out = unit(builder, in, 384, 9, 17);
    return in + out +
           unit(builder, unit(builder, unit(builder, in, 64, 1, 35), 96, 9, 35), 96, 9, 17);
}

/* Branches: 1x1, 7x7 as a row and a column, the same twice, pooling. */
static size_t inception_17(struct builder *builder, size_t in, size_t width)
{
    const size_t side = 17, kernel = 7, branch = 192;
    size_t out = unit(builder, in, branch, 1, side), last;
    last = unit(builder, in, width, 1, side);
    last = unit(builder, last, width, kernel, side);
    out += unit(builder, last, branch, kernel, side);
    last = unit(builder, in, width, 1, side);
    for (int i = 0; i < 3; i++)
        last = unit(builder, last, width, kernel, side);
    out += unit(builder, last, branch, kernel, side);
    return out + unit(builder, in, branch, 1, side);
}

static size_t inception_to_8(struct builder *builder, size_t in)
{
    size_t out = unit(builder, unit(builder, in, 192, 1, 17), 320, 9, 8);
    size_t last = unit(builder, in, 192, 1, 17);
    for (int i = 0; i < 2; i++)
        last = unit(builder, last, 192, 7, 17);
    return in + out + unit(builder, last, 192, 9, 8);
}

/* Branches: 1x1, 3x3 as a row and a column in parallel, the same after a 3x3, pooling. */
static size_t inception_8(struct builder *builder, size_t in)
{
    const size_t side = 8, kernel = 3, branch = 384;
    size_t out = unit(builder, in, 320, 1, side), last;
    for (int i = 0; i < 2; i++) {
        last = i == 0 ? unit(builder, in, branch, 1, side)
                      : unit(builder, unit(builder, in, 448, 1, side), branch, 9, side);
        out += unit(builder, last, branch, kernel, side);
        out += unit(builder, last, branch, kernel, side);
    }
    return out + unit(builder, in, 192, 1, side);
}

static void inception_v3(struct builder *builder)
{
    static const size_t pooled[] = {32, 64, 64}, widths[] = {128, 160, 160, 192};
    size_t width = unit(builder, 3, 32, 9, 149);
    width = unit(builder, width, 32, 9, 147);
    width = unit(builder, width, 64, 9, 147);
    width = unit(builder, width, 80, 1, 73);
    width = unit(builder, width, 192, 9, 71);
    for (size_t i = 0; i < sizeof pooled / sizeof *pooled; i++)
        width = inception_35(builder, width, pooled[i]);
    width = inception_to_17(builder, width);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        width = inception_17(builder, width, widths[i]);
    width = inception_to_8(builder, width);
    width = inception_8(builder, width);
    linear(builder, inception_8(builder, width), 1000, 1);
}

/* -------- language models --------------------------------------------------------------------- */

static void bert_large(struct builder *builder)
{
    const size_t tokens = 512, width = 1024, words = 30522, segments = 2;
    embedding(builder, words, width);
    embedding(builder, tokens, width);
    embedding(builder, segments, width);
    normalisation(builder, width);
    for (int layer = 0; layer < 24; layer++) {
        for (int query_key_value = 0; query_key_value < 3; query_key_value++)
            linear(builder, width, width, tokens);
        attention(builder, tokens, width);
        linear(builder, width, width, tokens);
        normalisation(builder, width);
        linear(builder, width, 4 * width, tokens);
        linear(builder, 4 * width, width, tokens);
        normalisation(builder, width);
    }
    linear(builder, width, width, 1); /* the pooler: for the first token */
    bias(builder, words);
    linear(builder, width, width, tokens);
    normalisation(builder, width);
    shared_linear(builder, width, words, tokens);
    linear(builder, width, 2, 1); /* does the second sentence follow the first? */
}

static void gpt2(struct builder *builder)
{
    const size_t tokens = 1024, width = 768, words = 50257;
    embedding(builder, words, width);
    embedding(builder, tokens, width);
    for (int layer = 0; layer < 12; layer++) {
        normalisation(builder, width);
        linear(builder, width, 3 * width, tokens);
        attention(builder, tokens, width);
        linear(builder, width, width, tokens);
        normalisation(builder, width);
        linear(builder, width, 4 * width, tokens);
        linear(builder, 4 * width, width, tokens);
    }
    normalisation(builder, width);
    shared_linear(builder, width, words, tokens);
}

/* -------- all of them ------------------------------------------------------------------------- */

static const struct {
    void (*build)(struct builder *builder);
    const char *input;
} models[] = {
    [PUBLISHED_RESNET50] = {resnet50, "an image of 224 x 224"},
    [PUBLISHED_VGG16] = {vgg16, "an image of 224 x 224"},
    [PUBLISHED_BERT_LARGE] = {bert_large, "512 tokens"},
    [PUBLISHED_GPT2] = {gpt2, "1,024 tokens"},
    [PUBLISHED_RESNET101] = {resnet101, "an image of 224 x 224"},
    [PUBLISHED_INCEPTION_V3] = {inception_v3, "an image of 299 x 299"},
};

const char *published_input(enum published model)
{
    CHECK(model > PUBLISHED_NONE && model <= PUBLISHED_INCEPTION_V3);
    return models[model].input;
}

enum status published_layers(enum published model, struct net_layer **layers, size_t *count)
{
    struct builder builder = {0};
    CHECK(model > PUBLISHED_NONE && model <= PUBLISHED_INCEPTION_V3);
    models[model].build(&builder);
    *count = builder.used;
    *layers = calloc(builder.used, sizeof **layers);
    if (!*layers)
        return FAIL(STATUS_NO_MEMORY, "no memory for the %zu layers of %s", *count,
                    published_names[model]);
    builder = (struct builder){.layers = *layers};
    models[model].build(&builder);
    return STATUS_OK;
}
