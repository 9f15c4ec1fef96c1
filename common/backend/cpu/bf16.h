/** @file
 * Matrix products whose matrices are rounded to bf16 first: what linear.c asks where AMP=bf16.
 */
#pragma once

#include "backend/onednn/onednn.h"
#include "base/real.h"

/** Is a product of this size multiplied in bf16? */
bool bf16_multiplies(int64_t rows, int64_t columns, int64_t inner);

/** The product (whose `threads` are chosen here) of matrices that are rounded to bf16 before. */
void bf16_multiply(Product product, const real *a, const real *b, const real *bias, real *c);
