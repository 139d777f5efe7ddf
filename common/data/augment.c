#include "common/data/augment.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/rng.h"
#include "common/data/dataset.h"

/* Parses "NAME:NUMBER" at `*text`, above 0 and at most `most`. Moves *text behind it. */
static bool take_part(const char **text, const char *name, double most, double *number)
{
    size_t length = strlen(name);
    if (*number > 0 || strncmp(*text, name, length) != 0 || !strchr(".0123456789", (*text)[length]))
        return false;
    char *end = NULL;
    *number = strtod(*text + length, &end);
    *text = end;
    return *number > 0 && *number <= most;
}

enum status augment_parse(struct augmentation *augmentation, const char *option, const char *text)
{
    const char *at = text;
    double shift = 0, rotate = 0;
    bool good = true;
    *augmentation = (struct augmentation){0};
    if (strcmp(text, "none") == 0)
        return STATUS_OK;
    do {
        good = take_part(&at, "shift:", AUGMENT_SHIFT_MOST, &shift) ||
               take_part(&at, "rotate:", 180, &rotate);
    } while (good && *at == ',' && *++at);
    *augmentation = (struct augmentation){(int)shift, rotate};
    if (good && !*at && at[-1] != ',' && shift == floor(shift))
        return STATUS_OK;
    return FAIL(STATUS_USAGE,
                "--%s: found '%s', expected none, or shift:PIXELS (1 to %d) and rotate:DEGREES (up "
                "to 180), one of them or both, e.g. shift:2,rotate:10",
                option, text, AUGMENT_SHIFT_MOST);
}

const char *augment_text(const struct augmentation *augmentation, char text[AUGMENT_TEXT_BYTES])
{
    bool shifts = augmentation->shift > 0, turns = augmentation->rotate > 0;
    char shift[24] = "", rotate[40] = "";
    if (shifts)
        snprintf(shift, sizeof shift, "shift:%d", augmentation->shift);
    if (turns)
        snprintf(rotate, sizeof rotate, "rotate:%.9g", augmentation->rotate);
    snprintf(text, AUGMENT_TEXT_BYTES, "%s%s%s", shifts || turns ? shift : "none",
             shifts && turns ? "," : "", rotate);
    return text;
}

struct augment_move augment_draw(const struct augmentation *augmentation, uint64_t seed,
                                 uint64_t epoch, uint32_t sample)
{
    struct rng_block block = rng_block(rng_key(seed, RNG_AUGMENT, epoch), sample, 0);
    uint32_t ways = 2 * (uint32_t)augmentation->shift + 1;
    return (struct augment_move){
        .right = (int)rng_below(block.word[0], ways) - augmentation->shift,
        .down = (int)rng_below(block.word[1], ways) - augmentation->shift,
        .degrees = (2 * (double)rng_uniform(block.word[2]) - 1) * augmentation->rotate,
    };
}

/* The image with background around it: one pixel before it and two behind it, so that each place
 * from -1 to 28 has neighbours for the interpolation. */
enum { PADDED_ROWS = DATASET_ROWS + 3, PADDED_COLUMNS = DATASET_COLUMNS + 3 };

static void pad(const uint8_t *from, const float *values, float *padded)
{
    for (int i = 0; i < PADDED_ROWS * PADDED_COLUMNS; i++)
        padded[i] = values[0];
    for (int row = 0; row < DATASET_ROWS; row++) {
        for (int column = 0; column < DATASET_COLUMNS; column++)
            padded[(row + 1) * PADDED_COLUMNS + column + 1] =
                values[from[row * DATASET_COLUMNS + column]];
    }
}

/* Limits a place to -1 to `size` (everything beyond is background). Returns the place in
 * `padded`. */
static float clamp(float place, int size)
{
    float low = place < -1 ? -1 : place, high = (float)size;
    return (low > high ? high : low) + 1;
}

void augment_image(const struct augment_move *move, const uint8_t *from, const float *values,
                   float *to)
{
    float padded[PADDED_ROWS * PADDED_COLUMNS];
    const float centre_x = (DATASET_COLUMNS - 1) / 2.0f, centre_y = (DATASET_ROWS - 1) / 2.0f;
    double radians = move->degrees * acos(-1.0) / 180;
    float cosine = (float)cos(radians), sine = (float)sin(radians);
    pad(from, values, padded);
    for (int row = 0; row < DATASET_ROWS; row++) {
        for (int column = 0; column < DATASET_COLUMNS; column++) {
            /* The place that the pixel comes from: shifted back, then rotated back. */
            float x = (float)(column - move->right) - centre_x;
            float y = (float)(row - move->down) - centre_y;
            float from_x = clamp(centre_x + (cosine * x + sine * y), DATASET_COLUMNS);
            float from_y = clamp(centre_y + (cosine * y - sine * x), DATASET_ROWS);
            int left = (int)from_x, top = (int)from_y;
            float part_x = from_x - (float)left, part_y = from_y - (float)top;
            const float *above = padded + (size_t)top * PADDED_COLUMNS + left;
            const float *below = above + PADDED_COLUMNS;
            float upper = above[0] * (1 - part_x) + above[1] * part_x;
            float lower = below[0] * (1 - part_x) + below[1] * part_x;
            *to++ = upper * (1 - part_y) + lower * part_y;
        }
    }
}
