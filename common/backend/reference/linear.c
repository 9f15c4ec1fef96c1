#include <math.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"
#include "backend/reference/rounding.h"

static Precision products;

void reference_set_products(Precision precision)
{
    products = precision;
}

/** The nearest number of 8 significant bits, ties to even; its exponent is as narrow as a float's. */
static real bf16(real x)
{
    enum { BITS = 8, LOWEST = -125 }; /* a float's smallest exponent, where the highest bit stands for 1/2 */
    if (!isfinite(x))
        return x;
    int exponent;
    frexp(x, &exponent);
    const int unit = (exponent < LOWEST ? LOWEST : exponent) - BITS;
    const double nearest = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(nearest) < 0x1p128 ? (real)nearest : copysign(INFINITY, x);
}

/** The matrices that a product multiplies: its arguments, or copies of them in bf16. */
typedef struct Taken {
    const real *a, *b;
    real *copies; /**< to be freed */
} Taken;

static Taken take(int64_t multiply_adds, int64_t a_count, const real *a, int64_t b_count, const real *b)
{
    if (products == FP32 || multiply_adds < BF16_LEAST)
        return (Taken){a, b, NULL};
    real *copies = malloc((size_t)(a_count + b_count) * sizeof *copies);
    for (int64_t i = 0; i < a_count; i++)
        copies[i] = bf16(a[i]);
    for (int64_t i = 0; i < b_count; i++)
        copies[a_count + i] = bf16(b[i]);
    return (Taken){copies, copies + a_count, copies};
}

static int64_t at_most_abreast(int64_t count)
{
    return count < ABREAST ? count : ABREAST;
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    const Order order = reference_order(in);
    const Taken taken = take(rows * in * out, rows * in, x, in * out, weight);
    real sum[ABREAST];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0, n; o < out; o += n) {
            n = at_most_abreast(out - o);
            reference_dots(order, taken.a + r * in, 1, taken.b + o * in, 1, in, n, sum);
            for (int64_t k = 0; k < n; k++)
                y[r * out + o + k] = bias ? rounded(sum[k] + bias[o + k]) : sum[k];
        }
    free(taken.copies);
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
    const Taken taken = take(rows * in * out, rows * out, dy, in * out, weight);
    real sum[ABREAST];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0, n; i < in; i += n) {
            n = at_most_abreast(in - i);
            reference_dots(order, taken.a + r * out, 1, taken.b + i, in, 1, n, sum);
            set_or_add(n, sum, dx + r * in + i, accumulate);
        }
    free(taken.copies);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy, const real *x,
                                   real *dweight, bool accumulate)
{
    const Order order = reference_order(rows);
    const Taken taken = take(rows * in * out, rows * out, dy, rows * in, x);
    real sum[ABREAST];
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0, n; i < in; i += n) {
            n = at_most_abreast(in - i);
            reference_dots(order, taken.a + o, out, taken.b + i, in, 1, n, sum);
            set_or_add(n, sum, dweight + o * in + i, accumulate);
        }
    free(taken.copies);
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
