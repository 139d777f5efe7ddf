/* A text built piece by piece in a buffer of fixed size. It is cut off at the end of the buffer. */
#ifndef PSRING_COMMON_BASE_TEXT_H
#define PSRING_COMMON_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct line {
    char *text; /* borrowed; always ends with a 0 */
    size_t size, used;
};

/* An empty line in `text` of `size` > 0 bytes. */
struct line line_in(char *text, size_t size);

/* Returns the file's bytes up to the first zero byte; the caller frees them. NULL: the file cannot
 * be read (errno), or is empty. Sets *length to their number; `length` may be NULL. */
char *text_of_file(const char *path, size_t *length);

/* Finds the first line in which the options of a worker and of its job differ. Writes "--batch=16,
 * the job with --batch=8" into `text`, with "nothing" for no line. False: they are the same. */
bool text_difference(const char *theirs, const char *own, char *text, size_t size);

/* Appends as much as still fits. */
__attribute__((format(printf, 2, 3))) void line_add(struct line *line, const char *format, ...);

/* Writes a number as "1,234,567", rounded and cut to `size`. Returns `text`. */
const char *text_grouped(double number, char *text, size_t size);

/*
 * "did you mean": the word, among several, that is most similar to what a user has typed.
 *
 *     struct nearest nearest = nearest_to(text);
 *     for each word: nearest_offer(&nearest, word)
 *     log_error("%s: no such word%s", text, nearest_hint(&nearest, "", hint, sizeof hint))
 */

struct nearest {
    const char *text;
    const char *word; /* NULL: no word is similar */
    int distance;     /* of `word` */
};

/* Borrows `text`. */
struct nearest nearest_to(const char *text);

/*
 * Borrows `word`. A word is similar in one of three cases:
 * - It differs in at most a third of its letters (Damerau 1964: a letter too many, missing or
 *   replaced, or two neighbours exchanged).
 * - It is the beginning of `text` before a '-' ("batch" for "batch-size").
 * - It consists of the first letters of the parts of `text` ("lr" for "learning-rate").
 */
void nearest_offer(struct nearest *nearest, const char *word);

/* Writes " (did you mean PREFIXWORD?)" or "" into `text`. Returns `text`. */
const char *nearest_hint(const struct nearest *nearest, const char *prefix, char *text,
                         size_t size);

#endif
