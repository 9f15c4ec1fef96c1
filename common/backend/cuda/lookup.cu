/* Looks up table rows and adds to them; copies the host's ids and masks to the device. */
#include "backend/cuda/device.cuh"

/* A copy of x [count], made when device_waits() was `good_at`. */
typedef struct Copy {
    DeviceRoom room;
    const int32_t *x;
    int64_t count;
    uint64_t good_at, used;
} Copy;

enum { COPIES = 4 }; /* ids, those within a rank's shard of the table, the mask, and a spare */

const int32_t *brought_near(const int32_t *x, int64_t count)
{
    static Copy copies[COPIES];
    static uint64_t uses;
    Copy *copy = &copies[0];
    if (count == 0 || !backend_on_host((void *)x))
        return x;
    for (Copy &each : copies) {
        if (each.x == x && each.count == count && each.good_at == device_waits()) {
            each.used = ++uses;
            return static_cast<const int32_t *>(each.room.memory);
        }
        copy = each.used < copy->used ? &each : copy;
    }
    const int64_t bytes = count * (int64_t)sizeof *x;
    void *room = device_room(&copy->room, bytes);
    device_check(cudaMemcpyAsync(room, x, (size_t)bytes, cudaMemcpyDefault, device_stream()),
                 "copying a batch");
    copy->x = x, copy->count = count, copy->good_at = device_waits(), copy->used = ++uses;
    return static_cast<const int32_t *>(room);
}

template <typename T>
__global__ static void lookup(int64_t count, int64_t columns, const int32_t *ids, const T *table,
                              T *y)
{
    FOR_EACH(i, count * columns)
    {
        const int32_t id = ids[i / columns];
        y[i] = id == NO_ID ? T(0) : table[id * columns + i % columns];
    }
}

/* One block adds all rows of an id, in order: the block of the first row with this id, which
 * searches for the others. */
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
    /* The sum is unrolled, so a load does not wait for the previous one. Padding may have thousands
     * of rows. */
    for (int64_t first = mine; first < count; first += THREADS) {
        found[threadIdx.x] = first + threadIdx.x < count && ids[first + threadIdx.x] == id;
        if (!__syncthreads_or(found[threadIdx.x])) /* most pieces of `ids` lack this id */
            continue;
#pragma unroll 8
        for (int i = 0; i < THREADS; i++)
            sum += found[i] && column < columns ? dy[(first + i) * columns + column] : 0;
        __syncthreads();
    }
    if (column < columns)
        dtable[id * columns + column] = sum;
}

void kernel_lookup_forward(int64_t count, int64_t columns, const int32_t *ids, Numbers table,
                           Numbers y)
{
    ids = brought_near(ids, count);
    if (y.halves)
        launch_for("lookup_forward", count * columns, lookup<uint16_t>, count, columns, ids,
                   table.halves, y.halves);
    else
        launch_for("lookup_forward", count * columns, lookup<real>, count, columns, ids,
                   table.reals, y.reals);
}

void kernel_lookup_backward(int64_t count, int64_t columns, const int32_t *ids, const real *dy,
                            real *dtable)
{
    if (count * columns == 0)
        return;
    const dim3 grid((unsigned)count, (unsigned)((columns + THREADS - 1) / THREADS));
    launch("lookup_backward", add_rows, grid, THREADS, THREADS * (int64_t)sizeof(int), count,
           columns, brought_near(ids, count), dy, dtable);
}

/* To look at the numbers, the host would have to wait for the kernels. */
int64_t kernel_rows_in_use(int64_t rows, int64_t columns, Numbers x, int32_t *index)
{
    return rows;
}
