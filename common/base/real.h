/** @file
 * The types of a tensor's numbers: single precision for training and grading, and 16 bits where
 * training multiplies in them; double precision for the judge and some tests, which are built with
 * -DBALISE_DOUBLE and the reference backend.
 */
#pragma once

#include <stdint.h>

#ifdef BALISE_DOUBLE
/** An element of a tensor. */
typedef double real;
#else
/** An element of a tensor. */
typedef float real;
#endif

/** Numbers of one of two types; the other pointer is NULL. A kernel computes with `real`, and rounds
 *  what it writes in 16 bits as kernel_round() does (see backend/backend.h). */
typedef struct Numbers {
    real *reals;      /**< in `real` */
    uint16_t *halves; /**< in 16 bits */
} Numbers;

/** Numbers of type `real`. A kernel does not write to its arguments. */
static inline Numbers in_full(const real *x)
{
    const Numbers numbers = {(real *)x, 0};
    return numbers;
}
