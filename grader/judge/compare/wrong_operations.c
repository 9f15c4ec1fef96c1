/* The plain layers' operations as the judge runs them: each makes the mistake of the current
 * suspect. */
#include "grader/judge/compare/expected.h"
#include "grader/judge/compare/wrong_block.h"
#include "grader/judge/compare/wrong_operations.h"

/* Operations take no context, so the current mistake is global. */
static struct {
    int kind;
    const Case *c;
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
    return now.kind == GRADIENT_MISSING ? with_gradient_times(x, 0) : x;
}

WRAPPED(Tensor *, attention, Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads,
        float factor);
WRAPPED(Tensor *, linear, Tensor *x, Tensor *weight);
WRAPPED(Tensor *, dropout_with, Tensor *x, const char *name, double probability);

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
    if (now.kind == NO_MISTAKE)
        return __real_attention(q, k, v, mask, heads, factor);
    if (now.kind == MASK_IGNORED)
        mask = everything_seen(q, mask);
    if (now.kind == MASK_AS_LENGTH)
        mask = as_length(mask);
    q = wrong_columns(q, false);
    k = wrong_columns(k, now.kind == KEY_OF_FIRST);
    v = wrong_columns(v, false);
    return __real_attention(q, k, v, mask, heads, factor);
}

Tensor *__wrap_linear(Tensor *x, Tensor *weight)
{
    if (now.kind == NO_MISTAKE)
        return __real_linear(x, weight);
    Tensor *y = linear_on_own_positions(x, weight, __real_linear);
    return now.kind == GRADIENT_OF_FIRST_PART ? rearranged(y, now.c->tp, BACKWARDS) : y;
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
    if (now.kind == DROPOUT_REPEATED && x->tape->batch.training &&
        shape_last(x->shape) % now.c->tp == 0)
        return dropout_repeated(x, name, probability, now.c->tp);
    if (x->tape->batch.training && has_first_mask(name))
        return dropout_of_first_positions(x, name, probability, now.c->tp);
    return __real_dropout_with(x, name, probability);
}
