/* Hands out buffers, and keeps released ones by size. */
#include "tensor/pool.h"

#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "tensor/tensor.h"

enum { ALIGNMENT = 64, GUARD = 64 }; /* bytes; a watched buffer has a guard on both sides */

typedef struct SizeClass {
    int64_t bytes;
    MemoryKind kind;
    Buffer *free;
    struct SizeClass *next;
} SizeClass;

struct Pool {
    int64_t limit, reserved; /* bytes: the limit or 0, those allocated */
    int64_t allocations;
    SizeClass *classes;
};

/* What a watched pool has handed out. A lab that is graded reaches its tensors' buffers and their
 * pool, but not this list. */
static struct {
    bool on;
    int64_t damaged; /* requested size of a buffer with a damaged guard, or 0 */
    int64_t lent, room;
    struct Lent {
        Buffer *buffer;
        Buffer whole; /* as it was handed out */
    } * list;
} watched;

static int64_t guard_size(void)
{
    return watched.on ? GUARD : 0;
}

Pool *pool_new(int64_t limit, bool is_watched)
{
    Pool *pool = calloc(1, sizeof *pool);
    pool->limit = limit;
    if (is_watched)
        memory_begin();
    watched.on = is_watched;
    watched.damaged = watched.lent = 0;
    return pool;
}

static void drop_free_buffers(Pool *pool)
{
    backend_wait(); /* kernels may still use released buffers */
    for (SizeClass *class = pool->classes; class; class = class->next)
        while (class->free) {
            Buffer *buffer = class->free;
            class->free = buffer->next;
            pool->reserved -= buffer->bytes;
            backend_memory_free((char *)buffer->data - guard_size(), buffer->kind);
            free(buffer);
        }
}

void pool_free(Pool *pool)
{
    drop_free_buffers(pool);
    while (pool->classes) {
        SizeClass *class = pool->classes;
        pool->classes = class->next;
        free(class);
    }
    free(pool);
}

int64_t pool_allocations(const Pool *pool)
{
    return pool->allocations;
}

static SizeClass *class_of(Pool *pool, int64_t bytes, MemoryKind kind)
{
    SizeClass **link = &pool->classes;
    while (*link && ((*link)->bytes < bytes || ((*link)->bytes == bytes && (*link)->kind < kind)))
        link = &(*link)->next;
    if (!*link || (*link)->bytes != bytes || (*link)->kind != kind) {
        SizeClass *class = calloc(1, sizeof *class);
        *class = (SizeClass){bytes, kind, NULL, *link};
        *link = class;
    }
    return *link;
}

/* A request for a buffer. For an activation, messages show its shape. */
typedef struct Need {
    int64_t bytes;
    Category category;
    MemoryKind kind;
    const Shape *shape;
} Need;

static _Noreturn void refuse_in_case(const Pool *pool, const Need *need)
{
    misuse("a case takes a few megabytes: does the loop that makes tensors or parameters end where "
           "it should?",
           "this rank's tensors do not fit in the %.0f MB that a case may take: %.0f MB more were "
           "requested",
           (double)pool->limit / 1e6, (double)need->bytes / 1e6);
}

static _Noreturn void refuse(const Pool *pool, const Need *need, bool by_limit)
{
    char limit[64], shape[64];
    if (by_limit && watched.on)
        refuse_in_case(pool, need);
    if (by_limit)
        snprintf(limit, sizeof limit, _("the %.*f MB that MEM allows"),
                 pool->limit < 1000000 ? 3 : 0, (double)pool->limit / 1e6);
    memory_refuse(by_limit ? limit : backend_memory_place(need->kind), need->bytes, need->category,
                  need->shape ? shape_text(*need->shape, shape) : "",
                  by_limit ? _(", or raise MEM") : "");
}

static bool is_over_limit(const Pool *pool, const Need *need)
{
    return pool->limit && pool->reserved + need->bytes > pool->limit;
}

/* Allocates a buffer. If there is not enough memory, returns free buffers of other sizes to the
 * system and tries again. */
static Buffer *take_from_system(Pool *pool, const Need *need)
{
    if (is_over_limit(pool, need))
        drop_free_buffers(pool);
    if (is_over_limit(pool, need))
        refuse(pool, need, true);
    const int64_t guard = guard_size(), all = need->bytes + 2 * guard;
    char *data = backend_memory(all, need->kind);
    if (!data) {
        drop_free_buffers(pool);
        data = backend_memory(all, need->kind);
    }
    if (!data)
        refuse(pool, need, false);
    Buffer *buffer = calloc(1, sizeof *buffer);
    buffer->data = data + guard;
    buffer->bytes = need->bytes;
    buffer->kind = need->kind;
    buffer->pool = pool;
    pool->reserved += need->bytes;
    pool->allocations++;
    return buffer;
}

/* ---- guards: before a watched buffer, and after the requested bytes ------------------------------------------- */

/* A signalling NaN that depends on the address. So the pool detects even a write of what was read
 * from a guard: arithmetic turns it into a quiet NaN, and a guard word copied from another address
 * differs. */
static uint32_t guard_word(const uint32_t *place)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)place * UINT64_C(0x9E3779B97F4A7C15);
    return 0x7f800001u | (uint32_t)(mixed >> 42);
}

/* Are the guard words from `first` to `end` unchanged? If `write`, writes them first. */
__attribute__((no_sanitize("address"))) static bool
words_are_guards(uint32_t *first, const uint32_t *end, bool write)
{
    bool good = true;
    for (; first < end; first++) {
        if (write)
            *first = guard_word(first);
        good = good && *first == guard_word(first);
    }
    return good;
}

static bool guards(const Buffer *buffer, bool write)
{
    char *data = buffer->data;
    bool before = words_are_guards((uint32_t *)(data - GUARD), (uint32_t *)data, write);
    return words_are_guards((uint32_t *)(data + (buffer->asked + 3) / 4 * 4),
                            (uint32_t *)(data + buffer->bytes + GUARD), write) &&
           before;
}

static void watch(Buffer *buffer)
{
    ASAN_UNPOISON_MEMORY_REGION(buffer->data, (size_t)buffer->bytes);
    /* all bits set is NaN, in single and in double precision */
    backend_set_bytes(buffer->data, 0xff, buffer->asked);
    backend_wait(); /* kernels called by the last holder may still write to it */
    guards(buffer, true);
    ASAN_POISON_MEMORY_REGION((char *)buffer->data - GUARD, GUARD);
    ASAN_POISON_MEMORY_REGION((char *)buffer->data + buffer->asked,
                              (size_t)(buffer->bytes - buffer->asked + GUARD));
    if (watched.lent == watched.room) {
        watched.room = 2 * watched.room + 64;
        watched.list = realloc(watched.list, (size_t)watched.room * sizeof *watched.list);
    }
    watched.list[watched.lent++] = (struct Lent){buffer, *buffer};
}

/* Restores what the holder has changed in the buffer, so that the counts are right. */
static void watch_no_more(Buffer *buffer)
{
    int64_t i = watched.lent - 1;
    while (i >= 0 && watched.list[i].buffer != buffer)
        i--;
    if (i < 0)
        misuse("use the functions of balise.h: they alone change what is inside a tensor",
               "the memory of a tensor was released twice");
    *buffer = watched.list[i].whole;
    watched.list[i] = watched.list[--watched.lent];
    if (!guards(buffer, false))
        watched.damaged = buffer->asked;
}

int64_t pool_damaged(void)
{
    for (int64_t i = 0; i < watched.lent && !watched.damaged; i++)
        if (!guards(&watched.list[i].whole, false))
            watched.damaged = watched.list[i].whole.asked;
    return watched.damaged;
}

bool pool_has_lent(const void *address)
{
    for (int64_t i = 0; i < watched.lent; i++) {
        const Buffer *buffer = &watched.list[i].whole;
        if ((uintptr_t)address - (uintptr_t)buffer->data < (uintptr_t)buffer->asked)
            return true;
    }
    return false;
}

static Buffer *get(Pool *pool, Need need)
{
    const int64_t asked = need.bytes;
    need.bytes = (need.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    SizeClass *class = class_of(pool, need.bytes, need.kind);
    Buffer *buffer = class->free;
    if (buffer)
        class->free = buffer->next;
    else
        buffer = take_from_system(pool, &need);
    buffer->references = 1;
    buffer->category = need.category;
    memory_holds(need.category, need.bytes);
    buffer->asked = asked;
    if (watched.on)
        watch(buffer);
    return buffer;
}

static MemoryKind usual_kind(void)
{
    return watched.on ? HOST_MEMORY : DEVICE_MEMORY;
}

Buffer *pool_get(Pool *pool, int64_t bytes, Category category)
{
    return get(pool, (Need){bytes, category, usual_kind(), NULL});
}

Buffer *pool_get_shaped(Pool *pool, int64_t bytes, Shape shape)
{
    return get(pool, (Need){bytes, ACTIVATIONS, usual_kind(), &shape});
}

Buffer *pool_get_for_host(Pool *pool, int64_t bytes, Shape shape)
{
    return get(pool, (Need){bytes, ACTIVATIONS, HOST_MEMORY, &shape});
}

Buffer *buffer_hold(Buffer *buffer)
{
    buffer->references++;
    return buffer;
}

void buffer_release(Buffer *buffer)
{
    if (!buffer || --buffer->references > 0)
        return;
    if (watched.on)
        watch_no_more(buffer);
    memory_holds(buffer->category, -buffer->bytes);
    SizeClass *class = class_of(buffer->pool, buffer->bytes, buffer->kind);
    buffer->next = class->free;
    class->free = buffer;
}
