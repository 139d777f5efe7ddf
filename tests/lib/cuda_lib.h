/* For the programs that test the CUDA device: they print what failed. Without a GPU the program
 * ends with 77 (skipped). */
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

/* Returns whether there is no GPU here, and prints the reason. */
static inline bool is_skipped(void)
{
    char text[DEVICE_REASON_BYTES];
    const char *reason = device_unavailable(DEVICE_CUDA, text);
    if (reason)
        printf("%s: skipped: %s\n", program_invocation_short_name, reason);
    return reason;
}

/*
 * Returns whether cuDNN can be used here and is not disabled; prints the result.
 * PSRING_TEST_NEEDS_CUDNN makes it required. "models" (gpu_check.sh, if cuDNN was found): it must
 * compute every convolution of a model. "all" (with a stand-in): it must also compute those of
 * tests.
 */
static inline bool has_cudnn(void)
{
    struct conv2d conv = {26, 26,   32,   64,  3,
                          0,  true, true, NULL}; /* keras-cnn's second convolution */
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
    expect(has || !getenv("PSRING_TEST_NEEDS_CUDNN"), "cuDNN is required, but is not here");
    return has;
}

/* Whether cuDNN may refuse a convolution that belongs to no model. */
static inline bool cudnn_may_refuse(void)
{
    const char *needs = getenv("PSRING_TEST_NEEDS_CUDNN");
    return !needs || strcmp(needs, "all") != 0;
}

/* The program's exit code. gpu_check.sh looks for this line, and for the line of expect. */
static inline int end_of_test(void)
{
    printf("%s: %d failures\n", program_invocation_short_name, failures);
    return failures > 0;
}

#endif
