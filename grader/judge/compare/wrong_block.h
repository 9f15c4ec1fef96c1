/** @file
 * A block with one thing changed, for suspects. The block of lab 18 computes
 * y = x + dropout1(attention(norm1(x))) and returns y + dropout2(feed_forward(norm2(y))).
 */
#pragma once

#include <stdbool.h>

/** The halves of a block. */
enum {
    ATTENTION,    /**< norm, attention, dropout, residual sum */
    FEED_FORWARD, /**< norm, feed-forward layers, dropout, residual sum */
    HALVES,       /**< how many there are */
};

/** What is changed in a half; all false: nothing. */
typedef struct Half {
    bool first_masks; /**< each rank draws the first positions' mask for its own positions */
    bool own_dy;      /**< a term of the sum has the gradient of its rank's positions only */
    bool own_weights; /**< what is gathered has the gradient from its rank's weights only */
} Half;

/** What the current suspect changes in this half. */
const Half *half_now(int half);
