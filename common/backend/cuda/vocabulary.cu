/* The steps of a cross entropy whose rows are split over ranks. A vocabulary is long, so a block
 * takes a row. */
#include "backend/cuda/device.cuh"

enum { WARPS_OF_A_BLOCK = THREADS / WARP };

/* The sum over a block, on each of its threads; always in the same order. `warps`:
 * WARPS_OF_A_BLOCK numbers that nothing else uses. */
__device__ static float block_sum(float x, float *warps)
{
    x = lanes_sum(x);
    if (threadIdx.x % WARP == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    float sum = 0;
    for (int w = 0; w < WARPS_OF_A_BLOCK; w++)
        sum += warps[w];
    return sum;
}

/* The same for the maximum. */
__device__ static float block_highest(float x, float *warps)
{
    x = lanes_highest(x);
    if (threadIdx.x % WARP == 0)
        warps[threadIdx.x / WARP] = x;
    __syncthreads();
    float highest = warps[0];
    for (int w = 1; w < WARPS_OF_A_BLOCK; w++)
        highest = higher(highest, warps[w]);
    return highest;
}

__global__ static void row_max(int64_t columns, const float *x, float *most)
{
    DYNAMIC_SHARED(float, warps);
    const int64_t row = blockIdx.x;
    float highest = -INFINITY;
    x += row * columns;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS)
        highest = higher(highest, x[c]);
    highest = block_highest(highest, warps);
    if (threadIdx.x == 0)
        most[row] = highest;
}

__global__ static void row_sum_exp(int64_t columns, const float *x, const float *most, float *sums)
{
    DYNAMIC_SHARED(float, warps);
    const int64_t row = blockIdx.x;
    const float highest = most[row];
    float sum = 0;
    x += row * columns;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS)
        sum += expf(x[c] - highest);
    sum = block_sum(sum, warps);
    if (threadIdx.x == 0)
        sums[row] = sum;
}

__global__ static void row_sum_exp_gradient(int64_t columns, const float *dsums, const float *x,
                                            const float *most, float *dx, bool accumulate)
{
    const int64_t row = blockIdx.x;
    const float dsum = dsums[row], highest = most[row];
    x += row * columns;
    dx += row * columns;
    for (int64_t c = threadIdx.x; c < columns; c += THREADS) {
        const float d = dsum * expf(x[c] - highest);
        dx[c] = accumulate ? dx[c] + d : d;
    }
}

__global__ static void row_pick(int64_t rows, int64_t columns, const float *x, const float *most,
                                const int32_t *ids, float *y)
{
    FOR_EACH(row, rows) y[row] = ids[row] == NO_ID ? 0 : x[row * columns + ids[row]] - most[row];
}

__global__ static void row_pick_gradient(int64_t rows, int64_t columns, const float *dy,
                                         const int32_t *ids, float *dx)
{
    FOR_EACH(row, rows)
    {
        if (ids[row] != NO_ID)
            dx[row * columns + ids[row]] += dy[row];
    }
}

__global__ static void logarithm(int64_t count, const float *x, float *y)
{
    FOR_EACH(i, count) y[i] = logf(x[i]);
}

__global__ static void quotient(int64_t count, const float *x, const float *y, float *z)
{
    FOR_EACH(i, count) z[i] = x[i] / y[i];
}

__global__ static void difference(int64_t count, const float *x, const float *y, float *z)
{
    FOR_EACH(i, count) z[i] = x[i] - y[i];
}

/* Launches a block for each row. */
template <typename... P, typename... A>
static void launch_rows(const char *name, int64_t rows, void (*kernel)(P...), A... arguments)
{
    if (rows > 0)
        launch(name, kernel, dim3((unsigned)rows), dim3(THREADS),
               WARPS_OF_A_BLOCK * (int64_t)sizeof(float), arguments...);
}

void kernel_row_max(int64_t rows, int64_t columns, const real *x, real *most)
{
    launch_rows("row_max", rows, row_max, columns, x, most);
}

void kernel_row_sum_exp_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                                real *sums)
{
    launch_rows("row_sum_exp_forward", rows, row_sum_exp, columns, x, most, sums);
}

void kernel_row_sum_exp_backward(int64_t rows, int64_t columns, const real *dsums, const real *x,
                                 const real *most, real *dx, bool accumulate)
{
    launch_rows("row_sum_exp_backward", rows, row_sum_exp_gradient, columns, dsums, x, most, dx,
                accumulate);
}

void kernel_row_pick_forward(int64_t rows, int64_t columns, const real *x, const real *most,
                             const int32_t *ids, real *y)
{
    launch_for("row_pick_forward", rows, row_pick, rows, columns, x, most, brought_near(ids, rows),
               y);
}

void kernel_row_pick_backward(int64_t rows, int64_t columns, const real *dy, const int32_t *ids,
                              real *dx)
{
    launch_for("row_pick_backward", rows, row_pick_gradient, rows, columns, dy,
               brought_near(ids, rows), dx);
}

void kernel_logarithm_forward(int64_t count, const real *x, real *y)
{
    launch_for("logarithm_forward", count, logarithm, count, x, y);
}

void kernel_logarithm_backward(int64_t count, const real *dy, const real *x, real *dx)
{
    launch_for("logarithm_backward", count, quotient, count, dy, x, dx);
}

void kernel_vector_subtract(int64_t count, const real *x, const real *y, real *z)
{
    launch_for("vector_subtract", count, difference, count, x, y, z);
}
