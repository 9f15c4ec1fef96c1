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
    int64_t limit, held, reserved; /* bytes: the limit or 0, those in use, those allocated */
    bool watched;
    int64_t damaged; /* requested size of a buffer with a damaged guard, or 0 */
    Buffer *lent;    /* of a watched pool: the buffers in use */
    SizeClass *classes;
    PoolUse use;
};

static int64_t guard_of(const Pool *pool)
{
    return pool->watched ? GUARD : 0;
}

Pool *pool_new(int64_t limit, bool watched)
{
    Pool *pool = calloc(1, sizeof *pool);
    pool->limit = limit;
    pool->watched = watched;
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
            backend_memory_free((char *)buffer->data - guard_of(pool), buffer->kind);
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

PoolUse pool_use(const Pool *pool)
{
    return pool->use;
}

void pool_begin_peak(Pool *pool)
{
    pool->use.peak_total = pool->held;
    memcpy(pool->use.peak, pool->use.now, sizeof pool->use.peak);
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
    if (by_limit && pool->watched)
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
    const int64_t guard = guard_of(pool), all = need->bytes + 2 * guard;
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
    pool->use.allocations++;
    return buffer;
}

static void count(Pool *pool, Category category, int64_t bytes)
{
    PoolUse *use = &pool->use;
    use->now[category] += bytes;
    memory_holds(category, bytes);
    pool->held += bytes;
    if (pool->held > use->peak_total) {
        use->peak_total = pool->held;
        memcpy(use->peak, use->now, sizeof use->peak);
    }
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

static void watch(Pool *pool, Buffer *buffer)
{
    ASAN_UNPOISON_MEMORY_REGION(buffer->data, (size_t)buffer->bytes);
    /* all bits set is NaN, in single and in double precision */
    backend_set_bytes(buffer->data, 0xff, buffer->asked);
    backend_wait(); /* kernels called by the last holder may still write to it */
    guards(buffer, true);
    ASAN_POISON_MEMORY_REGION((char *)buffer->data - GUARD, GUARD);
    ASAN_POISON_MEMORY_REGION((char *)buffer->data + buffer->asked,
                              (size_t)(buffer->bytes - buffer->asked + GUARD));
    buffer->next = pool->lent;
    pool->lent = buffer;
}

static void watch_no_more(Pool *pool, Buffer *buffer)
{
    Buffer **link = &pool->lent;
    while (*link != buffer)
        link = &(*link)->next;
    *link = buffer->next;
    if (!guards(buffer, false))
        pool->damaged = buffer->asked;
}

int64_t pool_damaged(Pool *pool)
{
    for (const Buffer *buffer = pool->lent; buffer && !pool->damaged; buffer = buffer->next)
        if (!guards(buffer, false))
            pool->damaged = buffer->asked;
    return pool->damaged;
}

bool pool_has_lent(const Pool *pool, const void *address)
{
    const Buffer *buffer = pool->lent;
    while (buffer && (uintptr_t)address - (uintptr_t)buffer->data >= (uintptr_t)buffer->asked)
        buffer = buffer->next;
    return buffer;
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
    count(pool, need.category, need.bytes);
    buffer->asked = asked;
    if (pool->watched)
        watch(pool, buffer);
    return buffer;
}

static MemoryKind usual_kind(const Pool *pool)
{
    return pool->watched ? HOST_MEMORY : DEVICE_MEMORY;
}

Buffer *pool_get(Pool *pool, int64_t bytes, Category category)
{
    return get(pool, (Need){bytes, category, usual_kind(pool), NULL});
}

Buffer *pool_get_shaped(Pool *pool, int64_t bytes, Shape shape)
{
    return get(pool, (Need){bytes, ACTIVATIONS, usual_kind(pool), &shape});
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
    Pool *pool = buffer->pool;
    count(pool, buffer->category, -buffer->bytes);
    if (pool->watched)
        watch_no_more(pool, buffer);
    SizeClass *class = class_of(pool, buffer->bytes, buffer->kind);
    buffer->next = class->free;
    class->free = buffer;
}
