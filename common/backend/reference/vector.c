#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_vector_fill(int64_t count, double value, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = rounded(value);
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i];
}

void kernel_vector_add(int64_t count, const real *x, const real *y, real *z)
{
    for (int64_t i = 0; i < count; i++)
        z[i] = rounded(x[i] + y[i]);
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = rounded(y[i] + x[i]);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = rounded(x[i] * rounded(factor));
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * x[i];
    return sum;
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    for (int64_t r = 0; r < rows; r++)
        kernel_vector_copy(columns, x + r * x_stride, y + r * y_stride);
}
