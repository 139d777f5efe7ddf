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

/* The program's exit code. gpu_check.sh looks for this line, and for the line of expect. */
static inline int end_of_test(void)
{
    printf("%s: %d failures\n", program_invocation_short_name, failures);
    return failures > 0;
}

#endif
