/*
 * Augmentation: a training image is turned about its centre and shifted, by other amounts in each
 * epoch. Which amounts is a function of (seed, epoch, number of the image), so they are the same on
 * whichever worker (unless --no-shard) and thread, in whichever batch, and after a resume. Pure
 * functions, any thread.
 */
#ifndef PSRING_COMMON_DATA_AUGMENT_H
#define PSRING_COMMON_DATA_AUGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

enum { AUGMENT_SHIFT_MOST = 27 };

/* All 0: images stay as they are. */
struct augmentation {
    int shift;     /* pixels, at most, to each side; at most AUGMENT_SHIFT_MOST */
    double rotate; /* degrees, at most, to each side; at most 180 */
};

/* What happens to one image. */
struct augment_move {
    int right, down; /* pixels, after the turn */
    double degrees;  /* clockwise, as seen with row 0 on top */
};

static inline bool augments(const struct augmentation *augmentation)
{
    return augmentation->shift > 0 || augmentation->rotate > 0;
}

/*
 * "none", or "shift:PIXELS", "rotate:DEGREES" or both with a comma between, in either order, as
 * `option` of a command says it. STATUS_USAGE (logged) for anything else.
 */
enum status augment_parse(struct augmentation *augmentation, const char *option, const char *text);

/* As augment_parse takes it, in one order, in `text`, which is also returned. */
enum { AUGMENT_TEXT_BYTES = 64 };
const char *augment_text(const struct augmentation *augmentation, char text[AUGMENT_TEXT_BYTES]);

/* Uniform: whole pixels from -shift to shift, degrees from -rotate to rotate. Source of the random
 * numbers: common/base/rng.h, RNG_AUGMENT. */
struct augment_move augment_draw(const struct augmentation *augmentation, uint64_t seed,
                                 uint64_t epoch, uint32_t sample);

/*
 * to (28, 28) becomes the image `from` (28, 28), moved, with values[x] (256) for a pixel of x. A
 * pixel that comes from between others is interpolated bilinearly; what comes from outside is
 * background, values[0]. Without a turn the result has the very values of the table.
 */
void augment_image(const struct augment_move *move, const uint8_t *from, const float *values,
                   float *to);

#endif
