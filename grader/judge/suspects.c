#include "grader/judge/suspects.h"

#include <math.h>

#include "grader/judge/judge.h"

static const Suspect suspects[SUSPECTS] = {
    [OWN_ONLY] = {1, "it holds this rank's own contribution only: the other ranks used or brought one too"},
    [COUNTED_TWICE] =
        {1, "it holds this rank's own part once too often: the tape adds up what you return, so return this "
            "use's gradient only"},
    [PAIRS_ONLY] =
        {1, "each rank has the sum of two contributions only: the exchange does not reach the whole group"},
    [CHANGED_INPUT] = {1, "all_reduce altered its input; another operation still needs the old values"},
    [FACTOR_HIDDEN] =
        {0, "attention scores are scaled by the hidden size; it is the size of one head that counts"},
    [FACTOR_MISSING] = {0, "attention scores are not scaled: the factor 1/sqrt(head size) is missing"},
    [KEY_VALUE_SWAPPED] = {0, "keys and values are exchanged"},
    [MASK_IGNORED] = {0, "positions hidden by the mask still influence the output"},
    [HEADS_TOTAL] = {0, "the size of a head changed with the number of ranks: count the heads on this rank"},
    [GELU_MISSING] = {0, "the activation (GELU) between the two linear layers is missing"},
    [GELU_AFTER] =
        {0, "the activation is not where the reference has it: GELU comes between the two linear layers, not "
            "after the second"},
    [DROPOUT_FIRST] = {0, "dropout is not where the reference has it: it follows the activation"},
    [DROPOUT_MISSING] = {0, "dropout is missing"},
};

/* The words pass no context, so what they do wrong is said here while one suspect is played. */
static struct {
    int kind;
    const Case *c;
    bool gelu_due;
} now = {.kind = NO_SUSPECT};

int suspect_count(void)
{
    return SUSPECTS;
}

const Suspect *suspect_at(int i)
{
    return &suspects[i];
}

void suspect_begin(int suspect, const Case *c)
{
    now.kind = suspect;
    now.c = c;
    now.gelu_due = false;
}

void suspect_end(void)
{
    now.kind = NO_SUSPECT;
}

Tensor *__real_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);
Tensor *__wrap_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);
Tensor *__real_gelu(Tensor *x);
Tensor *__wrap_gelu(Tensor *x);
Tensor *__real_linear(Tensor *x, Tensor *weight);
Tensor *__wrap_linear(Tensor *x, Tensor *weight);
Tensor *__real_dropout(const Dropout *layer, Tensor *x);
Tensor *__wrap_dropout(const Dropout *layer, Tensor *x);

Tensor *__wrap_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    int64_t hidden = shape_last(q->shape);
    if (now.kind == FACTOR_HIDDEN)
        factor = 1 / sqrtf((float)hidden);
    if (now.kind == FACTOR_MISSING)
        factor = 1;
    if (now.kind == HEADS_TOTAL && hidden % (heads * now.c->tp) == 0)
        heads *= now.c->tp;
    if (now.kind == KEY_VALUE_SWAPPED) {
        Tensor *swap = k;
        k = v;
        v = swap;
    }
    if (now.kind == MASK_IGNORED) {
        mask = tape_ints(q->tape, mask->shape, ints(mask));
        for (int64_t i = 0, count = tensor_count(mask); i < count; i++)
            ints(mask)[i] = 1;
    }
    return __real_attention(q, k, v, mask, heads, factor);
}

/* The play itself uses gelu() once, on its input, outside of the layer: that one has no producer. */
Tensor *__wrap_gelu(Tensor *x)
{
    if (!x->producer)
        return __real_gelu(x);
    now.gelu_due = now.kind == GELU_AFTER || now.kind == DROPOUT_FIRST;
    return now.gelu_due || now.kind == GELU_MISSING ? x : __real_gelu(x);
}

static Tensor *with_gelu_if_due(Tensor *x)
{
    bool due = now.gelu_due;
    now.gelu_due = false;
    return due ? __real_gelu(x) : x;
}

Tensor *__wrap_linear(Tensor *x, Tensor *weight)
{
    Tensor *y = __real_linear(x, weight);
    return now.kind == GELU_AFTER ? with_gelu_if_due(y) : y;
}

Tensor *__wrap_dropout(const Dropout *layer, Tensor *x)
{
    if (now.kind == DROPOUT_MISSING)
        return x;
    x = __real_dropout(layer, x);
    return now.kind == DROPOUT_FIRST ? with_gelu_if_due(x) : x;
}
