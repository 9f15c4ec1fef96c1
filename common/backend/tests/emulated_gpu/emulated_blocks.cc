/* The threads of a block run on fibers: one after the other on the same fiber, until one waits at a
 * barrier; the others then run on the next fiber. */
#include "emulated_parts.h"

#include <vector>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

EmulatedPlace emulated_place;

[[noreturn]] void emulated_fail(const char *what)
{
    const dim3 b = emulated_place.at_block, t = emulated_place.at_thread;
    fprintf(stderr, "emulated GPU: %s (block %u,%u,%u, thread %u,%u,%u)\n", what, b.x, b.y, b.z,
            t.x, t.y, t.z);
    abort();
}

/* ---- fibers --------------------------------------------------------------------------------------------- */

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
        emulated_fail("threads of a warp wait at different shuffles");
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
            emulated_fail("threads wait at different barriers");
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
