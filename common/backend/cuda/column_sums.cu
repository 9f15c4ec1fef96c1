#include "backend/cuda/column_sums.cuh"

/* A block takes COLUMNS columns of a chunk of rows: each of its LANES rows of threads adds every LANES-th row of the chunk. */
enum { COLUMNS = 32, LANES = 8, CHUNK = 128 };

static int64_t chunks_of(int64_t rows)
{
    return (rows + CHUNK - 1) / CHUNK;
}

/* The sum over the rows of threads, on the first of them. */
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

/* plain, normed [chunks,columns]: of dy, and of dy · (x - mean) rstd; the latter if x is not NULL. */
__global__ static void chunk_sums(int64_t rows, int64_t columns, const float *dy, const float *x,
                                  const float *mean, const float *rstd, float *plain, float *normed)
{
    DYNAMIC_SHARED(float, shared);
    const int64_t column = (int64_t)blockIdx.y * COLUMNS + threadIdx.x, chunk = blockIdx.x;
    const int64_t end = (chunk + 1) * CHUNK < rows ? (chunk + 1) * CHUNK : rows;
    float sum = 0, normed_sum = 0;
    for (int64_t r = chunk * CHUNK + threadIdx.y; column < columns && r < end; r += LANES) {
        const float g = dy[r * columns + column];
        sum += g;
        if (x)
            normed_sum += g * ((x[r * columns + column] - mean[r]) * rstd[r]);
    }
    sum = lanes_in_order(sum, shared);
    normed_sum = x ? lanes_in_order(normed_sum, shared) : 0;
    if (threadIdx.y > 0 || column >= columns)
        return;
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

static void sum_chunks(int64_t rows, int64_t columns, const real *dy, const real *x,
                       const real *mean, const real *rstd, real *plain)
{
    const dim3 grid((unsigned)chunks_of(rows), (unsigned)((columns + COLUMNS - 1) / COLUMNS));
    launch("column sums", chunk_sums, grid, dim3(COLUMNS, LANES),
           COLUMNS * LANES * (int64_t)sizeof(float), rows, columns, dy, x, mean, rstd, plain,
           plain + chunks_of(rows) * columns);
}

void add_column_sums(int64_t rows, int64_t columns, const real *x, real *sums)
{
    if (rows * columns == 0)
        return;
    real *plain = (real *)device_work(chunks_of(rows) * columns * (int64_t)sizeof(real));
    sum_chunks(rows, columns, x, NULL, NULL, NULL, plain);
    launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, plain, sums);
}

void add_layer_norm_sums(int64_t rows, int64_t columns, const real *dy, const real *x,
                         const real *mean, const real *rstd, real *dweight, real *dbias)
{
    if (rows * columns == 0)
        return;
    const int64_t each = chunks_of(rows) * columns;
    real *plain = (real *)device_work(2 * each * (int64_t)sizeof(real));
    sum_chunks(rows, columns, dy, x, mean, rstd, plain);
    launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, plain, dbias);
    launch_for("column sums", columns, add_chunks, chunks_of(rows), columns, plain + each, dweight);
}
