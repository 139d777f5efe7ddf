/* The report of bench --layers for known numbers. A net calls the hook for every layer. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "experiments/bench/bench.h"
#include "models/net.h"

static struct compute_line lines[] = {
    {"conv1", {2, 150e6, 8e6}, {4, 100e6, 9e6}},
    {"loss", {0.5, 0, 0}, {0, 0, 0}},
    {"optimizer", {0, 0, 0}, {1, 0, 0}},
};

/* 250 MFLOP in 8 ms on a machine that could do 100 GFLOP/s on one thread, 150 on two. */
static struct compute_result example(void)
{
    return (struct compute_result){
        .model = "keras-cnn",
        .device = "cpu",
        .threads = 2,
        .ranks = 3,
        .batch = 16,
        .steps = 5,
        .lines = lines,
        .count = 3,
        .sum = {"sum", {2.5, 150e6, 8e6}, {5, 100e6, 9e6}},
        .step_ms = 8,
        .images_per_s = 6000,
        .sgemm_one = 100e9,
        .sgemm_all = 150e9,
    };
}

Test(bench_compute, share_of_sgemm)
{
    struct compute_result result = example();
    cr_expect_float_eq(compute_of_sgemm(&result, 150e6, 2), 0.5, 1e-12);
    cr_expect(isnan(compute_of_sgemm(&result, 0, 2)));
    cr_expect(isnan(compute_of_sgemm(&result, 150e6, 0)));
    result.sgemm_all = 0;
    cr_expect(isnan(compute_of_sgemm(&result, 150e6, 2)));
}

Test(bench_compute, table)
{
    static char text[4096];
    struct compute_result result = example();
    FILE *file = fmemopen(text, sizeof text - 1, "w");
    cr_assert(file);
    bench_compute_table(file, &result);
    fclose(file);
    cr_expect(strstr(text, "keras-cnn, batch 16, device cpu, 2 threads, 3 ranks at once\n"));
    cr_expect(strstr(text, "100.0 GFLOP/s on one thread, 150.0 on 2\n"));
    cr_expect(strstr(text, " conv1          2.000     150.00      8.00     0.50     4.000     "
                           "100.00      9.00     0.17\n"),
              "%s", text);
    cr_expect(strstr(text, " step           8.000     250.00     17.00     0.21\n"), "%s", text);
    cr_expect(strstr(text, "# 6000.0 images/s, all ranks together\n"));
}

Test(bench_compute, csv)
{
    char path[] = "/tmp/psring-compute-XXXXXX", line[512];
    struct compute_result result = example();
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(bench_compute_csv(path, &result), STATUS_OK);
    FILE *file = fopen(path, "r");
    cr_assert(file);
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_str_eq(line, "model,device,ranks,threads,batch,steps,layer,forward_ms,forward_flops,"
                           "forward_bytes,forward_of_sgemm,backward_ms,backward_flops,"
                           "backward_bytes,backward_of_sgemm,sgemm_flops_per_s,"
                           "sgemm_threads_flops_per_s,images_per_s\n");
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_str_eq(line, "keras-cnn,cpu,3,2,16,5,conv1,2,150000000,8000000,0.5,4,100000000,"
                           "9000000,0.166666667,1e+11,1.5e+11,\n");
    cr_assert(fgets(line, sizeof line, file));
    cr_expect_str_eq(line, "keras-cnn,cpu,3,2,16,5,loss,0.5,,,,,,,,1e+11,1.5e+11,\n");
    for (int i = 0; i < 3; i++) /* optimizer, sum, step */
        cr_assert(fgets(line, sizeof line, file));
    cr_expect(strstr(line, ",step,8,250000000,17000000,0.208333333,,,,,1e+11,1.5e+11,6000\n"), "%s",
              line);
    cr_expect_null(fgets(line, sizeof line, file));
    fclose(file);
    unlink(path);
}

/* Order of the layers in a pass: forward 0..n (n: the loss), then backward n-1..0. */
struct seen {
    size_t count, layer[64];
    bool backward[64];
};

static void note(void *context, size_t layer, bool backward)
{
    struct seen *seen = context;
    cr_assert_lt(seen->count, 64);
    seen->layer[seen->count] = layer;
    seen->backward[seen->count++] = backward;
}

Test(bench_compute, a_net_shows_every_layer)
{
    struct device_options options = {.threads = 1};
    struct net_step step = {.training = true};
    struct seen seen = {0};
    struct device *device;
    struct net *net;
    size_t layers;
    static float images[2 * 784];
    static const uint8_t labels[2] = {1, 2};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    cr_assert_eq(net_new(&net, device, "keras-cnn", 2, 1), STATUS_OK);
    const struct net_layer *table = net_layers(net, &layers);
    cr_expect_eq(table[0].in_count, 784);
    cr_expect_eq(table[0].out_count, 26 * 26 * 32);
    cr_expect_eq(table[layers - 1].out_count, 10);
    net_watch(net, note, &seen);
    cr_assert_eq(net_forward(net, images, labels, 2, &step, NULL), STATUS_OK);
    cr_assert_eq(net_backward(net, NULL, NULL), STATUS_OK);
    cr_assert_eq(seen.count, 2 * layers + 1);
    for (size_t i = 0; i < seen.count; i++) {
        cr_expect_eq(seen.backward[i], i > layers);
        cr_expect_eq(seen.layer[i], i > layers ? 2 * layers - i : i);
    }
    net_watch(net, NULL, NULL);
    cr_assert_eq(net_forward(net, images, labels, 2, &step, NULL), STATUS_OK);
    cr_expect_eq(seen.count, 2 * layers + 1);
    net_free(&net);
    device_close(&device);
}
