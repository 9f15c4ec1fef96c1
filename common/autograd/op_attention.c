/* Attention on the tape. */
#include <math.h>

#include "autograd/placement.h"
#include "base/run.h"

/* saved[0] is the mask, saved[1] [2,B,A,S]: the largest score of each row, then the sums. */
static void attention_gradient(Node *node, Tensor *dy)
{
    const AttentionShape *shape = &node->with.attention;
    Tape *tape = dy->tape;
    Tensor *x[3], *dx[3];
    for (int i = 0; i < 3; i++) {
        x[i] = ready(node->input[i]);
        dx[i] = tape_tensor(tape, REAL, x[i]->shape, x[i]->placement);
    }
    Tensor *work = tape_tensor(tape, REAL, SHAPE(kernel_attention_work(shape)), whole());
    const real *highest = reals(node->saved[1]), *sums = highest + tensor_count(node->saved[1]) / 2;
    kernel_attention_backward(shape, reals(x[0]), reals(x[1]), reals(x[2]), ints(node->saved[0]),
                              highest, sums, reals(dy), reals(dx[0]), reals(dx[1]), reals(dx[2]),
                              reals(work));
    for (int i = 0; i < 3; i++)
        gradient_add(node->input[i], dx[i]);
}

static void check_heads(const Tensor *q, const Tensor *k, const Tensor *v, int heads)
{
    if (q->shape.rank != 3 || !shape_equal(q->shape, k->shape) || !shape_equal(q->shape, v->shape))
        misuse("they are [B,S,heads*D] each",
               "attention: q %s, k %s and v %s must have one shape [B,S,heads*D]", TENSOR_TEXT(q),
               TENSOR_TEXT(k), TENSOR_TEXT(v));
    if (heads < 1 || q->shape.size[2] % heads)
        misuse("count the heads that are on this rank",
               "attention: %d heads do not divide the width of q %s", heads, TENSOR_TEXT(q));
}

static void check_mask(const Tensor *q, Tensor *mask)
{
    if (!mask)
        misuse("pass the mask on unchanged", "attention: the mask is NULL");
    if (mask->dtype != INT32 || mask->shape.rank != 2 || mask->shape.size[0] != q->shape.size[0] ||
        mask->shape.size[1] != q->shape.size[1])
        misuse("it is [B,S], 1 for a token and 0 for padding",
               "attention: the mask %s does not fit", TENSOR_TEXT(mask));
    for (int64_t b = 0, positions = q->shape.size[1]; b < q->shape.size[0]; b++) {
        bool any = false;
        for (int64_t s = 0; s < positions; s++)
            any = any || ints(ready(mask))[b * positions + s] != 0;
        if (!any)
            misuse("each sample needs one token at least",
                   "attention: row %lld of the mask hides every key", (long long)b);
    }
}

Tensor *attention(Tensor *q, Tensor *k, Tensor *v, Tensor *mask, int heads, float factor)
{
    must_be_real("attention", q);
    must_be_real("attention", k);
    must_be_real("attention", v);
    check_heads(q, k, v, heads);
    check_mask(q, mask);
    if (!(factor != 0 && isfinite(factor)))
        misuse(
            "it is 1 / sqrt(head size): a size that was not set is 0, and in integers so is 1 / 8 or 3 / 4",
            "attention: the scale factor of the scores is %g", (double)factor);
    Tape *tape = tape_of("attention", q, k);
    AttentionShape shape = {q->shape.size[0], q->shape.size[1], heads, q->shape.size[2] / heads,
                            (double)factor};
    place_alike(tape, "attention", k, v);
    place_not_partial(tape, "attention", q);
    Tensor *y = tape_tensor(tape, REAL, q->shape, place_alike(tape, "attention", q, k));
    int64_t rows = shape.batch * heads * shape.positions;
    Tensor *kept = tape_tensor(tape, REAL, SHAPE(2, rows), whole());
    Tensor *work = tape_tensor(tape, REAL, SHAPE(kernel_attention_work(&shape)), whole());
    kernel_attention_forward(&shape, reals(ready(q)), reals(ready(k)), reals(ready(v)), ints(mask),
                             reals(y), reals(kept), reals(kept) + rows, reals(work));
    tape_release_value(work);
    Node *node = tape_operation(tape, "attention", attention_gradient, y, 3, (Tensor *[]){q, k, v});
    if (!node)
        return y;
    node->with.attention = shape;
    node_keep(node, 0, mask);
    node_keep(node, 1, kept);
    q->kept = k->kept = v->kept = true;
    return y;
}
