#include "backend/cuda/device.cuh"

__global__ static void lookup(int64_t count, int64_t columns, const int32_t *ids, const float *table,
                              float *y)
{
    FOR_EACH(i, count * columns)
    {
        const int32_t id = ids[i / columns];
        y[i] = id == NO_ID ? 0 : table[id * columns + i % columns];
    }
}

/* Rows of one id are added by one block, in order: that of the first of them, which looks for the others. */
__global__ static void add_rows(int64_t count, int64_t columns, const int32_t *ids, const float *dy,
                                float *dtable)
{
    DYNAMIC_SHARED(int, found);
    const int64_t mine = blockIdx.x;
    const int32_t id = ids[mine];
    if (id == NO_ID)
        return;
    int earlier = 0;
    for (int64_t i = threadIdx.x; i < mine; i += THREADS)
        earlier |= ids[i] == id;
    if (__syncthreads_or(earlier))
        return;
    const int64_t column = (int64_t)blockIdx.y * THREADS + threadIdx.x;
    float sum = column < columns ? dtable[id * columns + column] : 0;
    for (int64_t first = mine; first < count; first += THREADS) {
        found[threadIdx.x] = first + threadIdx.x < count && ids[first + threadIdx.x] == id;
        __syncthreads();
        for (int64_t i = 0; i < THREADS && first + i < count; i++)
            if (found[i] && column < columns)
                sum += dy[(first + i) * columns + column];
        __syncthreads();
    }
    if (column < columns)
        dtable[id * columns + column] = sum;
}

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, const real *table, real *y)
{
    launch_for("lookup_forward", count * columns, lookup, count, columns, ids, table, y);
}

void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy, real *dtable)
{
    if (count * columns == 0)
        return;
    /* Each block reads all ids, which may lie in the host's memory: they are brought near first. */
    int32_t *near = (int32_t *)device_work(count * (int64_t)sizeof *near);
    device_check(cudaMemcpyAsync(near, ids, (size_t)count * sizeof *near, cudaMemcpyDefault, device_stream()),
                 "copying ids");
    const dim3 grid((unsigned)count, (unsigned)((columns + THREADS - 1) / THREADS));
    launch("lookup_backward", add_rows, grid, THREADS, THREADS * (int64_t)sizeof(int), count, columns, near,
           dy, dtable);
}

/* A look at the numbers would have to be waited for. */
int64_t kernel_rows_in_use(int64_t rows, int64_t columns, const real *x, int32_t *index)
{
    (void)columns, (void)x, (void)index;
    return rows;
}
