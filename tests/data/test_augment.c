/* Augmented images, compared with values calculated by hand. */
#include "common/data/augment.h"

#include <math.h>
#include <string.h>

#include "common/data/dataset.h"
#include "tests/lib/capture.h"

enum { SIDE = DATASET_ROWS, VALUES = 256 };

static float values[VALUES], result[SIDE][SIDE];
static uint8_t image[SIDE][SIDE];

static uint8_t *pixel(int p)
{
    return &image[p / SIDE][p % SIDE];
}

/* Sets values that are not multiples of each other. The background's value is not 0. */
static void clear(void)
{
    for (int x = 0; x < VALUES; x++)
        values[x] = ((float)x / 255.0f - 0.1307f) / 0.3081f;
    memset(image, 0, sizeof image);
}

static void move_image(int right, int down, double degrees)
{
    augment_image(&(struct augment_move){right, down, degrees}, image[0], values, result[0]);
}

Test(augment, shifts_by_whole_pixels_to_the_very_values)
{
    static const int shifts[][2] = {{0, 0}, {2, 0}, {0, 3}, {-1, -4}, {27, -27}};
    clear();
    for (int p = 0; p < DATASET_PIXELS; p++)
        *pixel(p) = (uint8_t)(p * 37 + p / 28 * 11);
    for (size_t s = 0; s < sizeof shifts / sizeof *shifts; s++) {
        int right = shifts[s][0], down = shifts[s][1];
        move_image(right, down, 0);
        for (int row = 0; row < SIDE; row++) {
            for (int column = 0; column < SIDE; column++) {
                int y = row - down, x = column - right;
                bool inside = y >= 0 && y < SIDE && x >= 0 && x < SIDE;
                cr_assert(result[row][column] == values[inside ? image[y][x] : 0],
                          "shift %d %d, row %d, column %d", right, down, row, column);
            }
        }
    }
}

/* Row 3, column 5 is 10.5 above and 8.5 left of the centre. A quarter turn clockwise moves it
 * to 8.5 above and 10.5 right, which is row 5, column 24. Further turns work likewise. */
Test(augment, turns_clockwise_about_the_centre)
{
    static const struct {
        double degrees;
        int row, column;
    } turns[] = {{90, 5, 24}, {180, 24, 22}, {-180, 24, 22}, {-90, 22, 3}};
    clear();
    image[3][5] = 255;
    for (size_t t = 0; t < sizeof turns / sizeof *turns; t++) {
        move_image(0, 0, turns[t].degrees);
        for (int p = 0; p < DATASET_PIXELS; p++) {
            bool there = p == turns[t].row * SIDE + turns[t].column;
            cr_assert_float_eq(result[p / SIDE][p % SIDE], values[there ? 255 : 0], 1e-4,
                               "%g degrees, pixel %d", turns[t].degrees, p);
        }
    }
    move_image(2, -1, 90); /* turned, then shifted */
    cr_assert_float_eq(result[4][26], values[255], 1e-4);
}

/*
 * 45 degrees. Column 13, row 13 is (-0.5, -0.5) from the centre and comes from (-0.7071, 0): column
 * 12.7929, row 13.5. The result has 0.2071 of column 12 and 0.7929 of column 13, half of each from
 * rows 13 and 14.
 */
Test(augment, interpolates_bilinearly)
{
    const float right = 1.5f - sqrtf(0.5f), left = 1 - right;
    clear();
    image[13][12] = 200;
    image[14][12] = 100;
    image[13][13] = 80;
    image[14][13] = 40;
    move_image(0, 0, 45);
    cr_assert_float_eq(left, 0.2071f, 1e-4);
    float expected = left * (values[200] + values[100]) / 2 + right * (values[80] + values[40]) / 2;
    cr_assert_float_eq(result[13][13], expected, 1e-4);
    /* Corners come from outside. */
    cr_assert(result[0][0] == values[0] && result[27][27] == values[0]);
}

/* The whole image is ink. Row 13, column 0 is (-13.5, -0.5) from the centre and comes from
 * column 3.6, row 22.7: ink. Row 4 begins outside the image and goes inside; at the edge it is a
 * mixture. */
Test(augment, background_comes_in_from_outside)
{
    clear();
    memset(image, 255, sizeof image);
    move_image(0, 0, 45);
    cr_assert_float_eq(result[13][0], values[255], 1e-5);
    bool between = false;
    for (int column = 0; column < SIDE; column++) {
        float x = result[4][column];
        cr_assert(x >= values[0] && x <= values[255] * 1.00001f);
        between = between || (x > values[0] * 0.9f && x < values[255] * 0.9f);
    }
    cr_assert(between);
}

Test(augment, draws_by_seed_epoch_and_image_alone)
{
    struct augmentation augmentation = {.shift = 2, .rotate = 10};
    int shifts[5] = {0}, equal = 0, images = 4000;
    double most = 0, sum = 0;
    for (int i = 0; i < images; i++) {
        struct augment_move move = augment_draw(&augmentation, 7, 3, (uint32_t)i);
        struct augment_move again = augment_draw(&augmentation, 7, 3, (uint32_t)i);
        struct augment_move epoch = augment_draw(&augmentation, 7, 4, (uint32_t)i);
        struct augment_move seed = augment_draw(&augmentation, 8, 3, (uint32_t)i);
        cr_assert(move.right == again.right && move.down == again.down);
        cr_assert(move.degrees == again.degrees);
        equal += move.degrees == epoch.degrees || move.degrees == seed.degrees;
        cr_assert(abs(move.right) <= 2 && abs(move.down) <= 2 && fabs(move.degrees) <= 10);
        shifts[move.right + 2]++;
        most = fmax(most, fabs(move.degrees));
        sum += move.degrees;
    }
    cr_assert(equal < 5);
    for (int s = 0; s < 5; s++) /* 800 expected, standard deviation 25 */
        cr_assert(shifts[s] > 650 && shifts[s] < 950, "shift %d: %d", s - 2, shifts[s]);
    cr_assert(most > 9.9 && fabs(sum / images) < 0.5);
    struct augment_move still = augment_draw(&(struct augmentation){0}, 7, 3, 1);
    cr_assert(still.right == 0 && still.down == 0 && still.degrees == 0);
}

Test(augment, says_how_it_is_written)
{
    static const char *const wrong[] = {
        "",           "shift",           "shift:",          "shift:0",
        "shift:1.5",  "shift:28",        "shift:-1",        "shift:2,",
        ",shift:2",   "shift:2,shift:3", "shift:2rotate:3", "rotate:181",
        "rotate:nan", "rotate:10x",      "zoom:2",          "None"};
    struct augmentation augmentation;
    cr_assert(augment_parse(&augmentation, "augment", "none") == STATUS_OK);
    cr_assert(!augments(&augmentation));
    cr_assert(augment_parse(&augmentation, "augment", "shift:2") == STATUS_OK);
    cr_assert(augmentation.shift == 2 && augmentation.rotate == 0);
    cr_assert(augment_parse(&augmentation, "augment", "rotate:7.5,shift:27") == STATUS_OK);
    cr_assert(augmentation.shift == 27 && augmentation.rotate == 7.5 && augments(&augmentation));
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
        assert_refused(augment_parse(&augmentation, "augment", wrong[w]), STATUS_USAGE,
                       "expected none, or shift:PIXELS");
}

Test(augment, is_written_as_it_is_read)
{
    const char *const texts[] = {"none", "shift:2", "rotate:7.5", "shift:27,rotate:180"};
    char text[AUGMENT_TEXT_BYTES];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct augmentation augmentation;
        cr_assert(augment_parse(&augmentation, "augment", texts[i]) == STATUS_OK);
        cr_assert(strcmp(augment_text(&augmentation, text), texts[i]) == 0, "%s: %s", texts[i],
                  text);
    }
}
