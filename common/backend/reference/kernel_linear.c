/* y = x W^T and its gradients. */
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    reference_product(reference_order(in), (Factor){x, rows, in, 1}, (Factor){weight, out, in, 1},
                      y, out);
    for (int64_t r = 0; bias && r < rows; r++)
        for (int64_t o = 0; o < out; o++)
            y[r * out + o] = rounded(y[r * out + o] + bias[o]);
}

/* Writes the product to y, or adds it to y. */
static void set_or_add(Order order, Factor a, Factor b, real *y, bool accumulate)
{
    real *sums = accumulate ? malloc((size_t)(a.rows * b.rows) * sizeof *sums + 1) : y;
    reference_product(order, a, b, sums, b.rows);
    for (int64_t i = 0; accumulate && i < a.rows * b.rows; i++)
        y[i] = rounded(y[i] + sums[i]);
    if (accumulate)
        free(sums);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy,
                                  const real *weight, real *dx, bool accumulate)
{
    set_or_add(reference_order(out), (Factor){dy, rows, out, 1}, (Factor){weight, in, 1, in}, dx,
               accumulate);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy,
                                   const real *x, real *dweight, bool accumulate)
{
    set_or_add(reference_order(rows), (Factor){dy, out, 1, out}, (Factor){x, in, 1, in}, dweight,
               accumulate);
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, const real *dy, real *dbias)
{
    const Order order = reference_order(rows);
    for (int64_t o = 0; o < out; o++) {
        real sum = 0;
        for (int64_t n = 0, r = order.first; n < rows; n++, r = order_next(order, r))
            sum = rounded(sum + dy[r * out + o]);
        dbias[o] = rounded(dbias[o] + sum);
    }
}
