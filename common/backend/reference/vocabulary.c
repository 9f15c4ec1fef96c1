/* The steps of a cross entropy whose rows are split over ranks, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_row_max(int64_t rows, int64_t columns, const real *x, real *most)
{
    for (int64_t r = 0; r < rows; r++, x += columns) {
        most[r] = -INFINITY;
        for (int64_t c = 0; c < columns; c++)
            if (x[c] > most[r])
                most[r] = x[c];
    }
}

void kernel_row_sum_exp_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                                real *sums)
{
    const Order order = reference_order(columns);
    for (int64_t r = 0; r < rows; r++, x += columns) {
        sums[r] = 0;
        for (int64_t n = 0, c = order.first; n < columns; n++, c = order_next(order, c))
            sums[r] = rounded(sums[r] + reference_inexact(exp(rounded(x[c] - most[r]))));
    }
}

void kernel_row_sum_exp_backward(int64_t rows, int64_t columns, const real *dsums, const real *x,
                                 const real *most, real *dx, bool accumulate)
{
    for (int64_t r = 0; r < rows; r++, x += columns, dx += columns)
        for (int64_t c = 0; c < columns; c++) {
            real d = rounded(dsums[r] * reference_inexact(exp(rounded(x[c] - most[r]))));
            dx[c] = accumulate ? rounded(dx[c] + d) : d;
        }
}

void kernel_row_pick_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                             const int32_t *ids, real *y)
{
    for (int64_t r = 0; r < rows; r++, x += columns)
        y[r] = ids[r] == NO_ID ? 0 : rounded(x[ids[r]] - most[r]);
}

void kernel_row_pick_backward(int64_t rows, int64_t columns, const real *dy, const int32_t *ids,
                              real *dx)
{
    for (int64_t r = 0; r < rows; r++, dx += columns)
        if (ids[r] != NO_ID)
            dx[ids[r]] = rounded(dx[ids[r]] + dy[r]);
}

void kernel_logarithm_forward(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = reference_inexact(log(x[i]));
}

void kernel_logarithm_backward(int64_t count, const real *dy, const real *x, real *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = rounded(dy[i] / x[i]);
}

void kernel_vector_subtract(int64_t count, const real *x, const real *y, real *z)
{
    for (int64_t i = 0; i < count; i++)
        z[i] = rounded(x[i] - y[i]);
}
