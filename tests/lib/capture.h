/* For tests: captures what a call writes to stderr or stdout, and makes a temporary folder. */
#ifndef PSRING_TESTS_LIB_CAPTURE_H
#define PSRING_TESTS_LIB_CAPTURE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <criterion/criterion.h>

struct capture {
    FILE *file, *stream;
    int saved; /* the stream's own descriptor */
    char text[8192];
};

static inline void capture_start_of(struct capture *capture, FILE *stream)
{
    fflush(stream);
    capture->stream = stream;
    capture->file = tmpfile();
    capture->saved = dup(fileno(stream));
    cr_assert(capture->file && capture->saved >= 0);
    cr_assert(dup2(fileno(capture->file), fileno(stream)) >= 0);
}

static inline void capture_start(struct capture *capture)
{
    capture_start_of(capture, stderr);
}

/* Ends the capture; capture->text has the written text. Returns the number of lines. */
static inline size_t capture_stop(struct capture *capture)
{
    size_t lines = 0;
    fflush(capture->stream);
    cr_assert(dup2(capture->saved, fileno(capture->stream)) >= 0);
    close(capture->saved);
    rewind(capture->file);
    size_t count = fread(capture->text, 1, sizeof capture->text - 1, capture->file);
    capture->text[count] = '\0';
    fclose(capture->file);
    for (const char *c = capture->text; *c; c++)
        lines += *c == '\n';
    return lines;
}

/* Evaluates `call` (an enum status). It must return `expected` and print one line with `words`. */
#define assert_refused(call, expected, words)                                                      \
    do {                                                                                           \
        struct capture capture_;                                                                   \
        capture_start(&capture_);                                                                  \
        enum status status_ = (call);                                                              \
        size_t lines_ = capture_stop(&capture_);                                                   \
        cr_assert(status_ == (expected), "%s: found %s, expected %s; it printed: %s", #call,       \
                  status_name(status_), status_name(expected), capture_.text);                     \
        cr_assert(lines_ == 1, "%s: %zu lines, expected 1: %s", #call, lines_, capture_.text);     \
        cr_assert(strstr(capture_.text, (words)) != NULL, "no \"%s\" in: %s", (words),             \
                  capture_.text);                                                                  \
    } while (0)

static inline int folder_remove_one(const char *path, const struct stat *info, int type,
                                    struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

/* Makes an empty folder for this test. Writes its path to `path`, which has 64 bytes. */
static inline void folder_new(char path[64])
{
    snprintf(path, 64, "/tmp/psring-test-XXXXXX");
    cr_assert(mkdtemp(path) != NULL);
}

static inline void folder_free(const char *path)
{
    cr_assert(nftw(path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

#endif
