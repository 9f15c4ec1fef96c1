/* The steps of a cross entropy whose rows are split over ranks. */
#include <math.h>

#include "backend/backend.h"
#include "backend/cpu/vector_math.h"

KERNEL static void rows_max(int64_t rows, int64_t columns, const real *x, real *most)
{
    for (int64_t r = 0; r < rows; r++)
        most[r] = columns > 0 ? highest_of(columns, x + r * columns) : -INFINITY;
}

void kernel_row_max(int64_t rows, int64_t columns, const real *x, real *most)
{
    FOR_PARTS(rows * columns, rows, 1)
    rows_max(end - begin, columns, x + begin * columns, most + begin);
}

KERNEL static void rows_sum_exp(int64_t rows, int64_t columns, const real *x, const real *most,
                                real *sums)
{
    for (int64_t r = 0; r < rows; r++, x += columns) {
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < columns; c++)
            sum += exp_nonpositive(x[c] - most[r]);
        sums[r] = sum;
    }
}

void kernel_row_sum_exp_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                                real *sums)
{
    FOR_PARTS(rows * columns, rows, 1)
    rows_sum_exp(end - begin, columns, x + begin * columns, most + begin, sums + begin);
}

KERNEL static void rows_sum_exp_gradient(int64_t rows, int64_t columns, const real *dsums,
                                         const real *x, const real *most, real *dx, bool accumulate)
{
    for (int64_t r = 0; r < rows; r++, x += columns, dx += columns) {
        const real d = dsums[r], highest = most[r];
        if (accumulate) {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                dx[c] += d * exp_nonpositive(x[c] - highest);
        } else {
#pragma omp simd
            for (int64_t c = 0; c < columns; c++)
                dx[c] = d * exp_nonpositive(x[c] - highest);
        }
    }
}

void kernel_row_sum_exp_backward(int64_t rows, int64_t columns, const real *dsums, const real *x,
                                 const real *most, real *dx, bool accumulate)
{
    FOR_PARTS(rows * columns, rows, 1)
    rows_sum_exp_gradient(end - begin, columns, dsums + begin, x + begin * columns, most + begin,
                          dx + begin * columns, accumulate);
}

void kernel_row_pick_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                             const int32_t *ids, real *y)
{
    for (int64_t r = 0; r < rows; r++)
        y[r] = ids[r] == NO_ID ? 0 : x[r * columns + ids[r]] - most[r];
}

void kernel_row_pick_backward(int64_t rows, int64_t columns, const real *dy, const int32_t *ids,
                              real *dx)
{
    for (int64_t r = 0; r < rows; r++)
        if (ids[r] != NO_ID)
            dx[r * columns + ids[r]] += dy[r];
}

/* Not vectorised: there is one number for each row, and the row's other steps take far longer. */
void kernel_logarithm_forward(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = logf(x[i]);
}

void kernel_logarithm_backward(int64_t count, const real *dy, const real *x, real *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = dy[i] / x[i];
}

void kernel_vector_subtract(int64_t count, const real *x, const real *y, real *z)
{
    for (int64_t i = 0; i < count; i++)
        z[i] = x[i] - y[i];
}
