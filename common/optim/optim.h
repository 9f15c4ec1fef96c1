/** @file
 * From gradients to new weights: clipping, the scaler for fp16, the learning rate, and the
 * optimisers' pass over the arena of weights.
 */
#pragma once

#include "comm/comm.h"
#include "model/model.h"

/* ---- the optimisers ---- */

/** The rule by which a step changes the weights. */
typedef enum OptimizerKind {
    SGD,   /**< PyTorch's, without momentum: see kernel_sgd_step() */
    ADAMW, /**< see kernel_adamw_step() */
} OptimizerKind;

/** PyTorch's names and meanings; weight decay is decoupled in AdamW, and part of the gradient in
 *  SGD. */
typedef struct OptimizerConfig {
    OptimizerKind kind;           /**< the rule */
    double weight_decay;          /**< each step subtracts weight · rate · weight_decay */
    double beta1, beta2, epsilon; /**< of AdamW */
} OptimizerConfig;

/** An optimiser and its state. */
struct Optimizer {
    Model *model;           /**< the model that it updates; the caller's */
    OptimizerConfig config; /**< the settings */
    /** the numbers of the model's arena that it updates: all, or this replica's part of a sharded
     *  optimiser (lab 17) */
    Range part;
    bool is_sharded; /**< is `part` that of optimizer_part()? */
    Buffer *m, *v;   /**< AdamW's decaying means of g and g² of the part; NULL for SGD */
    /** see struct AdamW; NULL for SGD, for a part of the weights, or if kernels do not look for
     *  zeros */
    Buffer *seen;
    int64_t steps; /**< steps done so far, including the one that has begun */
    double rate;   /**< of the step that has begun */
    bool is_due;   /**< has a step begun that optimizer_update() has not completed yet? */
};

/** Makes an optimiser for all parameters; its state comes from the model's pool. The model must
 *  outlive it. The caller frees it with optimizer_free(). */
Optimizer *optimizer_new(Model *model, const OptimizerConfig *config);
/** Makes an optimiser for `part` of the weights in an arena, with state for this part only. */
Optimizer *optimizer_of_part(Pool *pool, Range part, const OptimizerConfig *config);
/** This replica's part of `count` weights, from optimizer_part() of lab 17. It is misuse if the
 *  replicas' parts do not follow each other. */
Range own_optimizer_part(int64_t count, const Mesh *mesh);
/** Makes an optimiser for this replica's part of the parameters. */
Optimizer *optimizer_new_sharded(Model *model, const OptimizerConfig *config);
/** Frees the optimiser, but not the model. */
void optimizer_free(Optimizer *optimizer);

/** Takes one step with the model's gradients. Afterwards, the gradient of a table is zero if some
 *  of its rows have never had a gradient. */
void optimizer_step(Optimizer *optimizer, double rate);

/** Begins a step, which the next call of optimizer_update() takes. */
void optimizer_begin(Optimizer *optimizer, double rate);
/** Ends a step that optimizer_begin() has begun: optimizer_update() must have taken it, unless the
 *  part is empty. */
void optimizer_end(const Optimizer *optimizer);

/** Calls lab 17's reduce_scatter_gradients(): in this replica's part, the model's gradients become
 * the mean over the replicas. `tape` is the tape of the step's tensors. Collective over the
 *  replicas. */
void sharded_reduce(Model *model, Tape *tape);
/** Takes one step with lab 17's sharded_step(): each replica updates its part, and then all
 *  replicas have all updated weights. Collective over the replicas. */
void sharded_optimizer_step(Optimizer *optimizer, double rate, Tape *tape);

/** Continues after `steps` steps, from values that were written to m and v. */
void optimizer_resume(Optimizer *optimizer, int64_t steps);

/* ---- clipping by the norm of all gradients together ---- */

/** The norm of the full model's gradient: each shard of a parameter counts once, and so does a
 *  parameter that each rank holds in full (Megatron-LM's clip_grad_norm). Lab 14 adds up the ranks'
 *  sums of squares. Collective over the ranks that split the model.
 *  \f[ \mathrm{norm} = \sqrt{ \textstyle\sum_p \sum_i g_{p,i}^2 } \f] */
double model_gradient_norm(Model *model);
/** The same norm, from the sums of squares of the replicas' parts of the gradients; lab 17 adds up
 *  these sums. Every rank of the world gets the same number. Collective over the world. */
double sharded_gradient_norm(const Optimizer *optimizer);

/** PyTorch's clip_grad_norm_: multiplies all gradients that the optimiser reads by \f$ \mathrm{most} / (\mathrm{norm} +
 *  10^{-6}) \f$ if that is below 1. */
void clip_gradients(const Optimizer *optimizer, double norm, double most);

/* ---- the learning rate ---- */

/** The learning rate over the steps of a run: a linear warm-up, then a linear decay. */
typedef struct Schedule {
    double rate;    /**< after the warm-up */
    int64_t warmup; /**< steps of linear increase from rate/warmup; 0 for none */
    int64_t decay;  /**< the rate is 0 from this step (counted from 0) on; 0 for no decay */
} Schedule;

/** The learning rate of `step`, counted from 0. */
double schedule_rate(const Schedule *schedule, int64_t step);

/* ---- the gradient scaler of training in fp16 ---- */

/** The scale and its history (Micikevicius et al., arXiv:1710.03740, section 3.2; PyTorch's
 *  GradScaler). The loss is multiplied by `scale` before the backward pass, so small gradients
 *  do not become zero when a product rounds them; the gradients are divided by it before the step.
 *  If any gradient is infinite or NaN, the step is skipped and the scale halved. */
typedef struct GradScaler {
    double scale;     /**< a power of two, so scaling does not round; 0: no scaling */
    int64_t good;     /**< steps since the scale changed */
    int64_t left_out; /**< number of skipped steps in this run */
} GradScaler;

enum { SCALE_AT_FIRST = 1 << 16 };   /**< initial value in fp16, as in PyTorch */
enum { STEPS_BEFORE_GROWTH = 2000 }; /**< successful steps in a row, as in PyTorch */

/** Divides all gradients that the optimiser reads by the scale if all of them are finite on every
 *  rank of the world; doubles the scale after STEPS_BEFORE_GROWTH such steps in a row. Otherwise
 *  halves the scale (not below 1). Collective over the world: all ranks get the same answer.
 *  @return whether to take the step */
bool scaler_unscale(GradScaler *scaler, const Optimizer *optimizer);
