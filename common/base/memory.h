/** @file
 * Counts the memory that this process's tensors hold, and prints the error when no more is
 * available: in RAM, on a GPU, or within the limit MEM.
 */
#pragma once

#include <stdint.h>

#include "base/cxx.h"

BEGIN_C

/** What a buffer is used for, as tables of memory and errors show it. */
typedef enum Category {
    WEIGHTS,     /**< parameters, and their copies in 16 bits */
    GRADIENTS,   /**< of parameters */
    OPTIMISER,   /**< the optimiser's state */
    ACTIVATIONS, /**< everything on a tape, gradients of values included */
    CATEGORIES,  /**< the number of categories */
} Category;

/** The memory of this process's tensors, in bytes. */
typedef struct MemoryUse {
    int64_t now[CATEGORIES];  /**< in use */
    int64_t total;            /**< in use, of all categories */
    int64_t peak[CATEGORIES]; /**< in use at the moment of the highest total */
    int64_t peak_total;       /**< the highest total */
} MemoryUse;

/** Adds `bytes`, which may be negative, to the memory that a category's tensors hold. No tensor
 *  leads to these counts: a lab that is graded cannot reach them from its inputs. */
void memory_holds(Category category, int64_t bytes);
/** The bytes in use, and the peaks since memory_begin_peak() or the start. */
MemoryUse memory_use(void);
/** Begins all counts at 0. */
void memory_begin(void);
/** Measures peaks anew, beginning with the bytes now in use. */
void memory_begin_peak(void);

/** Adds `bytes`, which may be negative, to the memory of the weights' copies in 16 bits, which
 * AMP=off does not need. */
void memory_holds_rounded(int64_t bytes);

/** Ends the run with an error: how much was requested, what this process's tensors hold, and which
 *  settings would help.
 *  @param place where it does not fit: "the 10 MB that MEM allows", "GPU 0 (..) with 1000 MB, 3 MB
 *  of it free"
 *  @param bytes the size of the request
 *  @param category its category
 *  @param which what the memory was for ("[8,16,24]", "workspace for kernels"), or ""
 *  @param more another setting that would help, after a comma, or "" */
_Noreturn void memory_refuse(const char *place, int64_t bytes, Category category, const char *which,
                             const char *more);

END_C
