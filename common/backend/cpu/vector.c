/* Operations on each number by itself, sums of squares, copies. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"

KERNEL static void fill(int64_t count, real value, real *y)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        y[i] = value;
}

KERNEL static void add(int64_t count, const real *x, const real *y, real *z)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        z[i] = x[i] + y[i];
}

KERNEL static void scale(int64_t count, real factor, real *x)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
}

void kernel_vector_fill(int64_t count, double value, real *y)
{
    FOR_PARTS(count, count, CACHE_LINE)
    fill(end - begin, (real)value, y + begin);
}

/* A part at a time, so that the order of the sum depends on `count` alone. */
KERNEL static double square_sum(int64_t count, const real *x)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    enum { PART = 1 << 16 };
    double sum = 0;
    for (int64_t begin = 0; begin < count; begin += PART)
        sum += square_sum(count - begin < PART ? count - begin : PART, x + begin);
    return sum;
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    FOR_PARTS(count, count, CACHE_LINE)
    memcpy(y + begin, x + begin, (size_t)(end - begin) * sizeof *y);
}

void kernel_vector_add(int64_t count, const real *x, const real *y, real *z)
{
    FOR_PARTS(count, count, CACHE_LINE)
    add(end - begin, x + begin, y + begin, z + begin);
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    kernel_vector_add(count, x, y, y);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    if (factor == 1) /* the mean of one replica */
        return;
    FOR_PARTS(count, count, CACHE_LINE)
    scale(end - begin, (real)factor, x + begin);
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    FOR_PARTS(rows * columns, rows, 1)
    for (int64_t r = begin; r < end; r++)
        memcpy(y + r * y_stride, x + r * x_stride, (size_t)columns * sizeof *y);
}
