/* tanh, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

void kernel_tanh_forward(int64_t count, const real *x, real *y)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = reference_inexact(tanh(x[i]));
}

void kernel_tanh_backward(int64_t count, const real *dy, const real *y, real *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = rounded(dy[i] * rounded(1 - rounded(y[i] * y[i])));
}
