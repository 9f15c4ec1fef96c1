/** @file
 * The gradient scaler of training in fp16 (Micikevicius et al., arXiv:1710.03740, section 3.2; PyTorch's GradScaler): a loss is
 * multiplied by `scale` before it is differentiated, so that small gradients do not become zeros when a product rounds them, and the
 * gradients are divided by it before the step. Where one became infinite, the step is left out and the scale halved.
 */
#pragma once

#include "model/model.h"

/** The scale, and what it has seen so far. */
typedef struct GradScaler {
    double scale;     /**< a power of two, so that scaling rounds nothing; 0: nothing is scaled */
    int64_t good;     /**< steps since the scale was changed */
    int64_t left_out; /**< steps of this run that were left out */
} GradScaler;

enum {
    SCALE_AT_FIRST = 1 << 16,   /**< of a new run, as PyTorch's */
    STEPS_BEFORE_GROWTH = 2000, /**< good ones in a row, as PyTorch's */
};

/** That of a new run in fp16. */
GradScaler scaler_new(void);

/** Divides all gradients by the scale, where all are finite on every rank of the world; doubles the scale after
 *  STEPS_BEFORE_GROWTH such steps in a row, and halves it (not below 1) where they are not. Collective over the world: all
 *  ranks get one answer.
 *  @return whether the step is to be made */
bool scaler_unscale(GradScaler *scaler, Model *model);
