/*
 * Augmentation: a training image is rotated about its centre and shifted, by other amounts in each
 * epoch. The amounts are a function of (seed, epoch, number of the image). They do not depend on
 * the worker (unless --no-shard), the thread, the batch or a resume. Pure functions, any thread.
 */
#ifndef PSRING_COMMON_DATA_AUGMENT_H
#define PSRING_COMMON_DATA_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/status.h"

enum { AUGMENT_SHIFT_MOST = 27 };

/* All 0: images do not change. */
struct augmentation {
    int shift;     /* the most pixels to each side; at most AUGMENT_SHIFT_MOST */
    double rotate; /* the most degrees to each side; at most 180 */
};

/* The move of one image. */
struct augment_move {
    int right, down; /* pixels, after the rotation */
    double degrees;  /* clockwise, with row 0 on top */
};

static inline bool augments(const struct augmentation *augmentation)
{
    return augmentation->shift > 0 || augmentation->rotate > 0;
}

/*
 * Parses "none", "shift:PIXELS", "rotate:DEGREES", or both with a comma between them, in either
 * order. `option` is the option's name for messages. STATUS_USAGE (logged) for anything else.
 */
enum status augment_parse(struct augmentation *augmentation, const char *option, const char *text);

/* Writes the augmentation into `text` in the form of augment_parse, shift first. Returns `text`. */
enum { AUGMENT_TEXT_BYTES = 64 };
const char *augment_text(const struct augmentation *augmentation, char text[AUGMENT_TEXT_BYTES]);

/* Uniform: whole pixels from -shift to shift, degrees from -rotate to rotate. Source of the random
 * numbers: common/base/rng.h, RNG_AUGMENT. */
struct augment_move augment_draw(const struct augmentation *augmentation, uint64_t seed,
                                 uint64_t epoch, uint32_t sample);

/*
 * Writes the moved image `from` (28, 28) to `to` (28, 28), with values[x] (256) for a pixel of x. A
 * pixel between others is interpolated bilinearly; a pixel from outside is background, values[0].
 * Without a rotation the result has exactly the values of the table.
 */
void augment_image(const struct augment_move *move, const uint8_t *from, const float *values,
                   float *to);

#endif
