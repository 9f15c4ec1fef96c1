/* Operations that are pairs of plain functions. */
#include <stdio.h>

#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"

/* Calls a function of a pair. One that adds partial sums needs the other ranks' numbers. */
static Tensor *called(const PairCall *call, bool backward, Tensor *x)
{
    const int64_t before = x->tape->exchanges;
    Tensor *y = call->along[backward]
                    ? call->along[backward](x, call->dim, call->mesh)
                    : (backward ? call->op.backward : call->op.forward)(x, call->mesh);
    if (call->adds[backward] && is_split(x->tape) && x->tape->exchanges == before) {
        char function[64];
        snprintf(function, sizeof function, "%s_%s", call->op.name,
                 backward ? "backward" : "forward");
        must_be_added(OVER_TP, backward ? HARMS_GRADIENTS : HARMS_RESULTS,
                      (char *)(backward ? call->op.backward : call->op.forward) + 1, function,
                      _("its result"));
    }
    return y;
}

/* Is a result of this shape neither tp times as large as the argument nor 1/tp of it? */
static bool is_sized_wrongly(const PairCall *call, const Tensor *x, const Tensor *y)
{
    const int64_t ranks = call->mesh->tp_degree, is = tensor_count(y), of = tensor_count(x);
    return is != of * ranks && is * ranks != of;
}

/* The only dimension in which two shapes differ, or -1. */
static int differing_dim(Shape a, Shape b)
{
    int dim = -1, count = a.rank == b.rank ? 0 : 2;
    for (int i = 0; count < 2 && i < a.rank; i++)
        if (a.size[i] != b.size[i]) {
            dim = i;
            count++;
        }
    return count == 1 ? dim : -1;
}

/* Has backward changed one dimension of dy, and forward another one of x? */
static bool changes_another_dim(const Tensor *x, const Tensor *dy, const Tensor *dx)
{
    const int forward = differing_dim(x->shape, dy->shape),
              backward = differing_dim(dy->shape, dx->shape);
    return forward >= 0 && backward >= 0 && forward != backward;
}

/* Does backward change the size of dy in the same direction as forward changed the size of x? */
static bool changes_the_same_way(const Tensor *x, const Tensor *dy, const Tensor *dx)
{
    const int64_t forward = tensor_count(dy) - tensor_count(x),
                  backward = tensor_count(dx) - tensor_count(dy);
    return (forward > 0) == (backward > 0) && (forward < 0) == (backward < 0);
}

static void pair_gradient(Node *node, Tensor *dy)
{
    const PairCall *call = &node->with.pair;
    Tensor *x = node->input[0], *dx = called(call, true, in_type_of(node->output, dy));
    const bool resizes = call->along[true] || call->resizes;
    if (!dx || !shape_equal(dx->shape, x->shape))
        misuse(resizes && is_sized_wrongly(call, x, dy)
                   ? N_("look at the forward pass first: its result has the wrong size, and so has "
                        "the gradient that backward takes")
               : dx && changes_another_dim(x, dy, dx)
                   ? N_("backward must change the dimension that forward has changed: it has "
                        "changed another one")
               : resizes && dx &&
                       (shape_equal(dx->shape, dy->shape) || changes_the_same_way(x, dy, dx))
                   ? N_("the gradient has the argument's shape: backward joins what forward has "
                        "split, and splits what forward has joined")
               : !dx || !shape_equal(dx->shape, dy->shape)
                   ? N_("return a gradient of the argument's shape")
                   : N_("the gradient has the argument's shape: should forward's result "
                        "have it too?"),
               "%s, backward: it returned %s for an argument %s, for which forward returned %s",
               call->op.name, dx ? TENSOR_TEXT(dx) : "NULL", TENSOR_TEXT(x),
               TENSOR_TEXT(node->output));
    gradient_add(x, available(dx));
}

/* Computes the result of a pair whose forward returned its argument. */
static void share_argument(Node *node)
{
    const Tensor *x = in_type_of(node->output, node->input[0]);
    node->output->buffer = buffer_hold(x->buffer);
    node->output->data = x->data;
}

/* Recomputes a pair's result with its forward function. The tape did not keep the result, because
 * it is larger than the argument. */
static void call_again(Node *node)
{
    Tensor *y = node->output;
    const bool recording = tape_record(y->tape, false);
    Tensor *value = called(&node->with.pair, false, in_type_of(y, node->saved[0]));
    tape_record(y->tape, recording);
    if (!value || !shape_equal(value->shape, y->shape))
        misuse("the backward pass calls forward again with the same x: return the same result",
               "%s, forward: it returned %s the second time, and %s before",
               node->with.pair.op.name, value ? TENSOR_TEXT(value) : "NULL", TENSOR_TEXT(y));
    value = in_type_of(y, value);
    y->buffer = buffer_hold(value->buffer);
    y->data = value->data;
}

Tensor *call_pair(PairCall call, Tensor *x, Placement placement)
{
    Tape *tape = tape_of(call.op.name, x, NULL);
    bool recording = tape_record(tape, false); /* operations within the pair must not be recorded */
    Tensor *value = called(&call, false, call.is_own ? ready(x) : available_narrow(x));
    tape_record(tape, recording);
    if (!value)
        misuse("return a tensor", "%s, forward: it returned NULL", call.op.name);
    Tensor *y = tape_view(tape, available(value), placement);
    if (call.is_own)
        tape->next.of[0] = (Attribute){N_("through"), .text = "apply"};
    else if (call.along[0])
        tape->next.of[0] = (Attribute){N_("dimension"), .number = call.dim};
    tape->next_calls = call.along[0] ? (void *)call.along[0] : (void *)call.op.forward;
    Node *node = tape_operation(tape, call.op.name, pair_gradient, y, 1, &x);
    if (!node)
        return y;
    node->with.pair = call;
    node->takes_16_bits = !call.is_own;
    if (value->buffer == x->buffer && can_be_computed(x))
        node->compute = share_argument;
    if (value->buffer != x->buffer && call.runs_again) {
        node_keep_or_compute(node, 0, x);
        node->compute = call_again;
    }
    return y;
}
