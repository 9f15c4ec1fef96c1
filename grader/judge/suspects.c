#include "grader/judge/suspects.h"

#include <math.h>

#include "autograd/operations.h"
#include "grader/judge/judge.h"

static const Suspect suspects[SUSPECTS] = {
    [OWN_ONLY] = {1, "it holds this rank's own contribution only: the other ranks used or brought one too"},
    [COUNTED_TWICE] =
        {1, "it holds this rank's own part once too often: the tape adds up what you return, so return this "
            "use's gradient only"},
    [PAIRS_ONLY] =
        {1, "each rank has the sum of two contributions only: the exchange does not reach the whole group"},
    [CHANGED_INPUT] = {1, "all_reduce altered its input; another operation still needs the old values"},
    [OTHER_REPLICAS] = {1, "it contains contributions of another replica: the sum is that of the world"},
    [NOT_DIVIDED] = {11, "gradients grow with the number of replicas: this is their sum, not their mean"},
    [DIVIDED_TWICE] = {11,
                       "the gradients are averaged twice: divided by the number of replicas once too often"},
    [DIVIDED_BY_WORLD] = {11, "it is divided by the number of all ranks: a mean is over the replicas"},
    [DIVIDED_BY_TP] = {11, "it is divided by the size of the tp group: a mean is over the replicas"},
    [DIVIDED_ALONE] = {11, "it is this replica's own, divided: nothing of the other replicas is in it"},
    [OVER_TP] =
        {11, "it is taken over the tp group: it is the replicas, the dp group, that have something to add"},
    [OVER_TP_BY_DP] = {11, "it is a sum over the tp group: its ranks hold different pieces of the weights"},
    [OVER_THE_WORLD] =
        {11,
         "it is taken over the world: different pieces of the weights, or each sample once per tp rank, are "
         "counted together"},
    [OVER_THE_WORLD_BY_DP] =
        {11, "gradients of different pieces of a weight were added together: the group is the world"},
    [ONE_REPLICA] = {11, "it describes one replica's data only: nothing of the others is in it"},
    [FACTOR_HIDDEN] =
        {0, "attention scores are scaled by the hidden size; it is the size of one head that counts"},
    [FACTOR_MISSING] = {0, "attention scores are not scaled: the factor 1/sqrt(head size) is missing"},
    [FACTOR_NO_ROOT] =
        {0, "attention scores are divided by the size of a head; it is the square root of it that counts"},
    [FACTOR_INVERSE] =
        {0, "attention scores are multiplied by the square root of the head size; they are divided by it"},
    [FACTOR_WIDTH] =
        {0, "attention scores are scaled by the width that this rank holds; it is the size of one head "
            "that counts"},
    [FACTOR_HEADS] =
        {0, "attention scores are scaled by the number of heads; it is the size of one head that counts"},
    [KEY_VALUE_SWAPPED] = {0, "keys and values are exchanged"},
    [QUERY_KEY_SWAPPED] = {0, "queries and keys are exchanged"},
    [MASK_IGNORED] = {0, "positions hidden by the mask still influence the output"},
    [HEADS_TOTAL] = {0, "the size of a head changed with the number of ranks: count the heads on this rank"},
    [HEADS_ONE] = {0, "everything on a rank is taken as one head: count the heads on this rank"},
    [GELU_MISSING] = {0, "the activation (GELU) between the two linear layers is missing"},
    [GELU_TWICE] = {0, "GELU is applied twice"},
    [GELU_AFTER] =
        {0, "the activation is not where the reference has it: GELU comes between the two linear layers, not "
            "after the second"},
    [DROPOUT_FIRST] = {0, "dropout is not where the reference has it: it follows the activation"},
    [DROPOUT_LAST] =
        {0,
         "dropout is not where the reference has it: it comes before the second linear layer, not after it"},
    [DROPOUT_MISSING] = {0, "dropout is missing"},
    [DROPOUT_TWICE] = {0, "dropout is applied twice"},
    [DROPOUT_COMPLEMENT] = {0, "the probability of dropout is that of dropping a number, not of keeping it"},
    [DROPOUT_REPEATED] =
        {0, "all ranks drop the same inner units of their share: their masks are copies of each other, "
            "as if each held the first columns. A shard has to be known as one: placed(x, shard(LAST))"},
    [RESIDUAL_1_MISSING] = {0, "the residual around the attention is missing"},
    [GRADIENT_TIMES_RANKS] =
        {0, "the gradient of x is as many times the expected one as there are ranks: it is summed over "
            "the ranks twice, or was complete before"},
    [GRADIENT_TWICE_TIMES_RANKS] = {0, "the gradient of x is summed over the ranks twice too often"},
    [GRADIENT_OVER_RANKS] = {0, "the gradient of x is divided by the number of ranks"},
    [GRADIENT_MISSING] =
        {0, "no gradient flowed back through the layer. A group_... word gives values only; duplication, "
            "all_reduce and all_gather are on the tape"},
    [RESIDUAL_2_MISSING] = {0, "the residual around the feed-forward layers is missing"},
};

/* The words pass no context, so what they do wrong is said here while one suspect is played. */
static struct {
    int kind;
    const Case *c;
    bool gelu_due;
    const char *dropout_due; /* its name, or NULL */
    double probability;
    int sums; /* of residuals */
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
    now.dropout_due = NULL;
    now.sums = 0;
}

void suspect_end(void)
{
    now.kind = NO_SUSPECT;
}

static void wrong_gradient(Node *node, Tensor *dy)
{
    int ranks = now.c->tp;
    double factor = now.kind == GRADIENT_TIMES_RANKS         ? ranks
                    : now.kind == GRADIENT_TWICE_TIMES_RANKS ? ranks * ranks
                    : now.kind == GRADIENT_OVER_RANKS        ? 1.0 / ranks
                                                             : 0;
    Tensor *dx = tape_tensor(dy->tape, REAL, dy->shape, whole());
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(dx)[i] = factor * reals(dy)[i];
    gradient_add(node->input[0], dx);
}

Tensor *into_layer(Play *play, Tensor *x)
{
    if (now.kind < GRADIENT_TIMES_RANKS || now.kind > GRADIENT_MISSING)
        return x;
    Tensor *y = tape_view(x->tape, ready(x), whole());
    tape_operation(x->tape, "wrong gradient", wrong_gradient, y, 1, &x);
    return y;
}

#define WRAPPED(type, name, ...)                                                                             \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

WRAPPED(Tensor *, attention, Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor);
WRAPPED(Tensor *, gelu, Tensor *x);
WRAPPED(Tensor *, linear, Tensor *x, Tensor *weight);
WRAPPED(Tensor *, dropout_with, Tensor *x, const char *name, double probability);
WRAPPED(Tensor *, add, Tensor *x, Tensor *y);

static float wrong_factor(float factor, int heads, int64_t hidden)
{
    float ranks = (float)now.c->tp;
    switch (now.kind) {
    case FACTOR_HIDDEN:
        return 1 / sqrtf((float)hidden);
    case FACTOR_MISSING:
        return 1;
    case FACTOR_NO_ROOT:
        return factor * factor;
    case FACTOR_INVERSE:
        return 1 / factor;
    case FACTOR_WIDTH:
        return 1 / sqrtf((float)hidden / ranks);
    case FACTOR_HEADS:
        return 1 / sqrtf((float)heads);
    default:
        return factor;
    }
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

Tensor *__wrap_attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    int64_t hidden = shape_last(q->shape);
    if (now.kind == NO_SUSPECT)
        return __real_attention(q, k, v, mask, heads, factor);
    if (now.kind == MASK_IGNORED)
        mask = everything_seen(q, mask);
    factor = wrong_factor(factor, heads, hidden);
    heads = wrong_heads(heads, hidden);
    if (now.kind == KEY_VALUE_SWAPPED)
        return __real_attention(q, v, k, mask, heads, factor);
    if (now.kind == QUERY_KEY_SWAPPED)
        return __real_attention(k, q, v, mask, heads, factor);
    return __real_attention(q, k, v, mask, heads, factor);
}

/* The play itself uses gelu() once, on its input, outside of the layer: that one has no producer. */
Tensor *__wrap_gelu(Tensor *x)
{
    if (!x->producer)
        return __real_gelu(x);
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

Tensor *__wrap_linear(Tensor *x, Tensor *weight)
{
    Tensor *y = __real_linear(x, weight);
    if (now.dropout_due)
        y = __real_dropout_with(y, now.dropout_due, now.probability);
    now.dropout_due = NULL;
    return now.kind == GELU_AFTER ? with_gelu_if_due(y) : y;
}

/* As if each rank drew the mask of the first columns for its own. */
static Tensor *repeated_mask(const DropoutMask *mask, Tensor *x)
{
    int64_t columns = shape_last(x->shape), mine = columns / now.c->tp, rows = tensor_count(x) / columns;
    Shape shape = SHAPE(rows, mine);
    Tensor *y = tape_tensor(x->tape, REAL, x->shape, whole());
    for (int k = 0; k < now.c->tp; k++) {
        Tensor *part_of_x = tape_tensor(x->tape, REAL, shape, whole()),
               *part_of_y = tape_tensor(x->tape, REAL, shape, whole());
        kernel_copy_rows(rows, mine, reals(x) + k * mine, columns, reals(part_of_x), mine);
        kernel_dropout_apply(rows, mine, mask, reals(part_of_x), reals(part_of_y));
        kernel_copy_rows(rows, mine, reals(part_of_y), mine, reals(y) + k * mine, columns);
    }
    return y;
}

static void repeated_mask_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], repeated_mask(&node->with.mask, dy));
}

static Tensor *dropout_repeated(Tensor *x, const char *name, double probability)
{
    const TapeBatch *batch = tape_batch(x->tape);
    DropoutMask mask = {.key = philox_key(batch->seed, name, (uint64_t)batch->step),
                        .probability = probability,
                        .samples = batch->samples,
                        .positions = x->shape.rank == 3 ? x->shape.size[1] : 1};
    if (!batch->training || shape_last(x->shape) % now.c->tp)
        return __real_dropout_with(x, name, probability);
    Tensor *y = repeated_mask(&mask, ready(x));
    Node *node = tape_operation(x->tape, "dropout", repeated_mask_gradient, y, 1, &x);
    if (node)
        node->with.mask = mask;
    return y;
}

Tensor *__wrap_dropout_with(Tensor *x, const char *name, double probability)
{
    if (now.kind == DROPOUT_LAST) {
        now.dropout_due = name;
        now.probability = probability;
    }
    if (now.kind == DROPOUT_MISSING || now.kind == DROPOUT_LAST)
        return x;
    if (now.kind == DROPOUT_REPEATED)
        return dropout_repeated(x, name, probability);
    if (now.kind == DROPOUT_TWICE)
        x = __real_dropout_with(x, name, probability);
    if (now.kind == DROPOUT_COMPLEMENT)
        probability = 1 - probability;
    x = __real_dropout_with(x, name, probability);
    return now.kind == DROPOUT_FIRST ? with_gelu_if_due(x) : x;
}

/* The play adds x to what x was made of; the layer adds x to what it has computed. */
Tensor *__wrap_add(Tensor *x, Tensor *y)
{
    if (y->producer && (now.kind == RESIDUAL_1_MISSING || now.kind == RESIDUAL_2_MISSING)) {
        bool second = now.sums++ % 2;
        if (second == (now.kind == RESIDUAL_2_MISSING))
            return y;
    }
    return __real_add(x, y);
}
