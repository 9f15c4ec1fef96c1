/* Tests that the emulated GPU behaves as cuda_runtime.h describes. Each test is a process of its
 * own, because the emulation must end some of them. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/wait.h>
#include <unistd.h>

#include "backend/cuda/device.cuh"

__global__ static void store(int *y, int value)
{
    y[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ static void first_waits_alone(int *y)
{
    if (threadIdx.x == 0)
        __syncthreads();
    else
        __syncwarp();
    y[threadIdx.x] = 1;
}

__global__ static void sum_of_shared(const float *x, float *y)
{
    DYNAMIC_SHARED(float, all);
    all[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < blockDim.x; i++)
        sum += all[i];
    y[threadIdx.x] = sum;
}

__global__ static void unset_shared(float *y)
{
    DYNAMIC_SHARED(float, unset);
    y[threadIdx.x] = unset[threadIdx.x];
}

__global__ static void shuffled(float *y)
{
    y[threadIdx.x] = lanes_sum((float)(threadIdx.x % WARP));
}

__global__ static void asked(int who, int *y)
{
    y[threadIdx.x] = __syncthreads_or((int)threadIdx.x == who) ? 1 : 0;
    if (__syncthreads_or(0) || !__syncthreads_or((int)threadIdx.x == 63 - who % 64))
        y[threadIdx.x] = 2; /* a vote got the result of another vote */
}

template <typename T> static T *memory(int count, MemoryKind kind)
{
    return static_cast<T *>(backend_memory(count * (int64_t)sizeof(T), kind));
}

static bool runs_late()
{
    int *y = memory<int>(64, HOST_MEMORY);
    y[0] = 5;
    launch("store", store, 2, 32, 0, y, 9);
    const bool late = y[0] == 5;
    backend_wait();
    return late && y[0] == 9 && y[63] == 9;
}

static bool every_thread_waits()
{
    float *x = memory<float>(96, HOST_MEMORY), *y = memory<float>(96, HOST_MEMORY);
    for (int i = 0; i < 96; i++)
        x[i] = (float)i;
    launch("sum_of_shared", sum_of_shared, 1, 96, 96 * (int64_t)sizeof(float), x, y);
    backend_wait();
    return y[0] == 95 * 96 / 2 && y[95] == y[0];
}

static bool shared_memory_is_unset()
{
    float *y = memory<float>(32, HOST_MEMORY);
    launch("unset_shared", unset_shared, 1, 32, 32 * (int64_t)sizeof(float), y);
    backend_wait();
    return y[0] != y[0] && y[31] != y[31];
}

static bool warps_shuffle()
{
    float *y = memory<float>(96, HOST_MEMORY);
    launch("shuffled", shuffled, 1, 96, 0, y);
    backend_wait();
    return y[0] == 31 * 16 && y[95] == y[0];
}

static bool a_block_agrees()
{
    int *y = memory<int>(96, HOST_MEMORY);
    launch("asked", asked, 1, 96, 0, 95, y);
    backend_wait();
    const bool one = y[0] == 1 && y[95] == 1;
    launch("asked", asked, 1, 96, 0, -1, y);
    backend_wait();
    return one && y[0] == 0 && y[95] == 0;
}

static bool host_pointer()
{
    static int y[32];
    launch("store", store, 1, 32, 0, y, 1);
    return true;
}

static bool device_memory_on_host()
{
    volatile int *y = memory<int>(32, DEVICE_MEMORY);
    return y[0] == 0;
}

static bool divergence()
{
    int *y = memory<int>(32, HOST_MEMORY);
    launch("first_waits_alone", first_waits_alone, 1, 32, 0, y);
    backend_wait();
    return true;
}

static bool shared_memory_not_asked_for()
{
    launch("unset_shared", unset_shared, 1, 32, 60 << 10, memory<float>(32, HOST_MEMORY));
    return true;
}

static bool grid_too_high()
{
    launch("unset_shared", unset_shared, dim3(1, 70000), 32, 128, memory<float>(32, HOST_MEMORY));
    return true;
}

static bool block_too_large()
{
    launch("unset_shared", unset_shared, 1, 1025, 128, memory<float>(32, HOST_MEMORY));
    return true;
}

/* Runs a test in a child. With `words`, the child must end by a signal and print them; otherwise it
 * must succeed. */
static void check(int number, const char *name, bool (*test)(), const char *words)
{
    char said[512] = "";
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        abort();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        _exit(test() ? 0 : 1);
    }
    close(ends[1]);
    for (size_t length = 0; length + 1 < sizeof said;) {
        const ssize_t more = read(ends[0], said + length, sizeof said - 1 - length);
        if (more <= 0)
            break;
        length += (size_t)more;
    }
    close(ends[0]);
    waitpid(child, &status, 0);
    const bool ended = !WIFEXITED(status) ||
                       WEXITSTATUS(status) > 1; /* AddressSanitizer turns signals into statuses */
    const bool good = words ? ended && strstr(said, words) : !ended && WEXITSTATUS(status) == 0;
    printf("%sok %d - %s%s%s\n", good ? "" : "not ", number, name, good ? "" : ": ",
           good ? "" : said);
}

int main()
{
    unsetenv("CUDA_LAUNCH_BLOCKING");
    check(1, "a kernel runs when it is waited for", runs_late, nullptr);
    check(2, "every thread of a block waits at its barrier", every_thread_waits, nullptr);
    check(3, "shared memory is NaN before it is set", shared_memory_is_unset, nullptr);
    check(4, "a warp's lanes see each other's words", warps_shuffle, nullptr);
    check(5, "a block agrees on whether one of its threads says so", a_block_agrees, nullptr);
    check(6, "a kernel that is given memory of the host ends the run", host_pointer,
          "memory of the host");
    check(7, "a host that reads the device's memory is ended", device_memory_on_host, "");
    check(8, "threads at different barriers end the run", divergence, "different barriers");
    check(9, "shared memory that was not asked for ends the run", shared_memory_not_asked_for,
          "48 KiB");
    check(10, "so does a grid that is too high", grid_too_high, "65535");
    check(11, "and a block that is too large", block_too_large, "1024 threads");
    puts("1..11");
    return 0;
}
