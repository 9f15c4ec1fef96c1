/** @file
 * What is done with gradients: clipping, the scaler of fp16, the learning rate, and the optimisers' pass over the arena of the weights.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/* ---- clipping by the norm of all gradients together ---- */

/** The norm of the gradient of the undivided model: every shard of a sharded parameter counts once, and so does a parameter
 *  that each rank holds in full (Megatron-LM's clip_grad_norm). Collective over the ranks that split the model.
 *  \f[ \mathrm{norm} = \sqrt{ \textstyle\sum_p \sum_i g_{p,i}^2 } \f] */
double gradient_norm(Model *model);

/** PyTorch's clip_grad_norm_: multiplies all gradients by \f$ \mathrm{most} / (\mathrm{norm} + 10^{-6}) \f$ where that is below 1. */
void clip_gradients(Model *model, double norm, double most);

/* ---- the learning rate ---- */

/** The rate over the steps of a run: a linear warm-up, then a linear decay. */
typedef struct Schedule {
    double rate;    /**< after the warm-up */
    int64_t warmup; /**< steps over which it rises linearly from rate/warmup; 0 for none */
    int64_t decay;  /**< the step at whose end it has fallen linearly to 0; 0: it stays */
} Schedule;

/** The learning rate of `step`, from 0. */
double schedule_rate(const Schedule *schedule, int64_t step);

/* ---- the optimisers ---- */

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

/** An optimiser and what it remembers of a model's weights from step to step. */
typedef struct Optimizer {
    Model *model;           /**< whose parameters it moves; the caller's */
    OptimizerConfig config; /**< as it was made */
    Buffer *m,
        *v; /**< AdamW's decaying means of g and of its square, laid out as the model's arena; NULL of SGD */
    Buffer *seen;  /**< see struct AdamW; NULL where kernels do not look for zeros */
    int64_t steps; /**< done so far */
} Optimizer;

/** An optimiser of all parameters; its state comes from the model's pool. The model must outlive it. */
Optimizer *optimizer_new(Model *model, const OptimizerConfig *config);
/** Frees it; the model stays as it is. */
void optimizer_free(Optimizer *optimizer);

/** One step with the gradients of the model. Those of a table with rows that never had one are zeros after it. */
void optimizer_step(Optimizer *optimizer, double rate);

/** Goes on from numbers that were written to its m and v, after so many steps. */
void optimizer_resume(Optimizer *optimizer, int64_t steps);

/* ---- the gradient scaler of training in fp16 ---- */

/** The scale, and what it has seen so far (Micikevicius et al., arXiv:1710.03740, section 3.2; PyTorch's GradScaler): a loss is multiplied by
 *  `scale` before it is differentiated, so that small gradients do not become zeros when a product rounds them, and the gradients are divided
 *  by it before the step. Where one became infinite, the step is left out and the scale halved. */
typedef struct GradScaler {
    double scale;     /**< a power of two, so that scaling rounds nothing; 0: nothing is scaled */
    int64_t good;     /**< steps since the scale was changed */
    int64_t left_out; /**< steps of this run that were left out */
} GradScaler;

enum { SCALE_AT_FIRST = 1 << 16 };   /**< of a new run in fp16, as PyTorch's */
enum { STEPS_BEFORE_GROWTH = 2000 }; /**< good ones in a row, as PyTorch's */

/** Divides all gradients by the scale, where all are finite on every rank of the world; doubles the scale after
 *  STEPS_BEFORE_GROWTH such steps in a row, and halves it (not below 1) where they are not. Collective over the world: all
 *  ranks get one answer.
 *  @return whether the step is to be made */
bool scaler_unscale(GradScaler *scaler, Model *model);
