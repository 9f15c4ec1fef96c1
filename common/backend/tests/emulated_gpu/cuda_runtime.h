/** @file
 * An emulated GPU for tests: the part of CUDA's language and runtime that common/backend/cuda uses,
 * on the host. A C++ compiler includes this header in place of CUDA's own; the kernels' sources are
 * the same.
 *
 * It is strict: work on a stream runs as late as possible, so a host that does not wait reads old
 * contents. The host cannot access device memory except while kernels run. Kernels accept only
 * pointers to the runtime's memory. A block's shared memory starts as NaN and has exact bounds
 * (AddressSanitizer detects an access outside them). Threads that wait at different barriers end
 * the run. It cannot show races or speed.
 *
 * The environment configures the emulation. There are EMULATED_GPUS GPUs (default 1), with
 * EMULATED_MEMORY MiB each (default 1024). EMULATED_MIXED=1 makes the odd ones a different type.
 * With EMULATED_TAKEN=1, another process has taken the last rank's GPU. EMULATED_DRIVER is the
 * driver's version (default 13000; 0: no driver). A process has at most EMULATED_EVENTS events and
 * EMULATED_PINNED pieces of pinned memory (default: no limit).
 */
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

/* ---- the language --------------------------------------------------------------------------------------- */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_)
    {
    }
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) float2 {
    float x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

/** The current thread, in CUDA's terms. */
struct EmulatedPlace {
    dim3 grid, block, at_block, at_thread;
};
extern EmulatedPlace emulated_place;
#define gridDim   emulated_place.grid
#define blockDim  emulated_place.block
#define blockIdx  emulated_place.at_block
#define threadIdx emulated_place.at_thread
enum { warpSize = 32 };

void *emulated_shared_memory();
#define DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(emulated_shared_memory())

void emulated_barrier(bool warp, unsigned kind);
uint64_t *emulated_lanes();
bool emulated_any(bool mine);

static inline void __syncthreads()
{
    emulated_barrier(false, 0);
}
static inline void __syncwarp()
{
    emulated_barrier(true, 0);
}
static inline int __syncthreads_or(int mine)
{
    return emulated_any(mine != 0);
}

/** Returns the value of lane `from` of this warp. Every lane must call it. */
template <typename T> static inline T emulated_exchange(T value, int from)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "a shuffle takes words");
    uint64_t *lanes = emulated_lanes(), word = 0;
    std::memcpy(&word, &value, sizeof value);
    lanes[threadIdx.x % warpSize] = word;
    emulated_barrier(true, 1);
    std::memcpy(&value, &lanes[from], sizeof value);
    emulated_barrier(true, 2);
    return value;
}
template <typename T> static inline T __shfl_xor_sync(unsigned, T value, int other)
{
    return emulated_exchange(value, static_cast<int>(threadIdx.x % warpSize) ^ other);
}

static inline unsigned __ballot_sync(unsigned, int mine)
{
    unsigned votes = (unsigned)(mine != 0) << threadIdx.x % warpSize;
    for (int other = warpSize / 2; other > 0; other /= 2)
        votes |= __shfl_xor_sync(0, votes, other);
    return votes;
}

/** The instructions for tensor cores (backend/cuda/tensor_cores.cuh). */
void emulated_multiply_add(bool fp16, float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                           uint32_t b1);
void emulated_load_matrices(bool transposed, uint32_t (&word)[4], const uint16_t *row);

static inline float rsqrtf(float x)
{
    return 1 / std::sqrt(x);
}

/* ---- the runtime ---------------------------------------------------------------------------------------- */

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorNoDevice = 100,
    cudaErrorNotReady = 600
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaMemoryType {
    cudaMemoryTypeUnregistered,
    cudaMemoryTypeHost,
    cudaMemoryTypeDevice,
    cudaMemoryTypeManaged
};
enum {
    cudaHostAllocPortable = 1,
    cudaHostAllocMapped = 2,
    cudaStreamNonBlocking = 1,
    cudaEventDisableTiming = 2
};
typedef struct EmulatedStream *cudaStream_t;
typedef struct EmulatedEvent *cudaEvent_t;
struct cudaPointerAttributes {
    cudaMemoryType type;
    void *hostPointer;
};
struct cudaDeviceProp {
    char name[256];
    struct {
        char bytes[16];
    } uuid;
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory);

/** Allows a kernel `bytes` of shared memory; without this call, it may have up to 48 KiB. */
cudaError_t emulated_allow_shared(const void *kernel, int bytes);

template <typename F> cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute, int bytes)
{
    return emulated_allow_shared(reinterpret_cast<const void *>(kernel), bytes);
}

/* ---- launches ------------------------------------------------------------------------------------------- */

/** Puts work on a stream; it runs when something waits for it, or for a later event. */
void emulated_later(cudaStream_t stream, std::function<void()> work);
/** Ends the run where a GPU would reject the size of a block, grid or shared memory. */
void emulated_check_launch(const void *kernel, dim3 grid, dim3 block, size_t shared);
/** Returns when the stream accepts another kernel. */
void emulated_room();
/** Runs all work on the stream, then `work`, which accesses the device's memory. */
void emulated_now(cudaStream_t stream, const std::function<void()> &work);
/** Runs a grid of blocks now. */
void emulated_run(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread);
/** The number in the environment variable `name`. */
int emulated_setting(const char *name, int usual);
/** Is this the last rank, and has it reached the call whose number the environment variable `name`
 *  gives? */
bool emulated_trouble(const char *name, int call);
/** Ends the run if a kernel gets a pointer that it cannot access. */
void emulated_check_pointer(const void *memory);

template <typename T> static inline void emulated_check(const T &argument)
{
    if constexpr (std::is_pointer_v<T>)
        emulated_check_pointer(argument);
}

template <typename... P>
void emulated_launch(cudaStream_t stream, void (*kernel)(P...), dim3 grid, dim3 block,
                     size_t shared, P... arguments)
{
    (emulated_check(arguments), ...);
    emulated_check_launch(reinterpret_cast<const void *>(kernel), grid, block, shared);
    emulated_room();
    emulated_later(stream,
                   [=] { emulated_run(grid, block, shared, [=] { kernel(arguments...); }); });
}
