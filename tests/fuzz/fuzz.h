/* Shared by the fuzz targets. Each target defines only LLVMFuzzerTestOneInput. */
#ifndef PSRING_TESTS_FUZZ_FUZZ_H
#define PSRING_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry point. Returns 0. A fault shows as a crash, a failed CHECK or a sanitizer's
 * report. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Makes a file in memory that holds `data`, and writes a path to `path` that opens the file.
 * Returns its descriptor, which the caller closes.
 */
int fuzz_file(const void *data, size_t size, char *path, size_t path_size);

/* Drops messages and what the target prints to stdout. Messages are still formatted, because they
 * contain the input. */
void fuzz_quiet(void);

#endif
