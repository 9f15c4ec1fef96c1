/* The device: which one it is, its memory, its stream, what it is called. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/cuda/device.cuh"
#include "base/run.h"

/* The one handle of the process. */
static struct {
    bool open, waits_always;
    int number;
    cudaStream_t stream;
    void *work;
    int64_t work_bytes;
    void (*look)(bool begins);
} device;

static const char no_gpu[] = "make doctor says what this machine has; BACKEND=cpu needs no GPU";

/* Slurm's and Open MPI's count of the ranks on a machine; one rank alone needs none. */
static int local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID",
                                        "MV2_COMM_WORLD_LOCAL_RANK"};
    for (const char *name : names)
        if (getenv(name))
            return atoi(getenv(name));
    return 0;
}

/* Before MPI is there. What all ranks of a machine meet its first one says. */
static void give_up(bool everybody, const char *hint, const char *what, const char *why)
{
    if (!everybody)
        fprintf(stderr, "error: local rank %d, %s: %s\n  HINT: %s\n", local_rank(), what, why, hint);
    else if (local_rank() == 0)
        fprintf(stderr, "error: %s: %s\n  HINT: %s\n", what, why, hint);
    exit(2);
}

static void open_device(void)
{
    int count = 0, driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (driver == 0)
        give_up(true, no_gpu, "BACKEND=cuda", "this machine has no NVIDIA driver");
    if (driver < runtime / 1000 * 1000)
        give_up(true, "update the driver, or build with an older CUDA Toolkit", "BACKEND=cuda",
                "the driver is older than the CUDA Toolkit that the kit was built with");
    if (error != cudaSuccess || count == 0)
        give_up(true, no_gpu, "BACKEND=cuda",
                error != cudaSuccess ? cudaGetErrorString(error) : "there is no GPU");
    device.number = local_rank() % count;
    device.open = true;
    cudaError_t opened = cudaSetDevice(device.number);
    if (opened == cudaSuccess)
        opened = cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking);
    if (opened != cudaSuccess)
        give_up(false,
                "is it full, or another process's alone? nvidia-smi shows; CUDA_VISIBLE_DEVICES=1 takes "
                "another one",
                "opening its GPU", cudaGetErrorString(opened));
}

cudaStream_t device_stream(void)
{
    if (!device.open)
        open_device();
    return device.stream;
}

void device_check(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        misuse("compute-sanitizer names the line of a kernel that reads or writes what is not its own",
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

static cudaDeviceProp properties_of_device(void)
{
    cudaDeviceProp properties;
    device_stream();
    device_check(cudaGetDeviceProperties(&properties, device.number), "asking what the GPU is");
    return properties;
}

int device_generation(void)
{
    return properties_of_device().major;
}

void device_identity(char bytes[16])
{
    const cudaDeviceProp properties = properties_of_device();
    memcpy(bytes, properties.uuid.bytes, 16);
}

void *device_work(int64_t bytes)
{
    if (bytes <= device.work_bytes)
        return device.work;
    backend_wait();
    cudaFree(device.work);
    device.work = NULL;
    device.work_bytes = 0;
    if (cudaMalloc(&device.work, (size_t)bytes) != cudaSuccess) {
        cudaGetLastError(); /* it is told here */
        misuse("split the model over more ranks (TP), take a smaller BATCH_SIZE or SEQ, or AMP=bf16",
               "GPU %d has no %.0f MB left for kernels to work in", device.number, (double)bytes / 1e6);
    }
    device.work_bytes = bytes;
    return device.work;
}

/* ---- the header's words ---------------------------------------------------------------------------------- */

void backend_start(char **argv)
{
    (void)argv;
    device_stream();
}

bool backend_check(Problem *problem)
{
    (void)problem; /* cuBLAS knows every GPU that its toolkit knows */
    return true;
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

void backend_set_threads(int threads)
{
    (void)threads; /* of the host: it starts kernels, which takes one */
}

bool backend_looks_for_zeros(void)
{
    return false; /* a look would have to be waited for */
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

void *backend_memory(int64_t bytes, MemoryKind kind)
{
    void *memory = NULL;
    device_stream();
    const size_t size = bytes ? (size_t)bytes : 1;
    const cudaError_t error = kind == DEVICE_MEMORY
                                  ? cudaMalloc(&memory, size)
                                  : cudaHostAlloc(&memory, size, cudaHostAllocPortable | cudaHostAllocMapped);
    if (error == cudaSuccess)
        return memory;
    cudaGetLastError(); /* the caller tells of it */
    return NULL;
}

void backend_memory_free(void *memory, MemoryKind kind)
{
    device_check(kind == DEVICE_MEMORY ? cudaFree(memory) : cudaFreeHost(memory), "freeing memory");
}

void backend_wait(void)
{
    cudaStream_t stream = device_stream();
    if (!device.look) {
        device_check(cudaStreamSynchronize(stream), "waiting for kernels");
        return;
    }
    cudaError_t error;
    bool begins = true;
    do {
        device.look(begins);
        begins = false;
        error = cudaStreamQuery(stream);
    } while (error == cudaErrorNotReady);
    cudaGetLastError(); /* that it was not ready is kept as an error */
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

static void copy(void *to, const void *from, int64_t bytes, cudaMemcpyKind kind)
{
    device_check(cudaMemcpyAsync(to, from, (size_t)bytes, kind, device_stream()), "copying");
}

void backend_read(void *host, const void *memory, int64_t bytes)
{
    backend_wait(); /* the copy would wait too, and look at nothing while it does */
    copy(host, memory, bytes, cudaMemcpyDefault);
    backend_wait();
}

void backend_write(void *memory, const void *host, int64_t bytes)
{
    backend_wait();
    copy(memory, host, bytes, cudaMemcpyDefault);
    backend_wait(); /* the host's memory is the caller's again */
}

void backend_set_bytes(void *memory, int byte, int64_t bytes)
{
    device_check(cudaMemsetAsync(memory, byte, (size_t)bytes, device_stream()), "setting memory");
}

void kernel_vector_copy(int64_t count, const real *x, real *y)
{
    copy(y, x, count * (int64_t)sizeof *y, cudaMemcpyDefault);
    device_started("vector_copy");
}
