/* Numbers in 16 bits. */
#include <math.h>

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

void kernel_add_halves(int64_t rows, int64_t columns, const uint16_t *x, uint16_t *sums)
{
    for (int64_t c = 0; c < columns; c++) {
        real sum = decoded(format(), x[c]);
        for (int64_t r = 1; r < rows; r++)
            sum = rounded(sum + decoded(format(), x[r * columns + c]));
        sums[c] = encoded(format(), sum);
    }
}

real reference_decoded(uint16_t x)
{
    return decoded(format(), x);
}
