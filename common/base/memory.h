/** @file
 * What tensors hold of this process's memory, and what is said where there is none for more: on the processor, on a GPU, below MEM.
 */
#pragma once

#include <stdint.h>

#include "base/cxx.h"

BEGIN_C

/** What a buffer's numbers are, in tables of memory and in refusals. */
typedef enum Category {
    WEIGHTS,     /**< parameters, and their copies in 16 bits */
    GRADIENTS,   /**< of parameters */
    OPTIMISER,   /**< what the optimiser keeps from step to step */
    ACTIVATIONS, /**< all that lives on a tape, gradients of values included */
    CATEGORIES,  /**< how many there are */
} Category;

/** Notes that tensors of a category hold so many bytes more, or less. */
void memory_holds(Category category, int64_t bytes);

/** Notes that of the weights so many bytes more, or less, are their copies in 16 bits, which AMP=off does without. */
void memory_holds_rounded(int64_t bytes);

/** Ends the run: says how much was asked for, what this process's tensors hold, and which settings would help.
 *  @param place what they do not fit in: "the 10 MB that MEM allows", "GPU 0 (..) with 1000 MB, 3 MB of them free"
 *  @param bytes how much was asked for
 *  @param category what it was asked for
 *  @param which which of that ("[8,16,24]", "kernels to work in"), or ""
 *  @param more another setting that would help, beginning with a comma, or "" */
_Noreturn void memory_refuse(const char *place, int64_t bytes, Category category, const char *which,
                             const char *more);

END_C
