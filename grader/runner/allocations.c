/* Tracks a lab's own memory: its size, its contents before the first write and after it is freed,
 * and writes past its end. Each block is longer than requested: after the lab's bytes come guard
 * bytes and, at the very end, the length. */
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/run.h"
#include "grader/labs/work.h"
#include "grader/runner/guard.h"
#include "grader/runner/recorder.h"

enum {
    ALLOWED = 256 << 20,    /* limit of a lab's own memory per rank; cases need kilobytes */
#ifdef __SANITIZE_ADDRESS__ /* the sanitizer checks instead, and needs the requested size */
    BEHIND = 0,
#else
    BEHIND = 16,
#endif
    SMALL = 128 << 10, /* so many bytes of a lab's layers do not count */
    FEW = 2 << 10,     /* and of its static variables */
    STACK = 64 << 10,  /* what the kit's functions and MPI may take of the stack */
    UNTOUCHED = 0xff,  /* numbers that are NaN */
    SIZE_BITS = 40     /* of a mark; the others are the case's number */
};
static const uint64_t secret = 0x6a09e667f3bcc908;

/* malloc gets no context. */
static struct {
    int64_t held, peak;
    int64_t kept;   /* bytes of layers */
    uint64_t cases; /* that have begun */
} memory;

static void must_fit(size_t bytes)
{
    if (bytes <= (size_t)(ALLOWED - memory.held))
        return;
    if (!recorder_active())
        abort();
    misuse("free what is no longer needed, or allocate less",
           "memory limit exceeded: %zu bytes were requested with %lld of %lld in use", bytes,
           (long long)memory.held, (long long)ALLOWED);
}

static int64_t beyond_small(int64_t bytes)
{
    return bytes > SMALL ? bytes - SMALL : 0;
}

/* Counts memory that lasts as long as the model. */
static void keeps(int64_t bytes)
{
    const int64_t more = beyond_small(memory.kept + bytes) - beyond_small(memory.kept);
    must_fit((size_t)more);
    memory.kept += bytes;
    memory.held += more;
}

/* The bytes of static variables that count. */
static int64_t static_bytes(void)
{
    extern char lab_variables[]; /* see grader/link-runner.sh */
    const int64_t variables = (int64_t)(uintptr_t)lab_variables;
    return variables > FEW ? variables - FEW : 0;
}

void guard_begin(void)
{
    memory.held = memory.peak = static_bytes();
    memory.kept = 0;
    memory.cases++;
}

/* From a block's size and case to its mark, and back. */
static uint64_t mark_of(const void *block, uint64_t size_and_case)
{
    return size_and_case ^ secret ^ (uint64_t)(uintptr_t)block;
}

static uint64_t in_this_case(size_t bytes)
{
    return (uint64_t)bytes | memory.cases << SIZE_BITS;
}

/* Registers a block for `bytes` and its guard, and fills it from offset `from` on. Returns the block. */
static void *registered(void *block, size_t bytes, size_t from)
{
    if (!block)
        return NULL;
    size_t all = malloc_usable_size(block);
    if (BEHIND > 0) {
        uint64_t mark = mark_of(block, in_this_case(bytes));
        memset((char *)block + from, UNTOUCHED, all - sizeof mark - from);
        memcpy((char *)block + all - sizeof mark, &mark, sizeof mark);
    } else {
        memset((char *)block + from, UNTOUCHED, all > from ? all - from : 0);
    }
    memory.held += (int64_t)all;
    if (memory.held > memory.peak)
        memory.peak = memory.held;
    if (recorder_active()) {
        void *line = callsite();
        if (!line) /* only labs call these functions */
            misuse("leave the code of functions, and what describes their frames, to the compiler",
                   "the stack does not show the lab's function that allocates memory");
        object_made(BLOCK_OF_MEMORY, block, line);
    }
    return block;
}

/* The requested size; the whole size if this file did not allocate the block. Sets `is_new` if the
 * block is of this case. */
static size_t asked_for(const void *block, bool *is_new)
{
    uint64_t mark;
    size_t all = malloc_usable_size((void *)block);
    *is_new = true;
    if (BEHIND == 0 || all < sizeof mark)
        return all;
    memcpy(&mark, (const char *)block + all - sizeof mark, sizeof mark);
    const uint64_t size_and_case = mark_of(block, mark),
                   bytes = size_and_case & ((UINT64_C(1) << SIZE_BITS) - 1);
    *is_new = size_and_case == in_this_case(bytes);
    return bytes <= all - sizeof mark ? bytes : all;
}

static void must_be_within(const unsigned char *block, size_t bytes, size_t all)
{
    for (size_t i = bytes; bytes < all && i < all - sizeof(uint64_t); i++)
        if (block[i] != UNTOUCHED && recorder_active())
            misuse("make grade with SAN=1 names the line that does it",
                   "wrote past a %zu-byte allocation (detected when it was freed)", bytes);
}

static void given_back(void *block)
{
    if (!block)
        return;
    bool is_new;
    size_t all = malloc_usable_size(block), bytes = asked_for(block, &is_new);
    must_be_within(block, bytes, all);
    memory.held -= is_new ? (int64_t)all : 0; /* others are an earlier case's or the C library's */
    if (memory.held < 0)                      /* with sanitizers, blocks have no mark */
        memory.held = 0;
    object_freed(BLOCK_OF_MEMORY, block);
}

/* What a lab calls as malloc(), free() and so on. A lab's own memory holds NaN before it is written
 * and after it is freed; freeing a block with a write past its end ends the case. */
GRADED(void *, malloc, size_t bytes)
{
    must_fit(bytes);
    return registered(malloc(bytes + BEHIND), bytes, 0);
}

GRADED(void *, calloc, size_t count, size_t size)
{
    size_t bytes = size && count > SIZE_MAX / size ? SIZE_MAX : count * size;
    must_fit(bytes);
    return registered(calloc(1, bytes + BEHIND), bytes, bytes);
}

/* Fills a block, so that a later read finds no numbers, and frees it. What looks freed is not filled, so
 * that the C library recognises it by what it has written to its first words, and says so. */
static void fill_and_free(void *block)
{
    enum { OF_LIBRARY = 16 };
    const size_t all = block && BEHIND > 0 ? malloc_usable_size(block) : 0;
    size_t i = OF_LIBRARY;
    while (i < all && ((unsigned char *)block)[i] == UNTOUCHED)
        i++;
    if (i < all)
        memset(block, UNTOUCHED, all);
    __asm__ volatile("" : : "r"(block) : "memory"); /* compilers leave out writes before free() */
    free(block);
}

/* The block always moves, so that a pointer to the old one is found. */
GRADED(void *, realloc, void *block, size_t bytes)
{
    if (block && bytes == 0) { /* as in glibc */
        given_back(block);
        fill_and_free(block);
        return NULL;
    }
    must_fit(bytes);
    bool is_new;
    const size_t before = block ? asked_for(block, &is_new) : 0,
                 kept = before < bytes ? before : bytes;
    void *moved = malloc(bytes + BEHIND);
    given_back(block);
    if (moved && kept)
        memcpy(moved, block, kept);
    fill_and_free(block);
    return registered(moved, bytes, kept);
}

GRADED(void *, reallocarray, void *block, size_t count, size_t size)
{
    return graded_realloc(block, size && count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

GRADED(void *, aligned_alloc, size_t alignment, size_t bytes)
{
    must_fit(bytes);
    return registered(memalign(alignment, bytes + BEHIND), bytes, 0);
}

GRADED(void *, memalign, size_t alignment, size_t bytes)
{
    return graded_aligned_alloc(alignment, bytes);
}

GRADED(void *, valloc, size_t bytes)
{
    return graded_aligned_alloc(4096, bytes);
}

GRADED(int, posix_memalign, void **block, size_t alignment, size_t bytes)
{
    must_fit(bytes);
    int result = posix_memalign(block, alignment, bytes + BEHIND);
    if (result == 0)
        registered(*block, bytes, 0);
    return result;
}

GRADED(char *, strndup, const char *text, size_t most)
{
    size_t length = strnlen(text, most);
    char *copy = graded_malloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

#define PRINTS(format_at, arguments_at) __attribute__((format(printf, format_at, arguments_at)))

GRADED(char *, strdup, const char *text)
{
    return graded_strndup(text, PTRDIFF_MAX);
}

PRINTS(2, 0)
GRADED(int, vasprintf, char **out, const char *format, va_list args)
{
    char *text;
    int length = vasprintf(&text, format, args);
    if (length < 0)
        return length;
    *out = graded_strndup(text, (size_t)length);
    free(text);
    return length;
}

PRINTS(2, 3)
GRADED(int, asprintf, char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = graded_vasprintf(out, format, args);
    va_end(args);
    return length;
}

/* With _FORTIFY_SOURCE, headers call these instead. */
PRINTS(3, 0)
GRADED(int, __vasprintf_chk, char **out, int flag, const char *format, va_list args)
{
    return graded_vasprintf(out, format, args);
}

PRINTS(3, 4)
GRADED(int, __asprintf_chk, char **out, int flag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = graded_vasprintf(out, format, args);
    va_end(args);
    return length;
}

GRADED(void, free, void *block)
{
    given_back(block);
    fill_and_free(block);
}

/* The memory of a layer is the model's, which frees it. */
GRADED(void *, new_layer, Builder *b, int64_t bytes)
{
    void *layer = new_layer(b, bytes);
    keeps(bytes);
    return layer;
}

/* ---- a lab's work outside the kit's functions: its own memory, and raw numbers -------------------------------------------- */

/* tensor_data() gets no context. */
static OwnWork own;

/* The pages of the stack below a frame, in pieces: those that a deeper call has touched stay
 * resident. Returns the lowest such page; with `drop`, drops them all. */
static char *lowest_touched(char *frame, bool drop)
{
    enum { PAGE = 4096, PIECE = 16 };
    unsigned char resident[PIECE];
    char *top = frame - (uintptr_t)frame % PAGE - PAGE, *lowest = top;
    for (char *piece = top - PIECE * PAGE; mincore(piece, sizeof resident * PAGE, resident) == 0;
         piece -= PIECE * PAGE) {
        for (int i = PIECE - 1; i >= 0; i--)
            lowest = resident[i] & 1 ? piece + (ptrdiff_t)i * PAGE : lowest;
        if (drop)
            madvise(piece, sizeof resident * PAGE, MADV_DONTNEED);
    }
    return lowest;
}

void own_work_begin(void)
{
    own = (OwnWork){0};
    memory.peak = memory.held;
    if (BEHIND > 0)
        lowest_touched(__builtin_frame_address(0), true);
}

OwnWork own_work(void)
{
    char *frame = __builtin_frame_address(0);
    const int64_t stack = BEHIND > 0 ? frame - lowest_touched(frame, false) : 0;
    const int64_t changed = objects_changed();
    own.earlier = static_bytes() + changed;
    own.bytes = memory.peak + changed + (stack > STACK ? stack : 0);
    return own;
}

float *__real_tensor_data(Tensor *x);
float *__wrap_tensor_data(Tensor *x);

float *__wrap_tensor_data(Tensor *x)
{
    if (own.looks++ == 0)
        own.address = callsite();
    return __real_tensor_data(x);
}
