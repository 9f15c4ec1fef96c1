/** @file
 * A block with one thing changed, for suspects. The block of labs 7 and 18 computes
 * y = x + attention(norm1(x)) and returns y + feed_forward(norm2(y)). Lab 18 applies dropout to
 * both results before it adds them.
 */
#pragma once

#include <stdbool.h>

#include "model/model.h"

/** The halves of a block. */
enum {
    ATTENTION,    /**< norm, attention, dropout, residual sum */
    FEED_FORWARD, /**< norm, feed-forward layers, dropout, residual sum */
    HALVES,       /**< how many there are */
};

/** What an operation of a block takes in place of its own input. */
typedef enum ValueOfBlock {
    ITS_OWN,         /**< no other */
    NO_VALUE,        /**< none at all */
    INPUT,           /**< what the block was given */
    NORMED,          /**< the last result of a norm */
    ATTENDED,        /**< the result of the attention */
    VALUES_OF_BLOCK, /**< how many there are */
} ValueOfBlock;

/** On what dropout acts. */
typedef enum Dropped {
    RESULT,   /**< on the result of this half, as it must */
    SUM,      /**< on the residual sum */
    RESIDUAL, /**< on what the result is added to */
    ARGUMENT, /**< on what the layers of this half read */
} Dropped;

/** How many times dropout is applied. */
typedef enum HowOften {
    ONCE,  /**< as it must */
    NEVER, /**< it is missing */
    TWICE, /**< also on its own result */
} HowOften;

/** What is changed in a half; all zeros: nothing. */
typedef struct Half {
    ValueOfBlock reads; /**< what the norm reads */
    ValueOfBlock adds;  /**< what the residual sum adds to the result of this half */
    bool no_norm;       /**< the norm returns what it reads */
    bool other_norm;    /**< uses the norm of the other half */
    bool norm_after;    /**< the norm is applied to the residual sum */
    bool norm_of_term;  /**< the norm is applied to the result of this half, before dropout */
    bool other_layers;  /**< runs the layers of the other half */
    HowOften dropout;   /**< how many times it acts on this half's result */
    bool other_dropout; /**< uses the dropout of the other half */
    Dropped drops;      /**< on what the dropout acts */
    bool first_masks;   /**< each rank draws the first positions' mask for its own positions */
    bool own_dy;        /**< a term of the sum has the gradient of its rank's positions only */
    bool own_weights;   /**< what is gathered has the gradient from its rank's weights only */
} Half;

/** What the current suspect changes in this half. */
const Half *half_now(int half);

/** Forgets the blocks of the last suspect. */
void block_begin(void);
/** Records y, the result of the attention. */
void block_has_attended(Tensor *y);
/** The norm of y, the result of a half, if the norm of this half is due there; otherwise y. */
Tensor *block_normed(Tensor *y, const Half *change);
