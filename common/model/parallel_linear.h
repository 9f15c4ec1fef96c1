/** @file
 * Linear layers with biases, split over the tp ranks (Megatron-LM, arXiv:1909.08053, section 3).
 *
 * A column-parallel layer holds some outputs: f (duplication) stands before it. A row-parallel one
 * takes some inputs and gives a partial sum: g (all_reduce) follows, and its bias is added once,
 * after the sum. One behind the other, they need one f and one g.
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
