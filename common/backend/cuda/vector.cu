/* Element-wise operations, copies, the sum of squares, and the optimisers' steps. */
#include "backend/adamw.h"
#include "backend/cuda/device.cuh"
#include "backend/cuda/tensor_cores.cuh"

__global__ static void fill(int64_t count, float value, float *y)
{
    FOR_EACH(i, count) y[i] = value;
}

__global__ static void sum_of_two(int64_t count, const float *x, DeviceNumbers y, float *z)
{
    FOR_EACH(i, count) z[i] = x[i] + number_at(y, i);
}

__global__ static void scale(int64_t count, float factor, float *x)
{
    FOR_EACH(i, count) x[i] *= factor;
}

__global__ static void copy_rows(int64_t rows, int64_t columns, const float *x, int64_t x_stride,
                                 float *y, int64_t y_stride)
{
    FOR_EACH(i, rows * columns)
    y[i / columns * y_stride + i % columns] = x[i / columns * x_stride + i % columns];
}

void kernel_vector_fill(int64_t count, double value, real *y)
{
    launch_for("vector_fill", count, fill, count, (float)value, y);
}

void kernel_vector_add(int64_t count, const real *x, Numbers y, real *z)
{
    launch_for("vector_add", count, sum_of_two, count, x, on_device(y), z);
}

void kernel_vector_accumulate(int64_t count, const real *x, real *y)
{
    launch_for("vector_accumulate", count, sum_of_two, count, y, on_device(in_full(x)), y);
}

void kernel_vector_scale(int64_t count, double factor, real *x)
{
    launch_for("vector_scale", count, scale, count, (float)factor, x);
}

void kernel_copy_rows(int64_t rows, int64_t columns, const real *x, int64_t x_stride, real *y,
                      int64_t y_stride)
{
    launch_for("copy_rows", rows * columns, copy_rows, rows, columns, x, x_stride, y, y_stride);
}

/* ---- the sum of squares: of each block, then of the blocks ------------------------------------------------ */

static const unsigned SUMS = THREADS; /* the most blocks: one block adds their sums */

/* The sum over a block, on its first thread. */
__device__ static double block_sum(double x, double *warps)
{
    x = lanes_sum(x);
    if (threadIdx.x % WARP == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    double sum = 0;
    for (unsigned w = 0; threadIdx.x == 0 && w < blockDim.x / WARP; w++)
        sum += warps[w];
    return sum;
}

__global__ static void squares(int64_t count, const float *x, double *sums)
{
    DYNAMIC_SHARED(double, warps);
    double sum = 0;
    FOR_EACH(i, count) sum += (double)x[i] * (double)x[i];
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

__global__ static void sum_of_sums(unsigned count, const double *sums, double *result)
{
    DYNAMIC_SHARED(double, warps);
    const double sum = block_sum(threadIdx.x < count ? sums[threadIdx.x] : 0, warps);
    if (threadIdx.x == 0)
        *result = sum;
}

double kernel_vector_square_sum(int64_t count, const real *x)
{
    const int64_t shared = THREADS / WARP * (int64_t)sizeof(double);
    const unsigned wanted = blocks_for(count), blocks = wanted < SUMS ? wanted : SUMS;
    double sum = 0, *sums = (double *)device_work((SUMS + 1) * (int64_t)sizeof(double));
    if (count == 0)
        return 0;
    launch("vector_square_sum", squares, blocks, THREADS, shared, count, x, sums);
    launch("vector_square_sum", sum_of_sums, 1, THREADS, shared, blocks, sums, sums + SUMS);
    backend_read(&sum, sums + SUMS, sizeof sum);
    return sum;
}

/* ---- optimisers -------------------------------------------------------------------------------------- */

__global__ static void sgd(int64_t count, float *w, const float *g, float rate, float weight_decay)
{
    FOR_EACH(i, count) w[i] -= rate * (g[i] + weight_decay * w[i]);
}

void kernel_sgd_step(int64_t count, real *w, const real *g, double rate, double weight_decay)
{
    launch_for("sgd_step", count, sgd, count, w, g, (float)rate, (float)weight_decay);
}

__global__ static void adamw_step(int64_t count, float *w, const float *g, float *m, float *v,
                                  const uint8_t *seen, AdamWFactors f)
{
    FOR_EACH(i, count)
    {
        if (seen && !seen[i / ADAMW_BLOCK]) { /* m and v are zero and stay zero */
            w[i] *= f.kept;
            continue;
        }
        const float m_i = f.beta1 * m[i] + f.rest1 * g[i];
        const float v_i = f.beta2 * v[i] + f.rest2 * g[i] * g[i];
        m[i] = m_i;
        v[i] = v_i;
        w[i] = f.kept * w[i] - f.rate * m_i / (sqrtf(v_i) * f.root + f.epsilon);
    }
}

__global__ static void mark_seen(int64_t count, const float *g, uint8_t *seen)
{
    FOR_EACH(i, count)
    {
        if (!(g[i] == 0))
            seen[i / ADAMW_BLOCK] = 1; /* all writers write the same value */
    }
}

void kernel_adamw_step(int64_t count, real *w, const real *g, real *m, real *v, const AdamW *adamw)
{
    if (adamw->seen)
        launch_for("adamw_step", count, mark_seen, count, g, adamw->seen);
    launch_for("adamw_step", count, adamw_step, count, w, g, m, v, adamw->seen,
               adamw_factors(adamw));
}
