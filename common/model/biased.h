/** @file
 * Layers that the blocks of the published BERT and of GPT-2 share: norms with the model's epsilon,
 * and the linear layers of attention and feed-forward, which have biases and are split over the tp
 * ranks. Weak versions of the functions of lab 20 are in parallel_linear.c, for training before
 * that lab.
 */
#pragma once

#include "model/transformer.h"

/** Layer norm. */
typedef struct Norm {
    Tensor *weight, *bias; /**< [H] */
    double epsilon;        /**< config->epsilon */
} Norm;

/** Makes "weight" and "bias". */
Norm norm_new(Builder *b, const TransformerConfig *config);
/** [..,H] -> the same shape */
Tensor *norm_forward(const Norm *norm, Tensor *x);

/** The linear layers of attention. */
typedef struct AttentionLayers {
    QueryKeyValue query_key_value; /**< [3,H,H], split by heads */
    RowParallelLinear output;      /**< [H,H] */
    int heads;                     /**< of this rank */
    float factor;                  /**< 1/√D, for the scores q · k */
} AttentionLayers;

/** Makes "query_key_value" and "output". */
AttentionLayers attention_layers_new(Builder *b, const TransformerConfig *config);

/** The linear layers around an activation function. */
typedef struct FeedForwardLayers {
    ColumnParallelLinear up; /**< [F,H] */
    RowParallelLinear down;  /**< [H,F] */
} FeedForwardLayers;

/** Makes "up" and "down". */
FeedForwardLayers feed_forward_layers_new(Builder *b, const TransformerConfig *config);

/** Can the feed-forward layers be split over `tp` ranks? Otherwise returns false with `problem`. */
bool feed_forward_layers_check(const TransformerConfig *config, int tp, Problem *problem);
