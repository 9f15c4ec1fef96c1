/* The block and the classifier as the judge runs them: a mistake changes one thing in a block. */
#include "grader/judge/compare/wrong_block.h"

#include <string.h>

#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/lab.h"
#include "grader/labs/mistakes.h"

WRAPPED(Tensor *, add, Tensor *x, Tensor *y);
WRAPPED(Tensor *, first_token, Tensor *x);
WRAPPED(Tensor *, layer_norm, const LayerNorm *layer, Tensor *x);
WRAPPED(LayerNorm *, layer_norm_new, Builder *b, int size);
WRAPPED(MultiHeadSelfAttention *, attention_new, Builder *b, int hidden, int heads);
WRAPPED(FeedForward *, feed_forward_new, Builder *b, int in, int inner, int out, float p);
WRAPPED(Tensor *, attention_forward, const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
        const Mesh *mesh);
WRAPPED(Tensor *, feed_forward_forward, const FeedForward *layer, Tensor *x, const Mesh *mesh);

static const Half changes[MISTAKES][HALVES] = {
    [NORM_1_MISSING] = {[ATTENTION] = {.no_norm = true}},
    [NORM_2_MISSING] = {[FEED_FORWARD] = {.no_norm = true}},
    [NORMS_MISSING] = {{.no_norm = true}, {.no_norm = true}},
    [NORM_1_BY_2] = {[ATTENTION] = {.other_norm = true}},
    [NORM_2_BY_1] = {[FEED_FORWARD] = {.other_norm = true}},
    [NORMS_SWAPPED] = {{.other_norm = true}, {.other_norm = true}},
    [NORM_2_OF_INPUT] = {[FEED_FORWARD] = {.reads = INPUT}},
    [NORM_2_OF_ATTENTION] = {[FEED_FORWARD] = {.reads = ATTENDED}},
    [FEED_FORWARD_OF_NORM_1] = {[FEED_FORWARD] = {.reads = NORMED, .no_norm = true}},
    [NORM_AFTER] = {{.no_norm = true, .norm_after = true}, {.no_norm = true, .norm_after = true}},
    [NORM_1_AFTER] = {[ATTENTION] = {.no_norm = true, .norm_after = true}},
    [NORM_2_AFTER] = {[FEED_FORWARD] = {.no_norm = true, .norm_after = true}},
    [NORM_1_OF_TERM] = {[ATTENTION] = {.no_norm = true, .norm_of_term = true}},
    [NORM_2_OF_TERM] = {[FEED_FORWARD] = {.no_norm = true, .norm_of_term = true}},
    [NORMS_OF_TERMS] = {{.no_norm = true, .norm_of_term = true},
                        {.no_norm = true, .norm_of_term = true}},
    [NORM_OF_RESULT] = {[FEED_FORWARD] = {.norm_after = true}},
    [NORM_2_ALSO_OF_TERM] = {[FEED_FORWARD] = {.norm_of_term = true}},
    [HALVES_SWAPPED] = {{.other_norm = true, .other_layers = true, .other_dropout = true},
                        {.other_norm = true, .other_layers = true, .other_dropout = true}},
    [HALVES_SWAPPED_BUT_NORMS] = {{.other_layers = true}, {.other_layers = true}},
    [RESIDUAL_1_MISSING] = {[ATTENTION] = {.adds = NO_VALUE}},
    [RESIDUAL_2_MISSING] = {[FEED_FORWARD] = {.adds = NO_VALUE}},
    [RESIDUALS_MISSING] = {{.adds = NO_VALUE}, {.adds = NO_VALUE}},
    [RESIDUAL_1_OF_NORM] = {[ATTENTION] = {.adds = NORMED}},
    [RESIDUAL_2_OF_NORM] = {[FEED_FORWARD] = {.adds = NORMED}},
    [RESIDUALS_OF_NORM] = {{.adds = NORMED}, {.adds = NORMED}},
    [RESIDUAL_2_OF_INPUT] = {[FEED_FORWARD] = {.adds = INPUT}},
    [RESIDUAL_DROPOUT_1_MISSING] = {[ATTENTION] = {.dropout = NEVER}},
    [RESIDUAL_DROPOUT_2_MISSING] = {[FEED_FORWARD] = {.dropout = NEVER}},
    [RESIDUAL_DROPOUTS_MISSING] = {{.dropout = NEVER}, {.dropout = NEVER}},
    [RESIDUAL_DROPOUT_1_TWICE] = {[ATTENTION] = {.dropout = TWICE}},
    [RESIDUAL_DROPOUT_2_TWICE] = {[FEED_FORWARD] = {.dropout = TWICE}},
    [RESIDUAL_DROPOUTS_TWICE] = {{.dropout = TWICE}, {.dropout = TWICE}},
    [RESIDUAL_DROPOUT_1_BY_2] = {[ATTENTION] = {.other_dropout = true}},
    [RESIDUAL_DROPOUT_2_BY_1] = {[FEED_FORWARD] = {.other_dropout = true}},
    [RESIDUAL_DROPOUTS_SWAPPED] = {{.other_dropout = true}, {.other_dropout = true}},
    [RESIDUAL_DROPOUT_1_OF_SUM] = {[ATTENTION] = {.drops = SUM}},
    [RESIDUAL_DROPOUT_2_OF_SUM] = {[FEED_FORWARD] = {.drops = SUM}},
    [RESIDUAL_DROPOUTS_OF_SUM] = {{.drops = SUM}, {.drops = SUM}},
    [RESIDUAL_DROPOUT_1_OF_RESIDUAL] = {[ATTENTION] = {.drops = RESIDUAL}},
    [RESIDUAL_DROPOUT_2_OF_RESIDUAL] = {[FEED_FORWARD] = {.drops = RESIDUAL}},
    [RESIDUAL_DROPOUTS_OF_RESIDUAL] = {{.drops = RESIDUAL}, {.drops = RESIDUAL}},
    [RESIDUAL_DROPOUT_1_OF_ARGUMENT] = {[ATTENTION] = {.drops = ARGUMENT}},
    [RESIDUAL_DROPOUT_2_OF_ARGUMENT] = {[FEED_FORWARD] = {.drops = ARGUMENT}},
    [RESIDUAL_DROPOUTS_OF_ARGUMENT] = {{.drops = ARGUMENT}, {.drops = ARGUMENT}},
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

enum { MOST_NORMS = HALVES * MAX_BLOCKS };

/* Operations take no context, so what they know of the block is global. */
static struct {
    int sums;                       /* number of residual sums */
    Tensor *value[VALUES_OF_BLOCK]; /* of the last block; NULL: none yet */
    const LayerNorm *norm_due;      /* the norm to apply to the sum, or NULL */
    const LayerNorm *norm_of_term;  /* the norm to apply to the result of the half, or NULL */
    const LayerNorm *norms[MOST_NORMS];
    int norm_count;
    /* by block; the mask is the last block's */
    const MultiHeadSelfAttention *attention[MAX_BLOCKS];
    const FeedForward *feed_forward[MAX_BLOCKS];
    int attention_count, feed_forward_count;
    Tensor *mask;
} block;

void block_begin(void)
{
    memset(&block, 0, sizeof block);
}

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

void block_has_attended(Tensor *y)
{
    block.value[ATTENDED] = y;
}

/* Forgets the values of the last block. In an evaluation, no residual sum replaces them, so old
 * values could come from another pass. */
static void enter_block(Tensor *x)
{
    memset(block.value, 0, sizeof block.value);
    block.value[INPUT] = x;
    block.norm_due = block.norm_of_term = NULL;
}

static Tensor *replaced(Tensor *x, ValueOfBlock by)
{
    return block.value[by] ? block.value[by] : x;
}

LayerNorm *__wrap_layer_norm_new(Builder *b, int size)
{
    LayerNorm *layer = __real_layer_norm_new(b, size);
    if (mistake() != NO_MISTAKE && block.norm_count < MOST_NORMS)
        block.norms[block.norm_count++] = layer;
    return layer;
}

/* The index of a norm in block.norms, or -1. Each block makes norm1, then norm2. */
static int place_of(const LayerNorm *layer)
{
    for (int i = 0; i < block.norm_count; i++)
        if (block.norms[i] == layer)
            return i;
    return -1;
}

Tensor *__wrap_layer_norm(const LayerNorm *layer, Tensor *x)
{
    const int place = place_of(layer);
    if (place < 0)
        return __real_layer_norm(layer, x);
    const int half = place % HALVES;
    const Half *change = half_now(half);
    if (half == ATTENTION)
        enter_block(x);
    x = replaced(x, change->reads);
    if (change->other_norm && (place ^ 1) < block.norm_count)
        layer = block.norms[place ^ 1];
    if (change->norm_after)
        block.norm_due = layer;
    if (change->norm_of_term)
        block.norm_of_term = layer;
    if (change->no_norm)
        return x;
    block.value[NORMED] = mistake() == NORM_GRADIENTS_OF_FIRST
                              ? norm_with_gradients_of_first(layer, x, __real_layer_norm)
                              : __real_layer_norm(layer, x);
    return block.value[NORMED];
}

Tensor *block_normed(Tensor *y, const Half *change)
{
    const LayerNorm *due = change->norm_of_term ? block.norm_of_term : NULL;
    if (due)
        block.norm_of_term = NULL;
    return due ? __real_layer_norm(due, y) : y;
}

/* Changes only a layer's residual sums, in which y is the result of an operation. In the scenario's
 * own sum, y is an input. */
Tensor *__wrap_add(Tensor *x, Tensor *y)
{
    if (mistake() == NO_MISTAKE || !y->producer)
        return __real_add(x, y);
    const int half = block.sums++ % HALVES;
    const Half *change = half_now(half);
    if (half == ATTENTION)
        block_has_attended(y);
    y = block_normed(y, change);
    if (change->adds == NO_VALUE)
        return y;
    const LayerNorm *due = block.norm_due;
    block.norm_due = NULL;
    Tensor *sum = __real_add(replaced(x, change->adds), y);
    return due ? __real_layer_norm(due, sum) : sum;
}

MultiHeadSelfAttention *__wrap_attention_new(Builder *b, int hidden, int heads)
{
    MultiHeadSelfAttention *layer = __real_attention_new(b, hidden, heads);
    if (mistake() != NO_MISTAKE && block.attention_count < MAX_BLOCKS)
        block.attention[block.attention_count++] = layer;
    return layer;
}

FeedForward *__wrap_feed_forward_new(Builder *b, int in, int inner, int out, float p)
{
    FeedForward *layer = __real_feed_forward_new(b, in, inner, out, p);
    if (mistake() != NO_MISTAKE && block.feed_forward_count < MAX_BLOCKS)
        block.feed_forward[block.feed_forward_count++] = layer;
    return layer;
}

Tensor *__wrap_attention_forward(const MultiHeadSelfAttention *layer, Tensor *x, Tensor *mask,
                                 const Mesh *mesh)
{
    block.mask = mask;
    for (int i = 0; i < block.feed_forward_count && half_now(ATTENTION)->other_layers; i++)
        if (block.attention[i] == layer)
            return __real_feed_forward_forward(block.feed_forward[i], x, mesh);
    return __real_attention_forward(layer, x, mask, mesh);
}

Tensor *__wrap_feed_forward_forward(const FeedForward *layer, Tensor *x, const Mesh *mesh)
{
    for (int i = 0; i < block.attention_count && half_now(FEED_FORWARD)->other_layers; i++)
        if (block.feed_forward[i] == layer)
            return __real_attention_forward(block.attention[i], x, block.mask, mesh);
    return __real_feed_forward_forward(layer, x, mesh);
}

Tensor *__wrap_first_token(Tensor *x)
{
    const int64_t positions = x->shape.size[1];
    return mistake() == TOKEN_LAST   ? pooled(x, positions - 1, 1)
           : mistake() == TOKEN_MEAN ? pooled(x, 0, 1.0 / (double)positions)
                                     : __real_first_token(x);
}
