/* The backward pass and the accumulation of gradients. */
#include "autograd/tape.h"
#include "base/spans.h"

bool takes_16_bits(const Tensor *x)
{
    return x->producer && x->producer->takes_16_bits;
}

void gradient_add(Tensor *x, Tensor *d)
{
    if (!x->needs_gradient)
        return;
    int64_t count = tensor_count(x);
    if (x->gradient || !takes_16_bits(x))
        ready(d);
    if (x->parameter) {
        bool accumulate;
        Tensor *room = gradient_room(x, &accumulate);
        (accumulate ? kernel_vector_accumulate : kernel_vector_copy)(count, reals(d), reals(room));
    } else if (!x->gradient) {
        x->gradient = tape_view(x->tape, d, d->placement);
        x->gradient->kept = true;
    } else {
        unshare(ready(x->gradient));
        kernel_vector_accumulate(count, reals(d), reals(x->gradient));
    }
}

Tensor *gradient_room(Tensor *x, bool *accumulate)
{
    *accumulate = false;
    if (!x->needs_gradient)
        return NULL;
    if (x->parameter) {
        *accumulate = x->parameter->gradient_set;
        x->parameter->gradient_set = true;
        x->parameter->gradient_zeros = false;
        return x->gradient;
    }
    *accumulate = x->gradient != NULL;
    if (*accumulate)
        unshare(ready(x->gradient));
    else
        x->gradient = tape_tensor(x->tape, REAL, x->shape, x->placement);
    x->gradient->kept = true;
    return x->gradient;
}

/* x and `saved` each hold the buffer. Operations may also read x later without holding it: if they
 * marked it as kept, or if they can compute it again. So may the caller, if no operation computed
 * it. */
Tensor *gradient_in_place(Tensor *x, const Tensor *saved, bool *accumulate)
{
    const bool read = x->buffer != saved->buffer || saved->buffer->references > 2 || x->kept ||
                      x->reached || can_be_computed(x);
    if (read || !x->producer || x->gradient || !x->needs_gradient)
        return gradient_room(x, accumulate);
    *accumulate = false;
    x->gradient = tape_view(x->tape, saved, x->placement);
    x->gradient->kept = true;
    tape_release_value(x);
    return x->gradient;
}

Tensor *gradient_sum(Tensor *x)
{
    bool zeros = x->parameter && x->parameter->gradient_zeros, accumulate;
    Tensor *room = gradient_room(x, &accumulate);
    if (room && !accumulate && !zeros)
        kernel_vector_fill(tensor_count(room), 0, reals(room));
    return room;
}

Tensor *gradient_over(Tensor *dy, Placement placement)
{
    return dy->buffer->references == 1 ? tape_view(dy->tape, dy, placement)
                                       : tape_tensor(dy->tape, dy->dtype, dy->shape, placement);
}

/* The operations that read the output come later on the tape, so their backward has finished. */
static void release_node(Node *node, const Tensor *y)
{
    if (node->output != y)
        tape_release_value(node->output);
    for (int i = 0; i < SAVED; i++)
        if (node->saved[i] && (i >= NODE_INPUTS || node->saved[i] != node->input[i]))
            tape_release_value(node->saved[i]);
    if (node->output->gradient)
        tape_release_value(node->output->gradient);
    node->output->gradient = NULL;
    node->compute = NULL; /* its inputs' numbers are gone */
}

/* Counts the operations after `floor` that add to each parameter's gradient. Other micro-batches
 * have tapes of their own. */
static void count_uses(const Tape *tape, const Node *floor)
{
    for (int step = 0; step < 2; step++)
        for (const Node *node = tape->last; node != floor; node = node->previous)
            for (int i = 0; i < NODE_INPUTS; i++) {
                Parameter *p = node->input[i] ? node->input[i]->parameter : NULL;
                if (p)
                    p->uses = step * (p->uses + 1);
            }
}

/* Reports the parameters whose gradients this operation completed. */
static void tell(const Tape *tape, const Node *node)
{
    const GradientWatch *watch = &tape->watch;
    for (int i = 0; i < NODE_INPUTS; i++)
        if (node->input[i] && node->input[i]->parameter && --node->input[i]->parameter->uses == 0 &&
            watch->complete)
            watch->complete(watch->context, node->input[i]);
    if (tape_observer()->between)
        tape_observer()->between(tape->mesh);
}

void tape_backward(Tape *tape, Tensor *y, Tensor *dy)
{
    tape_backward_to(tape, NULL, y, dy);
}

void tape_backward_to(Tape *tape, const Node *floor, Tensor *y, Tensor *dy)
{
    const Observer *observer = tape_observer();
    bool recording = tape_record(tape, false);
    ready(y); /* while its inputs' numbers still exist */
    if (!dy) {
        dy = tape_tensor(tape, REAL, y->shape, y->placement);
        kernel_vector_fill(tensor_count(dy), 1, reals(dy));
    }
    gradient_add(y, dy);
    count_uses(tape, floor);
    for (Node *node = tape->last; node != floor; node = node->previous) {
        if (!node->output->gradient)
            continue;
        node->output->gradient->may_be_shared = true;
        if (observer->operation)
            observer->operation(observer->context, node->name, node->address, node->output,
                                NODE_INPUTS, node->input, true);
        TapeMark mark = tape_mark(tape);
        backend_range(node->name);
        node->backward(node, node->output->gradient);
        backend_range_end();
        span_end(node->name, true);
        tape_release_since(tape, mark, NULL); /* keeps gradients, but not backward's temporaries */
        release_node(node, y);
        tell(tape, node);
    }
    tape_record(tape, recording);
}
