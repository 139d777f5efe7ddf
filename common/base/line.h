/* A text that is put together piece by piece in a buffer of fixed size, cut where that is full. */
#ifndef PSRING_COMMON_BASE_LINE_H
#define PSRING_COMMON_BASE_LINE_H

#include <stddef.h>

struct line {
    char *text; /* borrowed; always ends with a 0 */
    size_t size, used;
};

/* Empty, in `text` of `size` > 0 bytes. */
struct line line_in(char *text, size_t size);

/* Adds to its end what still fits. */
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);

#endif
