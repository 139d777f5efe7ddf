/* Convolution, fused and plain, and pooling, compared with the double-precision reference.
 * Gradients are also compared with its central differences. All elements are compared. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/device/device.h"
#include "tests/lib/reference.h"

struct arrays {
    size_t x, w, f, y, window; /* counts */
    double *x64, *w64, *bias64, *r64, *y64;
    double *dx64, *dw64, *dbias64;
    float *x32, *w32, *bias32, *y32, *dy32, *dx32, *dw32, *dbias32;
    uint8_t *index;
};

static float *new_floats(size_t count)
{
    float *values = calloc(count, sizeof *values);
    cr_assert(values);
    return values;
}

/* Fills an array with the same numbers as float and as double. */
static void fill(uint64_t stream, size_t count, double scale, double *wide, float *narrow)
{
    for (size_t i = 0; i < count; i++) {
        narrow[i] = (float)(scale * reference_value(stream, i));
        wide[i] = (double)narrow[i];
    }
}

static struct arrays arrays_new(const struct conv2d *c, size_t batch)
{
    struct arrays a = {0};
    a.x = batch * c->height * c->width * c->channels;
    a.w = c->kernel * c->kernel * c->channels * c->filters;
    a.f = c->filters;
    a.window = batch * conv2d_window_size(c, c->height) * conv2d_window_size(c, c->width) * a.f;
    a.y = batch * conv2d_out_size(c, c->height) * conv2d_out_size(c, c->width) * a.f;
    a.x64 = reference_new(a.x), a.dx64 = reference_new(a.x);
    a.w64 = reference_new(a.w), a.dw64 = reference_new(a.w);
    a.bias64 = reference_new(a.f), a.dbias64 = reference_new(a.f);
    a.r64 = reference_new(a.y), a.y64 = reference_new(a.y);
    a.x32 = new_floats(a.x), a.dx32 = new_floats(a.x);
    a.w32 = new_floats(a.w), a.dw32 = new_floats(a.w);
    a.bias32 = new_floats(a.f), a.dbias32 = new_floats(a.f);
    a.y32 = new_floats(a.y), a.dy32 = new_floats(a.y);
    a.index = calloc(a.y, 1);
    fill(1, a.x, 1.0, a.x64, a.x32);
    fill(2, a.w, 1.0 / sqrt((double)(c->kernel * c->kernel * c->channels)), a.w64, a.w32);
    fill(3, a.f, 0.1, a.bias64, a.bias32);
    fill(4, a.y, 1.0, a.r64, a.dy32);
    return a;
}

static void arrays_free(struct arrays *a)
{
    void *all[] = {a->x64,  a->w64,     a->bias64, a->r64,     a->y64,    a->dx64,
                   a->dw64, a->dbias64, a->x32,    a->w32,     a->bias32, a->y32,
                   a->dy32, a->dx32,    a->dw32,   a->dbias32, a->index};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Computes y64. If `from` is not NULL, it gets the window output of each element. */
static void reference_forward(const struct conv2d *c, size_t batch, struct arrays *a,
                              double *window, size_t *from)
{
    reference_window(c, batch, a->x64, a->w64, a->bias64, window);
    if (c->relu)
        reference_relu(a->window, window);
    if (c->pool) {
        reference_pool(batch, conv2d_window_size(c, c->height), conv2d_window_size(c, c->width),
                       c->filters, window, a->y64, from);
        return;
    }
    memcpy(a->y64, window, a->y * sizeof *a->y64);
    for (size_t i = 0; from && i < a->y; i++)
        from[i] = i;
}

static void reference_backward(const struct conv2d *c, size_t batch, struct arrays *a)
{
    double *window = reference_new(a->window), *dwindow = reference_new(a->window);
    size_t *from = calloc(a->y, sizeof *from);
    reference_forward(c, batch, a, window, from);
    for (size_t i = 0; i < a->y; i++) {
        if (!c->relu || a->y64[i] > 0)
            dwindow[from[i]] += a->r64[i];
    }
    reference_window_backward(c, batch, a->x64, a->w64, dwindow, a->dx64, a->dw64, a->dbias64);
    free(window);
    free(dwindow);
    free(from);
}

/* The function whose gradients are tested: the sum of r y. */
static double objective(const struct conv2d *c, size_t batch, struct arrays *a, double *window)
{
    double sum = 0;
    reference_forward(c, batch, a, window, NULL);
    for (size_t i = 0; i < a->y; i++)
        sum += a->r64[i] * a->y64[i];
    return sum;
}

static void compare(const char *what, size_t count, const double *expected, const float *found,
                    double tolerance)
{
    double largest = 1e-30;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (size_t i = 0; i < count; i++)
        cr_assert(fabs(expected[i] - (double)found[i]) <= tolerance * largest,
                  "%s[%zu]: found %.9g, expected %.9g", what, i, (double)found[i], expected[i]);
}

static void compare_differences(const char *what, const struct conv2d *c, size_t batch,
                                struct arrays *a, double *values, size_t count, const float *found)
{
    const double h = 1e-6;
    double *expected = reference_new(count), *window = reference_new(a->window);
    for (size_t i = 0; i < count; i++) {
        double saved = values[i];
        values[i] = saved + h;
        double above = objective(c, batch, a, window);
        values[i] = saved - h;
        double below = objective(c, batch, a, window);
        values[i] = saved;
        expected[i] = (above - below) / (2 * h);
    }
    compare(what, count, expected, found, 2e-6);
    free(expected);
    free(window);
}

static void run(struct device *device, const struct conv2d *c, size_t batch, struct arrays *a,
                bool want_dx)
{
    struct conv2d prepared = *c;
    cr_assert_eq(device->ops->conv2d_prepare(device, &prepared, batch), STATUS_OK);
    c = &prepared;
    device->ops->conv2d_forward(device, c, batch, a->x32, a->w32, a->bias32, a->y32, a->index);
    struct backward backward = {.x = a->x32,
                                .w = a->w32,
                                .y = a->y32,
                                .index = a->index,
                                .dy = a->dy32,
                                .dx = want_dx ? a->dx32 : NULL,
                                .dw = a->dw32,
                                .dbias = a->dbias32};
    device->ops->conv2d_backward(device, c, batch, &backward);
    device_free(device, prepared.kept);
}

static void check(const struct conv2d *c, size_t batch, int threads, bool differences)
{
    struct device *device;
    struct device_options options = {.kind = DEVICE_CPU, .threads = threads};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    struct arrays a = arrays_new(c, batch);
    run(device, c, batch, &a, true);
    reference_backward(c, batch, &a);
    compare("y", a.y, a.y64, a.y32, 1e-5);
    compare("dx", a.x, a.dx64, a.dx32, 1e-5);
    compare("dw", a.w, a.dw64, a.dw32, 1e-5);
    compare("dbias", a.f, a.dbias64, a.dbias32, 1e-5);
    if (differences) {
        compare_differences("dx", c, batch, &a, a.x64, a.x, a.dx32);
        compare_differences("dw", c, batch, &a, a.w64, a.w, a.dw32);
        compare_differences("dbias", c, batch, &a, a.bias64, a.f, a.dbias32);
    }
    arrays_free(&a);
    device_close(&device);
}

/* Odd sizes, one channel and several, windows as large as the image, padding, all four fusions. */
Test(conv, small_shapes_against_central_differences)
{
    static const struct conv2d shapes[] = {
        {.height = 5, .width = 7, .channels = 1, .filters = 3, .kernel = 3},
        {.height = 6, .width = 5, .channels = 2, .filters = 5, .kernel = 2, .relu = true},
        {.height = 7, .width = 8, .channels = 3, .filters = 4, .kernel = 3, .pool = true},
        {.height = 7, .width = 6, .channels = 2, .filters = 3, .kernel = 1, .padding = 0},
        {.height = 4, .width = 4, .channels = 2, .filters = 3, .kernel = 4, .relu = true},
        {.height = 6, .width = 7, .channels = 2, .filters = 3, .kernel = 3, .padding = 1},
        {.height = 5, .width = 4, .channels = 1, .filters = 2, .kernel = 5, .padding = 2},
        {.height = 3, .width = 3, .channels = 2, .filters = 2, .kernel = 3, .padding = 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int fusion = 0; fusion < 4; fusion++) {
            struct conv2d c = shapes[i];
            c.relu = fusion & 1;
            c.pool = (fusion & 2) && conv2d_window_size(&c, c.height) > 1;
            check(&c, 3, 1, true);
        }
    }
}

/* Shapes that span several blocks of columns, and more images than groups. */
Test(conv, large_shapes_against_the_reference)
{
    static const struct conv2d shapes[] = {
        {.height = 28, .width = 28, .channels = 1, .filters = 32, .kernel = 3, .relu = true},
        {.height = 26,
         .width = 26,
         .channels = 32,
         .filters = 64,
         .kernel = 3,
         .relu = true,
         .pool = true},
        {.height = 29,
         .width = 23,
         .channels = 33,
         .filters = 17,
         .kernel = 3,
         .relu = true,
         .pool = true},
        {.height = 31, .width = 30, .channels = 20, .filters = 9, .kernel = 5, .padding = 2},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(&shapes[i], 2, 1, false);
    struct conv2d many = {.height = 9,
                          .width = 10,
                          .channels = 2,
                          .filters = 3,
                          .kernel = 3,
                          .relu = true,
                          .pool = true};
    check(&many, 37, 3, false);
}

Test(conv, without_dx_the_rest_is_the_same)
{
    struct device *device;
    struct device_options options = {.kind = DEVICE_CPU};
    struct conv2d c = {.height = 9,
                       .width = 8,
                       .channels = 3,
                       .filters = 4,
                       .kernel = 3,
                       .relu = true,
                       .pool = true};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    struct arrays with = arrays_new(&c, 5), without = arrays_new(&c, 5);
    run(device, &c, 5, &with, true);
    run(device, &c, 5, &without, false);
    cr_assert_arr_eq(with.dw32, without.dw32, with.w * sizeof(float));
    cr_assert_arr_eq(with.dbias32, without.dbias32, with.f * sizeof(float));
    for (size_t i = 0; i < without.x; i++)
        cr_assert(without.dx32[i] == 0.0f);
    arrays_free(&with);
    arrays_free(&without);
    device_close(&device);
}

Test(pool, forward_and_gradient)
{
    static const struct pool2d shapes[] = {{2, 2, 1}, {4, 6, 3}, {5, 7, 2}, {9, 2, 17}, {3, 3, 64}};
    struct device *device;
    struct device_options options = {.kind = DEVICE_CPU, .threads = 2};
    cr_assert_eq(device_open(&device, &options), STATUS_OK);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const struct pool2d *p = &shapes[s];
        size_t batch = 3, in = batch * p->height * p->width * p->channels;
        size_t out = batch * (p->height / 2) * (p->width / 2) * p->channels;
        double *x64 = reference_new(in), *y64 = reference_new(out), *dx64 = reference_new(in);
        double *dy64 = reference_new(out);
        float *x32 = new_floats(in), *y32 = new_floats(out), *dx32 = new_floats(in);
        float *dy32 = new_floats(out);
        uint8_t *index = calloc(out, 1);
        size_t *from = calloc(out, sizeof *from);
        fill(7 + s, in, 1.0, x64, x32);
        fill(70 + s, out, 1.0, dy64, dy32);
        for (size_t i = 0; i < in; i++) {
            if (i % 5 == 0) /* ties: the first is taken */
                x32[i] = 2.0f, x64[i] = 2.0;
            dx32[i] = NAN; /* every element must be written */
        }
        device->ops->maxpool_forward(device, p, batch, x32, y32, index);
        device->ops->maxpool_backward(device, p, batch, index, dy32, dx32);
        reference_pool(batch, p->height, p->width, p->channels, x64, y64, from);
        for (size_t i = 0; i < out; i++)
            dx64[from[i]] += dy64[i];
        compare("y", out, y64, y32, 0);
        compare("dx", in, dx64, dx32, 0);
        void *all[] = {x64, y64, dx64, dy64, x32, y32, dx32, dy32, index, from};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            free(all[i]);
    }
    device_close(&device);
}
