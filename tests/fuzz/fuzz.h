/* What fuzz targets share. Each target defines LLVMFuzzerTestOneInput and nothing else. */
#ifndef PSRING_TESTS_FUZZ_FUZZ_H
#define PSRING_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry. Returns 0; a fault shows as a crash, a failed CHECK or a sanitizer's report.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Makes a file in memory that holds `data`, and writes a path that opens it into `path`. Returns
 * its descriptor, which the caller closes.
 */
int fuzz_file(const void *data, size_t size, char *path, size_t path_size);

#endif
