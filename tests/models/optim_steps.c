/* Prints steps of optimizers for test_pytorch.sh: on each line a name and the parameters. */
#include <stdio.h>
#include <stdlib.h>

#include "models/optim.h"

enum { COUNT = 6, STEPS = 20 };

int main(void)
{
    static const struct {
        const char *name;
        enum optimizer_kind kind;
        struct optimizer_parameters parameters;
    } cases[] = {
        {"sgd", OPTIMIZER_SGD, {.momentum = .9f}},
        {"sgd-decay", OPTIMIZER_SGD, {.momentum = .5f, .weight_decay = .01f}},
        {"nesterov", OPTIMIZER_SGD, {.momentum = .9f, .nesterov = true, .weight_decay = .01f}},
        {"adagrad", OPTIMIZER_ADAGRAD, {.weight_decay = .01f}},
        {"adadelta", OPTIMIZER_ADADELTA, {.rho = .95f, .weight_decay = .01f}},
        {"adam", OPTIMIZER_ADAM, {.beta1 = .9f, .beta2 = .999f}},
        {"adam-decay", OPTIMIZER_ADAM, {.beta1 = .8f, .beta2 = .9f, .weight_decay = .01f}},
    };
    struct device *device;
    struct device_options options = {.threads = 1};
    if (device_open(&device, &options) != STATUS_OK)
        return EXIT_FAILURE;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct optimizer *optimizer;
        float p[COUNT], g[COUNT];
        if (optimizer_new(&optimizer, device, cases[c].kind, COUNT, &cases[c].parameters) !=
            STATUS_OK)
            return EXIT_FAILURE;
        for (int i = 0; i < COUNT; i++)
            p[i] = (float)(i + 1) / 4;
        for (int step = 0; step < STEPS; step++) {
            for (int i = 0; i < COUNT; i++)
                g[i] = (float)((i * 7 + step * 5) % 11 - 4) / 8;
            optimizer_step(optimizer, p, g, step < STEPS / 2 ? .125f : .03125f);
        }
        printf("%s", cases[c].name);
        for (int i = 0; i < COUNT; i++)
            printf(" %.9g", (double)p[i]);
        printf("\n");
        optimizer_free(&optimizer);
    }
    device_close(&device);
    return EXIT_SUCCESS;
}
