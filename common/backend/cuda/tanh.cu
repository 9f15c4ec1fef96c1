/* tanh. */
#include "backend/cuda/device.cuh"

__global__ static void tanh_forward(int64_t count, const float *x, float *y)
{
    FOR_EACH(i, count) y[i] = tanhf(x[i]);
}

__global__ static void tanh_backward(int64_t count, const float *dy, const float *y, float *dx)
{
    FOR_EACH(i, count) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

void kernel_tanh_forward(int64_t count, const real *x, real *y)
{
    launch_for("tanh_forward", count, tanh_forward, count, x, y);
}

void kernel_tanh_backward(int64_t count, const real *dy, const real *y, real *dx)
{
    launch_for("tanh_backward", count, tanh_backward, count, dy, y, dx);
}
