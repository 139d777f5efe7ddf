/* Kernels: sums of slices and of columns. */
#include "common/device/cuda/kernels/kernels.h"
#include "common/device/cuda/kernels/launch.h"
#include "common/device/cuda/kernels/pixels.h"
#include "common/device/cuda/kernels/tree.h"

/* -------- slices ------------------------------------------------------------------------------ */

struct slicing {
    uint32_t count, slices, width; /* all but `slices` in vectors */
    bool relu, add;
};

template <int N>
static __global__ void sum_slices(struct slicing s, const vector<N> *bias, const vector<N> *partial,
                                  vector<N> *y)
{
    for (EACH(i, s.count)) {
        vector<N> total = partial[i];
#pragma unroll 8
        for (uint32_t slice = 1; slice < s.slices; slice++)
            total += partial[(size_t)slice * s.count + i];
        if (bias)
            total += bias[(uint32_t)i % s.width];
        if (s.add)
            total += y[i];
        for (int n = 0; n < N && s.relu; n++)
            total.at[n] = relu_of(total.at[n]);
        y[i] = total;
    }
}

template <int N>
static void launch_sum_slices(struct CUstream_st *stream, const struct slice_sum *sum,
                              const float *partial, float *y)
{
    struct slicing s = {(uint32_t)(sum->count / N), (uint32_t)sum->slices,
                        (uint32_t)(sum->width / N), sum->relu, sum->add};
    LAUNCH(sum_slices<N>, s.count, stream, s, (const vector<N> *)sum->bias,
           (const vector<N> *)partial, (vector<N> *)y);
}

int kernel_sum_slices(struct CUstream_st *stream, const struct slice_sum *sum, const float *partial,
                      float *y)
{
    if (sum->count % 4 == 0 && in_fours(sum->width, sum->bias, partial, y))
        launch_sum_slices<4>(stream, sum, partial, y);
    else
        launch_sum_slices<1>(stream, sum, partial, y);
    return (int)cudaGetLastError();
}

/* -------- columns ----------------------------------------------------------------------------- */

enum { ROWS_LEAST = 4 };

/* Each thread does a group of rows of one vector of columns. */
template <int N>
static __global__ void sum_columns(uint32_t rows, uint32_t groups, uint32_t columns, bool add,
                                   const vector<N> *y, vector<N> *x, vector<N> *totals,
                                   struct kernel_room room)
{
    for (EACH(i, groups * columns)) {
        uint32_t group = (uint32_t)i / columns, column = (uint32_t)i % columns;
        uint32_t end = tree_row(rows, groups, group + 1);
        vector<N> total = {};
#pragma unroll 4
        for (uint32_t row = tree_row(rows, groups, group); row < end; row++) {
            size_t at = (size_t)row * columns + column;
            vector<N> value = x[at];
            if (y) {
                vector<N> output = y[at];
                for (int n = 0; n < N; n++)
                    value.at[n] = output.at[n] > 0.0f ? value.at[n] : 0.0f;
                x[at] = value;
            }
            total += value;
        }
        if (!tree_sum(room, groups, columns, group, column, &total))
            continue;
        if (add)
            total += totals[column];
        totals[column] = total;
    }
}

template <int N>
static void launch_sum_columns(struct CUstream_st *stream, const struct column_sum *sum,
                               const float *y, float *x, float *totals, struct kernel_room room)
{
    uint32_t columns = (uint32_t)(sum->width / N);
    uint32_t groups = tree_groups(sum->rows, columns, ROWS_LEAST);
    LAUNCH(sum_columns<N>, (size_t)groups * columns, stream, (uint32_t)sum->rows, groups, columns,
           sum->add, (const vector<N> *)y, (vector<N> *)x, (vector<N> *)totals, room);
}

int kernel_sum_columns(struct CUstream_st *stream, const struct column_sum *sum, const float *y,
                       float *x, float *totals, struct kernel_room room)
{
    if (in_fours(sum->width, y, x, totals))
        launch_sum_columns<4>(stream, sum, y, x, totals, room);
    else
        launch_sum_columns<1>(stream, sum, y, x, totals, room);
    return (int)cudaGetLastError();
}
