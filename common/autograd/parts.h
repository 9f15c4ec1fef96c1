/** @file
 * Equal parts of a tensor along a dimension.
 */
#pragma once

#include "autograd/operations.h"

/** The product of the sizes before `dim`: the number of contiguous runs of a part along `dim`. */
int64_t rows_before(Shape shape, int dim);
/** Ends the run unless `n` divides dimension `dim` of x. */
void must_divide(const char *function, const Tensor *x, int dim, int64_t n);
