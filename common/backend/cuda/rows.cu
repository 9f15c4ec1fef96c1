/* Sums over the rows of a matrix; norms and cross entropy, which work row by row. */
#include <cfloat>
#include <cmath>

#include "backend/cuda/device.cuh"
#include "backend/cuda/tensor_cores.cuh"

/* ---- sums over rows ---------------------------------------------------------------------------------- */

/* A block takes COLUMNS columns of a chunk of rows; each of its LANES rows of threads adds every
 * LANES-th row. */
enum { COLUMNS = 32, LANES = 8, CHUNK = 128 };

static int64_t chunks_of(int64_t rows)
{
    return (rows + CHUNK - 1) / CHUNK;
}

/* The sum over the rows of threads, on the first row. */
__device__ static float lanes_in_order(float mine, float *shared)
{
    const unsigned column = threadIdx.x, lane = threadIdx.y;
    __syncthreads();
    shared[lane * COLUMNS + column] = mine;
    __syncthreads();
    float sum = 0;
    for (int l = 0; lane == 0 && l < LANES; l++)
        sum += shared[l * COLUMNS + column];
    return sum;
}

/* Number `at` of x, in row `row`, after the layer norm or, without a mean, the RMS norm. */
__device__ static float normed_at(const float *x, int64_t at, const float *mean, const float *rstd,
                                  int64_t row)
{
    return (mean ? x[at] - mean[row] : x[at]) * rstd[row];
}

/* plain and normed [chunks,columns]: column sums of dy and, if x is not NULL, of dy · normed x.
 * plain may be NULL. */
__global__ static void chunk_sums(int64_t rows, int64_t columns, DeviceNumbers dy, const float *x,
                                  const float *mean, const float *rstd, float *plain, float *normed)
{
    DYNAMIC_SHARED(float, shared);
    const int64_t column = (int64_t)blockIdx.y * COLUMNS + threadIdx.x, chunk = blockIdx.x;
    const int64_t end = (chunk + 1) * CHUNK < rows ? (chunk + 1) * CHUNK : rows;
    float sum = 0, normed_sum = 0;
    for (int64_t r = chunk * CHUNK + threadIdx.y; column < columns && r < end; r += LANES) {
        const float g = number_at(dy, r * columns + column);
        sum += g;
        if (x)
            normed_sum += g * normed_at(x, r * columns + column, mean, rstd, r);
    }
    sum = lanes_in_order(sum, shared);
    normed_sum = x ? lanes_in_order(normed_sum, shared) : 0;
    if (threadIdx.y > 0 || column >= columns)
        return;
    if (plain)
        plain[chunk * columns + column] = sum;
    if (x)
        normed[chunk * columns + column] = normed_sum;
}

__global__ static void add_chunks(int64_t chunks, int64_t columns, const float *of_chunks,
                                  float *sums)
{
    FOR_EACH(column, columns)
    {
        float sum = 0;
        for (int64_t k = 0; k < chunks; k++)
            sum += of_chunks[k * columns + column];
        sums[column] += sum;
    }
}

static void sum_chunks(int64_t rows, int64_t columns, Numbers dy, const real *x, const real *mean,
                       const real *rstd, real *plain, real *normed)
{
    const dim3 grid((unsigned)chunks_of(rows), (unsigned)((columns + COLUMNS - 1) / COLUMNS));
    launch("column sums", chunk_sums, grid, dim3(COLUMNS, LANES),
           COLUMNS * LANES * (int64_t)sizeof(float), rows, columns, on_device(dy), x, mean, rstd,
           plain, normed);
}

void add_column_sums(int64_t rows, int64_t columns, Numbers x, real *sums)
{
    if (rows * columns == 0)
        return;
    real *plain = (real *)device_work(chunks_of(rows) * columns * (int64_t)sizeof(real));
    sum_chunks(rows, columns, x, NULL, NULL, NULL, plain, NULL);
    launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, plain, sums);
}

/* Adds the column sums of dy to dbias, unless that is NULL, and those of dy · normed x to
 * dweight. */
static void add_norm_sums(int64_t rows, int64_t columns, const real *dy, const real *x,
                          const real *mean, const real *rstd, real *dweight, real *dbias)
{
    if (rows * columns == 0)
        return;
    const int64_t each = chunks_of(rows) * columns;
    real *normed = (real *)device_work(2 * each * (int64_t)sizeof(real)), *plain = normed + each;
    sum_chunks(rows, columns, in_full(dy), x, mean, rstd, dbias ? plain : NULL, normed);
    launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, normed, dweight);
    if (dbias)
        launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, plain, dbias);
}

/* ---- layer norm and RMS norm ------------------------------------------------------------------------- */

/* Each warp takes a row. Without CENTRED (RMS norm), the mean is 0, and there is no bias. */
enum { ROWS_OF_A_BLOCK = THREADS / WARP };

static unsigned blocks_of_rows(int64_t rows)
{
    return (unsigned)((rows + ROWS_OF_A_BLOCK - 1) / ROWS_OF_A_BLOCK);
}

__device__ static int64_t row_of_warp(void)
{
    return (int64_t)blockIdx.x * ROWS_OF_A_BLOCK + threadIdx.x / WARP;
}

template <bool CENTRED>
__global__ static void norm(int64_t rows, int64_t columns, const float *x, const float *weight,
                            const float *bias, float epsilon, DeviceNumbers y, float *mean,
                            float *rstd)
{
    const int64_t row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    x += row * columns;
    float sum = 0, squares = 0;
    for (int64_t c = lane; CENTRED && c < columns; c += WARP)
        sum += x[c];
    const float row_mean = CENTRED ? lanes_sum(sum) / (float)columns : 0;
    for (int64_t c = lane; c < columns; c += WARP)
        squares += (x[c] - row_mean) * (x[c] - row_mean);
    squares = lanes_sum(squares);
    const float row_rstd = squares <= FLT_MAX ? 1 / sqrtf(squares / (float)columns + epsilon) : NAN;
    for (int64_t c = lane; c < columns; c += WARP)
        put_number(y, row * columns + c,
                   (x[c] - row_mean) * row_rstd * weight[c] + (CENTRED ? bias[c] : 0));
    if (lane > 0)
        return;
    if (CENTRED)
        mean[row] = row_mean;
    rstd[row] = row_rstd;
}

/* With n = (x - mean) rstd and g = dy weight: dx = rstd (g - mean(g) - n mean(g n)). Without
 * CENTRED, mean and mean(g) are 0. */
template <bool CENTRED>
__global__ static void norm_gradient(int64_t rows, int64_t columns, const float *dy, const float *x,
                                     const float *weight, const float *mean, const float *rstd,
                                     float *dx, bool accumulate)
{
    const int64_t row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows)
        return;
    dy += row * columns;
    x += row * columns;
    dx += row * columns;
    const float row_mean = CENTRED ? mean[row] : 0, row_rstd = rstd[row];
    float g_sum = 0, gn_sum = 0;
    for (int64_t c = lane; c < columns; c += WARP) {
        const float g = dy[c] * weight[c];
        g_sum += g;
        gn_sum += g * ((x[c] - row_mean) * row_rstd);
    }
    const float g_mean = CENTRED ? lanes_sum(g_sum) / (float)columns : 0,
                gn_mean = lanes_sum(gn_sum) / (float)columns;
    for (int64_t c = lane; c < columns; c += WARP) {
        const float d =
            row_rstd * (dy[c] * weight[c] - g_mean - (x[c] - row_mean) * row_rstd * gn_mean);
        dx[c] = accumulate ? dx[c] + d : d;
    }
}

void kernel_layer_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                               const real *bias, double epsilon, Numbers y, real *mean, real *rstd)
{
    if (rows > 0)
        launch("layer_norm_forward", norm<true>, blocks_of_rows(rows), THREADS, 0, rows, columns, x,
               weight, bias, (float)epsilon, on_device(y), mean, rstd);
}

void kernel_rms_norm_forward(int64_t rows, int64_t columns, const real *x, const real *weight,
                             double epsilon, Numbers y, real *rstd)
{
    if (rows > 0)
        launch("rms_norm_forward", norm<false>, blocks_of_rows(rows), THREADS, 0, rows, columns, x,
               weight, nullptr, (float)epsilon, on_device(y), nullptr, rstd);
}

void kernel_layer_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                                const real *weight, const real *mean, const real *rstd, real *dx,
                                bool accumulate, real *dweight, real *dbias)
{
    if (rows == 0)
        return;
    /* Comes first, because dx may overwrite dy. */
    add_norm_sums(rows, columns, dy, x, mean, rstd, dweight, dbias);
    launch("layer_norm_backward", norm_gradient<true>, blocks_of_rows(rows), THREADS, 0, rows,
           columns, dy, x, weight, mean, rstd, dx, accumulate);
}

void kernel_rms_norm_backward(int64_t rows, int64_t columns, const real *dy, const real *x,
                              const real *weight, const real *rstd, real *dx, bool accumulate,
                              real *dweight)
{
    if (rows == 0)
        return;
    /* Comes first, because dx may overwrite dy. */
    add_norm_sums(rows, columns, dy, x, NULL, rstd, dweight, NULL);
    launch("rms_norm_backward", norm_gradient<false>, blocks_of_rows(rows), THREADS, 0, rows,
           columns, dy, x, weight, nullptr, rstd, dx, accumulate);
}

/* ---- cross entropy ----------------------------------------------------------------------------------- */

/* One thread per row, because there are few classes. */
__global__ static void cross_entropy(int64_t rows, int64_t classes, const float *logits,
                                     const int32_t *labels, float *losses, float *dlogits)
{
    FOR_EACH(row, rows)
    {
        const float *z = logits + row * classes;
        float *dz = dlogits + row * classes, highest = z[0], sum = 0;
        for (int64_t c = 1; c < classes; c++)
            highest = higher(highest, z[c]);
        for (int64_t c = 0; c < classes; c++)
            sum += expf(z[c] - highest);
        losses[row] = logf(sum) - (z[labels[row]] - highest);
        for (int64_t c = 0; c < classes; c++)
            dz[c] = expf(z[c] - highest) / sum - (c == labels[row] ? 1.0f : 0.0f);
    }
}

void kernel_cross_entropy(int64_t rows, int64_t classes, const real *logits, const int32_t *labels,
                          real *losses, real *dlogits)
{
    launch_for("cross_entropy", rows, cross_entropy, rows, classes, logits, labels, losses,
               dlogits);
}
