/* The block and the classifier as the judge runs them: a mistake changes one thing in them. */
#include "grader/judge/compare/wrong_block.h"

#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/mistakes.h"

WRAPPED(Tensor *, layer_norm, const LayerNorm *layer, Tensor *x);

static const Half changes[MISTAKES][HALVES] = {
    [GATHER_GRADIENT_OWN] = {{.own_weights = true}, {.own_weights = true}},
    [GATHER_GRADIENT_OWN_1] = {[ATTENTION] = {.own_weights = true}},
    [GATHER_GRADIENT_OWN_2] = {[FEED_FORWARD] = {.own_weights = true}},
    [TERM_GRADIENT_OWN] = {{.own_dy = true}, {.own_dy = true}},
    [TERM_GRADIENT_OWN_1] = {[ATTENTION] = {.own_dy = true}},
    [TERM_GRADIENT_OWN_2] = {[FEED_FORWARD] = {.own_dy = true}},
    [MASKS_OF_FIRST_POSITIONS] = {{.first_masks = true}, {.first_masks = true}},
    [MASK_1_OF_FIRST_POSITIONS] = {[ATTENTION] = {.first_masks = true}},
    [MASK_2_OF_FIRST_POSITIONS] = {[FEED_FORWARD] = {.first_masks = true}},
    [PAIRS_OFF_TAPE] = {{.first_masks = true}, {.first_masks = true}},
    [SUMS_CUT] = {{.first_masks = true, .own_dy = true}, {.first_masks = true, .own_dy = true}},
    [SUM_1_CUT] = {[ATTENTION] = {.first_masks = true, .own_dy = true}},
    [SUM_2_CUT] = {[FEED_FORWARD] = {.first_masks = true, .own_dy = true}},
};

static int mistake(void)
{
    const Case *c;
    return mistake_now(&c);
}

const Half *half_now(int half)
{
    static const Half right = {0};
    return mistake() == NO_MISTAKE ? &right : &changes[mistake()][half];
}

Tensor *__wrap_layer_norm(const LayerNorm *layer, Tensor *x)
{
    return mistake() == NORM_GRADIENTS_OF_FIRST
               ? norm_with_gradients_of_first(layer, x, __real_layer_norm)
               : __real_layer_norm(layer, x);
}
