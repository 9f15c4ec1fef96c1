#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

static int64_t at_most_abreast(int64_t count)
{
    return count < ABREAST ? count : ABREAST;
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    const Order order = reference_order(in);
    real sum[ABREAST];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0, n; o < out; o += n) {
            n = at_most_abreast(out - o);
            reference_dots(order, x + r * in, 1, weight + o * in, 1, in, n, sum);
            for (int64_t k = 0; k < n; k++)
                y[r * out + o + k] = bias ? rounded(sum[k] + bias[o + k]) : sum[k];
        }
}

static void set_or_add(int64_t count, const real *sum, real *to, bool accumulate)
{
    for (int64_t k = 0; k < count; k++)
        to[k] = accumulate ? rounded(to[k] + sum[k]) : sum[k];
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, const real *dy, const real *weight,
                                  real *dx, bool accumulate)
{
    const Order order = reference_order(out);
    real sum[ABREAST];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0, n; i < in; i += n) {
            n = at_most_abreast(in - i);
            reference_dots(order, dy + r * out, 1, weight + i, in, 1, n, sum);
            set_or_add(n, sum, dx + r * in + i, accumulate);
        }
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy, const real *x,
                                   real *dweight, bool accumulate)
{
    const Order order = reference_order(rows);
    real sum[ABREAST];
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0, n; i < in; i += n) {
            n = at_most_abreast(in - i);
            reference_dots(order, dy + o, out, x + i, in, 1, n, sum);
            set_or_add(n, sum, dweight + o * in + i, accumulate);
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
