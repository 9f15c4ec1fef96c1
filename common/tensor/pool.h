/** @file
 * The memory of tensors. A pool hands out reference-counted buffers and keeps released ones for the
 * next request of the same size: a training step repeats the sizes of the previous step, so only
 * the first step allocates. The pool counts bytes by category and enforces a limit.
 */
#pragma once

#include "backend/backend.h"
#include "balise.h"
#include "base/memory.h"

/** Free buffers by size, the bytes held, and the limit. Usually one per process. Not
 *  thread-safe. */
typedef struct Pool Pool;

/** A reference-counted piece of a pool's memory. */
typedef struct Buffer {
    void *data;          /**< 64-byte aligned */
    int64_t bytes;       /**< of `data`, a multiple of 64 */
    int64_t asked;       /**< the bytes requested */
    int references;      /**< at 0, the buffer returns to the pool */
    Category category;   /**< its use */
    MemoryKind kind;     /**< a GPU's memory or the host's */
    Pool *pool;          /**< the pool that owns it */
    struct Buffer *next; /**< in the pool's list of free buffers */
} Buffer;

/** Makes an empty pool. The caller frees it with pool_free().
 *  @param limit bytes, 0 for none
 *  @param is_watched for grading and tests: the host can access every buffer; each buffer that is
 *         handed out is filled with NaN, which reveals reads of unset memory, and lies between
 *         guards, which reveal writes outside it. A process that makes one has no other pool: the
 *         counts of memory begin with it */
Pool *pool_new(int64_t limit, bool is_watched);
/** Frees the pool and its free buffers. None of its buffers may be in use. */
void pool_free(Pool *pool);
/** Returns the requested size of a watched buffer with a damaged guard: something was written
 *  before or after its bytes. Returns 0 if there is none. */
int64_t pool_damaged(void);
/** Is the address in a watched buffer that is in use? */
bool pool_has_lent(const void *address);
/** The number of allocations from the system. memory_use() has the bytes in use. */
int64_t pool_allocations(const Pool *pool);

/** Returns an uninitialised buffer with one reference. If the pool's limit or the machine's memory
 * does not suffice, ends the run and reports the request and the bytes in use. */
Buffer *pool_get(Pool *pool, int64_t bytes, Category category);

/** The same for an activation; the error then shows its shape. */
Buffer *pool_get_shaped(Pool *pool, int64_t bytes, Shape shape);

/** The same for a buffer that the host writes or reads. Call backend_wait() before the host writes:
 *  kernels called earlier may still be reading the buffer's previous contents. */
Buffer *pool_get_for_host(Pool *pool, int64_t bytes, Shape shape);

Buffer *buffer_hold(Buffer *buffer); /**< adds a reference; returns its argument */
void buffer_release(Buffer *buffer); /**< removes a reference; NULL is allowed */
