#include "backend/cuda/column_sums.cuh"
#include "backend/cuda/device.cuh"

/* A warp takes a row. */
enum { ROWS_OF_A_BLOCK = THREADS / WARP };

static unsigned blocks_of_rows(int64_t rows)
{
    return (unsigned)((rows + ROWS_OF_A_BLOCK - 1) / ROWS_OF_A_BLOCK);
}

__device__ static int64_t row_of_warp(void)
{
    return (int64_t)blockIdx.x * ROWS_OF_A_BLOCK + threadIdx.x / WARP;
}

__global__ static void layer_norm(int64_t rows, int64_t columns, const float *x,
                                  const float *weight, const float *bias, float epsilon, float *y,
                                  float *mean, float *rstd)
{
    const int64_t row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    x += row * columns;
    y += row * columns;
    float sum = 0, squares = 0;
    for (int64_t c = lane; c < columns; c += WARP)
        sum += x[c];
    const float row_mean = lanes_sum(sum) / (float)columns;
    for (int64_t c = lane; c < columns; c += WARP)
        squares += (x[c] - row_mean) * (x[c] - row_mean);
    const float row_rstd = 1 / sqrtf(lanes_sum(squares) / (float)columns + epsilon);
    for (int64_t c = lane; c < columns; c += WARP)
        y[c] = (x[c] - row_mean) * row_rstd * weight[c] + bias[c];
    if (lane > 0)
        return;
    mean[row] = row_mean;
    rstd[row] = row_rstd;
}

/* With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)). */
__global__ static void layer_norm_gradient(int64_t rows, int64_t columns, const float *dy,
                                           const float *x, const float *weight, const float *mean,
                                           const float *rstd, float *dx, bool accumulate)
{
    const int64_t row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    dy += row * columns;
    x += row * columns;
    dx += row * columns;
    const float row_mean = mean[row], row_rstd = rstd[row];
    float g_sum = 0, gn_sum = 0;
    for (int64_t c = lane; c < columns; c += WARP) {
        const float g = dy[c] * weight[c];
        g_sum += g;
        gn_sum += g * ((x[c] - row_mean) * row_rstd);
    }
    const float g_mean = lanes_sum(g_sum) / (float)columns,
                gn_mean = lanes_sum(gn_sum) / (float)columns;
    for (int64_t c = lane; c < columns; c += WARP) {
        const float d =
            row_rstd * (dy[c] * weight[c] - g_mean - (x[c] - row_mean) * row_rstd * gn_mean);
        dx[c] = accumulate ? dx[c] + d : d;
    }
}

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, real *y, real *mean, real *rstd)
{
    if (rows > 0)
        launch("layer_norm_forward", layer_norm, blocks_of_rows(rows), THREADS, 0, rows, columns, x,
               weight, bias, (float)epsilon, y, mean, rstd);
}

void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias)
{
    if (rows == 0)
        return;
    add_layer_norm_sums(rows, columns, dy, x, mean, rstd, dweight,
                        dbias); /* first: dx may lie over dy */
    launch("layer_norm_backward", layer_norm_gradient, blocks_of_rows(rows), THREADS, 0, rows,
           columns, dy, x, weight, mean, rstd, dx, accumulate);
}
