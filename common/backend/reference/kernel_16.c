/* Numbers in 16 bits, and the kernels that multiply them: those of single precision, on the same
 * numbers. */
#include <math.h>
#include <stdlib.h>

#include "backend/reference/rounding.h"

static Precision products;

void reference_set_products(Precision precision)
{
    products = precision;
}

Precision reference_products(void)
{
    return products;
}

/** A number format of 16 bits: a sign, an exponent and a fraction. */
typedef struct Format {
    int bits;   /**< significant ones */
    int lowest; /**< the exponent of the smallest normal numbers, if the highest bit is 1/2 */
    uint16_t infinity;
} Format;

static Format format(void)
{
    return products == FP16 ? (Format){11, -13, 0x7c00} : (Format){8, -125, 0x7f80};
}

/** The nearest number of the format, ties to even. */
static uint16_t encoded(Format of, real x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return (uint16_t)(sign | of.infinity | 1 << (of.bits - 2));
    if (isinf(x))
        return sign | of.infinity;
    int exponent;
    frexp(x, &exponent);
    if (x == 0 || exponent < of.lowest)
        exponent = of.lowest;
    const double near = nearbyint(ldexp(fabs(x), of.bits - exponent));
    /* The highest bit of a normal number, and the carry of a rounding, add 1 to the exponent. */
    const double bits = ldexp(exponent - of.lowest, of.bits - 1) + near;
    return sign | (bits < of.infinity ? (uint16_t)bits : of.infinity);
}

static real decoded(Format of, uint16_t x)
{
    const int bits = x & 0x7fff, exponent = bits >> (of.bits - 1), one = 1 << (of.bits - 1);
    const double size = bits > of.infinity    ? NAN
                        : bits == of.infinity ? INFINITY
                        : exponent == 0
                            ? ldexp(bits, of.lowest - of.bits)
                            : ldexp(bits % one + one, exponent - 1 + of.lowest - of.bits);
    return (real)(x & 0x8000 ? -size : size);
}

void kernel_round(int64_t count, const real *x, uint16_t *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = encoded(format(), x[i]);
}

/** The same numbers; the caller frees them. */
static real *widened(int64_t count, const uint16_t *x)
{
    real *y = malloc((size_t)(count + 1) * sizeof *y);
    for (int64_t i = 0; i < count; i++)
        y[i] = decoded(format(), x[i]);
    return y;
}

void kernel_linear_forward_16(int64_t rows, int64_t in, int64_t out, const uint16_t *x,
                              const uint16_t *weight, const real *bias, real *y)
{
    real *a = widened(rows * in, x), *b = widened(in * out, weight);
    kernel_linear_forward(rows, in, out, a, b, bias, y);
    free(a);
    free(b);
}

void kernel_linear_backward_input_16(int64_t rows, int64_t in, int64_t out, const uint16_t *dy,
                                     const uint16_t *weight, real *dx, bool accumulate)
{
    real *a = widened(rows * out, dy), *b = widened(in * out, weight);
    kernel_linear_backward_input(rows, in, out, a, b, dx, accumulate);
    free(a);
    free(b);
}

void kernel_linear_backward_weight_16(int64_t rows, int64_t in, int64_t out, const uint16_t *dy,
                                      const uint16_t *x, real *dweight, bool accumulate)
{
    real *a = widened(rows * out, dy), *b = widened(rows * in, x);
    kernel_linear_backward_weight(rows, in, out, a, b, dweight, accumulate);
    free(a);
    free(b);
}

/* Probabilities and gradients of scores would be rounded inside the kernel, which has no such
 * variant: attention stays exact. */
bool kernel_attention_is_in_16_bits(const AttentionShape *shape)
{
    (void)shape;
    return false;
}

void kernel_attention_forward_16(const AttentionShape *shape, const uint16_t *q, const uint16_t *k,
                                 const uint16_t *v, const int32_t *mask, real *y, real *highest,
                                 real *sums, real *work)
{
    abort();
}

void kernel_attention_backward_16(const AttentionShape *shape, const uint16_t *q, const uint16_t *k,
                                  const uint16_t *v, const int32_t *mask, const real *highest,
                                  const real *sums, const uint16_t *dy, real *dq, real *dk,
                                  real *dv, real *work)
{
    abort();
}
