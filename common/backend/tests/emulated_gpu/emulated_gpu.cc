/* See cuda_runtime.h. Threads of a block run on fibers: one after the other on the same fiber,
 * until one waits at a barrier; the others then run on the next fiber. */
#include "cuda_runtime.h"

#include <deque>
#include <map>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

EmulatedPlace emulated_place;

[[noreturn]] static void fail(const char *what)
{
    const dim3 b = emulated_place.at_block, t = emulated_place.at_thread;
    fprintf(stderr, "emulated GPU: %s (block %u,%u,%u, thread %u,%u,%u)\n", what, b.x, b.y, b.z,
            t.x, t.y, t.z);
    abort();
}

/* ---- fibers --------------------------------------------------------------------------------------------- */

enum { MOST_THREADS = 1024 };
static const size_t STACK = 256 << 10;

struct Fiber {
    char *stack;
    int thread; /* the thread that it runs */
    bool ended;
    int waits_for; /* the generation of the barrier that it waits for; -1: it can run */
    bool waits_in_warp;
    void *fake_stack; /* AddressSanitizer's */
#ifdef __x86_64__
    void *top;
#else
    ucontext_t context;
#endif
};

static Fiber fibers[MOST_THREADS], scheduler;
static const std::function<void()> *body;
static Fiber *running;

#ifdef __x86_64__
/* Saves the registers that a call must preserve, stores the stack pointer in *from, and continues
 * on another stack. */
extern "C" void emulated_switch(void **from, void *to);
asm(R"(
    .text
    .globl emulated_switch
    .type emulated_switch,@function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size emulated_switch,.-emulated_switch
)");
#endif

#if defined(__SANITIZE_ADDRESS__)
/* The scheduler's stack, from which fibers are entered: AddressSanitizer must know each stack. */
static const void *scheduler_bottom;
static size_t scheduler_size;
#endif

static void go_to(Fiber *from, Fiber *to, bool from_ends)
{
    (void)from_ends;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(from_ends ? nullptr : &from->fake_stack,
                                   to == &scheduler ? scheduler_bottom : to->stack,
                                   to == &scheduler ? scheduler_size : STACK);
#endif
#ifdef __x86_64__
    emulated_switch(&from->top, to->top);
#else
    swapcontext(&from->context, &to->context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from->fake_stack, nullptr, nullptr);
#endif
}

static void run_threads();

static void fiber_main()
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_size);
#endif
    run_threads();
    running->ended = true;
    go_to(running, &scheduler, true);
    abort();
}

static void begin_fiber(Fiber *fiber)
{
    if (!fiber->stack)
        fiber->stack =
            static_cast<char *>(mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fiber->ended = false;
    fiber->waits_for = -1;
#ifdef __x86_64__
    void **top = reinterpret_cast<void **>(fiber->stack + STACK - 64);
    *--top = nullptr; /* fiber_main's return address, never used; it aligns the stack for calls */
    *--top = reinterpret_cast<void *>(fiber_main);
    top -= 6;
    std::memset(top, 0, 6 * sizeof *top);
    fiber->top = top;
#else
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK;
    makecontext(&fiber->context, fiber_main, 0);
#endif
}

/* ---- a block -------------------------------------------------------------------------------------------- */

struct Barrier {
    int arrived, generation;
    unsigned kind;
};

static int threads, next_thread, living, living_in_warp[MOST_THREADS / 32];
static Barrier block_barrier, warp_barrier[MOST_THREADS / 32];
static uint64_t lanes[MOST_THREADS];
static bool any_now;
static void *shared_memory;

void *emulated_shared_memory()
{
    return shared_memory;
}

uint64_t *emulated_lanes()
{
    return lanes + running->thread / 32 * 32;
}

static void open_if_all_are_there(Barrier *barrier, int expected)
{
    if (barrier->arrived == 0 || barrier->arrived < expected)
        return;
    barrier->arrived = 0;
    barrier->generation++;
}

static void set_place(int thread)
{
    const dim3 b = emulated_place.block;
    const unsigned n = static_cast<unsigned>(thread);
    emulated_place.at_thread = dim3(n % b.x, n / b.x % b.y, n / b.x / b.y);
}

void emulated_barrier(bool warp, unsigned kind)
{
    Fiber *fiber = running;
    const int thread = fiber->thread;
    Barrier *barrier = warp ? &warp_barrier[thread / 32] : &block_barrier;
    if (barrier->arrived > 0 && barrier->kind != kind)
        fail("threads of a warp wait at different shuffles");
    barrier->kind = kind;
    barrier->arrived++;
    fiber->waits_for = barrier->generation + 1;
    fiber->waits_in_warp = warp;
    open_if_all_are_there(barrier, warp ? living_in_warp[thread / 32] : living);
    if (barrier->generation < fiber->waits_for)
        go_to(fiber, &scheduler, false);
    fiber->waits_for = -1;
}

bool emulated_any(bool mine)
{
    any_now = any_now || mine;
    emulated_barrier(false, 1);
    const bool any = any_now;
    emulated_barrier(false, 2);
    any_now = false;
    emulated_barrier(false, 3); /* only then may a thread vote again */
    return any;
}

/* Runs threads that have not started, one after the other, until one waits; this fiber then belongs
 * to that thread. */
static void run_threads()
{
    while (next_thread < threads) {
        const int thread = next_thread++;
        running->thread = thread;
        set_place(thread);
        (*body)();
        const int warp = running->thread / 32;
        living--;
        living_in_warp[warp]--;
        open_if_all_are_there(&block_barrier, living);
        open_if_all_are_there(&warp_barrier[warp], living_in_warp[warp]);
    }
}

static bool can_go_on(const Fiber *fiber)
{
    const Barrier *barrier =
        fiber->waits_in_warp ? &warp_barrier[fiber->thread / 32] : &block_barrier;
    return !fiber->ended && barrier->generation >= fiber->waits_for;
}

static void resume(Fiber *fiber)
{
    running = fiber;
    set_place(fiber->thread);
    go_to(&scheduler, fiber, false);
}

static void run_block()
{
    living = threads;
    next_thread = 0;
    block_barrier = {};
    any_now = false;
    for (int w = 0; w < (threads + 31) / 32; w++) {
        warp_barrier[w] = {};
        living_in_warp[w] = threads - 32 * w < 32 ? threads - 32 * w : 32;
    }
    int used = 0;
    while (living > 0) {
        bool moved = next_thread < threads;
        if (moved) {
            begin_fiber(&fibers[used]);
            resume(&fibers[used++]);
        }
        for (int i = 0; i < used; i++)
            while (can_go_on(&fibers[i])) {
                resume(&fibers[i]);
                moved = true;
            }
        if (!moved)
            fail("threads wait at different barriers");
    }
}

void emulated_run(dim3 grid, dim3 block, size_t shared, const std::function<void()> &thread)
{
    threads = static_cast<int>(block.x * block.y * block.z);
    body = &thread;
    emulated_place.grid = grid;
    emulated_place.block = block;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                std::vector<unsigned char> memory(shared, 0xff);
                shared_memory = memory.data();
                emulated_place.at_block = dim3(x, y, z);
                run_block();
            }
}

/* Successful calls do not clear it. */
static thread_local cudaError_t last_error;

static cudaError_t kept(cudaError_t error)
{
    return last_error = error;
}

static int depth; /* of nested runs: work on one stream may wait for work on another */
static void run_all();

/* ---- memory --------------------------------------------------------------------------------------------- */

static const size_t GAP = 256;
static const size_t DEVICE_BYTES = static_cast<size_t>(emulated_setting("EMULATED_MEMORY", 1024))
                                   << 20; /* MiB */

static char *device_begin;
static std::map<char *, size_t> on_device, on_host;
static std::map<char *, size_t> device_holes;

static void protect(bool reached)
{
    if (device_begin && !on_device.empty())
        mprotect(device_begin, DEVICE_BYTES, reached ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static size_t with_gap(size_t bytes)
{
    return (bytes + GAP - 1) / GAP * GAP + GAP;
}

static void open_device()
{
    void *memory =
        mmap(nullptr, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("no address space for the device's memory");
    device_begin = static_cast<char *>(memory);
    device_holes[device_begin] = DEVICE_BYTES;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    if (!device_begin)
        open_device();
    const size_t needed = with_gap(bytes);
    for (auto hole = device_holes.begin(); hole != device_holes.end(); ++hole) {
        if (hole->second < needed)
            continue;
        char *begin = hole->first;
        const size_t rest = hole->second - needed;
        device_holes.erase(hole);
        if (rest)
            device_holes[begin + needed] = rest;
        on_device[begin] = bytes;
        protect(true);
        std::memset(begin, 0xff, bytes);
        protect(depth > 0);
        *memory = begin;
        return cudaSuccess;
    }
    return kept(cudaErrorMemoryAllocation);
}

cudaError_t cudaFree(void *memory)
{
    run_all();
    if (!memory)
        return cudaSuccess;
    auto found = on_device.find(static_cast<char *>(memory));
    if (found == on_device.end())
        fail("cudaFree of what is no memory of the device");
    auto hole = device_holes.emplace(found->first, with_gap(found->second)).first;
    on_device.erase(found);
    for (auto next = std::next(hole);
         next != device_holes.end() && hole->first + hole->second == next->first;
         next = device_holes.erase(next))
        hole->second += next->second;
    while (hole != device_holes.begin() &&
           std::prev(hole)->first + std::prev(hole)->second == hole->first) {
        auto before = std::prev(hole);
        before->second += hole->second;
        device_holes.erase(hole);
        hole = before;
    }
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned)
{
    static int pinned;
    if (++pinned > emulated_setting("EMULATED_PINNED", 1 << 30) ||
        posix_memalign(memory, 256, bytes ? bytes : 1) != 0)
        return kept(cudaErrorMemoryAllocation);
    std::memset(*memory, 0xff, bytes);
    on_host[static_cast<char *>(*memory)] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    run_all();
    if (memory && !on_host.erase(static_cast<char *>(memory)))
        fail("cudaFreeHost of what is no pinned memory");
    free(memory);
    return cudaSuccess;
}

static bool lies_in(const std::map<char *, size_t> &memory, const void *at)
{
    char *address = static_cast<char *>(const_cast<void *>(at));
    auto after = memory.upper_bound(address);
    return after != memory.begin() && address <= std::prev(after)->first + std::prev(after)->second;
}

void emulated_check_pointer(const void *memory)
{
    if (memory && !lies_in(on_device, memory) && !lies_in(on_host, memory))
        fail("a kernel is given memory of the host that it cannot reach");
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory)
{
    attributes->type = lies_in(on_device, memory) ? cudaMemoryTypeDevice
                       : lies_in(on_host, memory) ? cudaMemoryTypeHost
                                                  : cudaMemoryTypeUnregistered;
    attributes->hostPointer =
        attributes->type == cudaMemoryTypeDevice ? nullptr : const_cast<void *>(memory);
    return cudaSuccess;
}

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
    if (depth++ == 0)
        protect(true);
    while (stream->ended < position) {
        std::function<void()> work = std::move(stream->waiting.front());
        stream->waiting.pop_front();
        work();
        stream->ended++;
    }
    if (--depth == 0)
        protect(false);
}

static void run_all()
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

/* ---- limits, those of every GPU from compute capability 5.0 on ---- */

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
        fail("a block has 1 to 1024 threads");
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        fail("a grid has at least one block, and up to 65535 along y and z");
    if (shared > usual && shared > asked)
        fail("a kernel has 48 KiB of shared memory, or what cudaFuncSetAttribute was asked for");
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
    if (depth++ == 0)
        protect(true);
    work();
    if (--depth == 0)
        protect(false);
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

/* A query lets the stream run, unless another thread asks. "Not ready" is an error, and stays set
 * as one. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (std::this_thread::get_id() != main_thread)
        return stream->ended == stream->begun ? cudaSuccess : cudaErrorNotReady;
    static int queries; /* EMULATED_STUCK=n: from the n-th query on, nothing becomes ready */
    if (emulated_trouble("EMULATED_STUCK", ++queries))
        return kept(cudaErrorNotReady);
    const bool ready = stream_of(stream)->waiting.empty();
    cudaStreamSynchronize(stream);
    return ready ? cudaSuccess : kept(cudaErrorNotReady);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    static int made;
    if (++made > emulated_setting("EMULATED_EVENTS", 1 << 30))
        return kept(cudaErrorMemoryAllocation);
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
    if (lies_in(on_device, from) || lies_in(on_host, from)) {
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
    properties->totalGlobalMem = DEVICE_BYTES;
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

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    size_t held = 0;
    for (auto &block : on_device)
        held += with_gap(block.second);
    *total = DEVICE_BYTES;
    *available = DEVICE_BYTES - held;
    return cudaSuccess;
}
