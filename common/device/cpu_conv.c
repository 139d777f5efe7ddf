/*
 * Convolution by gemm. The window's values are laid out as the rows of a matrix (im2col): one row
 * an output pixel, (kernel, kernel, channels) long; so y = columns x w, dw = columns^T x dy and
 * d columns = dy x w^T. For a batch that matrix would be kernel^2 times the activations and would
 * stream through memory; so it is made in blocks of output rows of one image, small enough to stay
 * in a core's cache until gemm, bias, relu and pooling are done with it.
 *
 * Images are independent, except that dw sums over them: they are cut into groups whose number
 * depends on the batch alone, each group sums in order into its own accumulator, and the
 * accumulators are summed in the groups' order.
 */
#include <string.h>

#include "common/base/check.h"
#include "common/device/cpu.h"
#include "common/device/kernel.h"

enum {
    COLUMN_BLOCK_BYTES = 400 * 1024, /* of columns at once: leaves room beside it in 1 MiB of L2 */
    GROUPS_MAX = 16,                 /* accumulators of dw, hence the most threads that can help */
    ACCUMULATOR_BYTES_MAX = 64 * 1024 * 1024,
};

/* Sizes that follow from a description. */
struct geometry {
    size_t window_height, window_width; /* output pixels before pooling */
    size_t out_height, out_width;       /* after pooling */
    size_t run;                         /* kernel x channels: contiguous in x and in a row */
    size_t length;                      /* of a row of columns: kernel x kernel x channels */
    size_t block_rows;                  /* window rows in a block; even */
    size_t weights;                     /* length x filters */
};

struct conv_work {
    const struct conv2d *conv;
    struct geometry g;
    size_t batch, groups;
    const float *x, *w, *bias;
    float *y;
    uint8_t *index;
    const struct backward *backward;
    float *partial; /* (groups, weights + filters): dw and dbias of a group */
    struct cpu *cpu;
};

static struct geometry measure(const struct conv2d *c)
{
    struct geometry g = {0};
    g.window_height = conv2d_window_size(c, c->height);
    g.window_width = conv2d_window_size(c, c->width);
    g.out_height = conv2d_out_size(c, c->height);
    g.out_width = conv2d_out_size(c, c->width);
    g.run = c->kernel * c->channels;
    g.length = c->kernel * g.run;
    g.weights = g.length * c->filters;
    size_t row_bytes = g.window_width * g.length * sizeof(float);
    g.block_rows = COLUMN_BLOCK_BYTES / row_bytes / 2 * 2;
    if (g.block_rows < 2)
        g.block_rows = 2;
    if (g.block_rows > g.window_height)
        g.block_rows = (g.window_height + 1) / 2 * 2;
    /* Blocks of equal height, so that none is too small for gemm to be fast. */
    size_t blocks = (g.window_height + g.block_rows - 1) / g.block_rows;
    g.block_rows = ((g.window_height + blocks - 1) / blocks + 1) / 2 * 2;
    return g;
}

static size_t groups_of(const struct geometry *g, size_t batch)
{
    size_t room = ACCUMULATOR_BYTES_MAX / (g->weights * sizeof(float));
    size_t groups = room < GROUPS_MAX ? room : GROUPS_MAX;
    groups = groups < batch ? groups : batch;
    return groups ? groups : 1;
}

/* Scratch: columns and window outputs of a block. */
static size_t columns_count(const struct geometry *g)
{
    return cpu_round_up(g->block_rows * g->window_width * g->length);
}

static size_t outputs_count(const struct geometry *g, const struct conv2d *c)
{
    return cpu_round_up(g->block_rows * g->window_width * c->filters);
}

enum status cpu_conv2d_prepare(struct device *device, const struct conv2d *c, size_t batch_max)
{
    CHECK(c->kernel > 0 && c->channels > 0 && c->filters > 0 && c->padding < c->kernel);
    CHECK(c->height + 2 * c->padding >= c->kernel && c->width + 2 * c->padding >= c->kernel);
    struct geometry g = measure(c);
    return cpu_reserve(cpu_of(device), columns_count(&g) + outputs_count(&g, c),
                       groups_of(&g, batch_max) * (g.weights + c->filters));
}

/* ---- columns ------------------------------------------------------------------------------- */

/* The part of a window's row that is inside the image: `count` elements, of the run from `skip`. */
struct clip {
    size_t skip, count, from; /* from: element of the image's row */
};

static struct clip clip_run(const struct conv2d *c, size_t run, size_t column)
{
    size_t left = column < c->padding ? c->padding - column : 0;
    size_t from = column > c->padding ? column - c->padding : 0;
    size_t inside = from < c->width ? c->width - from : 0;
    size_t wanted = run / c->channels - left;
    size_t taken = wanted < inside ? wanted : inside;
    return (struct clip){left * c->channels, taken * c->channels, from * c->channels};
}

KERNEL_PART void copy_run(float *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = from[i];
}

KERNEL_PART void add_run(float *restrict to, const float *restrict from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] += from[i];
}

/* Row `row` of the window's k-th line in the image, or c->height and more if it is in the padding.
 */
static size_t image_row(const struct conv2d *c, size_t row, size_t k)
{
    return row + k - c->padding; /* wraps far above the height when negative, as intended */
}

/* image (height, width, channels) -> columns (rows x window_width, length), of window rows from
 * `first`. */
KERNEL static void make_columns(const struct conv2d *c, const struct geometry *g,
                                const float *image, size_t first, size_t rows, float *columns)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < c->kernel; k++) {
            size_t source = image_row(c, first + i, k);
            float *to = columns + i * g->window_width * g->length + k * g->run;
            for (size_t j = 0; j < g->window_width; j++, to += g->length) {
                struct clip clip = clip_run(c, g->run, j);
                if (source >= c->height || clip.count < g->run)
                    memset(to, 0, g->run * sizeof *to);
                if (source < c->height)
                    copy_run(to + clip.skip, image + source * c->width * c->channels + clip.from,
                             clip.count);
            }
        }
    }
}

/* The transpose of make_columns: adds each value to the pixel that it came from. */
KERNEL static void add_columns(const struct conv2d *c, const struct geometry *g,
                               const float *columns, size_t first, size_t rows, float *image)
{
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < c->kernel; k++) {
            size_t target = image_row(c, first + i, k);
            const float *from = columns + i * g->window_width * g->length + k * g->run;
            if (target >= c->height)
                continue;
            for (size_t j = 0; j < g->window_width; j++, from += g->length) {
                struct clip clip = clip_run(c, g->run, j);
                add_run(image + target * c->width * c->channels + clip.from, from + clip.skip,
                        clip.count);
            }
        }
    }
}

/* ---- forward ------------------------------------------------------------------------------- */

KERNEL static void add_bias(size_t pixels, size_t filters, const float *restrict bias, bool relu,
                            float *restrict y)
{
    for (size_t i = 0; i < pixels; i++, y += filters) {
        for (size_t j = 0; j < filters; j++) {
            float value = y[j] + bias[j];
            y[j] = relu && value < 0.0f ? 0.0f : value;
        }
    }
}

static void forward_item(void *context, size_t image, int thread)
{
    const struct conv_work *work = context;
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    float *columns = cpu_scratch(work->cpu, thread);
    const float *x = work->x + image * c->height * c->width * c->channels;
    size_t out_row = g->out_width * c->filters;
    for (size_t first = 0; first < g->window_height; first += g->block_rows) {
        size_t left = g->window_height - first;
        size_t rows = left < g->block_rows ? left : g->block_rows;
        size_t out_first = c->pool ? first / 2 : first;
        size_t out_at = (image * g->out_height + out_first) * out_row;
        float *block = c->pool ? columns + columns_count(g) : work->y + out_at;
        make_columns(c, g, x, first, rows, columns);
        cpu_gemm(&(struct gemm){.m = rows * g->window_width,
                                .n = c->filters,
                                .k = g->length,
                                .a = columns,
                                .lda = g->length,
                                .b = work->w,
                                .ldb = c->filters,
                                .c = block,
                                .ldc = c->filters});
        add_bias(rows * g->window_width, c->filters, work->bias, c->relu, block);
        if (c->pool)
            cpu_maxpool_rows(rows / 2, g->window_width, c->filters, block, work->y + out_at,
                             work->index + out_at);
    }
}

void cpu_conv2d_forward(struct device *device, const struct conv2d *conv, size_t batch,
                        const float *x, const float *w, const float *bias, float *y, uint8_t *index)
{
    struct cpu *cpu = cpu_of(device);
    struct conv_work work = {.conv = conv,
                             .g = measure(conv),
                             .batch = batch,
                             .x = x,
                             .w = w,
                             .bias = bias,
                             .y = y,
                             .index = index,
                             .cpu = cpu};
    CHECK(columns_count(&work.g) + outputs_count(&work.g, conv) <= cpu->scratch_count);
    team_run(cpu->team, batch, forward_item, &work);
}

/* ---- backward ------------------------------------------------------------------------------ */

KERNEL static void mask_relu(size_t count, const float *restrict y, const float *restrict dy,
                             float *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

/*
 * The gradient by the window's outputs, before relu and pooling, of `rows` window rows from
 * `first` of an image: dy itself where nothing was fused, else written to `block`.
 */
static const float *window_gradient(const struct conv_work *work, size_t image, size_t first,
                                    size_t rows, float *block)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    const struct backward *b = work->backward;
    size_t out_first = c->pool ? first / 2 : first;
    size_t at = (image * g->out_height + out_first) * g->out_width * c->filters;
    size_t window_row = g->window_width * c->filters;
    if (c->pool) {
        cpu_maxpool_rows_backward(rows / 2, g->window_width, c->filters, b->dy + at,
                                  c->relu ? b->y + at : NULL, b->index + at, block);
        if (rows % 2)
            memset(block + (rows - 1) * window_row, 0, window_row * sizeof *block);
        return block;
    }
    if (!c->relu)
        return b->dy + at;
    mask_relu(rows * window_row, b->y + at, b->dy + at, block);
    return block;
}

static void backward_image(const struct conv_work *work, size_t image, float *dw, float *dbias,
                           int thread)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    const struct backward *b = work->backward;
    size_t image_count = c->height * c->width * c->channels;
    float *columns = cpu_scratch(work->cpu, thread), *block = columns + columns_count(g);
    float *dx = b->dx ? b->dx + image * image_count : NULL;
    if (dx)
        memset(dx, 0, image_count * sizeof *dx);
    for (size_t first = 0; first < g->window_height; first += g->block_rows) {
        size_t left = g->window_height - first;
        size_t rows = left < g->block_rows ? left : g->block_rows;
        size_t pixels = rows * g->window_width;
        const float *dy = window_gradient(work, image, first, rows, block);
        cpu_add_rows(pixels, c->filters, dy, dbias);
        make_columns(c, g, b->x + image * image_count, first, rows, columns);
        cpu_gemm(&(struct gemm){.a_op = GEMM_TRANSPOSED,
                                .m = g->length,
                                .n = c->filters,
                                .k = pixels,
                                .a = columns,
                                .lda = g->length,
                                .b = dy,
                                .ldb = c->filters,
                                .c = dw,
                                .ldc = c->filters,
                                .beta = 1.0f});
        if (!dx)
            continue;
        cpu_gemm(&(struct gemm){.b_op = GEMM_TRANSPOSED,
                                .m = pixels,
                                .n = g->length,
                                .k = c->filters,
                                .a = dy,
                                .lda = c->filters,
                                .b = b->w,
                                .ldb = c->filters,
                                .c = columns,
                                .ldc = g->length});
        add_columns(c, g, columns, first, rows, dx);
    }
}

static void backward_item(void *context, size_t group, int thread)
{
    const struct conv_work *work = context;
    size_t count = work->g.weights + work->conv->filters;
    float *dw = work->partial + group * count, *dbias = dw + work->g.weights;
    size_t first = group * work->batch / work->groups;
    size_t end = (group + 1) * work->batch / work->groups;
    memset(dw, 0, count * sizeof *dw);
    for (size_t image = first; image < end; image++)
        backward_image(work, image, dw, dbias, thread);
}

void cpu_conv2d_backward(struct device *device, const struct conv2d *conv, size_t batch,
                         const struct backward *backward)
{
    struct cpu *cpu = cpu_of(device);
    struct conv_work work = {.conv = conv,
                             .g = measure(conv),
                             .batch = batch,
                             .backward = backward,
                             .partial = cpu->partial,
                             .cpu = cpu};
    const struct geometry *g = &work.g;
    work.groups = groups_of(g, batch);
    size_t count = g->weights + conv->filters;
    CHECK(columns_count(g) + outputs_count(g, conv) <= cpu->scratch_count);
    CHECK(work.groups * count <= cpu->partial_count);
    team_run(cpu->team, work.groups, backward_item, &work);
    /* The groups' order, whatever order they ended in. */
    memcpy(backward->dw, work.partial, g->weights * sizeof(float));
    memcpy(backward->dbias, work.partial + g->weights, conv->filters * sizeof(float));
    for (size_t i = 1; i < work.groups; i++) {
        cpu_add_rows(1, g->weights, work.partial + i * count, backward->dw);
        cpu_add_rows(1, conv->filters, work.partial + i * count + g->weights, backward->dbias);
    }
}
