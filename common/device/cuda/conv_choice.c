/*
 * Compares cuDNN with psring's own kernels: one forward and backward of a shape by both, on this
 * GPU. Relu and pooling are left out. Both use the same kernels for them, and a rounding difference
 * between two almost equal values would select another element.
 */
#include "common/device/cuda/conv_choice.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/rng.h"

enum part { PART_X, PART_W, PART_BIAS, PART_DY, PART_Y, PART_DX, PART_DW, PART_DBIAS, PARTS };
enum { COMPARED = PART_Y };

static const char *const part_names[PARTS] = {
    [PART_Y] = "outputs",
    [PART_DX] = "gradient by the input",
    [PART_DW] = "gradient by the weights",
    [PART_DBIAS] = "gradient by the bias",
};

struct conv_comparison {
    struct cuda *cuda;
    struct conv2d conv;
    size_t batch, counts[PARTS];
    void *dev[PARTS];
    float *own[PARTS], *theirs[PARTS]; /* host memory */
};

static void fill(float *values, size_t count, uint64_t part)
{
    struct rng_key key = rng_key(1, RNG_TEST, part);
    struct rng_block block = {{0}};
    for (size_t i = 0; i < count; i++) {
        if (i % 4 == 0)
            block = rng_block(key, i / 4, 0);
        values[i] = 2.0f * rng_uniform(block.word[i % 4]) - 1.0f;
    }
}

/* Does not log that memory is exhausted: the caller decides what that means. */
static enum status open_comparison(struct conv_comparison *c)
{
    struct device *device = &c->cuda->device;
    for (int part = 0; part < PARTS; part++) {
        size_t count = c->counts[part], bytes = count * sizeof(float);
        enum status status = device->ops->alloc(device, bytes, &c->dev[part]);
        if (status != STATUS_OK)
            return status;
        c->own[part] = malloc(bytes);
        c->theirs[part] = malloc(bytes);
        if (!c->own[part] || !c->theirs[part])
            return STATUS_NO_MEMORY;
        if (part < COMPARED)
            fill(c->own[part], count, (uint64_t)part);
    }
    return STATUS_OK;
}

static void close_comparison(struct conv_comparison *c)
{
    for (int part = 0; part < PARTS; part++) {
        device_free(&c->cuda->device, c->dev[part]);
        free(c->own[part]);
        free(c->theirs[part]);
    }
}

/* Computes by cuDNN, or by psring's own kernels if `dnn` is NULL. The outputs are NaN
 * beforehand. */
static enum status compute(struct conv_comparison *c, struct cuda_dnn_conv *dnn,
                           float *const to[PARTS], const char **error)
{
    enum status status = STATUS_OK;
    struct device *device = &c->cuda->device;
    float *const *dev = (float *const *)c->dev;
    struct backward backward = {.x = dev[PART_X],
                                .w = dev[PART_W],
                                .y = dev[PART_Y],
                                .dy = dev[PART_DY],
                                .dx = dev[PART_DX],
                                .dw = dev[PART_DW],
                                .dbias = dev[PART_DBIAS]};
    for (int part = 0; part < PARTS; part++) {
        if (part < COMPARED)
            device_upload(device, dev[part], c->own[part], c->counts[part] * sizeof(float));
        else
            device->ops->fill(device, dev[part], NAN, c->counts[part]);
    }
    if (dnn) {
        *error = cuda_dnn_conv_forward(dnn, &c->conv, c->batch, dev[PART_X], dev[PART_W],
                                       dev[PART_BIAS], dev[PART_Y], NULL);
        if (!*error)
            *error = cuda_dnn_conv_backward(dnn, &c->conv, c->batch, &backward);
    } else {
        cuda_own_conv2d_forward(device, &c->conv, c->batch, dev[PART_X], dev[PART_W],
                                dev[PART_BIAS], dev[PART_Y], NULL);
        cuda_own_conv2d_backward(device, &c->conv, c->batch, &backward);
    }
    for (int part = COMPARED; part < PARTS; part++)
        TRY(device_download(device, to[part], dev[part], c->counts[part] * sizeof(float)));
out:
    return status;
}

static void look(const struct conv_comparison *c, struct cuda_conv_difference *difference)
{
    *difference = (struct cuda_conv_difference){0, part_names[COMPARED]};
    for (int part = COMPARED; part < PARTS; part++) {
        double squares = 0, worst = 0;
        for (size_t i = 0; i < c->counts[part]; i++) {
            double own = (double)c->own[part][i];
            double apart = fabs(own - (double)c->theirs[part][i]);
            squares += own * own;
            worst = apart <= worst ? worst : isnan(apart) ? (double)INFINITY : apart;
        }
        worst /= sqrt(squares / (double)c->counts[part]);
        if (isnan(worst)) /* a NaN of psring's, or all values are zero: the comparison is void */
            worst = (double)INFINITY;
        if (worst > difference->worst)
            *difference = (struct cuda_conv_difference){worst, part_names[part]};
    }
}

/*
 * Computes a batch of random numbers in [-1, 1) by both and waits for the device. *error: cuDNN's
 * failure, a text that is valid as long as `dnn`; *difference is then not set. Errors of the device
 * are logged.
 */
static enum status cuda_conv_compare(struct cuda *cuda, struct cuda_dnn_conv *dnn,
                                     const struct conv2d *shape, size_t batch,
                                     struct cuda_conv_difference *difference, const char **error)
{
    enum status status = STATUS_OK;
    struct conv_comparison c = {.cuda = cuda, .conv = *shape, .batch = batch};
    c.conv.relu = c.conv.pool = false;
    c.conv.kept = NULL;
    size_t image = shape->height * shape->width * shape->channels;
    size_t windows =
        conv2d_window_size(shape, shape->height) * conv2d_window_size(shape, shape->width);
    c.counts[PART_X] = c.counts[PART_DX] = c.batch * image;
    c.counts[PART_Y] = c.counts[PART_DY] = c.batch * windows * shape->filters;
    c.counts[PART_W] = c.counts[PART_DW] =
        shape->kernel * shape->kernel * shape->channels * shape->filters;
    c.counts[PART_BIAS] = c.counts[PART_DBIAS] = shape->filters;
    *error = NULL;
    TRY(open_comparison(&c));
    TRY(cuda_own_conv2d_prepare(&cuda->device, &c.conv, c.batch, false));
    TRY(compute(&c, NULL, c.own, error));
    TRY(compute(&c, dnn, c.theirs, error));
    if (!*error)
        look(&c, difference);
out:
    close_comparison(&c);
    return status;
}

/*
 * The largest allowed difference. Two orders of summation in float32 differ by 1e-6 to 1e-5 of the
 * size of the sums, including Winograd's transformations. Unrequested TF32 differs by 1e-3. If both
 * sides use TF32, a difference of that size is correct.
 */
#define ALLOWED_FLOAT32 1e-4
#define ALLOWED_TF32 1e-2

/* Whether cuDNN computes batches of one size. */
struct verdict {
    size_t batch;
    bool good;
};

/* A prepared shape. */
struct prepared {
    struct conv2d shape;
    size_t batch_max;
    struct cuda_dnn_conv *dnn; /* NULL: psring's own convolution */
    struct verdict verdicts[CUDA_DNN_CONV_BATCHES];
    size_t verdict_count;
    bool full; /* there were more batch sizes than `verdicts` holds */
    struct prepared *next;
};

struct cuda_conv_choice {
    enum device_conv wanted;
    bool tf32, tried;
    struct cuda_dnn *dnn; /* NULL: not opened, or unavailable */
    struct prepared *first;
    char text[48]; /* for cuda_convolutions */
};

enum status cuda_conv_choice_new(struct cuda_conv_choice **out_choice, enum device_conv wanted,
                                 bool tf32)
{
    struct cuda_conv_choice *choice = calloc(1, sizeof *choice);
    *out_choice = choice;
    if (!choice)
        return FAIL(STATUS_NO_MEMORY, "the cuda device: out of memory");
    choice->wanted = wanted;
    choice->tf32 = tf32;
    snprintf(choice->text, sizeof choice->text, "own");
    return STATUS_OK;
}

void cuda_conv_choice_free(struct cuda_conv_choice **out_choice)
{
    struct cuda_conv_choice *choice = *out_choice;
    *out_choice = NULL;
    if (!choice)
        return;
    while (choice->first) {
        struct prepared *prepared = choice->first;
        choice->first = prepared->next;
        cuda_dnn_conv_free(&prepared->dnn);
        free(prepared);
    }
    cuda_dnn_free(&choice->dnn);
    free(choice);
}

const char *cuda_convolutions(const struct device *device)
{
    const struct cuda *cuda = (const struct cuda *)(const void *)device;
    return cuda->convs->text;
}

/* -------- choosing ---------------------------------------------------------------------------- */

/* Describes a shape in messages. */
static const char *shape_text(const struct conv2d *c, size_t batch, char text[96])
{
    snprintf(text, 96, "%zu x %zu x %zu, %zu x %zu to %zu filters, %zu images", c->height, c->width,
             c->channels, c->kernel, c->kernel, c->filters, batch);
    return text;
}

/* Reports that cuDNN is not used: an error with --conv cudnn, else a warning. */
static enum status refuse(const struct cuda_conv_choice *choice, const char *what,
                          const char *reason)
{
    if (choice->wanted != DEVICE_CONV_CUDNN) {
        log_warn("--conv auto: %s%s; using psring's own convolutions (--conv own avoids this "
                 "warning)",
                 what, reason);
        return STATUS_OK;
    }
    if (choice->dnn)
        log_error("--conv cudnn: %s%s; use --conv own, or auto for what cuDNN can do", what,
                  reason);
    else
        log_error("--conv cudnn: %s%s; install cuDNN 8.9 or 9 (pip install nvidia-cudnn-cu%.2s), "
                  "name its folder in LD_LIBRARY_PATH, or use --conv own",
                  what, reason, PSRING_TOOLKIT_CUDA);
    return STATUS_UNSUPPORTED;
}

static enum status refuse_shape(const struct cuda_conv_choice *choice, const struct conv2d *c,
                                size_t batch, const char *reason)
{
    char shown[96], what[160];
    snprintf(what, sizeof what, "cuDNN %s, convolution %s: ", cuda_dnn_version(choice->dnn),
             shape_text(c, batch, shown));
    return refuse(choice, what, reason);
}

/* Opens cuDNN at the first call. */
static enum status open_dnn(struct cuda *cuda)
{
    struct cuda_conv_choice *choice = cuda->convs;
    char reason[CUDA_DNN_TEXT_BYTES];
    if (choice->tried)
        return STATUS_OK;
    choice->tried = true;
    enum status status = cuda_dnn_new(&choice->dnn, cuda->compute, choice->tf32, reason);
    return status == STATUS_UNSUPPORTED ? refuse(choice, "no cuDNN can be used: ", reason) : status;
}

/* Sets *good to whether both compute the same. --conv cudnn only warns of a difference, because the
 * user requested cuDNN. */
static enum status compare(struct cuda *cuda, const struct prepared *prepared, size_t batch,
                           bool *good)
{
    enum status status;
    const struct cuda_conv_choice *choice = cuda->convs;
    const struct conv2d *shape = &prepared->shape;
    const double allowed = choice->tf32 ? ALLOWED_TF32 : ALLOWED_FLOAT32;
    const char *error, *version = cuda_dnn_version(choice->dnn);
    struct cuda_conv_difference difference = {0};
    char shown[96], what[CUDA_DNN_TEXT_BYTES];
    shape_text(shape, batch, shown);
    status = cuda_conv_compare(cuda, prepared->dnn, shape,
                               cuda_dnn_conv_sample(prepared->dnn, batch), &difference, &error);
    if (status == STATUS_NO_MEMORY)
        return refuse_shape(choice, shape, batch,
                            "out of memory for the comparison with psring's own");
    TRY(status);
    *good = !error && difference.worst <= allowed;
    if (*good) {
        cuda_dnn_conv_describe(prepared->dnn, what);
        log_info("cuDNN %s: convolution %s: %s; %s differs most from psring's own, by %.1e of its "
                 "size (allowed %.0e)",
                 version, shown, what, difference.part, difference.worst, allowed);
        return STATUS_OK;
    }
    if (error)
        snprintf(what, sizeof what, "cuDNN %s fails at the convolution %s: %s", version, shown,
                 error);
    else
        snprintf(what, sizeof what,
                 "cuDNN %s computes the convolution %s differently from psring: its %s differs "
                 "by %.1e of its size (allowed %.0e)",
                 version, shown, difference.part, difference.worst, allowed);
    if (choice->wanted == DEVICE_CONV_CUDNN && !error) {
        log_warn("--conv cudnn: %s; --conv auto would not use it", what);
        *good = true;
        return STATUS_OK;
    }
    status = refuse(choice, what, "");
out:
    return status;
}

/* Decides whether cuDNN computes batches of this size. Waits for the device. */
static enum status judge(struct cuda *cuda, struct prepared *prepared, size_t batch, bool *good)
{
    enum status status = STATUS_OK;
    *good = false;
    if (prepared->verdict_count == CUDA_DNN_CONV_BATCHES) {
        if (!prepared->full)
            status = refuse_shape(cuda->convs, &prepared->shape, batch,
                                  "the maximum number of batch sizes is already planned");
        prepared->full = true;
        return status;
    }
    const char *cannot = cuda_dnn_conv_cannot(prepared->dnn, batch);
    TRY(cannot ? refuse_shape(cuda->convs, &prepared->shape, batch, cannot)
               : compare(cuda, prepared, batch, good));
    prepared->verdicts[prepared->verdict_count++] = (struct verdict){batch, *good};
out:
    return status;
}

/* Sets prepared->dnn if cuDNN is to compute the shape, that is if it may compute the largest
 * batch. */
static enum status choose(struct cuda *cuda, struct prepared *prepared)
{
    enum status status = STATUS_OK;
    struct cuda_conv_choice *choice = cuda->convs;
    char reason[CUDA_DNN_TEXT_BYTES];
    bool good = false;
    TRY(open_dnn(cuda));
    if (!choice->dnn)
        return STATUS_OK;
    status = cuda_dnn_conv_new(&prepared->dnn, cuda, choice->dnn, &prepared->shape,
                               prepared->batch_max, reason);
    if (status == STATUS_UNSUPPORTED)
        return refuse_shape(choice, &prepared->shape, prepared->batch_max, reason);
    TRY(status);
    TRY(judge(cuda, prepared, prepared->batch_max, &good));
out:
    if (!good)
        cuda_dnn_conv_free(&prepared->dnn);
    return status;
}

static void name_choice(struct cuda_conv_choice *choice)
{
    bool own = false, dnn = false;
    for (const struct prepared *p = choice->first; p; p = p->next) {
        own = own || !p->dnn || p->full;
        dnn = dnn || p->dnn;
        for (size_t i = 0; i < p->verdict_count; i++)
            own = own || !p->verdicts[i].good;
    }
    if (dnn)
        snprintf(choice->text, sizeof choice->text, "cudnn %s%s", cuda_dnn_version(choice->dnn),
                 own ? " and own" : "");
    else
        snprintf(choice->text, sizeof choice->text, "own");
}

/* -------- the operations ---------------------------------------------------------------------- */

static struct prepared *find(struct cuda *cuda, const struct conv2d *c)
{
    struct prepared *p = cuda->convs->first;
    while (p && (p->shape.height != c->height || p->shape.width != c->width ||
                 p->shape.channels != c->channels || p->shape.filters != c->filters ||
                 p->shape.kernel != c->kernel || p->shape.padding != c->padding))
        p = p->next;
    return p;
}

/* Prepares cuDNN's convolution and psring's own, for batches that cuDNN cannot do; or psring's
 * alone. */
enum status cuda_conv2d_prepare(struct device *device, struct conv2d *c, size_t batch_max)
{
    enum status status;
    struct cuda *cuda = cuda_of(device);
    struct cuda_conv_choice *choice = cuda->convs;
    if (choice->wanted == DEVICE_CONV_OWN)
        return cuda_own_conv2d_prepare(device, c, batch_max, true);
    struct prepared *prepared = find(cuda, c);
    if (prepared && prepared->batch_max >= batch_max)
        return cuda_own_conv2d_prepare(device, c, batch_max, !prepared->dnn);
    if (!prepared) {
        prepared = calloc(1, sizeof *prepared);
        if (!prepared)
            return FAIL(STATUS_NO_MEMORY, "the cuda device: out of memory");
        prepared->next = choice->first;
        choice->first = prepared;
    }
    cuda_dnn_conv_free(&prepared->dnn);
    *prepared = (struct prepared){.shape = *c, .batch_max = batch_max, .next = prepared->next};
    TRY(choose(cuda, prepared));
    name_choice(choice);
    TRY(cuda_own_conv2d_prepare(device, c, batch_max, !prepared->dnn));
out:
    return status;
}

static void fail(struct cuda *cuda, enum status status)
{
    if (cuda->failure == STATUS_OK)
        cuda->failure = status;
}

/*
 * Returns NULL if psring's own kernels compute the batch. Judges a new size first, except while a
 * step is recorded: such a step has run once before.
 */
static struct cuda_dnn_conv *dnn_for(struct cuda *cuda, const struct conv2d *c, size_t batch)
{
    struct prepared *p = find(cuda, c);
    bool good = false;
    if (!p || !p->dnn || batch > p->batch_max || cuda->failure != STATUS_OK)
        return NULL;
    for (size_t i = 0; i < p->verdict_count; i++) {
        if (p->verdicts[i].batch == batch)
            return p->verdicts[i].good ? p->dnn : NULL;
    }
    if (cuda->graph.capturing)
        return NULL;
    fail(cuda, judge(cuda, p, batch, &good));
    name_choice(cuda->convs);
    return good ? p->dnn : NULL;
}

static void keep(struct cuda *cuda, const char *error)
{
    if (!error || cuda->failure != STATUS_OK)
        return;
    fail(cuda, STATUS_DEVICE);
    if (cuda->graph.capturing)
        log_warn("cuDNN %s: %s, while recording a step", cuda_dnn_version(cuda->convs->dnn), error);
    else
        log_error("cuDNN %s: %s; use --conv own to avoid cuDNN", cuda_dnn_version(cuda->convs->dnn),
                  error);
}

enum status cuda_conv2d_expect(struct device *device, const struct conv2d *c, size_t batch)
{
    struct cuda *cuda = cuda_of(device);
    dnn_for(cuda, c, batch);
    return cuda->failure;
}

void cuda_conv2d_forward(struct device *device, const struct conv2d *c, size_t batch,
                         const float *x, const float *w, const float *bias, float *y,
                         uint8_t *index)
{
    struct cuda *cuda = cuda_of(device);
    struct cuda_dnn_conv *dnn = dnn_for(cuda, c, batch);
    if (dnn)
        keep(cuda, cuda_dnn_conv_forward(dnn, c, batch, x, w, bias, y, index));
    else
        cuda_own_conv2d_forward(device, c, batch, x, w, bias, y, index);
}

void cuda_conv2d_backward(struct device *device, const struct conv2d *c, size_t batch,
                          const struct backward *b)
{
    struct cuda *cuda = cuda_of(device);
    struct cuda_dnn_conv *dnn = dnn_for(cuda, c, batch);
    if (dnn)
        keep(cuda, cuda_dnn_conv_backward(dnn, c, batch, b));
    else
        cuda_own_conv2d_backward(device, c, batch, b);
}
