/* Rotary positions, and key and value heads that several query heads share. */
#include <math.h>

#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

static void rotary_gradient(Node *node, Tensor *dy)
{
    Tensor *dx = gradient_over(dy, node->input[0]->placement);
    kernel_rotary(&node->with.rotary, true, reals_or_halves(dy), reals_or_halves(dx));
    gradient_add(node->input[0], dx);
}

Tensor *rotary(Tensor *x, int heads, int64_t first, RotaryAngles angles)
{
    must_not_be_ids("rotary", x);
    must_have_heads("rotary", x, heads);
    if (x->shape.size[2] / heads % 2)
        misuse("rotary positions rotate pairs of numbers",
               "rotary: the %d heads of %s have an odd size", heads, TENSOR_TEXT(x));
    if (first < 0 || !(angles.theta > 0 && isfinite(angles.theta)))
        misuse("positions are numbered from 0, and theta is 10000 in most models",
               "rotary: the first position is %lld, and theta is %g", (long long)first,
               angles.theta);
    Tape *tape = tape_of("rotary", x, NULL);
    const Rotary turn = {
        x->shape.size[0], x->shape.size[1], heads, x->shape.size[2] / heads, first, angles};
    Tensor *y = tape_tensor(tape, available(x)->dtype, x->shape,
                            place_result(tape, PLACE_HEADS, "rotary", x, NULL, LAST));
    kernel_rotary(&turn, false, reals_or_halves(x), reals_or_halves(y));
    tape->next = (Attributes){{{N_("heads"), .number = heads},
                               {N_("first position"), .number = (double)first},
                               {"theta", .number = angles.theta}}};
    Node *node = tape_operation(tape, "rotary", rotary_gradient, y, 1, &x);
    if (node) {
        node->with.rotary = turn;
        node->takes_16_bits = true;
    }
    return y;
}

/* The copies of a head are adjacent; t is the number of a copy. For the kernel, each head is a row
 * of x. */

static void repeat_heads_gradient(Node *node, Tensor *dy)
{
    Tensor *x = node->input[0], *dx = tape_tensor(dy->tape, REAL, x->shape, x->placement);
    Tensor *copy = tape_tensor(dy->tape, REAL, x->shape, x->placement);
    const int64_t times = node->with.repeat.times, count = tensor_count(x),
                  size = x->shape.size[2] / node->with.repeat.heads;
    for (int64_t t = 0; t < times; t++) {
        kernel_copy_rows(count / size, size, reals(dy) + t * size, times * size,
                         reals(t == 0 ? dx : copy), size);
        if (t > 0)
            kernel_vector_accumulate(count, reals(copy), reals(dx));
    }
    gradient_add(x, dx);
}

Tensor *repeat_heads(Tensor *x, int heads, int times)
{
    must_not_be_ids("repeat_heads", x);
    must_have_heads("repeat_heads", x, heads);
    if (times < 1)
        misuse("it is the number of query heads that share a key-value head",
               "repeat_heads: %d times", times);
    Tape *tape = tape_of("repeat_heads", x, NULL);
    const Placement placement = place_result(tape, PLACE_HEADS, "repeat_heads", x, NULL, LAST);
    if (times == 1)
        return x;
    const int64_t width = x->shape.size[2], size = width / heads, count = tensor_count(x);
    Tensor *y = tape_tensor(tape, REAL, shape_with(x->shape, 2, times * width), placement);
    for (int64_t t = 0; size && t < times; t++)
        kernel_copy_rows(count / size, size, reals(ready(x)), size, reals(y) + t * size,
                         times * size);
    tape->next = (Attributes){{{N_("heads"), .number = heads}, {N_("times"), .number = times}}};
    Node *node = tape_operation(tape, "repeat_heads", repeat_heads_gradient, y, 1, &x);
    if (node) {
        node->with.repeat.heads = heads;
        node->with.repeat.times = times;
    }
    return y;
}
