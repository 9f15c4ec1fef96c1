/* The operations of wrong_operations.h that compute with a mistake, and their backward passes. */
#include "grader/judge/compare/wrong_operations.h"

#include <stdlib.h>

#include "grader/labs/groups.h"

/* A tensor of two numbers that an operation keeps for its backward pass. */
static Tensor *kept_numbers(Tape *tape, double first, double second)
{
    Tensor *kept = tape_tensor(tape, REAL, SHAPE(2), whole());
    reals(kept)[0] = (real)first;
    reals(kept)[1] = (real)second;
    return kept;
}

static Node *on_tape(const char *name, void (*backward)(Node *node, Tensor *dy), Tensor *x,
                     Tensor *y, Tensor *kept)
{
    Node *node = tape_operation(x->tape, name, backward, y, 1, &x);
    if (node)
        node_keep(node, 0, kept);
    return node;
}

static Tensor *like(Tensor *x)
{
    return tape_tensor(x->tape, REAL, x->shape, whole());
}

static double kept_number(const Node *node, int i)
{
    return reals(node->saved[0])[i];
}

static void scaled_gradient(Node *node, Tensor *dy)
{
    Tensor *dx = like(dy);
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(dx)[i] = (real)kept_number(node, 0) * reals(dy)[i];
    gradient_add(node->input[0], dx);
}

Tensor *with_gradient_times(Tensor *x, double factor)
{
    Tensor *y = tape_view(x->tape, ready(x), whole());
    on_tape("wrong gradient", scaled_gradient, x, y, kept_numbers(x->tape, factor, 0));
    return y;
}

/* ---- columns ------------------------------------------------------------------------------------------- */

/* The index of the element that replaces element i: from another column of the same row. */
static int64_t column_for(const Tensor *x, int64_t i, int ranks, Rearranged how)
{
    const int64_t columns = shape_last(x->shape), mine = columns / ranks, column = i % columns;
    if (how != OF_WORLD_RANK)
        return i - column + column % mine;
    const Case *c;
    mistake_now(&c);
    const Members group = tp_group(c, 0);
    return i - column + (group.first + column / mine * group.stride) % ranks * mine + column % mine;
}

static void rearranged_gradient(Node *node, Tensor *dy)
{
    const int ranks = (int)kept_number(node, 0), how = (int)kept_number(node, 1);
    Tensor *dx = like(dy);
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(dx)[i] = 0;
    for (int64_t i = 0; i < tensor_count(dy); i++) {
        const int64_t other = how == OF_WORLD_RANK ? i : column_for(dy, i, ranks, (Rearranged)how);
        if (how == OWN_ONLY_BACKWARDS && other != i)
            continue;
        reals(dx)[other] += reals(dy)[i];
    }
    gradient_add(node->input[0], dx);
}

Tensor *rearranged(Tensor *x, int ranks, Rearranged how)
{
    if (shape_last(x->shape) % ranks)
        return x;
    Tensor *y = like(x);
    const real *from = reals(ready(x));
    for (int64_t i = 0; i < tensor_count(x); i++)
        reals(y)[i] = from[how == OWN_ONLY_BACKWARDS ? i : column_for(x, i, ranks, how)];
    on_tape("columns", rearranged_gradient, x, y, kept_numbers(x->tape, ranks, how));
    return y;
}
