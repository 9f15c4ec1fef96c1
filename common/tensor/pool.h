/** @file
 * The memory of tensors. A pool hands out buffers with a reference count and keeps what is released for the
 * next request of the same size: a training step repeats the sizes of the step before, so that nothing is
 * allocated after the first. It counts bytes by what they hold, and refuses to exceed a limit.
 */
#pragma once

#include "backend/backend.h"
#include "balise.h"
#include "base/memory.h"

/** Free buffers by size, what is held, and the limit. One a process, as a rule; not for several threads. */
typedef struct Pool Pool;

/** A piece of a pool's memory, with a count of those who hold it. */
typedef struct Buffer {
    void *data;          /**< 64-byte aligned */
    int64_t bytes;       /**< of `data`, a multiple of 64 */
    int64_t asked;       /**< how many of them were asked for */
    int references;      /**< at 0 it goes back to the pool */
    Category category;   /**< what it was asked for */
    MemoryKind kind;     /**< a GPU's memory or the host's */
    Pool *pool;          /**< whose it is */
    struct Buffer *next; /**< in the pool's list of free buffers, or of those that it watches */
} Buffer;

/** What a pool has counted, in bytes. */
typedef struct PoolUse {
    int64_t now[CATEGORIES];  /**< bytes in buffers that somebody holds */
    int64_t peak[CATEGORIES]; /**< of each category, at the moment of the highest total */
    int64_t peak_total;       /**< the highest total of held bytes */
    int64_t allocations;      /**< how often memory was taken from the system */
} PoolUse;

/** An empty pool; the caller's, to be freed with pool_free().
 *  @param limit bytes, 0 for none
 *  @param watched somebody looks at all numbers (grading, tests): the host reaches every buffer, and each that is handed out is
 *         filled with NaN, so that unset memory is seen, and stands between guards */
Pool *pool_new(int64_t limit, bool watched);
/** Frees the pool and its free buffers. No buffer of it may be held any more. */
void pool_free(Pool *pool);
/** Was anything written before or behind a buffer of a watched pool? The bytes of that buffer then, or else 0. */
int64_t pool_damaged(Pool *pool);
/** What it holds now, and the peaks since pool_begin_peak() or its beginning. */
PoolUse pool_use(const Pool *pool);

/** From now on the peaks are those of what is held now and of what comes. */
void pool_begin_peak(Pool *pool);

/** A buffer with one reference, its contents unset. Ends the run with what is held and what was asked for
 * when the pool's limit or the machine's memory does not suffice. */
Buffer *pool_get(Pool *pool, int64_t bytes, Category category);

/** The same for an activation, whose shape is told where there is no memory for it. */
Buffer *pool_get_shaped(Pool *pool, int64_t bytes, Shape shape);

/** And for one that the host writes or reads. Kernels that were called before may still read what it held last. */
Buffer *pool_get_for_host(Pool *pool, int64_t bytes, Shape shape);

Buffer *buffer_hold(Buffer *buffer); /**< one reference more; returns its argument */
void buffer_release(Buffer *buffer); /**< one less; the last gives it back. NULL is allowed. */
