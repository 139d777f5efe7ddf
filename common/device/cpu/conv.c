#include <string.h>

#include "common/base/status.h"
#include "common/base/util.h"
#include "common/device/cpu/cpu.h"
#include "common/device/kernel.h"
#include "common/device/ops.h"

/*
 * Lines: the matrix that the CPU's convolution multiplies (the comment before PRODUCT_MAX explains
 * why). The lines of an image are (height, window_width, run). For each row of the image and each
 * horizontal window position they hold the run of kernel x channels values, with zeros in the
 * padding.
 */

/* Sizes that follow from a convolution's shape. */
struct geometry {
    size_t window_height, window_width; /* output pixels before pooling */
    size_t out_height, out_width;       /* after pooling */
    size_t run;                         /* kernel x channels */
    size_t weights;                     /* kernel x run x filters */
    size_t lines;                       /* floats of an image's lines, in whole cache lines */
    size_t tile_rows, tile;             /* window rows of a tile, floats of its outputs */
};

/* -------- moving data ------------------------------------------------------------------------- */

/* The part of a run inside the image: `count` values, after `skip` values of padding. */
struct clip {
    size_t skip, count;
    size_t from; /* index of the first value in the image's row */
};

static struct clip clip_run(const struct conv2d *c, size_t column)
{
    size_t left = column < c->padding ? c->padding - column : 0;
    size_t from = column > c->padding ? column - c->padding : 0;
    size_t inside = from < c->width ? c->width - from : 0;
    size_t taken = size_smaller(c->kernel - left, inside);
    return (struct clip){left * c->channels, taken * c->channels, from * c->channels};
}

/* image (height, width, channels) -> lines. */
KERNEL static void cpu_lines_make(const struct conv2d *c, const struct geometry *g,
                                  const float *image, float *lines)
{
    for (size_t i = 0; i < c->height; i++, image += c->width * c->channels) {
        for (size_t j = 0; j < g->window_width; j++, lines += g->run) {
            struct clip clip = clip_run(c, j);
            if (clip.count < g->run)
                memset(lines, 0, g->run * sizeof *lines);
            float *restrict to = lines + clip.skip;
            const float *restrict from = image + clip.from;
            for (size_t r = 0; r < clip.count; r++)
                to[r] = from[r];
        }
    }
}

/* The transpose of cpu_lines_make: each pixel of image = the sum of its copies in the lines. */
KERNEL static void cpu_lines_add(const struct conv2d *c, const struct geometry *g,
                                 const float *lines, float *image)
{
    for (size_t i = 0; i < c->height; i++, image += c->width * c->channels) {
        memset(image, 0, c->width * c->channels * sizeof *image);
        for (size_t j = 0; j < g->window_width; j++, lines += g->run) {
            struct clip clip = clip_run(c, j);
            float *restrict to = image + clip.from;
            const float *restrict from = lines + clip.skip;
            for (size_t r = 0; r < clip.count; r++)
                to[r] += from[r];
        }
    }
}

/* -------- products ---------------------------------------------------------------------------- */

/*
 * For lines as short as a first layer's (3 values in keras-cnn) a BLAS call costs more than the
 * product. These products are explicit loops over one vector of columns at a time.
 */
enum { SHORT = 8, LANES = 16 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

KERNEL static void multiply_short(size_t m, size_t n, size_t k, const float *restrict a,
                                  const float *restrict b, float *restrict c)
{
    for (size_t i = 0; i < m; i++, a += k, c += n) {
        size_t j = 0;
        for (; j + LANES <= n; j += LANES) {
            lanes sum = *(const lanes *)(c + j);
            for (size_t l = 0; l < k; l++)
                sum += a[l] * *(const lanes *)(b + l * n + j);
            *(lanes *)(c + j) = sum;
        }
        for (; j < n; j++) {
            for (size_t l = 0; l < k; l++)
                c[j] += a[l] * b[l * n + j];
        }
    }
}

/* Computes four rows of c at a time, to have four independent sums in flight. If fewer rows remain,
 * the last row is computed again and not stored. */
KERNEL static void multiply_short_transposed(size_t m, size_t n, size_t k, const float *restrict a,
                                             const float *restrict b, float *restrict c)
{
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        for (size_t l = 0; l < k; l += 4) {
            size_t l1 = l + 1 < k ? l + 1 : l, l2 = l + 2 < k ? l + 2 : l,
                   l3 = l + 3 < k ? l + 3 : l;
            lanes sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
            for (size_t i = 0; i < m; i++) {
                lanes row = *(const lanes *)(b + i * n + j);
                sum0 += a[i * k + l] * row;
                sum1 += a[i * k + l1] * row;
                sum2 += a[i * k + l2] * row;
                sum3 += a[i * k + l3] * row;
            }
            *(lanes *)(c + l * n + j) += sum0;
            if (l1 > l)
                *(lanes *)(c + l1 * n + j) += sum1;
            if (l2 > l)
                *(lanes *)(c + l2 * n + j) += sum2;
            if (l3 > l)
                *(lanes *)(c + l3 * n + j) += sum3;
        }
    }
    for (; j < n; j++) {
        for (size_t l = 0; l < k; l++) {
            float sum = 0.0f;
            for (size_t i = 0; i < m; i++)
                sum += a[i * k + l] * b[i * n + j];
            c[l * n + j] += sum;
        }
    }
}

/* c (m, n) += a (m, k) x b (k, n), all contiguous. */
static void cpu_lines_multiply(size_t m, size_t n, size_t k, const float *a, const float *b,
                               float *c)
{
    if (k <= SHORT)
        multiply_short(m, n, k, a, b, c);
    else if (m > 0)
        cpu_gemm(&(struct gemm){.m = m,
                                .n = n,
                                .k = k,
                                .a = a,
                                .lda = k,
                                .b = b,
                                .ldb = n,
                                .c = c,
                                .ldc = n,
                                .beta = 1});
}

/* c (k, n) += a (m, k)^T x b (m, n), all contiguous. */
static void cpu_lines_multiply_transposed(size_t m, size_t n, size_t k, const float *a,
                                          const float *b, float *c)
{
    if (k <= SHORT)
        multiply_short_transposed(m, n, k, a, b, c);
    else if (m > 0)
        cpu_gemm(&(struct gemm){.a_op = GEMM_TRANSPOSED,
                                .m = k,
                                .n = n,
                                .k = m,
                                .a = a,
                                .lda = k,
                                .b = b,
                                .ldb = n,
                                .c = c,
                                .ldc = n,
                                .beta = 1});
}

/*
 * Convolution by matrix products (the functions above make and multiply the matrices).
 *
 * The textbook method (im2col) lays out each window as a row of kernel x kernel x channels values,
 * and multiplies that matrix by the weights. It repeats every pixel kernel^2 times. A batch in the
 * second layer of keras-cnn then has 85 MB. Moving it costs as much as multiplying it. Here only
 * the window's *lines* are laid out: line (r, j) of an image is the run of kernel x channels values
 * at row r, from column j on. One image's lines are kernel times the image and stay in a core's
 * cache. Window (i, j) is then lines (i, j), (i + 1, j), ..., one for each row k of the window:
 *
 *     y(rows i..) = sum over k of  lines(rows i + k..) x w[k]        forward
 *     dw[k]      += lines(rows i + k..)^T x dy(rows i..)             backward
 *     dlines(rows i + k..) += dy(rows i..) x w[k]^T
 *
 * All of these are products of contiguous matrices. They run tile by tile (a few rows of an image),
 * so that bias, relu and pooling find the tile in the cache.
 *
 * Images are independent, but dw sums over them. The images are cut into groups whose number
 * depends on the batch alone. Each group sums in order into its accumulator, and the accumulators
 * are added in group order.
 */

enum {
    /* Multiply-adds of one product. Up to 10^6, OpenBLAS multiplies matrices in place. It copies
     * larger ones into its internal layout first, which pays for large matrices but costs 15%
     * here. */
    PRODUCT_MAX = 1000 * 1000,
    TILE_BYTES_MAX = 40 * 1024, /* of a tile's outputs: about a core's first-level cache */
    GROUPS_MAX = 16,            /* accumulators of dw; more threads than this cannot help */
    ACCUMULATOR_BYTES_MAX = 64 * 1024 * 1024,
};

struct conv_work {
    const struct conv2d *conv;
    struct geometry g;
    struct cpu *cpu;
    size_t batch, groups;
    const float *x, *w, *bias;
    float *y;
    uint8_t *index;
    const struct backward *backward;
    float *transposed; /* (kernel, filters, run): w[k]^T */
    float *partial;    /* (groups, weights + filters): each group's dw and dbias */
};

static struct geometry measure(const struct conv2d *c)
{
    struct geometry g = {0};
    g.window_height = conv2d_window_size(c, c->height);
    g.window_width = conv2d_window_size(c, c->width);
    g.out_height = conv2d_out_size(c, c->height);
    g.out_width = conv2d_out_size(c, c->width);
    g.run = c->kernel * c->channels;
    g.lines = cpu_round_up(c->height * g.window_width * g.run);
    g.weights = c->kernel * g.run * c->filters;
    /* Tiles have equal height. Pooling needs pairs of rows. */
    size_t step = c->pool ? 2 : 1;
    size_t row = g.window_width * c->filters;
    size_t rows = PRODUCT_MAX / (row * g.run), rows_fit = TILE_BYTES_MAX / (row * sizeof(float));
    rows = size_larger(size_smaller(rows, rows_fit) / step * step, step);
    size_t tiles = size_divide_up(g.window_height, rows);
    g.tile_rows = size_divide_up(size_divide_up(g.window_height, tiles), step) * step;
    g.tile = cpu_round_up(g.tile_rows * g.window_width * c->filters);
    return g;
}

static size_t groups_of(const struct geometry *g, size_t batch)
{
    size_t room = ACCUMULATOR_BYTES_MAX / (g->weights * sizeof(float));
    return size_larger(size_smaller(size_smaller(room, GROUPS_MAX), batch), 1);
}

static size_t partial_count(const struct geometry *g, const struct conv2d *c, size_t groups)
{
    return cpu_round_up(g->weights) + groups * (g->weights + c->filters);
}

enum status cpu_conv2d_prepare(struct device *device, struct conv2d *c, size_t batch_max)
{
    CHECK(c->kernel > 0 && c->channels > 0 && c->filters > 0 && c->padding < c->kernel);
    CHECK(c->height + 2 * c->padding >= c->kernel && c->width + 2 * c->padding >= c->kernel);
    struct geometry g = measure(c);
    return cpu_reserve(cpu_of(device), 2 * g.lines + g.tile,
                       partial_count(&g, c, groups_of(&g, batch_max)));
}

/* A tile: some window rows of an image. */
struct tile {
    size_t first, rows; /* window rows */
};

/* The rows of a tile whose k-th line is inside the image, not in the padding above or below. */
struct conv_part {
    size_t rows;
    size_t skip; /* rows of the tile before this part */
    size_t from; /* first row of the image */
};

static struct conv_part part_inside(const struct conv2d *c, struct tile tile, size_t k)
{
    size_t begin = tile.first + k, end = begin + tile.rows; /* rows of the padded image */
    size_t low = size_larger(begin, c->padding), high = size_smaller(end, c->height + c->padding);
    if (low >= high)
        return (struct conv_part){0};
    return (struct conv_part){high - low, low - begin, low - c->padding};
}

static struct tile tile_at(const struct geometry *g, size_t first)
{
    return (struct tile){first, size_smaller(g->window_height - first, g->tile_rows)};
}

/* -------- forward ----------------------------------------------------------------------------- */

KERNEL static void set_bias(size_t pixels, size_t filters, const float *restrict bias,
                            float *restrict y)
{
    for (size_t i = 0; i < pixels; i++) {
        for (size_t j = 0; j < filters; j++)
            y[i * filters + j] = bias[j];
    }
}

KERNEL static void apply_relu(size_t count, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

static void forward_tile(const struct conv_work *work, const float *lines, struct tile tile,
                         float *y)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    set_bias(tile.rows * g->window_width, c->filters, work->bias, y);
    for (size_t k = 0; k < c->kernel; k++) {
        struct conv_part part = part_inside(c, tile, k);
        cpu_lines_multiply(part.rows * g->window_width, c->filters, g->run,
                           lines + part.from * g->window_width * g->run,
                           work->w + k * g->run * c->filters,
                           y + part.skip * g->window_width * c->filters);
    }
    if (c->relu)
        apply_relu(tile.rows * g->window_width * c->filters, y);
}

static void forward_item(void *context, size_t image, int thread)
{
    const struct conv_work *work = context;
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    float *lines = cpu_scratch(work->cpu, thread), *scratch = lines + 2 * g->lines;
    size_t out_row = g->out_width * c->filters;
    cpu_lines_make(c, g, work->x + image * c->height * c->width * c->channels, lines);
    for (size_t first = 0; first < g->window_height; first += g->tile_rows) {
        struct tile tile = tile_at(g, first);
        size_t out_at = (image * g->out_height + (c->pool ? first / 2 : first)) * out_row;
        float *y = c->pool ? scratch : work->y + out_at;
        forward_tile(work, lines, tile, y);
        if (c->pool)
            cpu_maxpool_rows(tile.rows / 2, g->window_width, c->filters, y, work->y + out_at,
                             work->index + out_at);
    }
}

void cpu_conv2d_forward(struct device *device, const struct conv2d *conv, size_t batch,
                        const float *x, const float *w, const float *bias, float *y, uint8_t *index)
{
    struct cpu *cpu = cpu_of(device);
    struct conv_work work = {.conv = conv,
                             .g = measure(conv),
                             .cpu = cpu,
                             .batch = batch,
                             .x = x,
                             .w = w,
                             .bias = bias,
                             .y = y,
                             .index = index};
    CHECK(2 * work.g.lines + work.g.tile <= cpu->scratch_count);
    team_run(cpu->team, batch, forward_item, &work);
}

/* -------- backward ---------------------------------------------------------------------------- */

KERNEL static void mask_relu(size_t count, const float *restrict y, const float *restrict dy,
                             float *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

/*
 * Returns the gradient by the window's outputs (before relu and pooling) of a tile of an image.
 * That is dy itself if nothing is fused; otherwise it is written to `scratch`.
 */
static const float *window_gradient(const struct conv_work *work, size_t image, struct tile tile,
                                    float *scratch)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    const struct backward *b = work->backward;
    size_t out_first = c->pool ? tile.first / 2 : tile.first;
    size_t at = (image * g->out_height + out_first) * g->out_width * c->filters;
    size_t row = g->window_width * c->filters;
    if (c->pool) {
        cpu_maxpool_rows_backward(tile.rows / 2, g->window_width, c->filters, b->dy + at,
                                  c->relu ? b->y + at : NULL, b->index + at, scratch);
        if (tile.rows % 2)
            /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): it is reserved */
            memset(scratch + (tile.rows - 1) * row, 0, row * sizeof *scratch);
        return scratch;
    }
    if (!c->relu)
        return b->dy + at;
    mask_relu(tile.rows * row, b->y + at, b->dy + at, scratch);
    return scratch;
}

/* Adds a tile's contribution to dw and, if it is not NULL, to dlines. */
static void backward_tile(const struct conv_work *work, const float *lines, struct tile tile,
                          const float *dy, float *dw, float *dlines)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    for (size_t k = 0; k < c->kernel; k++) {
        struct conv_part part = part_inside(c, tile, k);
        size_t pixels = part.rows * g->window_width;
        size_t at = part.from * g->window_width * g->run;
        const float *dy_part = dy + part.skip * g->window_width * c->filters;
        cpu_lines_multiply_transposed(pixels, c->filters, g->run, lines + at, dy_part,
                                      dw + k * g->run * c->filters);
        if (dlines)
            cpu_lines_multiply(pixels, g->run, c->filters, dy_part,
                               work->transposed + k * g->run * c->filters, dlines + at);
    }
}

static void backward_image(const struct conv_work *work, size_t image, float *dw, float *dbias,
                           int thread)
{
    const struct conv2d *c = work->conv;
    const struct geometry *g = &work->g;
    const struct backward *b = work->backward;
    size_t image_count = c->height * c->width * c->channels;
    float *lines = cpu_scratch(work->cpu, thread), *dlines = b->dx ? lines + g->lines : NULL;
    float *scratch = lines + 2 * g->lines;
    cpu_lines_make(c, g, b->x + image * image_count, lines);
    if (dlines)
        memset(dlines, 0, g->lines * sizeof *dlines);
    for (size_t first = 0; first < g->window_height; first += g->tile_rows) {
        struct tile tile = tile_at(g, first);
        const float *dy = window_gradient(work, image, tile, scratch);
        cpu_add_rows(tile.rows * g->window_width, c->filters, dy, dbias);
        backward_tile(work, lines, tile, dy, dw, dlines);
    }
    if (dlines)
        cpu_lines_add(c, g, dlines, b->dx + image * image_count);
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

/* w (kernel, run, filters) -> (kernel, filters, run). */
static void transpose(const struct conv2d *c, size_t run, const float *w, float *transposed)
{
    for (size_t k = 0; k < c->kernel; k++) {
        for (size_t f = 0; f < c->filters; f++) {
            for (size_t r = 0; r < run; r++)
                transposed[(k * c->filters + f) * run + r] = w[(k * run + r) * c->filters + f];
        }
    }
}

void cpu_conv2d_backward(struct device *device, const struct conv2d *conv, size_t batch,
                         const struct backward *backward)
{
    struct cpu *cpu = cpu_of(device);
    struct conv_work work = {
        .conv = conv, .g = measure(conv), .cpu = cpu, .batch = batch, .backward = backward};
    const struct geometry *g = &work.g;
    work.groups = groups_of(g, batch);
    work.transposed = cpu->partial;
    work.partial = cpu->partial + cpu_round_up(g->weights);
    CHECK(2 * g->lines + g->tile <= cpu->scratch_count);
    CHECK(partial_count(g, conv, work.groups) <= cpu->partial_count);
    if (backward->dx)
        transpose(conv, g->run, backward->w, work.transposed);
    team_run(cpu->team, work.groups, backward_item, &work);
    /* Add in group order, independent of the order in which the groups ended. */
    size_t count = g->weights + conv->filters;
    memcpy(backward->dw, work.partial, g->weights * sizeof(float));
    memcpy(backward->dbias, work.partial + g->weights, conv->filters * sizeof(float));
    for (size_t i = 1; i < work.groups; i++) {
        cpu_add_rows(1, g->weights, work.partial + i * count, backward->dw);
        cpu_add_rows(1, conv->filters, work.partial + i * count + g->weights, backward->dbias);
    }
}
