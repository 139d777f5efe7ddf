/*
 * "did you mean": of some words the one that is most like what a user has typed.
 *
 *     struct nearest nearest = nearest_to(text);
 *     for each word: nearest_offer(&nearest, word)
 *     log_error("%s: no such word%s", text, nearest_hint(&nearest, "", hint, sizeof hint))
 */
#ifndef PSRING_COMMON_BASE_NEAREST_H
#define PSRING_COMMON_BASE_NEAREST_H

#include <stddef.h>

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
