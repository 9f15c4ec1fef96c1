#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    const Order order = reference_order(in);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < out; o++) {
            real sum = reference_dot(order, x + r * in, 1, weight + o * in, 1);
            y[r * out + o] = bias ? rounded(sum + bias[o]) : sum;
        }
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy, const real *weight,
                                  real *dx, bool accumulate)
{
    const Order order = reference_order(out);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < in; i++) {
            real sum = reference_dot(order, dy + r * out, 1, weight + i, in);
            dx[r * in + i] = accumulate ? rounded(dx[r * in + i] + sum) : sum;
        }
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy, const real *x,
                                   real *dweight, bool accumulate)
{
    const Order order = reference_order(rows);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            real sum = reference_dot(order, dy + o, out, x + i, in);
            dweight[o * in + i] = accumulate ? rounded(dweight[o * in + i] + sum) : sum;
        }
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
