/* For the programs that test the CUDA device: what failed is said, and where there is no GPU the
 * program ends with 77 (skipped). */
#ifndef PSRING_TESTS_LIB_CUDA_LIB_H
#define PSRING_TESTS_LIB_CUDA_LIB_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/device/device.h"

enum { SKIPPED = 77 };

static int failures;

static inline void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: failed: %s\n", program_invocation_short_name, what);
    failures++;
}

/* No GPU here? Says so. */
static inline bool is_skipped(void)
{
    char text[DEVICE_REASON_BYTES];
    const char *reason = device_unavailable(DEVICE_CUDA, text);
    if (reason)
        printf("%s: skipped: %s\n", program_invocation_short_name, reason);
    return reason;
}

/*
 * Whether cuDNN can be used here, and is to be. Says so. PSRING_TEST_NEEDS_CUDNN: it must be, and
 * compute every convolution of a model ("models"; gpu_check.sh, where it was found), or of a test,
 * too ("all"; with a stand-in).
 */
static inline bool has_cudnn(void)
{
    struct conv2d conv = {26, 26, 32, 64, 3, 0, true, true, NULL}; /* keras-cnn's second one */
    struct device_options options = {.kind = DEVICE_CUDA, .conv = DEVICE_CONV_CUDNN};
    struct device *device;
    if (getenv("PSRING_TEST_WITHOUT_CUDNN"))
        return false;
    if (device_open(&device, &options) != STATUS_OK)
        abort();
    bool has = device->ops->conv2d_prepare(device, &conv, 2) == STATUS_OK;
    printf("%s: %s\n", program_invocation_short_name,
           has ? device_convolutions(device) : "without cuDNN");
    device_free(device, conv.kept);
    device_close(&device);
    expect(has || !getenv("PSRING_TEST_NEEDS_CUDNN"), "cuDNN is to be here, and is not");
    return has;
}

/* Whether cuDNN may refuse a convolution that is no model's. */
static inline bool cudnn_may_refuse(void)
{
    const char *needs = getenv("PSRING_TEST_NEEDS_CUDNN");
    return !needs || strcmp(needs, "all") != 0;
}

/* What the program ends with. gpu_check.sh looks for this line, and for expect's. */
static inline int end_of_test(void)
{
    printf("%s: %d failures\n", program_invocation_short_name, failures);
    return failures > 0;
}

#endif
