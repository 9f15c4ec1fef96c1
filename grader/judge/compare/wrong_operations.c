/* The plain layers' operations as the judge runs them: each commits the mistake of the current
 * suspect. */
#include <math.h>

#include "grader/judge/compare/expected.h"
#include "grader/judge/compare/wrong_operations.h"

enum { MOST_MADE = 8 };

/* Operations take no context, so the current mistake is global. */
static struct {
    int kind;
    const Case *c;
    bool gelu_due;
    const char *dropout_due; /* the parameter's name, or NULL */
    double probability;
    int sums;                  /* number of residual sums */
    Tensor *normed;            /* the last result of a norm */
    Tensor *entered;           /* the last block's input */
    const LayerNorm *norm_due; /* it comes after the sum */
    const LayerNorm *norms[MOST_MADE];
    Tensor *weights[MOST_MADE]; /* in order of creation; their number */
    int norm_count, weight_count;
} now = {.kind = NO_MISTAKE};

void suspect_begin(int suspect, const Case *c)
{
    memset(&now, 0, sizeof now);
    now.kind = suspect;
    now.c = c;
}

void suspect_end(void)
{
    now.kind = NO_MISTAKE;
}

int mistake_now(const Case **c)
{
    *c = now.c;
    return now.kind;
}

Tensor *into_layer(Scenario *run, Tensor *x)
{
    const double ranks = now.c ? now.c->tp : 1;
    if (now.kind < GRADIENT_TIMES_RANKS || now.kind > GRADIENT_MISSING)
        return x;
    return with_gradient_times(x, now.kind == GRADIENT_TIMES_RANKS         ? ranks
                                  : now.kind == GRADIENT_TWICE_TIMES_RANKS ? ranks * ranks
                                  : now.kind == GRADIENT_OVER_RANKS        ? 1 / ranks
                                                                           : 0);
}

#define WRAPPED(type, name, ...)                                                                   \
    type __real_##name(__VA_ARGS__);                                                               \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(Tensor *, attention, Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads,
        float factor);
WRAPPED(Tensor *, gelu, Tensor *x);
WRAPPED(Tensor *, linear, Tensor *x, Tensor *weight);
WRAPPED(Tensor *, dropout_with, Tensor *x, const char *name, double probability);
WRAPPED(Tensor *, add, Tensor *x, Tensor *y);
WRAPPED(Tensor *, first_token, Tensor *x);
WRAPPED(Tensor *, layer_norm, const LayerNorm *layer, Tensor *x);
WRAPPED(LayerNorm *, layer_norm_new, Builder *b, int size);
WRAPPED(Tensor *, parameter, Builder *b, const char *name, Shape shape, Placement placement);

static float wrong_factor(float factor, int heads, int64_t hidden)
{
    const float ranks = (float)now.c->tp;
    const int64_t share = hidden / heads / now.c->tp; /* integer division, as in a lab */
    const float wrong[MISTAKES] = {
        [FACTOR_HIDDEN] = 1 / sqrtf((float)hidden),
        [FACTOR_MISSING] = 1,
        [FACTOR_NO_ROOT] = factor * factor,
        [FACTOR_INVERSE] = 1 / factor,
        [FACTOR_LOCAL_HEADS] = factor / sqrtf(ranks),
        [FACTOR_WIDTH] = 1 / sqrtf((float)hidden / ranks),
        [FACTOR_HEADS] = 1 / sqrtf((float)heads),
        [FACTOR_SHARE] = 1 / sqrtf(fmaxf(1, (float)share)),
    };
    return wrong[now.kind] != 0 ? wrong[now.kind] : factor;
}

static int wrong_heads(int heads, int64_t hidden)
{
    if (now.kind == HEADS_TOTAL && hidden % (heads * now.c->tp) == 0)
        return heads * now.c->tp;
    return now.kind == HEADS_ONE ? now.c->tp : heads;
}

static Tensor *everything_seen(Tensor *q, Tensor *mask)
{
    mask = tape_ints(q->tape, mask->shape, ints(mask));
    for (int64_t i = 0, count = tensor_count(mask); i < count; i++)
        ints(mask)[i] = 1;
    return mask;
}

static Tensor *wrong_columns(Tensor *x, bool of_first)
{
    if (now.kind != HEADS_DEALT && !of_first)
        return x;
    return rearranged(x, now.c->tp, of_first ? OF_FIRST : DEALT_OUT);
}

Tensor *__wrap_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    int64_t hidden = shape_last(q->shape);
    if (now.kind == NO_MISTAKE)
        return __real_attention(q, k, v, mask, heads, factor);
    if (now.kind == MASK_IGNORED)
        mask = everything_seen(q, mask);
    if (now.kind == MASK_AS_LENGTH)
        mask = as_length(mask);
    q = wrong_columns(q, false);
    k = wrong_columns(k, now.kind == KEY_OF_FIRST || now.kind == KEY_VALUE_OF_FIRST);
    v = wrong_columns(v, now.kind == VALUE_OF_FIRST || now.kind == KEY_VALUE_OF_FIRST);
    factor = wrong_factor(factor, heads, hidden);
    heads = wrong_heads(heads, hidden);
    if (now.kind == KEY_VALUE_SWAPPED)
        return __real_attention(q, v, k, mask, heads, factor);
    if (now.kind == QUERY_KEY_SWAPPED)
        return __real_attention(k, q, v, mask, heads, factor);
    return __real_attention(q, k, v, mask, heads, factor);
}

/* The scenario itself calls gelu() once, on its input, outside the layer: that input has no
 * producer. */
Tensor *__wrap_gelu(Tensor *x)
{
    static const Activation *const wrong[MISTAKES] = {[ACTIVATION_RELU] = &relu,
                                                      [ACTIVATION_TANH] = &tanh_itself,
                                                      [ACTIVATION_SILU] = &silu,
                                                      [ACTIVATION_APPROXIMATE] = &gelu_by_tanh};
    if (!x->producer || now.kind == NO_MISTAKE)
        return __real_gelu(x);
    if (wrong[now.kind])
        return activated(x, wrong[now.kind]);
    now.gelu_due = now.kind == GELU_AFTER || now.kind == DROPOUT_FIRST;
    if (now.kind == GELU_TWICE)
        x = __real_gelu(x);
    return now.gelu_due || now.kind == GELU_MISSING ? x : __real_gelu(x);
}

static Tensor *with_gelu_if_due(Tensor *x)
{
    bool due = now.gelu_due;
    now.gelu_due = false;
    return due ? __real_gelu(x) : x;
}

Tensor *__wrap_parameter(Builder *b, const char *name, Shape shape, Placement placement)
{
    Tensor *weight = __real_parameter(b, name, shape, placement);
    if (now.kind != NO_MISTAKE && now.weight_count < MOST_MADE)
        now.weights[now.weight_count++] = weight;
    return weight;
}

/* From the last layer made, if it has one of this shape. */
static Tensor *weight_made_last(Tensor *weight)
{
    int half = now.weight_count / 2;
    for (int i = 0; i < half; i++)
        if (now.weights[i] == weight && (i == 0 || now.kind == ALL_WEIGHTS_SHARED) &&
            shape_equal(weight->shape, now.weights[i + half]->shape))
            return now.weights[i + half];
    return weight;
}

Tensor *__wrap_linear(Tensor *x, Tensor *weight)
{
    if (now.kind == FIRST_WEIGHT_SHARED || now.kind == ALL_WEIGHTS_SHARED)
        weight = weight_made_last(weight);
    Tensor *y = linear_on_own_positions(x, weight, __real_linear);
    if (now.kind == GRADIENT_OF_FIRST_PART)
        return rearranged(y, now.c->tp, BACKWARDS);
    if (now.dropout_due)
        y = __real_dropout_with(y, now.dropout_due, now.probability);
    now.dropout_due = NULL;
    return now.kind == GELU_AFTER ? with_gelu_if_due(y) : y;
}

Tensor *__wrap_dropout_with(Tensor *x, const char *name, double probability)
{
    if (now.kind == DROPOUT_LAST) {
        now.dropout_due = name;
        now.probability = probability;
    }
    if (now.kind == DROPOUT_MISSING || now.kind == DROPOUT_LAST)
        return x;
    if (now.kind == DROPOUT_REPEATED && x->tape->batch.training &&
        shape_last(x->shape) % now.c->tp == 0)
        return dropout_repeated(x, name, probability, now.c->tp);
    if ((now.kind == MASKS_OF_FIRST_POSITIONS || now.kind == PAIRS_OFF_TAPE) &&
        x->tape->batch.training && !strstr(name, "feed_forward"))
        return dropout_of_first_positions(x, name, probability, now.c->tp);
    if (now.kind == DROPOUT_TWICE)
        x = __real_dropout_with(x, name, probability);
    if (now.kind == DROPOUT_COMPLEMENT)
        probability = 1 - probability;
    if (now.kind == DROPOUT_HALVED)
        probability /= 2;
    if (now.kind == DROPOUT_FIXED_HALF || now.kind == DROPOUT_FIXED_TENTH)
        probability = now.kind == DROPOUT_FIXED_HALF ? 0.5 : 0.1;
    x = __real_dropout_with(x, name, probability);
    return now.kind == DROPOUT_FIRST ? with_gelu_if_due(x) : x;
}

/* ---- the block and the classifier ---------------------------------------------------------------------- */

LayerNorm *__wrap_layer_norm_new(Builder *b, int size)
{
    LayerNorm *layer = __real_layer_norm_new(b, size);
    if (now.kind != NO_MISTAKE && now.norm_count < MOST_MADE)
        now.norms[now.norm_count++] = layer;
    return layer;
}

/* Its index among the norms made, since a block makes norm1, then norm2; or -1. */
static int place_of(const LayerNorm *layer)
{
    for (int i = 0; i < now.norm_count; i++)
        if (now.norms[i] == layer)
            return i;
    return -1;
}

/* What its first norm has read. */
static Tensor *input_of_block(Tensor *x, bool first)
{
    if (first)
        now.entered = x;
    return now.entered;
}

Tensor *__wrap_layer_norm(const LayerNorm *layer, Tensor *x)
{
    int place = place_of(layer);
    bool first = place % 2 == 0;
    if (place < 0)
        return __real_layer_norm(layer, x);
    if (now.kind == NORMS_MISSING || now.kind == (first ? NORM_1_MISSING : NORM_2_MISSING))
        return x;
    if ((now.kind == NORMS_SWAPPED || now.kind == (first ? NORM_1_BY_2 : NORM_2_BY_1)) &&
        (place ^ 1) < now.norm_count)
        layer = now.norms[place ^ 1];
    if (now.kind == NORM_2_OF_INPUT)
        x = input_of_block(x, first);
    if (now.kind == NORM_AFTER) {
        now.norm_due = layer;
        return x;
    }
    return now.normed = __real_layer_norm(layer, x);
}

/* The scenario adds x to its own origin; the layer adds x to what it computed. */
Tensor *__wrap_add(Tensor *x, Tensor *y)
{
    if (now.kind == NO_MISTAKE || !y->producer)
        return __real_add(x, y);
    bool second = now.sums++ % 2;
    if (now.kind == (second ? RESIDUAL_2_MISSING : RESIDUAL_1_MISSING))
        return y;
    if (now.kind == (second ? RESIDUAL_2_OF_NORM : RESIDUAL_1_OF_NORM) && now.normed)
        x = now.normed;
    const LayerNorm *due = now.norm_due;
    now.norm_due = NULL;
    Tensor *sum = __real_add(x, y);
    return due ? __real_layer_norm(due, sum) : sum;
}

Tensor *__wrap_first_token(Tensor *x)
{
    const int64_t positions = x->shape.size[1];
    return now.kind == TOKEN_LAST   ? pooled(x, positions - 1, 1)
           : now.kind == TOKEN_MEAN ? pooled(x, 0, 1.0 / (double)positions)
                                    : __real_first_token(x);
}
