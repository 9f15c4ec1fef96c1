/** @file
 * Sets the precision of products, for tests that loop over the precisions of the backend.
 */
#pragma once

#include "backend/tests/comparison.h"

static Precision precision;

/** Sets the precision of products. If the backend does not have it, reports a skipped test and
 *  returns false. */
static inline bool choose(void)
{
    Problem problem;
    backend_set_threads(1);
    const bool good = backend_set_products(precision, 0, &problem);
    if (!good)
        printf("skip - %s: %s\n", precision_name(precision), problem.what);
    return good;
}

/* Fixtures. */

static inline void bf16(void)
{
    precision = BF16;
}

static inline void fp16(void)
{
    precision = FP16;
}

static inline void tf32(void)
{
    precision = TF32;
}
