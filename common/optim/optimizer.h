/** @file
 * The optimisers: one pass over the arena of the weights.
 */
#pragma once

#include "model/model.h"

/** Which rule a step follows. */
typedef enum OptimizerKind {
    SGD,   /**< PyTorch's, without momentum: see kernel_sgd_step() */
    ADAMW, /**< see kernel_adamw_step() */
} OptimizerKind;

/** PyTorch's names and meanings; weight decay is decoupled in AdamW and part of the gradient in SGD. */
typedef struct OptimizerConfig {
    OptimizerKind kind;  /**< which one */
    double weight_decay; /**< a fraction of the weight, times the rate a step; 0 for none */
    double beta1, beta2, epsilon; /**< of AdamW */
} OptimizerConfig;

/** An optimiser and what it remembers of a model's weights. */
typedef struct Optimizer Optimizer;

/** An optimiser of all of the model's parameters, whose state comes from the model's pool. The model is the
 * caller's and must outlive it. */
Optimizer *optimizer_new(Model *model, const OptimizerConfig *config);
/** Frees it; the model stays as it is. */
void optimizer_free(Optimizer *optimizer);

/** One step at this learning rate with the gradients that the model holds. Those of a table that has rows which never had one
 *  are zeros after it. */
void optimizer_step(Optimizer *optimizer, double rate);

/** What an optimiser remembers from step to step, to be saved and set. */
typedef struct OptimizerState {
    real *m, *v;   /**< laid out as the model's arena; NULL without AdamW */
    int64_t steps; /**< done so far */
} OptimizerState;
/** What it remembers now; the arrays belong to the optimiser. */
OptimizerState optimizer_state(Optimizer *optimizer);

/** Goes on from the m and v that were written to optimizer_state(), after so many steps. */
void optimizer_resume(Optimizer *optimizer, int64_t steps);
