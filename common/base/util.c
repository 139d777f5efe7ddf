#include "common/base/util.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/status.h"

void *memory_array(size_t bytes)
{
    size_t align = bytes >= MEMORY_HUGE_BYTES ? (size_t)MEMORY_HUGE_BYTES : 64;
    if (bytes > SIZE_MAX - align)
        return NULL;
    size_t rounded = bytes > 0 ? (bytes + align - 1) / align * align : align;
    void *memory = aligned_alloc(align, rounded);
    if (!memory)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (align == MEMORY_HUGE_BYTES)
        madvise(memory, rounded, MADV_HUGEPAGE); /* only advice: a refusal is no error */
#endif
    return memset(memory, 0, rounded);
}

void *memory_grow(void *array, size_t *room, size_t count, size_t each, const char *what)
{
    enum { FIRST = 64 };
    if (count < *room)
        return array;
    size_t wanted = *room > 0 ? 2 * *room : FIRST;
    void *grown = realloc(array, wanted * each);
    if (grown)
        *room = wanted;
    else
        log_error("no memory for %zu %s", wanted, what);
    return grown;
}
