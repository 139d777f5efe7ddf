/*
 * Lines: what the CPU's convolution multiplies by (conv.c says why). The lines of an image are
 * (height, window_width, run): for each of its rows and each position of the window across it, the
 * run of kernel x channels values there, zeros where that is in the padding.
 */
#ifndef PSRING_COMMON_DEVICE_CPU_LINES_H
#define PSRING_COMMON_DEVICE_CPU_LINES_H

#include "common/device/ops.h"

/* Sizes that follow from a convolution's description. */
struct geometry {
    size_t window_height, window_width; /* output pixels before pooling */
    size_t out_height, out_width;       /* after pooling */
    size_t run;                         /* kernel x channels */
    size_t weights;                     /* kernel x run x filters */
    size_t lines;                       /* floats of an image's lines, in whole cache lines */
    size_t tile_rows, tile;             /* window rows of a tile, floats of its outputs */
};

/* image (height, width, channels) -> lines. */
void cpu_lines_make(const struct conv2d *c, const struct geometry *g, const float *image,
                    float *lines);

/* The transpose: image = for each pixel the sum of the lines' values that came from it. */
void cpu_lines_add(const struct conv2d *c, const struct geometry *g, const float *lines,
                   float *image);

/* c (m, n) += a (m, k) x b (k, n), all contiguous. */
void cpu_lines_multiply(size_t m, size_t n, size_t k, const float *a, const float *b, float *c);

/* c (k, n) += a (m, k)^T x b (m, n), all contiguous. */
void cpu_lines_multiply_transposed(size_t m, size_t n, size_t k, const float *a, const float *b,
                                   float *c);

#endif
