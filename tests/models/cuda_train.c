/*
 * Training on the CUDA device, compared with the CPU: the parameters after one step within 1e-4,
 * the loss over 200 steps within 1%. Recorded steps (CUDA graphs) give the same bits as single
 * launches. Ends with 77 if there is no GPU.
 */
#include <stdio.h>
#include <string.h>

#include "common/device/device.h"
#include "models/net.h"
#include "models/optim.h"
#include "tests/lib/cuda_lib.h"
#include "tests/lib/reference.h"

enum { PIXELS = 784, BATCH = 32, IMAGES = 640, WINDOW = 20 };

/* Images of ten kinds that a net can learn: a bright bar, whose place is the label, and noise. */
static float pixels[IMAGES * PIXELS];
static uint8_t labels[IMAGES];

static void make_images(void)
{
    for (size_t n = 0; n < IMAGES; n++) {
        labels[n] = (uint8_t)(n * 7 % 10);
        for (size_t p = 0; p < PIXELS; p++) {
            size_t row = p / 28;
            pixels[n * PIXELS + p] = (float)reference_value(n, p);
            if (row / 2 == labels[n] + 2u)
                pixels[n * PIXELS + p] += 1.0f;
        }
    }
}

/* A net on a device, with the memory and the optimizer for a step. */
struct trainee {
    struct device *device;
    struct net *net;
    struct optimizer *optimizer;
    float *images;
    uint8_t *labels;
    uint64_t step;
};

static void open_trainee(struct trainee *t, enum device_kind kind, enum device_graph graph,
                         const char *model, enum optimizer_kind optimizer)
{
    struct device_options options = {.kind = kind, .graph = graph};
    void *images, *label_memory;
    *t = (struct trainee){0};
    if (device_open(&t->device, &options) != STATUS_OK ||
        net_new(&t->net, t->device, model, BATCH, 3) != STATUS_OK ||
        net_optimizer_new(&t->optimizer, t->net, optimizer, NULL) != STATUS_OK ||
        device_alloc(t->device, "images", BATCH * PIXELS * sizeof(float), &images) != STATUS_OK ||
        device_alloc(t->device, "labels", BATCH, &label_memory) != STATUS_OK)
        abort();
    t->images = images;
    t->labels = label_memory;
}

static void close_trainee(struct trainee *t)
{
    device_free(t->device, t->images);
    device_free(t->device, t->labels);
    optimizer_free(&t->optimizer);
    net_free(&t->net);
    device_close(&t->device);
}

static float rate_of(uint64_t step)
{
    return 0.01f + 0.0001f * (float)(step % 7);
}

static enum status ask_for_step(void *context)
{
    enum status status = STATUS_OK;
    struct trainee *t = context;
    struct net_step step = {.training = true, .seed = 9, .step = t->step, .rank = 1};
    TRY(net_forward(t->net, t->images, t->labels, BATCH, &step, NULL));
    TRY(net_backward(t->net, NULL, NULL));
    optimizer_step(t->optimizer, net_parameters(t->net), net_gradients(t->net), rate_of(t->step));
out:
    return status;
}

/* Trains one step and returns its mean loss. */
static double train_step(struct trainee *t)
{
    size_t first = t->step * BATCH % IMAGES;
    void *memory;
    device_upload(t->device, t->images, pixels + first * PIXELS, BATCH * PIXELS * sizeof(float));
    device_upload(t->device, t->labels, labels + first, BATCH);
    net_set_step(t->net, t->step);
    optimizer_set_lr(t->optimizer, rate_of(t->step));
    expect(device_repeat(t->device, ask_for_step, t) == STATUS_OK, "a step");
    expect(device_host_alloc(t->device, "a loss", sizeof(struct loss_sum), &memory) == STATUS_OK,
           "memory");
    net_download_loss(t->net, memory);
    expect(device_sync(t->device) == STATUS_OK, "a step");
    double loss = ((struct loss_sum *)memory)->loss / BATCH;
    device_host_free(t->device, memory);
    t->step++;
    return loss;
}

static float *download(struct trainee *t, const float *from)
{
    size_t bytes = net_parameter_count(t->net) * sizeof(float);
    float *host = malloc(bytes);
    expect(host && device_download(t->device, host, from, bytes) == STATUS_OK, "download");
    return host;
}

/* The largest difference, relative to the largest element of b. */
static double difference(const float *a, const float *b, size_t count)
{
    double worst = 0, largest = 1e-30;
    for (size_t i = 0; i < count; i++) {
        double error = fabs((double)a[i] - (double)b[i]);
        worst = error <= worst ? worst : isnan(error) ? (double)INFINITY : error;
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}

static void check_one_step(const char *model, enum optimizer_kind optimizer)
{
    struct trainee cpu, cuda;
    open_trainee(&cpu, DEVICE_CPU, DEVICE_GRAPH_OFF, model, optimizer);
    open_trainee(&cuda, DEVICE_CUDA, DEVICE_GRAPH_OFF, model, optimizer);
    double cpu_loss = train_step(&cpu), cuda_loss = train_step(&cuda);
    size_t count = net_parameter_count(cpu.net);
    float *a = download(&cuda, net_parameters(cuda.net)),
          *b = download(&cpu, net_parameters(cpu.net));
    float *c = download(&cuda, net_gradients(cuda.net)),
          *d = download(&cpu, net_gradients(cpu.net));
    double parameters = difference(a, b, count), gradients = difference(c, d, count);
    printf("%s, %s: one step: loss %.1e, gradients %.1e, parameters %.1e\n", model,
           optimizer_kind_names[optimizer], fabs(cpu_loss - cuda_loss) / cpu_loss, gradients,
           parameters);
    expect(fabs(cpu_loss - cuda_loss) <= 1e-5 * cpu_loss, "one step: loss");
    expect(gradients <= 1e-5, "one step: gradients");
    expect(parameters <= 1e-4, "one step: parameters");
    float *all[] = {a, b, c, d};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    close_trainee(&cpu);
    close_trainee(&cuda);
}

/* Compares means over windows of steps: single steps differ sooner, as rounding errors grow. */
static void check_curve(const char *model, int steps)
{
    struct trainee cpu, cuda;
    double cpu_sum = 0, cuda_sum = 0, worst = 0, first = 0, last = 0;
    open_trainee(&cpu, DEVICE_CPU, DEVICE_GRAPH_OFF, model, OPTIMIZER_SGD);
    open_trainee(&cuda, DEVICE_CUDA, DEVICE_GRAPH_AUTO, model, OPTIMIZER_SGD);
    for (int i = 1; i <= steps; i++) {
        cpu_sum += train_step(&cpu);
        cuda_sum += train_step(&cuda);
        if (i % WINDOW)
            continue;
        /* When both have learned the images, tiny losses are not compared relatively. */
        worst = fmax(worst, fabs(cpu_sum - cuda_sum) / fmax(cpu_sum, 0.1 * WINDOW));
        first = i == WINDOW ? cpu_sum / WINDOW : first;
        last = cpu_sum / WINDOW;
        cpu_sum = cuda_sum = 0;
    }
    printf("%s: %d steps, loss %.3f to %.3f, within %.2f%%\n", model, steps, first, last,
           100 * worst);
    expect(last < 0.8 * first, "the loss falls");
    expect(worst <= 0.01, "the loss curves agree");
    close_trainee(&cpu);
    close_trainee(&cuda);
}

static void check_graph(const char *model, enum optimizer_kind optimizer)
{
    struct trainee plain, graph;
    open_trainee(&plain, DEVICE_CUDA, DEVICE_GRAPH_OFF, model, optimizer);
    open_trainee(&graph, DEVICE_CUDA, DEVICE_GRAPH_ON, model, optimizer);
    bool same = true;
    for (int i = 0; i < 4; i++) /* the third step is the first that replays the recording */
        same = train_step(&plain) == train_step(&graph) && same;
    size_t count = net_parameter_count(plain.net);
    float *a = download(&plain, net_parameters(plain.net));
    float *b = download(&graph, net_parameters(graph.net));
    same = same && memcmp(a, b, count * sizeof *a) == 0;
    printf("%s, %s: recorded steps: %s\n", model, optimizer_kind_names[optimizer],
           same ? "same bits" : "other bits");
    expect(same, "recorded steps give the same bits");
    free(a);
    free(b);
    close_trainee(&plain);
    close_trainee(&graph);
}

int main(void)
{
    if (is_skipped())
        return SKIPPED;
    make_images();
    check_one_step("keras-cnn", OPTIMIZER_SGD);
    check_one_step("keras-cnn", OPTIMIZER_ADADELTA);
    check_one_step("lenet", OPTIMIZER_SGD);
    check_one_step("mlp", OPTIMIZER_ADADELTA);
    check_one_step("lenet", OPTIMIZER_ADAGRAD);
    check_one_step("lenet", OPTIMIZER_LARS);
    check_graph("keras-cnn", OPTIMIZER_ADADELTA);
    check_graph("lenet", OPTIMIZER_ADAM);
    check_graph("lenet", OPTIMIZER_LARS);
    check_curve("lenet", 200);
    return end_of_test();
}
