/* For the programs that test the CUDA device: what failed is said, and where there is no GPU the
 * program ends with 77 (skipped). */
#ifndef PSRING_TESTS_CUDA_LIB_H
#define PSRING_TESTS_CUDA_LIB_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/device/device.h"

enum { SKIPPED = 77 };

static int failures;

static inline void expect(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
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

/* What the program ends with. gpu_check.sh looks for the line. */
static inline int end_of_test(void)
{
    printf("%s: %d failures\n", program_invocation_short_name, failures);
    return failures > 0;
}

#endif
