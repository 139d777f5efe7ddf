/* Memory for large arrays of numbers. */
#ifndef PSRING_COMMON_BASE_MEMORY_H
#define PSRING_COMMON_BASE_MEMORY_H

#include <stddef.h>

/*
 * `bytes` bytes (at least one), zeroed and aligned to 64; free() frees them. Long arrays are
 * aligned to MEMORY_HUGE_BYTES, and the system is asked to hold them in pages of that size: whoever
 * streams through 64 MB in pages of 4 KB misses the TLB 16,000 times. NULL: out of memory, not
 * logged.
 */
void *memory_array(size_t bytes);

enum { MEMORY_HUGE_BYTES = 2 << 20 };

#endif
