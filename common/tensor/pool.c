#include "tensor/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/run.h"

enum { ALIGNMENT = 64 };

typedef struct SizeClass {
    int64_t bytes;
    MemoryKind kind;
    Buffer *free;
    struct SizeClass *next;
} SizeClass;

struct Pool {
    int64_t limit, held, reserved; /* held by tensors; taken from the system */
    bool watched;
    SizeClass *classes;
    PoolUse use;
};

Pool *pool_new(int64_t limit, bool watched)
{
    Pool *pool = calloc(1, sizeof *pool);
    pool->limit = limit;
    pool->watched = watched;
    return pool;
}

static void drop_free_buffers(Pool *pool)
{
    backend_wait(); /* kernels may still be at work on what was released */
    for (SizeClass *class = pool->classes; class; class = class->next)
        while (class->free) {
            Buffer *buffer = class->free;
            class->free = buffer->next;
            pool->reserved -= buffer->bytes;
            backend_memory_free(buffer->data, buffer->kind);
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

static _Noreturn void refuse(const Pool *pool, int64_t bytes, Category category)
{
    static const char *const names[] = {"weights", "gradients", "optimiser state", "activations"};
    const double mb = 1e6;
    const int64_t *now = pool->use.now;
    char cap[64] = "what this machine has";
    if (pool->limit)
        snprintf(cap, sizeof cap, "the %.0f MB that MEM allows", (double)pool->limit / mb);
    misuse("split the model over more ranks (TP), take a smaller BATCH_SIZE or SEQ, or raise MEM",
           "this rank's tensors do not fit in %s: %.0f MB more were asked for (%s) beside weights %.0f MB, "
           "gradients %.0f MB, optimiser state %.0f MB, activations %.0f MB",
           cap, (double)bytes / mb, names[category], (double)now[WEIGHTS] / mb, (double)now[GRADIENTS] / mb,
           (double)now[OPTIMISER] / mb, (double)now[ACTIVATIONS] / mb);
}

static Buffer *take_from_system(Pool *pool, int64_t bytes, Category category, MemoryKind kind)
{
    if (pool->limit && pool->reserved + bytes > pool->limit)
        drop_free_buffers(pool);
    if (pool->limit && pool->reserved + bytes > pool->limit)
        refuse(pool, bytes, category);
    Buffer *buffer = calloc(1, sizeof *buffer);
    buffer->data = backend_memory(bytes, kind);
    if (!buffer->data) {
        free(buffer);
        refuse(pool, bytes, category);
    }
    buffer->bytes = bytes;
    buffer->kind = kind;
    buffer->pool = pool;
    pool->reserved += bytes;
    pool->use.allocations++;
    return buffer;
}

static void count(Pool *pool, Category category, int64_t bytes)
{
    PoolUse *use = &pool->use;
    use->now[category] += bytes;
    pool->held += bytes;
    if (pool->held > use->peak_total) {
        use->peak_total = pool->held;
        memcpy(use->peak, use->now, sizeof use->peak);
    }
}

static Buffer *get(Pool *pool, int64_t bytes, Category category, MemoryKind kind)
{
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    SizeClass *class = class_of(pool, bytes, kind);
    Buffer *buffer = class->free;
    if (buffer)
        class->free = buffer->next;
    else
        buffer = take_from_system(pool, bytes, category, kind);
    buffer->references = 1;
    buffer->category = category;
    count(pool, category, bytes);
    if (pool->watched) /* all bits set is a NaN, in single and in double precision */
        backend_set_bytes(buffer->data, 0xff, bytes);
    return buffer;
}

Buffer *pool_get(Pool *pool, int64_t bytes, Category category)
{
    return get(pool, bytes, category, pool->watched ? HOST_MEMORY : DEVICE_MEMORY);
}

Buffer *pool_get_for_host(Pool *pool, int64_t bytes, Category category)
{
    return get(pool, bytes, category, HOST_MEMORY);
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
    SizeClass *class = class_of(pool, buffer->bytes, buffer->kind);
    buffer->next = class->free;
    class->free = buffer;
}
