/* y = x W^T and its gradients, with matrices rounded as AMP requires. */
#include <math.h>
#include <stdlib.h>

#include "backend/reference/arithmetic.h"
#include "backend/reference/rounding.h"

static Precision products;

void reference_set_products(Precision precision)
{
    products = precision;
}

/** The number format of a product's matrices: the number of significant bits, the smallest exponent
 *  of a normal number (the highest bit stands for 1/2), and the smallest number that becomes
 *  infinite. */
typedef struct Numbers {
    int bits, lowest;
    double infinite;
} Numbers;

/** Rounds to the nearest number of the format, ties to even. */
static real nearest(real x)
{
    static const Numbers numbers[] = {[BF16] = {8, -125, 0x1p128}, [FP16] = {11, -13, 0x1p16}};
    const Numbers *of = &numbers[products];
    if (!isfinite(x))
        return x;
    int exponent;
    frexp(x, &exponent);
    const int unit = (exponent < of->lowest ? of->lowest : exponent) - of->bits;
    const double near = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(near) < of->infinite ? (real)near : copysign(INFINITY, x);
}

/** The matrices of a product: its arguments, or rounded copies of them. */
typedef struct Taken {
    const real *a, *b;
    real *copies; /**< to be freed */
} Taken;

static Taken take(int64_t multiply_adds, int64_t a_count, const real *a, int64_t b_count,
                  const real *b)
{
    if (products == FP32 || multiply_adds < BF16_LEAST)
        return (Taken){a, b, NULL};
    real *copies = malloc((size_t)(a_count + b_count) * sizeof *copies);
    for (int64_t i = 0; i < a_count; i++)
        copies[i] = nearest(a[i]);
    for (int64_t i = 0; i < b_count; i++)
        copies[a_count + i] = nearest(b[i]);
    return (Taken){copies, copies + a_count, copies};
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, const real *x, const real *weight,
                           const real *bias, real *y)
{
    const Taken taken = take(rows * in * out, rows * in, x, in * out, weight);
    reference_product(reference_order(in), (Factor){taken.a, rows, in, 1},
                      (Factor){taken.b, out, in, 1}, y, out);
    free(taken.copies);
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
    const Taken taken = take(rows * in * out, rows * out, dy, in * out, weight);
    set_or_add(reference_order(out), (Factor){taken.a, rows, out, 1}, (Factor){taken.b, in, 1, in},
               dx, accumulate);
    free(taken.copies);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, const real *dy,
                                   const real *x, real *dweight, bool accumulate)
{
    const Taken taken = take(rows * in * out, rows * out, dy, rows * in, x);
    set_or_add(reference_order(rows), (Factor){taken.a, out, 1, out}, (Factor){taken.b, in, 1, in},
               dweight, accumulate);
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
