/*
 * make_dataset DIR TRAIN TEST: writes four IDX files like MNIST's, so that tests need no download.
 * They have TRAIN and TEST images of ten made-up classes. Every class has a bright square at a
 * different place, moved by a pixel or two, on a noisy ground. A small net learns it within a few
 * dozen steps.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"

enum { SIDE = 28, CLASSES = 10, SQUARE = 6 };

static void put_word(FILE *file, uint32_t word)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(word >> shift & 0xff), file);
}

static FILE *create(const char *dir, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

static void put_image(FILE *file, uint32_t label, struct rng_key key, uint32_t index)
{
    struct rng_block place = rng_block(key, index, 1);
    uint32_t top = 2 + label / 5 * 14 + rng_below(place.word[0], 4);
    uint32_t left = label % 5 * 5 + rng_below(place.word[1], 3);
    for (uint32_t pixel = 0; pixel < SIDE * SIDE; pixel++) {
        uint32_t noise = rng_below(rng_block(key, index, 2 + pixel).word[0], 80);
        uint32_t down = pixel / SIDE - top, right = pixel % SIDE - left; /* huge if negative */
        fputc((int)(noise + (down < SQUARE && right < SQUARE ? 160 : 0)), file);
    }
}

static void write_split(const char *dir, const char *split, uint32_t count, uint64_t seed)
{
    char name[64];
    struct rng_key key = rng_key(seed, RNG_TEST, count);
    snprintf(name, sizeof name, "%s-images-idx3-ubyte", split);
    FILE *images = create(dir, name);
    snprintf(name, sizeof name, "%s-labels-idx1-ubyte", split);
    FILE *labels = create(dir, name);
    put_word(images, 0x00000803);
    put_word(images, count);
    put_word(images, SIDE);
    put_word(images, SIDE);
    put_word(labels, 0x00000801);
    put_word(labels, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t label = rng_below(rng_block(key, i, 0).word[0], CLASSES);
        fputc((int)label, labels);
        put_image(images, label, key, i);
    }
    if (fclose(images) != 0 || fclose(labels) != 0) {
        perror(dir);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: make_dataset DIR TRAIN TEST\n");
        return 2;
    }
    write_split(argv[1], "train", (uint32_t)strtoul(argv[2], NULL, 10), 1);
    write_split(argv[1], "t10k", (uint32_t)strtoul(argv[3], NULL, 10), 2);
    return 0;
}
