/* Numbers in 16 bits, and the kernels that multiply them: each decodes its matrices and calls the
 * kernel of the same name without _16. */
#include <math.h>
#include <stdlib.h>

#include "backend/reference/arithmetic.h"
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
    int bits;   /**< the number of significant bits */
    int lowest; /**< the exponent of the smallest normal numbers, as frexp() gives it */
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

void kernel_widen(int64_t count, const uint16_t *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = decoded(format(), x[i]);
}

real reference_decoded(uint16_t x)
{
    return decoded(format(), x);
}

/** The factors of a product, as last decoded. */
static real *factor[2];

static const real *decoded_factor(int which, int64_t count, const uint16_t *x)
{
    factor[which] = realloc(factor[which], (size_t)(count + 1) * sizeof **factor);
    for (int64_t i = 0; i < count; i++)
        factor[which][i] = decoded(format(), x[i]);
    return factor[which];
}

void kernel_linear_forward_16(int64_t rows, int64_t in, int64_t out, const uint16_t *x,
                              const uint16_t *weight, const real *bias, Numbers y)
{
    real *full = y.reals ? y.reals : malloc((size_t)(rows * out + 1) * sizeof *full);
    kernel_linear_forward(rows, in, out, decoded_factor(0, rows * in, x),
                          decoded_factor(1, in * out, weight), bias, full);
    if (y.halves) {
        kernel_round(rows * out, full, y.halves);
        free(full);
    }
}

void kernel_linear_backward_input_16(int64_t rows, int64_t in, int64_t out, const uint16_t *dy,
                                     const uint16_t *weight, real *dx, bool accumulate)
{
    kernel_linear_backward_input(rows, in, out, decoded_factor(0, rows * out, dy),
                                 decoded_factor(1, in * out, weight), dx, accumulate);
}

void kernel_linear_backward_weight_16(int64_t rows, int64_t in, int64_t out, const uint16_t *dy,
                                      const uint16_t *x, real *dweight, bool accumulate)
{
    kernel_linear_backward_weight(rows, in, out, decoded_factor(0, rows * out, dy),
                                  decoded_factor(1, rows * in, x), dweight, accumulate);
}
