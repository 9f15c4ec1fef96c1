/** @file
 * Sums over the rows of a matrix, in the same order each time: of a chunk of rows first, then of the chunks.
 */
#pragma once

#include "backend/cuda/device.cuh"

/** sums [columns] += the column sums of x [rows,columns]. */
void add_column_sums(int64_t rows, int64_t columns, const real *x, real *sums);

/** Likewise of dy, into dbias, and of dy · n, n = (x - mean) rstd of each row, into dweight. */
void add_layer_norm_sums(int64_t rows, int64_t columns, const real *dy, const real *x,
                         const real *mean, const real *rstd, real *dweight, real *dbias);
