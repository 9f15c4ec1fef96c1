/* The device: its selection, memory, stream and description. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <atomic>
#include <chrono>

#include "backend/cuda/device.cuh"
#include "base/language.h"
#include "base/memory.h"
#include "base/run.h"

/* The device that this process has opened. */
static struct {
    bool open, waits_always;
    int number;
    cudaStream_t stream;
    uint64_t waits;
    void (*look)(bool begins);
} device;

static const char no_gpu[] =
    N_("make doctor shows what this machine has; BACKEND=cpu computes without a GPU");

/* This rank's number among the ranks on this machine, as Open MPI, Slurm or MVAPICH gives it; 0
 * without a launcher. */
static int local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                        "MV2_COMM_WORLD_LOCAL_RANK"};
    for (const char *name : names)
        if (getenv(name))
            return atoi(getenv(name));
    return 0;
}

/* A driver runs code of toolkits up to its own major version. */
static bool driver_suffices(Problem *problem)
{
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0)
        return problem_set(problem, NULL, no_gpu,
                           "BACKEND=cuda: this machine has no NVIDIA driver");
    if (driver / 1000 < runtime / 1000)
        return problem_set(problem, NULL,
                           "update the driver, or build with an older CUDA Toolkit (CUDA=folder); "
                           "BACKEND=cpu computes without a GPU",
                           "BACKEND=cuda: the driver supports CUDA up to %d.%d, but the kit was "
                           "built with the toolkit of CUDA %d.%d",
                           driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    return true;
}

/* Counts the GPUs that this process sees. Returns false with `problem` if there are none. */
static bool count_gpus(int *count, Problem *problem)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaSuccess && *count > 0)
        return true;
    cudaGetLastError(); /* resets the error, which is reported here */
    const char *what = error == cudaSuccess ? _("there is no GPU") : cudaGetErrorString(error);
    if (!visible)
        return problem_set(problem, NULL, no_gpu, "BACKEND=cuda: %s", what);
    return problem_set(
        problem, NULL, no_gpu,
        "BACKEND=cuda: %s (CUDA_VISIBLE_DEVICES='%s' hides those that it does not name)", what,
        visible);
}

bool backend_ready(Problem *problem)
{
    int count = 0;
    if (device.open)
        return true;
    if (!driver_suffices(problem) || !count_gpus(&count, problem))
        return false;
    device.number = local_rank() % count;
    cudaError_t opened = cudaSetDevice(device.number);
    if (opened == cudaSuccess)
        opened = cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking);
    device.open = opened == cudaSuccess;
    return device.open ||
           problem_set(problem, NULL,
                       "is the GPU full, or reserved by another process? nvidia-smi shows this; "
                       "CUDA_VISIBLE_DEVICES=1 selects another GPU; BACKEND=cpu uses none",
                       "local rank %d cannot open GPU %d: %s", local_rank(), device.number,
                       cudaGetErrorString(opened));
}

cudaStream_t device_stream(void)
{
    Problem problem;
    if (!backend_ready(&problem)) { /* the program has not called it, and may run without MPI */
        if (local_rank() == 0)
            problem_print(stderr, &problem);
        exit(2);
    }
    return device.stream;
}

void device_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        misuse("compute-sanitizer names the line of a kernel that accesses memory it does not own",
               "%s failed on GPU %d: %s", what, device.number, cudaGetErrorString(error));
}

void device_started(const char *kernel)
{
    device_check(cudaGetLastError(), kernel);
    if (device.waits_always)
        backend_wait();
}

void device_look_while_waiting(void (*look)(bool begins))
{
    device.look = look;
}

/* ---- how long the host has been in a CUDA call ---- */

static std::atomic<int64_t> entered; /* nanoseconds of the steady clock; 0 outside calls */

static int64_t steady_now(void)
{
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

DeviceCall::DeviceCall()
{
    entered = steady_now();
}

DeviceCall::~DeviceCall()
{
    entered = 0;
}

double device_call_seconds(void)
{
    const int64_t since = entered;
    return since ? 1e-9 * (double)(steady_now() - since) : 0;
}

static cudaDeviceProp properties_of_device(void)
{
    cudaDeviceProp properties;
    device_stream();
    device_check(cudaGetDeviceProperties(&properties, device.number), "asking what the GPU is");
    return properties;
}

int device_generation(void)
{
    const cudaDeviceProp properties = properties_of_device();
    return 10 * properties.major + properties.minor;
}

void device_identity(char bytes[16])
{
    memcpy(bytes, properties_of_device().uuid.bytes, 16);
}

uint64_t device_waits(void)
{
    return device.waits;
}

void *device_room(DeviceRoom *room, int64_t bytes)
{
    if (bytes <= room->bytes)
        return room->memory;
    backend_wait();
    const DeviceCall call;
    cudaFree(room->memory);
    *room = {};
    room->memory = backend_memory(bytes, DEVICE_MEMORY);
    if (!room->memory)
        memory_refuse(backend_memory_place(DEVICE_MEMORY), bytes, ACTIVATIONS,
                      _("workspace for kernels"), "");
    room->bytes = bytes;
    return room->memory;
}

void *device_work(int64_t bytes)
{
    static DeviceRoom work;
    return device_room(&work, bytes);
}

/* ---- the functions of backend.h -------------------------------------------------------------------------- */

void backend_start(char **argv)
{
    Problem problem;
    /* Comes before MPI_Init, which may look for a GPU. The next call of backend_ready() reports a
     * missing GPU. */
    backend_ready(&problem);
}

const char *backend_device(void)
{
    static char text[128];
    const cudaDeviceProp properties = properties_of_device();
    snprintf(text, sizeof text, "%.80s, compute capability %d.%d", properties.name,
             properties.major, properties.minor);
    return text;
}

bool backend_check(Problem *problem)
{
    return true; /* cuBLAS supports every GPU that its toolkit supports */
}

const char *backend_description(void)
{
    static char text[160];
    const cudaDeviceProp properties = properties_of_device();
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    snprintf(text, sizeof text, "cuda (%.80s, %.0f GB, CUDA %d.%d)", properties.name,
             (double)properties.totalGlobalMem / 1e9, runtime / 1000, runtime % 1000 / 10);
    return text;
}

double backend_peak(void)
{
    return 0; /* unknown here: NVIDIA's data sheets give it */
}

void backend_set_threads(int threads)
{
    /* One host thread is enough to launch kernels. */
}

bool backend_looks_for_zeros(void)
{
    return false; /* to look, the host would have to wait for the kernels */
}

bool backend_only_counts(void)
{
    return false;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

const char *backend_memory_place(MemoryKind kind)
{
    static char text[160];
    size_t free = 0, total = 0;
    if (kind == HOST_MEMORY)
        return _("the memory of this machine that a GPU can reach");
    device_check(cudaMemGetInfo(&free, &total), "asking for free memory");
    snprintf(text, sizeof text, _("GPU %d (%.80s) with %.0f MB, %.0f MB of it free"), device.number,
             properties_of_device().name, (double)total / 1e6, (double)free / 1e6);
    return text;
}

void *backend_memory(int64_t bytes, MemoryKind kind)
{
    void *memory = NULL;
    device_stream();
    const size_t size = bytes ? (size_t)bytes : 1;
    const DeviceCall call;
    const cudaError_t error =
        kind == DEVICE_MEMORY
            ? cudaMalloc(&memory, size)
            : cudaHostAlloc(&memory, size, cudaHostAllocPortable | cudaHostAllocMapped);
    if (error == cudaSuccess)
        return memory;
    cudaGetLastError(); /* resets the error, which the caller reports */
    return NULL;
}

void backend_memory_free(void *memory, MemoryKind kind)
{
    const DeviceCall call;
    device_check(kind == DEVICE_MEMORY ? cudaFree(memory) : cudaFreeHost(memory), "freeing memory");
    device.waits++;
}

void backend_wait(void)
{
    cudaStream_t stream = device_stream();
    device.waits++;
    if (!device.look) {
        device_check(cudaStreamSynchronize(stream), "waiting for kernels");
        return;
    }
    cudaError_t error = cudaErrorNotReady;
    for (bool begins = true; error == cudaErrorNotReady; begins = false) {
        device.look(begins);
        error = cudaStreamQuery(stream);
    }
    cudaGetLastError(); /* resets the error "not ready" */
    device_check(error, "waiting for kernels");
}

void backend_wait_always(bool always)
{
    device.waits_always = always;
}

void *backend_on_host(void *memory)
{
    cudaPointerAttributes attributes;
    device_check(cudaPointerGetAttributes(&attributes, memory), "asking where memory lies");
    return attributes.type == cudaMemoryTypeDevice ? NULL : memory;
}

static void copy(void *to, const void *from, int64_t bytes)
{
    cudaStream_t stream = device_stream();
    const DeviceCall call;
    device_check(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, stream), "copying");
}

void backend_write(void *memory, const void *host, int64_t bytes)
{
    backend_wait(); /* waits first, because the copy would wait without calling device.look */
    copy(memory, host, bytes);
    backend_wait(); /* the host's memory belongs to the caller again */
}

void backend_read(void *host, const void *memory, int64_t bytes)
{
    backend_write(host, memory, bytes); /* CUDA determines the direction from the addresses */
}

void backend_set_bytes(void *memory, int byte, int64_t bytes)
{
    cudaStream_t stream = device_stream();
    const DeviceCall call;
    device_check(cudaMemsetAsync(memory, byte, (size_t)bytes, stream), "setting memory");
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    copy(y, x, count * (int64_t)sizeof *y);
    device_started("vector_copy");
}
