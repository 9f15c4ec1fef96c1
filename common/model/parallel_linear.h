/** @file
 * Linear layers with biases, split over the tp ranks (Megatron-LM, arXiv:1909.08053, section 3).
 *
 * A column-parallel layer computes this rank's outputs: f (duplication) comes before it. A
 * row-parallel layer takes this rank's inputs and computes a partial sum: g (all_reduce) follows,
 * and the bias is added once, after the sum. A column-parallel layer followed by a row-parallel one
 * needs one f and one g.
 */
#pragma once

#include "model/model.h"

/** Each rank holds out/tp outputs. */
typedef struct ColumnParallelLinear {
    Tensor *weight; /**< [out,in], split along out */
    Tensor *bias;   /**< [out], split likewise */
} ColumnParallelLinear;

/** Makes "weight" [out,in] and "bias" [out]. */
ColumnParallelLinear *column_parallel_linear_new(Builder *b, int in, int out);
/** x [..,in], whole -> this rank's columns [..,out/tp]. */
Tensor *column_parallel_linear_forward(const ColumnParallelLinear *layer, Tensor *x,
                                       const Mesh *mesh);
/** The same for an x that has passed f, so that several layers share one. */
Tensor *column_parallel_linear_of_copied(const ColumnParallelLinear *layer, Tensor *x);

/** Each rank holds in/tp inputs. */
typedef struct RowParallelLinear {
    Tensor *weight; /**< [out,in], split along in */
    Tensor *bias;   /**< [out], whole */
} RowParallelLinear;

/** Makes "weight" [out,in] and "bias" [out]. */
RowParallelLinear *row_parallel_linear_new(Builder *b, int in, int out);
/** x: this rank's columns [..,in/tp] -> [..,out], whole. */
Tensor *row_parallel_linear_forward(const RowParallelLinear *layer, Tensor *x, const Mesh *mesh);
