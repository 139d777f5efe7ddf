/*
 * fuzz_replay FOLDER SEED FIRST COUNT: gives every file of FOLDER to a fuzz target. Then it gives
 * the inputs FIRST to FIRST + COUNT - 1 that SEED makes from the files. It works with any compiler,
 * unlike libFuzzer, and always does the same: an input depends only on the files, SEED and its
 * number. To find the input of a crash, halve COUNT.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"

enum { FILES_MAX = 256, FILE_BYTES_MAX = 64 * 1024, INPUT_BYTES_MAX = 2 * FILE_BYTES_MAX };

struct file {
    uint8_t *bytes;
    size_t count;
};

struct corpus {
    struct file files[FILES_MAX];
    size_t count;
};

/* Random words of one input. */
struct words {
    struct rng_key key;
    uint64_t used;
};

static uint32_t next_below(struct words *words, size_t bound)
{
    uint32_t word = rng_block(words->key, words->used++, 0).word[0];
    return rng_below(word, (uint32_t)bound);
}

static bool read_file(const char *folder, const char *name, struct file *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "rb");
    file->bytes = malloc(FILE_BYTES_MAX);
    if (!stream || !file->bytes) {
        fprintf(stderr, "fuzz_replay: %s cannot be read\n", path);
        return false;
    }
    file->count = fread(file->bytes, 1, FILE_BYTES_MAX, stream);
    fclose(stream);
    return true;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Reads the files in the order of their names, which is the same everywhere. */
static bool read_corpus(const char *folder, struct corpus *corpus)
{
    struct dirent **names;
    int count = scandir(folder, &names, is_visible, alphasort);
    bool good = count > 0 && count <= FILES_MAX;
    if (!good)
        fprintf(stderr, "fuzz_replay: %s: found %d files, expected 1 to %d\n", folder, count,
                FILES_MAX);
    for (int i = 0; i < count; i++) {
        good = good && read_file(folder, names[i]->d_name, &corpus->files[corpus->count++]);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return good;
}

/* Makes one change to the input. Most changes keep its length, because readers check it first. */
static size_t mutate(struct words *words, const struct corpus *corpus, uint8_t *input, size_t count)
{
    static const uint8_t telling[] = {0, 1, 0x7f, 0x80, 0xff, 8, 28};
    size_t at = count > 0 ? next_below(words, count) : 0;
    switch (next_below(words, 8)) {
    case 0: /* cut */
        return at;
    case 1: { /* continue with bytes of another file */
        const struct file *other = &corpus->files[next_below(words, corpus->count)];
        size_t from = other->count > 0 ? next_below(words, other->count) : 0;
        size_t length = other->count - from;
        if (at + length > INPUT_BYTES_MAX)
            length = INPUT_BYTES_MAX - at;
        memcpy(input + at, other->bytes + from, length);
        return at + length;
    }
    case 2: /* one byte more */
        if (count < INPUT_BYTES_MAX)
            input[count++] = (uint8_t)next_below(words, 256);
        return count;
    case 3: /* a special byte at the start, where headers are */
        at = count > 0 ? next_below(words, count < 80 ? count : 80) : 0;
        if (count > 0)
            input[at] = telling[next_below(words, sizeof telling)];
        return count;
    case 4: /* any byte */
        if (count > 0)
            input[at] = (uint8_t)next_below(words, 256);
        return count;
    default: /* one bit */
        if (count > 0)
            input[at] ^= (uint8_t)(1u << next_below(words, 8));
        return count;
    }
}

static void run_mutated(const struct corpus *corpus, uint64_t seed, uint64_t number)
{
    static uint8_t input[INPUT_BYTES_MAX];
    struct words words = {.key = rng_key(seed, RNG_TEST, number)};
    const struct file *file = &corpus->files[next_below(&words, corpus->count)];
    size_t count = file->count;
    memcpy(input, file->bytes, count);
    for (uint32_t changes = 1 + next_below(&words, 4); changes > 0; changes--)
        count = mutate(&words, corpus, input, count);
    /* The copy has exactly this size, so that a sanitizer sees a read past the end. */
    uint8_t *copy = malloc(count + (count == 0));
    if (!copy)
        abort();
    memcpy(copy, input, count);
    LLVMFuzzerTestOneInput(copy, count);
    free(copy);
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    if (argc != 5) {
        fprintf(stderr, "usage: %s FOLDER SEED FIRST COUNT\n", argv[0]);
        return 2;
    }
    if (!read_corpus(argv[1], &corpus))
        return 1;
    for (size_t i = 0; i < corpus.count; i++)
        LLVMFuzzerTestOneInput(corpus.files[i].bytes, corpus.files[i].count);
    uint64_t seed = strtoull(argv[2], NULL, 10);
    uint64_t first = strtoull(argv[3], NULL, 10), count = strtoull(argv[4], NULL, 10);
    for (uint64_t number = first; number < first + count; number++)
        run_mutated(&corpus, seed, number);
    fprintf(stderr, "fuzz_replay: %zu files and %llu inputs made of them\n", corpus.count,
            (unsigned long long)count);
    for (size_t i = 0; i < corpus.count; i++)
        free(corpus.files[i].bytes);
    return 0;
}
