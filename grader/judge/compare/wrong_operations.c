/* The plain layers' operations as the judge runs them: each makes the mistake of the current
 * suspect. */
#include <math.h>

#include "grader/judge/compare/expected.h"
#include "grader/judge/compare/wrong_block.h"
#include "grader/judge/compare/wrong_operations.h"

enum { MOST_MADE = 24 };

/* Operations take no context, so the current mistake is global. */
static struct {
    int kind;
    const Case *c;
    bool gelu_due;
    const char *dropout_due; /* the parameter's name, or NULL */
    double probability;
    Tensor *weights[MOST_MADE]; /* the first weights, in order of creation */
    int weight_count;
} now = {.kind = NO_MISTAKE};

void suspect_begin(int suspect, const Case *c)
{
    memset(&now, 0, sizeof now);
    now.kind = suspect;
    now.c = c;
    block_begin();
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
    return now.kind == GRADIENT_MISSING ? with_gradient_times(x, 0) : x;
}

WRAPPED(Tensor *, attention, Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads,
        float factor);
WRAPPED(Tensor *, gelu, Tensor *x);
WRAPPED(Tensor *, linear, Tensor *x, Tensor *weight);
WRAPPED(Tensor *, dropout_with, Tensor *x, const char *name, double probability);
WRAPPED(Tensor *, parameter, Builder *b, const char *name, Shape shape, Placement placement);

static float wrong_factor(float factor, int heads, int64_t hidden)
{
    const float ranks = (float)now.c->tp;
    const int64_t head = hidden / heads;
    const int64_t share = head / now.c->tp; /* integer division, as in a lab */
    const float wrong[MISTAKES] = {
        [FACTOR_HIDDEN] = 1 / sqrtf((float)hidden),
        [FACTOR_MISSING] = 1,
        [FACTOR_ROUNDED] = 1 / floorf(sqrtf((float)head)),
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
    if (now.kind == QUERY_VALUE_SWAPPED)
        return __real_attention(v, k, q, mask, heads, factor);
    if (now.kind == QUERY_LAST)
        return __real_attention(k, v, q, mask, heads, factor);
    if (now.kind == VALUE_FIRST)
        return __real_attention(v, q, k, mask, heads, factor);
    return __real_attention(q, k, v, mask, heads, factor);
}

/* The scenario itself calls gelu() once outside the layer, on an input, which has no producer. */
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
    const bool later = now.kind == GELU_AFTER || now.kind == DROPOUT_FIRST ||
                       now.kind == GELU_DROPOUT_AFTER,
               again = now.kind == GELU_ALSO_AFTER || now.kind == GELU_AROUND_DROPOUT;
    now.gelu_due = later || again;
    if (now.kind == GELU_TWICE)
        x = __real_gelu(x);
    return later || now.kind == GELU_MISSING ? x : __real_gelu(x);
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

/* The second layer's weight, if the mistake makes the first layer use it instead of `weight` and
 * the shapes are equal; otherwise `weight`. */
static Tensor *weight_made_last(Tensor *weight)
{
    int half = now.weight_count / 2;
    for (int i = 0; i < half; i++)
        if (now.weights[i] == weight && (i == 0 || now.kind == ALL_WEIGHTS_SHARED) &&
            shape_equal(weight->shape, now.weights[i + half]->shape))
            return now.weights[i + half];
    return weight;
}

/* Returns where this end of the weight's name begins, or NULL if the name ends differently. */
static const char *end_of_name(const Tensor *weight, const char *end)
{
    const char *name = weight->parameter ? weight->parameter->name : "";
    const size_t length = strlen(name), of_end = strlen(end);
    return length >= of_end && !strcmp(name + length - of_end, end) ? name + length - of_end : NULL;
}

/* The weight of the same layer with this name. */
static Tensor *weight_beside(Tensor *weight, const char *end, const char *name)
{
    const size_t before = (size_t)(end - weight->parameter->name);
    for (int i = 0; i < now.weight_count; i++) {
        const char *found = end_of_name(now.weights[i], name);
        if (found && (size_t)(found - now.weights[i]->parameter->name) == before &&
            !strncmp(now.weights[i]->parameter->name, weight->parameter->name, before))
            return now.weights[i];
    }
    return weight;
}

/* The weight of another projection of this layer, if the mistake uses it in place of `weight`;
 * otherwise `weight`. */
static Tensor *weight_taken(Tensor *weight)
{
    static const struct {
        const char *of, *taken;
    } wrong[MISTAKES][2] = {
        [QUERY_BY_KEY] = {{"query", "key"}},
        [QUERY_BY_VALUE] = {{"query", "value"}},
        [KEY_BY_QUERY] = {{"key", "query"}},
        [KEY_BY_VALUE] = {{"key", "value"}},
        [VALUE_BY_QUERY] = {{"value", "query"}},
        [VALUE_BY_KEY] = {{"value", "key"}},
        [KEY_VALUE_BY_QUERY] = {{"key", "query"}, {"value", "query"}},
    };
    for (int i = 0; i < 2 && wrong[now.kind][i].of; i++) {
        const char *end = end_of_name(weight, wrong[now.kind][i].of);
        if (end)
            return weight_beside(weight, end, wrong[now.kind][i].taken);
    }
    return weight;
}

Tensor *__wrap_linear(Tensor *x, Tensor *weight)
{
    if (now.kind == NO_MISTAKE)
        return __real_linear(x, weight);
    if (now.kind == FIRST_WEIGHT_SHARED || now.kind == ALL_WEIGHTS_SHARED)
        weight = weight_made_last(weight);
    if (now.kind == OUTPUT_MISSING && end_of_name(weight, "output"))
        return x;
    if (now.kind == GELU_ALSO_BEFORE && end_of_name(weight, "up.weight"))
        x = __real_gelu(x);
    Tensor *y = linear_on_own_positions(x, weight_taken(weight), __real_linear);
    if (now.kind == GRADIENT_OF_FIRST_PART)
        return rearranged(y, now.c->tp, BACKWARDS);
    if (now.kind == GELU_AFTER || now.kind == GELU_ALSO_AFTER || now.kind == GELU_DROPOUT_AFTER)
        y = with_gelu_if_due(y);
    if (now.dropout_due)
        y = __real_dropout_with(y, now.dropout_due, now.probability);
    now.dropout_due = NULL;
    return y;
}

/* Does each rank draw the mask of the first positions for this dropout before a residual sum? */
static bool has_first_mask(const char *name)
{
    const int half = strstr(name, "dropout1")   ? ATTENTION
                     : strstr(name, "dropout2") ? FEED_FORWARD
                                                : HALVES;
    return half < HALVES && half_now(half)->first_masks;
}

Tensor *__wrap_dropout_with(Tensor *x, const char *name, double probability)
{
    if (now.kind == DROPOUT_LAST || now.kind == GELU_DROPOUT_AFTER) {
        now.dropout_due = name;
        now.probability = probability;
        return x;
    }
    if (now.kind == DROPOUT_MISSING)
        return x;
    if (now.kind == DROPOUT_REPEATED && x->tape->batch.training &&
        shape_last(x->shape) % now.c->tp == 0)
        return dropout_repeated(x, name, probability, now.c->tp);
    if (x->tape->batch.training && has_first_mask(name))
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
    return now.kind == DROPOUT_FIRST || now.kind == GELU_AROUND_DROPOUT ? with_gelu_if_due(x) : x;
}
