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
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        fill(part_begin(count, CACHE_LINE, t + 1, threads) - begin, (real)value, y + begin);
    }
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
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        const int64_t end = part_begin(count, CACHE_LINE, t + 1, threads);
        memcpy(y + begin, x + begin, (size_t)(end - begin) * sizeof *y);
    }
}

void kernel_vector_add(int64_t count, const real *x, const real *y, real *z)
{
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        add(part_begin(count, CACHE_LINE, t + 1, threads) - begin, x + begin, y + begin, z + begin);
    }
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    kernel_vector_add(count, x, y, y);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    if (factor == 1) /* the mean of one replica */
        return;
    const int threads = threads_for(count);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        const int64_t begin = part_begin(count, CACHE_LINE, t, threads);
        scale(part_begin(count, CACHE_LINE, t + 1, threads) - begin, (real)factor, x + begin);
    }
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    const int threads = threads_for(rows * columns);
    const size_t bytes = (size_t)columns * sizeof *y;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < rows; r++)
        memcpy(y + r * y_stride, x + r * x_stride, bytes);
}
