/** @file
 * Shared by this backend's kernels: the device and its stream, launches, sums over the threads of a
 * warp.
 *
 * All kernels run on one stream, in call order. Nothing is atomic, so two runs give the same bits.
 */
#pragma once

#include <cuda_runtime.h>

#include "backend/backend.h"

#ifdef BALISE_DOUBLE
#error "the cuda backend is single precision; link the reference backend to double precision"
#endif

/** The stream of all kernels and copies. The first call opens the device. */
cudaStream_t device_stream(void);

/** Ends the run if `error` is an error; the message names `what`. */
void device_check(cudaError_t error, const char *what);

/** Makes backend_wait() call `look` repeatedly while it waits; `begins` is true in the first call
 *  of each wait. `look` may end the run. */
void device_look_while_waiting(void (*look)(bool begins));

/** Lives for the duration of a CUDA call that may never return, because a full stream accepts no
 *  more work if its current work waits forever. Another thread calls device_call_seconds() to
 *  limit the time. That thread must not call CUDA, because the call may hold CUDA's locks. */
struct DeviceCall {
    DeviceCall();
    ~DeviceCall();
};
double device_call_seconds(void); /**< how long the host has been in such a call; otherwise 0 */

/** The device's compute capability: 75, 80, 90, ... */
int device_generation(void);

/** A 16-byte identifier that is unique to the GPU. */
void device_identity(char bytes[16]);

/** Call this after a launch: reports an error and, if requested, waits for the kernel. */
void device_started(const char *kernel);

/** The number of times the host has waited for kernels. After each wait, the host may write to its
 *  memory. */
uint64_t device_waits(void);

/** Device memory that device_room() makes at least `bytes` large and never frees; growing it loses
 *  its contents. */
typedef struct DeviceRoom {
    void *memory;
    int64_t bytes;
} DeviceRoom;
void *device_room(DeviceRoom *room, int64_t bytes);

/** Device memory for one kernel and those that read its result, until the next call of this
 *  function. Kernels on one stream use it in turn. It grows during the first training step. */
void *device_work(int64_t bytes);

/** Returns x [count], or a copy on the device if x is in the host's pinned memory, as a batch's ids
 *  and mask are; each layer reads the mask twice. The copy is ordered on the stream like a kernel
 *  called now. It is renewed only if the host has waited since, and so may have written to x. */
const int32_t *brought_near(const int32_t *x, int64_t count);

/** sums [columns] += the column sums of x [rows,columns], always in the same order: first within
 *  chunks of rows, then over the chunks. */
void add_column_sums(int64_t rows, int64_t columns, Numbers x, real *sums);

/** The launch size for a kernel: a grid that just fills the device, whose threads loop with
 *  FOR_EACH. */
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

/** Shared memory with a size set at launch: DYNAMIC_SHARED(float, name). */
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

/** Launches enough threads for `count` elements, or as many as fill the device; nothing if there
 *  are no elements. */
template <typename... P, typename... A>
void launch_for(const char *name, int64_t count, void (*kernel)(P...), A... arguments)
{
    if (count > 0)
        launch(name, kernel, blocks_for(count), THREADS, 0, arguments...);
}

enum { WARP = 32, ALL_LANES = 0xffffffff };

/** The sum over the threads of a warp, or over `width` neighbours in it, on each of them; always in
 *  the same order. */
template <typename T> __device__ inline T lanes_sum(T x, int width = WARP)
{
    for (int other = width / 2; other > 0; other /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, other);
    return x;
}

/** The larger number; NaN if one is NaN. */
__device__ inline float higher(float x, float y)
{
    return x != x || x > y ? x : y;
}

/** The maximum over the threads of a warp, or over `width` neighbours in it, on each of them. */
__device__ inline float lanes_highest(float x, int width = WARP)
{
    for (int other = width / 2; other > 0; other /= 2)
        x = higher(x, __shfl_xor_sync(ALL_LANES, x, other));
    return x;
}
