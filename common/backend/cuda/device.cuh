/** @file
 * What the kernels of this backend share: the device and its stream, how a kernel is started, sums over the threads of a warp.
 *
 * All kernels run on one stream, in the order in which they are called; nothing here is atomic, so that two runs give the same bits.
 */
#pragma once

#include <cuda_runtime.h>

#include "backend/backend.h"

#ifdef BALISE_DOUBLE
#error "the cuda backend is single precision; link the reference backend to double precision"
#endif

/** The stream of all kernels and copies. Opens the device when it is first asked. */
cudaStream_t device_stream(void);

/** Ends the run where `error` is one, and names what was done. */
void device_check(cudaError_t error, const char *what);

/** From now on backend_wait() calls `look` while it waits (`begins` the first time), to end the run if need be. */
void device_look_while_waiting(void (*look)(bool begins));

/** Lives as long as the host is within a call of CUDA that may not return: a stream takes no more where what is on it waits for ever. Another
 *  thread asks since when; it may call nothing of CUDA itself, which has its locks taken then. */
struct DeviceCall {
    DeviceCall();
    ~DeviceCall();
};
double device_call_seconds(void); /**< 0 outside */

/** Its compute capability: 75, 80, 90, ... */
int device_generation(void);

/** Which GPU it is, in 16 bytes that no other GPU has. */
void device_identity(char bytes[16]);

/** Says that a kernel was started: told of what was refused, and waits for it where that was asked for. */
void device_started(const char *kernel);

/** A number that stays as long as nothing is put on the stream that may write to tensors, and nobody waits, who may write then: what was
 *  made of a tensor in between is good still. */
uint64_t device_changes(void);

/** How often somebody has waited, so that the host may have written to its memory. */
uint64_t device_waits(void);

/** Something else may write to tensors from here on: a collective. */
void device_changed(void);

/** Memory of the device that grows to what was asked for, and is kept; what it held is lost then. */
typedef struct DeviceRoom {
    void *memory;
    int64_t bytes;
} DeviceRoom;
void *device_room(DeviceRoom *room, int64_t bytes);

/** Memory of the device for one kernel and those that read its result, up to the next call of this function: kernels on one
 *  stream take turns with it. It grows in the first step of a training run. */
void *device_work(int64_t bytes);

/** x [count], or where it lies in the host's pinned memory a copy of it in the device's: a batch's ids, and the mask, which each layer reads
 *  twice. The copy stands on the stream, as a kernel that is called now will; it is made anew only if the host has waited since, and may have
 *  written. */
const int32_t *brought_near(const int32_t *x, int64_t count);

/** sums [columns] += the column sums of x [rows,columns], in the same order each time: of a chunk of rows first, then of the chunks. */
void add_column_sums(int64_t rows, int64_t columns, const real *x, real *sums);

/** The precision of matrix products, as backend_set_products() has set it. */
Precision products_precision(void);

/** The work of a kernel, cut for its threads: a grid that fills a device and no more, whose threads go on by FOR_EACH. */
enum { THREADS = 256 };
static const int64_t MOST_BLOCKS = 132 * 16;
static inline unsigned blocks_for(int64_t threads)
{
    const int64_t blocks = (threads + THREADS - 1) / THREADS;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}
#define FOR_EACH(i, count)                                                                         \
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (count);                  \
         i += (int64_t)gridDim.x * blockDim.x)

/** Shared memory whose size the launch says: DYNAMIC_SHARED(float, name). */
#ifdef __CUDACC__
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif

/** kernel<<<grid, block, shared>>>(arguments...) on the stream. */
template <typename... P, typename... A>
void launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, int64_t shared,
            A... arguments)
{
    cudaStream_t stream = device_stream();
    {
        const DeviceCall call;
#ifdef __CUDACC__
        kernel<<<grid, block, (size_t)shared, stream>>>(static_cast<P>(arguments)...);
#else
        emulated_launch(stream, kernel, grid, block, (size_t)shared, static_cast<P>(arguments)...);
#endif
    }
    device_started(name);
}

/** A thread for each of `count` elements, or each of so many others; nothing is started for none. */
template <typename... P, typename... A>
void launch_for(const char *name, int64_t count, void (*kernel)(P...), A... arguments)
{
    if (count > 0)
        launch(name, kernel, blocks_for(count), THREADS, 0, arguments...);
}

enum { WARP = 32, ALL_LANES = 0xffffffff };

/** The sum over the threads of a warp, or over `width` neighbours of it, on each of them; in the same order each time. */
template <typename T> __device__ inline T lanes_sum(T x, int width = WARP)
{
    for (int other = width / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, other);
    return x;
}

/** The higher number; what is no number is higher than all. */
__device__ inline float higher(float x, float y)
{
    return x != x || x > y ? x : y;
}

/** Likewise the highest. */
__device__ inline float lanes_highest(float x, int width = WARP)
{
    for (int other = width / 2; other > 0; other /= 2)
        x = higher(x, __shfl_xor_sync(ALL_LANES, x, other));
    return x;
}
