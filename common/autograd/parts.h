/** @file
 * Equal parts of a tensor along a dimension.
 */
#pragma once

#include "autograd/operations.h"

/** The number of separate runs of numbers in a part along dimension `dim`. */
int64_t rows_before(Shape shape, int dim);
/** Ends the run unless `n` divides dimension `dim` of x. */
void must_divide(const char *function, const Tensor *x, int dim, int64_t n);
