/* A text that is put together piece by piece in a buffer of fixed size, cut where that is full. */
#ifndef PSRING_COMMON_BASE_TEXT_H
#define PSRING_COMMON_BASE_TEXT_H

#include <stddef.h>

struct line {
    char *text; /* borrowed; always ends with a 0 */
    size_t size, used;
};

/* Empty, in `text` of `size` > 0 bytes. */
struct line line_in(char *text, size_t size);

/* The file up to a byte 0, for the caller to free; NULL: it cannot be read (errno), or is empty.
 * Its length goes to *length, which may be NULL. */
char *text_of_file(const char *path, size_t *length);

/* Adds to its end what still fits. */
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);

/*
 * "did you mean": of some words the one that is most like what a user has typed.
 *
 *     struct nearest nearest = nearest_to(text);
 *     for each word: nearest_offer(&nearest, word)
 *     log_error("%s: no such word%s", text, nearest_hint(&nearest, "", hint, sizeof hint))
 */

struct nearest {
    const char *text;
    const char *word; /* NULL: none is alike */
    int distance;     /* of `word` */
};

/* Borrows `text`. */
struct nearest nearest_to(const char *text);

/*
 * Borrows `word`. Alike are words that differ in a few letters (Damerau 1964: one too many, one
 * missing, another one, or two neighbours the wrong way round), at most a third of them; the
 * beginning of `text` before a '-' ("batch" for "batch-size"); and the first letters of its parts
 * ("lr" for "learning-rate").
 */
void nearest_offer(struct nearest *nearest, const char *word);

/* " (did you mean PREFIXWORD?)" in `text`, or "". Returns `text`. */
const char *nearest_hint(const struct nearest *nearest, const char *prefix, char *text,
                         size_t size);

#endif
