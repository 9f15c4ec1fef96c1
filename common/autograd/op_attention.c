/* Attention on the tape. */
#include <math.h>

#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

/* saved[0] is the mask or NULL. saved[1] is [2,B*A*S]: the largest score of each row, then the sums
 * of the exponentials. saved[2..4] are q, k and v as they were multiplied: perhaps in 16 bits. */
static void attention_gradient(Node *node, Tensor *dy)
{
    const AttentionShape *shape = &node->with.attention;
    Tape *tape = dy->tape;
    Tensor *const *x = node->saved + 2, *dx[3];
    for (int i = 0; i < 3; i++)
        dx[i] = tape_tensor(tape, x[i]->dtype, x[i]->shape, x[i]->placement);
    Tensor *work = tape_tensor(tape, REAL, SHAPE(kernel_attention_work(shape)), whole());
    const int32_t *mask = node->saved[0] ? ints(node->saved[0]) : NULL;
    const real *highest = reals(node->saved[1]), *sums = highest + tensor_count(node->saved[1]) / 2;
    kernel_attention_backward(shape, reals_or_halves(x[0]), reals_or_halves(x[1]),
                              reals_or_halves(x[2]), mask, highest, sums,
                              reals_or_halves(in_type_of(x[0], dy)), reals_or_halves(dx[0]),
                              reals_or_halves(dx[1]), reals_or_halves(dx[2]), reals(work));
    for (int i = 0; i < 3; i++)
        gradient_add(node->input[i], dx[i]);
}

static void check_heads(const char *function, bool causal, const Tensor *q, const Tensor *k,
                        const Tensor *v, int heads)
{
    const bool fit = q->shape.rank == 3 && k->shape.rank == 3 && shape_equal(k->shape, v->shape) &&
                     q->shape.size[0] == k->shape.size[0] && q->shape.size[2] == k->shape.size[2];
    if (!fit || (causal ? q->shape.size[1] > k->shape.size[1] : !shape_equal(q->shape, k->shape)))
        misuse(causal ? N_("q is [B,S,heads*D]; k and v are [B,T,heads*D], earlier keys included")
                      : N_("they are [B,S,heads*D] each"),
               causal ? N_("%s: q %s, k %s and v %s do not fit")
                      : N_("%s: q %s, k %s and v %s must all have the same shape, [B,S,heads*D]"),
               function, TENSOR_TEXT(q), TENSOR_TEXT(k), TENSOR_TEXT(v));
    must_have_heads(function, q, heads);
}

void must_have_heads(const char *function, const Tensor *x, int heads)
{
    if (x->shape.rank != 3 || heads < 1 || x->shape.size[2] % heads)
        misuse("count the heads that are on this rank",
               "%s: %d heads do not divide the width of %s", function, heads, TENSOR_TEXT(x));
}

static void check_mask(const char *function, const Tensor *k, Tensor *mask)
{
    const int64_t keys = k->shape.size[1];
    if (mask->dtype != INT32 || mask->shape.rank != 2 || mask->shape.size[0] != k->shape.size[0] ||
        mask->shape.size[1] != keys)
        misuse("it is [B,S], 1 for a token and 0 for padding", "%s: the mask %s does not fit",
               function, TENSOR_TEXT(mask));
    for (int64_t b = 0; b < k->shape.size[0]; b++) {
        bool any = false;
        for (int64_t s = 0; s < keys; s++)
            any = any || ints(ready(mask))[b * keys + s] != 0;
        if (!any)
            misuse("each sample needs at least one token",
                   "%s: row %lld of the mask hides every key", function, (long long)b);
    }
}

static void check_arguments(const char *function, bool causal, Tensor *q, Tensor *k, Tensor *v,
                            Tensor *mask, int heads, float factor)
{
    must_not_be_ids(function, q);
    must_not_be_ids(function, k);
    must_not_be_ids(function, v);
    check_heads(function, causal, q, k, v, heads);
    if (mask)
        check_mask(function, k, mask);
    if (!(factor != 0 && isfinite(factor)))
        misuse("it should be 1 / sqrt(head size): a size that was not set is 0, and so are 1 / 8 "
               "and 3 / 4 in integer arithmetic",
               "%s: the scale factor of the scores is %g", function, (double)factor);
}

static Tensor *attention_of(const char *function, const AttentionShape *shape, Tensor *q, Tensor *k,
                            Tensor *v, Tensor *mask)
{
    Tape *tape = tape_of(function, q, k);
    const bool in_16_bits = kernel_attention_is_in_16_bits(shape);
    Tensor *y = tape_tensor(tape, in_16_bits ? HALF : REAL, q->shape,
                            place_result(tape, PLACE_ALIKE, function, q, k, LAST));
    int64_t rows = shape->batch * shape->heads * shape->positions;
    Tensor *kept = tape_tensor(tape, REAL, SHAPE(2, rows), whole());
    Tensor *work = tape_tensor(tape, REAL, SHAPE(kernel_attention_work(shape)), whole());
    real *const highest = reals(kept), *const sums = highest + rows;
    const int32_t *shown = mask ? ints(mask) : NULL;
    Tensor *x[] = {q, k, v};
    for (int i = 0; i < 3; i++)
        x[i] = in_16_bits ? rounded_copy(tape, x[i]) : ready(x[i]);
    kernel_attention_forward(shape, reals_or_halves(x[0]), reals_or_halves(x[1]),
                             reals_or_halves(x[2]), shown, reals_or_halves(y), highest, sums,
                             reals(work));
    tape_release_value(work);
    tape->next = (Attributes){
        {{N_("heads"), .number = shape->heads}, {N_("factor"), .number = shape->factor}}};
    Node *node =
        tape_operation(tape, function, attention_gradient, y, 4, (Tensor *[]){q, k, v, mask});
    if (!node)
        return y;
    if (shape->past)
        misuse("a cache of keys and values is for inference: call this function where no gradient "
               "is needed",
               "%s: a gradient is needed, but q %s has fewer positions than k %s", function,
               TENSOR_TEXT(q), TENSOR_TEXT(k));
    node->with.attention = *shape;
    node->takes_16_bits = true;
    if (mask)
        node_keep(node, 0, mask);
    node_keep(node, 1, kept);
    for (int i = 0; i < 3; i++)
        node_keep(node, 2 + i, x[i]);
    return y;
}

static AttentionShape shape_of(const Tensor *q, const Tensor *k, int heads, float factor,
                               bool causal)
{
    return (AttentionShape){.batch = q->shape.size[0],
                            .positions = q->shape.size[1],
                            .heads = heads,
                            .head_size = q->shape.size[2] / heads,
                            .factor = (double)factor,
                            .causal = causal,
                            .past = k->shape.size[1] - q->shape.size[1]};
}

Tensor *attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    check_arguments("attention", false, q, k, v, mask, heads, factor);
    if (!mask)
        misuse("pass the mask on unchanged", "attention: the mask is NULL");
    Tape *tape = tape_of("attention", q, k);
    place_result(tape, PLACE_ALIKE, "attention", k, v, LAST);
    place_result(tape, PLACE_NOT_PARTIAL, "attention", q, NULL, LAST);
    const AttentionShape shape = shape_of(q, k, heads, factor, false);
    return attention_of("attention", &shape, q, k, v, mask);
}

Tensor *attention_causal(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    check_arguments("attention_causal", true, q, k, v, mask, heads, factor);
    Tape *tape = tape_of("attention_causal", q, k);
    place_result(tape, PLACE_ALIKE, "attention_causal", k, v, LAST);
    place_result(tape, PLACE_HEADS, "attention_causal", q, NULL, LAST);
    const AttentionShape shape = shape_of(q, k, heads, factor, true);
    return attention_of("attention_causal", &shape, q, k, v, mask);
}
