/** @file
 * Measures what a rank multiplies and holds while a layer works. It counts below the operations, in
 * their kernels. Only the grader's programs are linked with these kernels wrapped (COUNTED_KERNELS
 * in grader/grader.mk), so training pays nothing. A lab's own loops are not counted.
 */
#pragma once

#include <stdint.h>

/** The numbers of a WORK entry. Memory is counted in numbers of the program's precision. */
enum {
    LINEAR_WORK,     /**< multiply-adds of linear layers */
    ATTENTION_WORK,  /**< of attention scores and of the weighted sums of values */
    PARAMETERS_HELD, /**< weights and their gradients */
    TAKEN,           /**< the pass's peak, beyond what was held before */
    OWN_MEMORY,      /**< the lab's own peak */
    EARLIER_MEMORY,  /**< of these: what was there before the case */
    KEPT,            /**< held at the end of the pass, beyond what was held before */
    DRAWN,           /**< the elements for which dropout has drawn whether to keep them */
    RAW_LOOKS,       /**< number of tensor_data() calls by the lab */
    WORK_NUMBERS     /**< how many there are */
};

/** What this rank has multiplied since work_begin(), linear layers and attention together. */
int64_t work_so_far(void);

/** A lab's own work besides the operations. */
typedef struct OwnWork {
    int64_t bytes;   /**< its peak memory */
    int64_t earlier; /**< of these: what was there before the case */
    int64_t looks;   /**< number of tensor_data() calls */
    void *address;   /**< the line of the first of these calls */
} OwnWork;

/** Provided by the program: the runner starts counting; the judge has no lab to observe. */
void own_work_begin(void);
/** The lab's own work since own_work_begin(). */
OwnWork own_work(void);
