/* Whole networks. Gradients are compared with central differences of a double-precision network.
 * The bits are the same for any number of threads, and with or without fusion. Also sizes, initial
 * values and the hook. */
#include <criterion/criterion.h>
#include <string.h>

#include "models/cnn.h"
#include "models/net.h"
#include "models/optim.h"
#include "tests/lib/reference.h"

static struct device *open_cpu(int threads)
{
    struct device *device;
    struct device_options options = {.threads = threads};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    return device;
}

static float *new_images(size_t batch, size_t image)
{
    float *images = malloc(batch * image * sizeof *images);
    cr_assert(images);
    for (size_t i = 0; i < batch * image; i++)
        images[i] = (float)reference_value(50, i);
    return images;
}

static void set_labels(size_t batch, uint8_t *labels)
{
    for (size_t i = 0; i < batch; i++)
        labels[i] = (uint8_t)(i * 7 % 10);
}

/* -------- the double-precision network -------------------------------------------------------- */

/* Runs one layer of a description from x to a new array; moves *parameters past the layer's. */
static double *reference_layer(const struct layer_spec *spec, uint16_t position, size_t batch,
                               struct shape *shape, const double *x, const double **parameters,
                               const struct net_step *step)
{
    size_t count = batch * shape_count(*shape);
    struct shape in = *shape;
    double *y;
    switch (spec->kind) {
    case LAYER_CONV: {
        struct conv2d c = {.height = in.height,
                           .width = in.width,
                           .channels = in.channels,
                           .filters = spec->units,
                           .kernel = spec->kernel,
                           .padding = spec->padding};
        size_t weights = c.kernel * c.kernel * c.channels * c.filters;
        *shape = (struct shape){conv2d_out_size(&c, in.height), conv2d_out_size(&c, in.width),
                                c.filters};
        y = reference_new(batch * shape_count(*shape));
        reference_window(&c, batch, x, *parameters, *parameters + weights, y);
        *parameters += weights + c.filters;
        return y;
    }
    case LAYER_POOL:
        *shape = (struct shape){in.height / 2, in.width / 2, in.channels};
        y = reference_new(batch * shape_count(*shape));
        reference_pool(batch, in.height, in.width, in.channels, x, y, NULL);
        return y;
    case LAYER_DENSE: {
        struct dense d = {.inputs = shape_count(in), .outputs = spec->units};
        *shape = (struct shape){1, 1, d.outputs};
        y = reference_new(batch * d.outputs);
        reference_dense(&d, batch, x, *parameters, *parameters + d.inputs * d.outputs, y);
        *parameters += (d.inputs + 1) * d.outputs;
        return y;
    }
    case LAYER_RELU:
        y = reference_new(count);
        memcpy(y, x, count * sizeof *y);
        reference_relu(count, y);
        return y;
    case LAYER_DROPOUT: {
        struct dropout d = {.rate = spec->rate,
                            .key = rng_key(step->seed, RNG_DROPOUT, step->rank),
                            .step_at = &step->step,
                            .layer = position};
        y = reference_new(count);
        for (size_t i = 0; i < count; i++)
            y[i] = step->training ? x[i] * reference_dropout_factor(&d, i) : x[i];
        return y;
    }
    case LAYER_END:
        break;
    }
    abort();
}

/* The sum of the losses of a batch. */
static double reference_net(const struct cnn *cnn, size_t batch, const float *images,
                            const uint8_t *labels, const double *parameters,
                            const struct net_step *step)
{
    struct shape shape = cnn->input;
    size_t count = batch * shape_count(shape);
    double *x = reference_new(count);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)images[i];
    for (size_t i = 0; cnn->layers[i].kind != LAYER_END; i++) {
        double *y =
            reference_layer(&cnn->layers[i], (uint16_t)i, batch, &shape, x, &parameters, step);
        free(x);
        x = y;
    }
    double loss = reference_loss(batch, shape_count(shape), x, labels);
    free(x);
    return loss;
}

static double *wide_parameters(struct net *net)
{
    size_t count = net_parameter_count(net);
    double *wide = reference_new(count);
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)net_parameters(net)[i];
    return wide;
}

/* -------- gradients --------------------------------------------------------------------------- */

/* The layers are in an order that fuses every possible fusion and has every case without one: pool
 * without relu, relu after pool, dropout before relu. */
static const struct layer_spec mixed_layers[] = {
    {.kind = LAYER_CONV, .units = 3, .kernel = 3, .padding = 1},
    {.kind = LAYER_RELU},
    {.kind = LAYER_CONV, .units = 4, .kernel = 2},
    {.kind = LAYER_POOL},
    {.kind = LAYER_RELU},
    {.kind = LAYER_DROPOUT, .rate = .25f},
    {.kind = LAYER_CONV, .units = 5, .kernel = 2},
    {.kind = LAYER_RELU},
    {.kind = LAYER_POOL},
    {.kind = LAYER_DENSE, .units = 7},
    {.kind = LAYER_DROPOUT, .rate = .5f},
    {.kind = LAYER_RELU},
    {.kind = LAYER_DENSE, .units = 10},
    {.kind = LAYER_END},
};
static const struct cnn mixed = {"mixed", "for this test", {8, 9, 2}, mixed_layers};

static void check_gradients(bool fuse)
{
    enum { BATCH = 5 };
    const double h = 1e-6;
    struct device *device = open_cpu(2);
    struct net *net;
    uint8_t labels[BATCH];
    float *images = new_images(BATCH, shape_count(mixed.input));
    set_labels(BATCH, labels);
    cr_assert_eq(net_new_cnn(&net, device, &mixed, BATCH + 3, 9, fuse), STATUS_OK);
    double *parameters = wide_parameters(net);
    struct net_step step = {.training = true, .seed = 4, .step = 77, .rank = 2};
    struct loss_sum loss;
    cr_assert_eq(net_forward(net, images, labels, BATCH, &step, &loss), STATUS_OK);
    cr_assert_eq(net_backward(net, NULL, NULL), STATUS_OK);
    double expected_loss = reference_net(&mixed, BATCH, images, labels, parameters, &step);
    cr_assert(fabs(loss.loss - expected_loss) < 1e-5);
    const float *gradients = net_gradients(net);
    size_t nonzero = 0;
    for (size_t i = 0; i < net_parameter_count(net); i++) {
        double saved = parameters[i];
        parameters[i] = saved + h;
        double above = reference_net(&mixed, BATCH, images, labels, parameters, &step);
        parameters[i] = saved - h;
        double below = reference_net(&mixed, BATCH, images, labels, parameters, &step);
        parameters[i] = saved;
        double expected = (above - below) / (2 * h) / BATCH;
        cr_assert(fabs(expected - (double)gradients[i]) < 1e-6,
                  "element %zu: found %g, expected %g", i, (double)gradients[i], expected);
        nonzero += gradients[i] != 0.0f;
    }
    cr_assert(nonzero > net_parameter_count(net) / 3); /* else the comparison above means little */
    free(images);
    free(parameters);
    net_free(&net);
    device_close(&device);
}

Test(net, gradients_fused)
{
    check_gradients(true);
}

Test(net, gradients_not_fused)
{
    check_gradients(false);
}

Test(net, loss_of_each_model_of_the_zoo)
{
    for (int m = 0; cnn_names[m]; m++) {
        enum { BATCH = 2 };
        struct device *device = open_cpu(1);
        struct net *net;
        struct loss_sum loss, again;
        uint8_t labels[BATCH];
        float *images = new_images(BATCH, 784);
        set_labels(BATCH, labels);
        cr_assert_eq(net_new(&net, device, cnn_names[m], BATCH, 3), STATUS_OK);
        double *parameters = wide_parameters(net);
        for (int training = 0; training < 2; training++) {
            struct net_step step = {.training = training, .seed = 1, .step = 2, .rank = 3};
            double expected =
                reference_net(cnn_find(cnn_names[m]), BATCH, images, labels, parameters, &step);
            cr_assert_eq(net_forward(net, images, labels, BATCH, &step, &loss), STATUS_OK);
            cr_assert(fabs(loss.loss - expected) < 1e-4 * expected, "%s: found %g, expected %g",
                      cnn_names[m], loss.loss, expected);
            cr_assert_eq(net_forward(net, images, labels, BATCH, &step, &again), STATUS_OK);
            cr_assert(again.loss == loss.loss && again.correct == loss.correct);
        }
        free(images);
        free(parameters);
        net_free(&net);
        device_close(&device);
    }
}

/* -------- the same bits ----------------------------------------------------------------------- */

/* Parameters after two whole training steps. The last batch is smaller, as at an epoch's end. */
static float *train_two_steps(int threads, bool fuse, struct loss_sum *loss, size_t *count)
{
    enum { BATCH = 37 };
    struct device *device = open_cpu(threads);
    struct net *net;
    struct optimizer *optimizer;
    uint8_t labels[BATCH];
    float *images = new_images(BATCH, 784);
    set_labels(BATCH, labels);
    cr_assert_eq(net_new_cnn(&net, device, cnn_find("keras-cnn"), BATCH, 5, fuse), STATUS_OK);
    *count = net_parameter_count(net);
    cr_assert_eq(optimizer_new(&optimizer, device, OPTIMIZER_ADADELTA, *count, NULL), STATUS_OK);
    for (size_t i = 0; i < 2; i++) {
        struct net_step step = {.training = true, .seed = 1, .step = i, .rank = 1};
        cr_assert_eq(net_forward(net, images, labels, BATCH - 6 * i, &step, loss), STATUS_OK);
        cr_assert_eq(net_backward(net, NULL, NULL), STATUS_OK);
        optimizer_step(optimizer, net_parameters(net), net_gradients(net), 1.0f);
    }
    float *parameters = malloc(*count * sizeof *parameters);
    cr_assert(parameters);
    memcpy(parameters, net_parameters(net), *count * sizeof *parameters);
    free(images);
    optimizer_free(&optimizer);
    net_free(&net);
    device_close(&device);
    return parameters;
}

Test(net, same_bits_for_any_threads_and_with_or_without_fusion)
{
    struct loss_sum loss, other_loss;
    size_t count;
    float *one = train_two_steps(1, true, &loss, &count);
    for (int variant = 0; variant < 4; variant++) {
        int threads = (int[]){2, 3, 5, 1}[variant];
        float *other = train_two_steps(threads, variant < 3, &other_loss, &count);
        cr_assert_arr_eq(one, other, count * sizeof *one, "%d threads", threads);
        cr_assert(loss.loss == other_loss.loss && loss.correct == other_loss.correct);
        free(other);
    }
    free(one);
}

/* One process plays several workers in turn: the result of a step depends only on that step. */
Test(net, a_step_does_not_depend_on_the_steps_before_it)
{
    enum { BATCH = 4 };
    struct device *device = open_cpu(1);
    struct net *net;
    uint8_t labels[BATCH];
    float *images = new_images(BATCH, 784);
    set_labels(BATCH, labels);
    cr_assert_eq(net_new(&net, device, "keras-cnn", BATCH, 5), STATUS_OK);
    size_t bytes = net_parameter_count(net) * sizeof(float);
    float *first = malloc(bytes);
    for (uint32_t i = 0; i < 3; i++) {
        struct net_step step = {.training = true, .seed = 1, .step = 6, .rank = i % 2};
        cr_assert_eq(net_forward(net, images, labels, BATCH, &step, NULL), STATUS_OK);
        cr_assert_eq(net_backward(net, NULL, NULL), STATUS_OK);
        if (i == 0)
            memcpy(first, net_gradients(net), bytes);
        /* rank 1 draws a different dropout, rank 0 the same again */
        cr_assert((memcmp(first, net_gradients(net), bytes) == 0) == (i != 1));
        struct net_step test = {.training = false};
        cr_assert_eq(net_forward(net, images + 5, labels, 1, &test, NULL), STATUS_OK);
    }
    free(first);
    free(images);
    net_free(&net);
    device_close(&device);
}

/* -------- sizes, initial values, hook --------------------------------------------------------- */

/* Counted by hand: a convolution has k k in out + out parameters, a dense layer in out + out. */
Test(net, parameters_of_the_zoo)
{
    static const struct {
        const char *name;
        size_t count;
    } expected[] = {
        {"keras-cnn",
         (9 * 32 + 32) + (9 * 32 * 64 + 64) + (12 * 12 * 64 * 128 + 128) + (128 * 10 + 10)},
        {"lenet", (25 * 6 + 6) + (25 * 6 * 16 + 16) + (5 * 5 * 16 * 120 + 120) + (120 * 84 + 84) +
                      (84 * 10 + 10)},
        {"mlp", (784 * 512 + 512) + (512 * 256 + 256) + (256 * 10 + 10)},
        {"wide-cnn", (9 * 32 + 32) + (9 * 32 * 64 + 64) + (7 * 7 * 64 * 4096 + 4096) +
                         (4096 * 3072 + 3072) + (3072 * 10 + 10)},
    };
    struct device *device = open_cpu(1);
    cr_assert_eq(expected[0].count, 1199882);
    for (size_t m = 0; m < sizeof expected / sizeof *expected; m++) {
        struct net *net;
        size_t tensors, layers, next = 0;
        cr_assert_eq(net_new(&net, device, expected[m].name, 1, 1), STATUS_OK);
        cr_assert_eq(net_parameter_count(net), expected[m].count, "%s: %zu", expected[m].name,
                     net_parameter_count(net));
        cr_assert_eq((uintptr_t)net_parameters(net) % 64, 0);
        const struct net_tensor *tensor = net_tensors(net, &tensors);
        for (size_t i = 0; i < tensors; i++) {
            size_t product = 1;
            for (int d = 0; d < tensor[i].ndim; d++)
                product *= tensor[i].shape[d];
            cr_assert_eq(tensor[i].offset, next); /* contiguous, no gap */
            cr_assert_eq(tensor[i].count, product);
            next += product;
        }
        cr_assert_eq(next, expected[m].count);
        const struct net_layer *layer = net_layers(net, &layers);
        next = 0;
        for (size_t i = 0; i < layers; i++) {
            cr_assert_eq(layer[i].first, next);
            cr_assert(layer[i].forward_flops > 0);
            next += layer[i].count;
        }
        cr_assert_eq(next, expected[m].count);
        net_free(&net);
    }
    device_close(&device);
}

Test(net, flops_of_keras_cnn)
{
    struct device *device = open_cpu(1);
    struct net *net;
    size_t count;
    cr_assert_eq(net_new(&net, device, "keras-cnn", 1, 1), STATUS_OK);
    const struct net_layer *layer = net_layers(net, &count);
    cr_assert_str_eq(layer[1].name, "conv2");
    cr_assert_eq(layer[0].forward_flops, 2.0 * 26 * 26 * 32 * 9);
    cr_assert_eq(layer[0].backward_flops, 2.0 * 26 * 26 * 32 * 9); /* no gradient by the images */
    cr_assert_eq(layer[1].forward_flops, 2.0 * 24 * 24 * 64 * 9 * 32);
    cr_assert_eq(layer[1].backward_flops, 2 * layer[1].forward_flops);
    net_free(&net);
    device_close(&device);
}

Test(net, initial_parameters_depend_on_the_seed_alone)
{
    struct device *one = open_cpu(1), *two = open_cpu(2);
    struct net *a, *b, *c;
    cr_assert_eq(net_new(&a, one, "lenet", 1, 7), STATUS_OK);
    cr_assert_eq(net_new(&b, two, "lenet", 9, 7), STATUS_OK);
    cr_assert_eq(net_new(&c, one, "lenet", 1, 8), STATUS_OK);
    size_t bytes = net_parameter_count(a) * sizeof(float), tensors;
    cr_assert_arr_eq(net_parameters(a), net_parameters(b), bytes);
    cr_assert_neq(memcmp(net_parameters(a), net_parameters(c), bytes), 0);
    const struct net_tensor *tensor = net_tensors(a, &tensors);
    for (size_t t = 0; t < tensors; t++) {
        const float *values = net_parameters(a) + tensor[t].offset;
        double mean = 0, square = 0;
        for (size_t i = 0; i < tensor[t].count; i++) {
            mean += (double)values[i];
            square += (double)values[i] * (double)values[i];
        }
        if (tensor[t].ndim == 1) {
            cr_assert(square == 0, "%s is not all zeros", tensor[t].name);
            continue;
        }
        double last = 1, window = 1;
        for (int d = 0; d < tensor[t].ndim - 2; d++)
            window *= (double)tensor[t].shape[d];
        last = (double)tensor[t].shape[tensor[t].ndim - 1];
        double first = (double)tensor[t].shape[tensor[t].ndim - 2];
        double n = (double)tensor[t].count, variance = 2 / (window * (first + last));
        cr_assert(fabs(mean / n) < 5 * sqrt(variance / n), "%s: mean %g", tensor[t].name, mean / n);
        cr_assert(fabs(square / n / variance - 1) < 5 / sqrt(n), "%s: variance %g, expected %g",
                  tensor[t].name, square / n, variance);
    }
    net_free(&a);
    net_free(&b);
    net_free(&c);
    device_close(&one);
    device_close(&two);
}

Test(net, unknown_models_are_refused)
{
    struct device *device = open_cpu(1);
    struct net *net;
    cr_assert_eq(net_new(&net, device, "resnet", 1, 1), STATUS_USAGE);
    cr_assert_null(net);
    device_close(&device);
}

struct seen {
    struct net *net;
    size_t end; /* the first element that the hook has got */
    int calls;
    float *copy;
};

/* The range must be directly below the last one. It is copied, to check that it was final. */
static void record(void *context, size_t first, size_t count)
{
    struct seen *seen = context;
    cr_assert_eq(first + count, seen->end);
    seen->end = first;
    seen->calls++;
    memcpy(seen->copy + first, net_gradients(seen->net) + first, count * sizeof(float));
}

Test(net, the_hook_gets_final_gradients_last_layer_first)
{
    enum { BATCH = 3 };
    struct device *device = open_cpu(2);
    struct net *net;
    uint8_t labels[BATCH];
    float *images = new_images(BATCH, 784);
    set_labels(BATCH, labels);
    cr_assert_eq(net_new(&net, device, "keras-cnn", BATCH, 5), STATUS_OK);
    size_t count = net_parameter_count(net);
    struct seen seen = {net, count, 0, malloc(count * sizeof(float))};
    struct net_step step = {.training = true};
    cr_assert_eq(net_forward(net, images, labels, BATCH, &step, NULL), STATUS_OK);
    cr_assert_eq(net_backward(net, record, &seen), STATUS_OK);
    cr_assert_eq(seen.end, 0);
    cr_assert_eq(seen.calls, 1 + 6 + 1 + 1); /* dense1: 12 blocks of inputs, two at a time */
    cr_assert_arr_eq(seen.copy, net_gradients(net), count * sizeof(float));
    free(seen.copy);
    free(images);
    net_free(&net);
    device_close(&device);
}
