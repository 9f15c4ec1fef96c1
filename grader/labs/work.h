/** @file
 * What a rank multiplies and holds while a layer works. Counted below the operations, in the kernels that they call: the
 * programs of the grader are linked with these kernels wrapped (COUNTED_KERNELS in the Makefile), so that training
 * pays nothing for it. What a lab computes in loops of its own is not seen here.
 */
#pragma once

#include <stdint.h>

/** The numbers of a WORK entry. Those that are held are counted in numbers of the program's precision. */
enum {
    LINEAR_WORK,     /**< multiply-adds of linear layers */
    ATTENTION_WORK,  /**< of attention scores and of the sums that they weight */
    PARAMETERS_HELD, /**< weights and their gradients */
    TAKEN,           /**< the most that the pass took at a time, beside what was held before */
    OWN_MEMORY,      /**< the most that the lab had of memory of its own */
    RAW_LOOKS,       /**< how often the lab asked for tensor_data() */
    WORK_NUMBERS     /**< how many there are */
};

/** What a lab does beside the operations. */
typedef struct OwnWork {
    int64_t bytes; /**< the most that it had of memory of its own */
    int64_t looks; /**< how often it called tensor_data() */
    void *address; /**< where it did so first */
} OwnWork;

/** Provided by the program: the runner counts from own_work_begin() on, the judge has no lab to look at. */
void own_work_begin(void);
/** What the lab has done beside the operations since then. */
OwnWork own_work(void);
