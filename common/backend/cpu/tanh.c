/* tanh. */
#include <math.h>

#include "backend/backend.h"

void kernel_tanh_forward(int64_t count, const real *x, real *y)
{
#pragma omp parallel for schedule(static) if (count > 10000)
    for (int64_t i = 0; i < count; i++)
        y[i] = tanhf(x[i]);
}

void kernel_tanh_backward(int64_t count, const real *dy, const real *y, real *dx)
{
    for (int64_t i = 0; i < count; i++)
        dx[i] = dy[i] * (1 - y[i] * y[i]);
}
