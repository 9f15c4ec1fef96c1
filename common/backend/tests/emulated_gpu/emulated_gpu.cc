/* See cuda_runtime.h: streams, events, limits and the device. */
#include "emulated_parts.h"

#include <deque>
#include <map>
#include <thread>
#include <vector>

#include <unistd.h>

/* The error of the last call that failed. Successful calls do not clear it. */
static thread_local cudaError_t last_error;

cudaError_t emulated_error(cudaError_t error)
{
    return last_error = error;
}

int emulated_depth;

/* ---- streams -------------------------------------------------------------------------------------------- */

struct EmulatedStream {
    std::deque<std::function<void()>> waiting;
    uint64_t begun, ended; /* number of pieces of work put on it, and number that have run */
};
struct EmulatedEvent {
    EmulatedStream *stream;
    uint64_t position; /* it has happened when this many pieces of work have run there */
};

static std::vector<EmulatedStream *> streams;
enum { MOST_WAITING = 4096 };

static EmulatedStream *stream_of(cudaStream_t stream)
{
    static EmulatedStream usual;
    if (streams.empty())
        streams.push_back(&usual);
    return stream ? stream : &usual;
}

static void run_until(EmulatedStream *stream, uint64_t position)
{
    if (stream->ended >= position)
        return;
    if (emulated_depth++ == 0)
        emulated_protect(true);
    while (stream->ended < position) {
        std::function<void()> work = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        work();
        stream->ended++;
    }
    if (--emulated_depth == 0)
        emulated_protect(false);
}

void emulated_run_all()
{
    for (EmulatedStream *stream : streams)
        run_until(stream, stream->begun);
}

int emulated_setting(const char *name, int usual)
{
    const char *set = getenv(name);
    return set ? atoi(set) : usual;
}

bool emulated_trouble(const char *name, int call)
{
    const char *at = getenv(name);
    return at && call >= atoi(at) &&
           emulated_setting("OMPI_COMM_WORLD_RANK", 0) ==
               emulated_setting("OMPI_COMM_WORLD_SIZE", 1) - 1;
}

/* CUDA_LAUNCH_BLOCKING=1: each launch waits for its kernel, as in CUDA. */
static bool is_blocking()
{
    static const char *set = getenv("CUDA_LAUNCH_BLOCKING");
    return set && *set == '1';
}

void emulated_later(cudaStream_t stream_or_none, std::function<void()> work)
{
    EmulatedStream *stream = stream_of(stream_or_none);
    stream->waiting.push_back(std::move(work));
    stream->begun++;
    if (is_blocking() || stream->waiting.size() >= MOST_WAITING)
        run_until(stream, stream->begun);
}

/* ---- limits that every GPU has from compute capability 5.0 on ---- */

static std::map<const void *, size_t> &allowed_shared()
{
    static std::map<const void *, size_t> bytes;
    return bytes;
}

cudaError_t emulated_allow_shared(const void *kernel, int bytes)
{
    int most;
    cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
    if (bytes > most)
        return cudaErrorInvalidConfiguration;
    allowed_shared()[kernel] = static_cast<size_t>(bytes);
    return cudaSuccess;
}

void emulated_check_launch(const void *kernel, dim3 grid, dim3 block, size_t shared)
{
    const size_t usual = 48 << 10,
                 asked = allowed_shared().count(kernel) ? allowed_shared()[kernel] : 0;
    const uint64_t in_block = static_cast<uint64_t>(block.x) * block.y * block.z;
    if (in_block == 0 || in_block > MOST_THREADS)
        emulated_fail("a block has 1 to 1024 threads");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        emulated_fail("a grid has at least one block, and up to 65535 along y and z");
    if (shared > usual && shared > asked)
        emulated_fail(
            "a kernel has 48 KiB of shared memory, or what cudaFuncSetAttribute was asked for");
}

/* EMULATED_FULL=n: from its n-th kernel on, the last rank's stream accepts no more work. */
void emulated_room()
{
    static int kernels;
    if (emulated_trouble("EMULATED_FULL", ++kernels))
        for (;;)
            pause();
}

void emulated_now(cudaStream_t stream, const std::function<void()> &work)
{
    cudaStreamSynchronize(stream);
    if (emulated_depth++ == 0)
        emulated_protect(true);
    work();
    if (--emulated_depth == 0)
        emulated_protect(false);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *created, unsigned)
{
    *created = new EmulatedStream();
    streams.push_back(*created);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    run_until(stream_of(stream), stream_of(stream)->begun);
    return cudaSuccess;
}

static const std::thread::id main_thread = std::this_thread::get_id();

/* A query from the main thread lets the stream run. "Not ready" is an error, which stays set. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (std::this_thread::get_id() != main_thread)
        return stream->ended == stream->begun ? cudaSuccess : cudaErrorNotReady;
    static int queries; /* EMULATED_STUCK=n: from the n-th query on, nothing becomes ready */
    if (emulated_trouble("EMULATED_STUCK", ++queries))
        return emulated_error(cudaErrorNotReady);
    const bool ready = stream_of(stream)->waiting.empty();
    cudaStreamSynchronize(stream);
    return ready ? cudaSuccess : emulated_error(cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    static int made;
    if (++made > emulated_setting("EMULATED_EVENTS", 1 << 30))
        return emulated_error(cudaErrorMemoryAllocation);
    *event = new EmulatedEvent();
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    *event = {stream_of(stream), stream_of(stream)->begun};
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    const EmulatedEvent now = *event;
    if (now.stream)
        emulated_later(stream, [=] { run_until(now.stream, now.position); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream)
{
    if (bytes == 0) /* the pointers may be invalid */
        return cudaSuccess;
    if (emulated_is_known(from)) {
        emulated_later(stream, [=] { std::memcpy(to, from, bytes); });
    } else { /* pageable memory is read before the call returns */
        std::vector<char> bytes_now(static_cast<const char *>(from),
                                    static_cast<const char *>(from) + bytes);
        emulated_later(stream, [=] { std::memcpy(to, bytes_now.data(), bytes); });
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int byte, size_t bytes, cudaStream_t stream)
{
    emulated_later(stream, [=] { std::memset(memory, byte, bytes); });
    return cudaSuccess;
}

/* ---- the device ----------------------------------------------------------------------------------------- */

static int devices()
{
    return emulated_setting("EMULATED_GPUS", 1);
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorNoDevice           ? "no CUDA-capable device is detected"
           : error == cudaErrorMemoryAllocation ? "out of memory"
           : error == cudaErrorDevicesUnavailable
               ? "all CUDA-capable devices are busy or unavailable"
           : error == cudaSuccess ? "no error"
                                  : "invalid configuration argument";
}

cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices();
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    return emulated_trouble("EMULATED_TAKEN", 1) ? cudaErrorDevicesUnavailable
           : device < devices()                  ? cudaSuccess
                                                 : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    *properties = {};
    snprintf(properties->uuid.bytes, sizeof properties->uuid.bytes, "emulated %d", device);
    snprintf(properties->name, sizeof properties->name, "emulated GPU%s",
             device % 2 && emulated_setting("EMULATED_MIXED", 0) ? " of another type" : "");
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->totalGlobalMem = emulated_device_bytes();
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int)
{
    *value = 99 << 10; /* of compute capability 8.6 */
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = emulated_setting("EMULATED_DRIVER", 13000);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}
