/* Segments that are run again in the backward pass, and the functions of lab 19. */
#include "autograd/operations.h"
#include "autograd/tape.h"
#include "base/language.h"
#include "base/optional_labs.h"
#include "base/run.h"

/* ---- functions that a lab calls ---------------------------------------------------------------------------- */

static Tensor *run(const char *function, const Segment *segment, Tensor *x, int64_t draw,
                   bool record, const Mesh *mesh)
{
    if (!segment)
        misuse("pass on the segment that your function was given", "%s: the segment is NULL",
               function);
    must_not_be_ids(function, x);
    Tape *tape = tape_of(function, x, NULL);
    if (tape->call && tape->call->segment.layer != segment->layer)
        misplaced("pass on the segment that your function was given, and keep none in a static "
                  "variable",
                  "%s: this is the segment of another call", function);
    if (tape->call && tape->call->draw != draw)
        misplaced(
            "pass on the draw that your function was given: it selects the masks of this call",
            "%s: the segment runs with draw %lld, but the call has draw %lld", function,
            (long long)draw, (long long)tape->call->draw);
    const TapeMark mark = tape_mark(tape);
    const bool recording = tape_record(tape, record && tape->recording);
    const int64_t before = tape->batch.draw;
    tape->batch.draw = draw;
    Tensor *y = segment->run(segment->layer, ready(x), segment->mask, mesh);
    tape->batch.draw = before;
    tape_record(tape, recording);
    tape_release_since(tape, mark, y);
    return y;
}

Tensor *segment_run(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    Tensor *y = run("segment_run", segment, x, draw, true, mesh);
    tape_show_call("segment_run", NULL, y, 1, &x);
    return y;
}

Tensor *segment_values(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    Tensor *y = run("segment_values", segment, x, draw, false, mesh);
    tape_show_call("segment_values", NULL, y, 1, &x);
    return y;
}

Tensor *leaf(Tensor *x)
{
    must_not_be_ids("leaf", x);
    Tensor *own = tape_view(tape_of("leaf", x, NULL), ready(x), x->placement);
    own->needs_gradient = own->may_be_shared = true;
    tape_show_call("leaf", NULL, own, 1, &x);
    return own;
}

static bool was_recorded_since(const Tape *tape, const Node *floor, const Node *producer)
{
    const Node *node = tape->last;
    while (node != floor && node != producer)
        node = node->previous;
    return node != floor;
}

void segment_backward(Tensor *y, Tensor *dy)
{
    must_not_be_ids("segment_backward", y);
    must_not_be_ids("segment_backward", dy);
    Tape *tape = tape_of("segment_backward", y, dy);
    if (!tape->floor)
        misuse("the kit runs the backward pass of the model, and calls recompute_backward in it",
               "segment_backward was called outside recompute_backward");
    if (!shape_equal(y->shape, dy->shape))
        misuse("dy is the gradient of the segment's result",
               "segment_backward: y is %s, and dy is %s", TENSOR_TEXT(y), TENSOR_TEXT(dy));
    if (!was_recorded_since(tape, tape->floor, y->producer))
        misuse("run the segment again in recompute_backward, with segment_run on leaf(x), and run "
               "segment_backward from its result, once",
               "segment_backward: y is not on the tape as the result of a new run");
    tape_show_call("segment_backward", NULL, y, 2, (Tensor *[]){y, dy});
    tape_backward_to(tape, tape->floor, y, dy);
    tape->last = tape->floor; /* the operations recorded since have released their numbers */
    tape->went_back = true;
}

Tensor *leaf_gradient(Tensor *x)
{
    must_not_be_ids("leaf_gradient", x);
    if (x->parameter || !x->needs_gradient)
        misuse("run the segment on leaf(x), and take the gradient of that leaf",
               "leaf_gradient: x %s is not a leaf", TENSOR_TEXT(x));
    if (!x->gradient || !x->gradient->buffer)
        misuse(x->tape->went_back
                   ? N_("the y of segment_backward(y, dy) was not computed from this leaf: run the "
                        "segment on one leaf(x) itself, and take the gradient of the same leaf")
                   : N_("segment_backward(y, dy) comes first, with a y that was computed from this "
                        "leaf"),
               "leaf_gradient: no backward pass has reached this leaf %s", TENSOR_TEXT(x));
    tape_show_call("leaf_gradient", NULL, x->gradient, 1, &x);
    return x->gradient;
}

/* ---- on the tape ------------------------------------------------------------------------------------------- */

/* Has the pass called the segment before this call, too? The gradients of its parameters are
 * complete only when its first call has run backward, as the last of its calls. */
static bool is_called_before(const Node *node, void (*recompute_gradient)(Node *, Tensor *))
{
    const Segment *segment = &node->with.recompute.segment;
    for (const Node *other = node->previous; other; other = other->previous)
        if (other->backward == recompute_gradient &&
            other->with.recompute.segment.layer == segment->layer &&
            other->with.recompute.segment.run == segment->run)
            return true;
    return false;
}

static Tensor *run_backward(Node *node, Tensor *x, Tensor *dy)
{
    const RecomputeCall *call = &node->with.recompute;
    const Shape shape = x->shape;
    Tensor *dx = recompute_backward(&call->segment, x, dy, call->draw, call->mesh);
    if (!dx)
        misuse("return leaf_gradient(x) of the leaf that the segment ran on",
               "recompute_backward returned NULL");
    tape_show_call("recompute_backward", (void *)recompute_backward, dx, 2, (Tensor *[]){x, dy});
    if (!shape_equal(dx->shape, shape))
        misuse("return a gradient of the argument's shape",
               "recompute_backward returned %s for an argument %s", TENSOR_TEXT(dx),
               SHAPE_TEXT(shape));
    return ready(dx);
}

static void recompute_gradient(Node *node, Tensor *dy)
{
    Tape *tape = dy->tape;
    Node *const floor = tape->floor, *const last = tape->last;
    const RecomputeCall *outer = tape->call;
    const GradientWatch watch = tape->watch;
    const TapeMark mark = tape_mark(tape);
    Tensor *argument = node->input[0], *x = ready(node->saved[0]);
    tape->floor = last;
    tape->went_back = false;
    tape->call = &node->with.recompute;
    if (is_called_before(node, recompute_gradient))
        tape->watch.complete = NULL;
    const bool recording = tape_record(tape, true);
    x = tape_view(tape, x, x->placement); /* has no producer: no gradient flows past a leaf */
    Tensor *dx = run_backward(node, x, dy);
    tape_record(tape, recording);
    tape->watch = watch;
    tape->last = last;
    tape->floor = floor;
    tape->call = outer;
    gradient_add(argument, dx);
    tape_drop_since(tape, mark, argument->gradient);
}

Tensor *recompute(const Segment *segment, Tensor *x, int64_t draw, const Mesh *mesh)
{
    must_not_be_ids("recompute", x);
    Tape *tape = tape_of("recompute", x, NULL);
    if (!x->needs_gradient) /* the parameters still need their gradients */
        x = leaf(x);
    const RecomputeCall call = {*segment, draw, mesh}, *outer = tape->call;
    tape->call = &call;
    Tensor *value = recompute_forward(segment, x, draw, mesh);
    tape->call = outer;
    if (!value)
        misuse("return the segment's result for x", "recompute_forward returned NULL");
    tape_show_call("recompute_forward", (void *)recompute_forward, value, 1, &x);
    if (!shape_equal(value->shape, x->shape))
        misuse("return the segment's result for x", "recompute_forward returned %s for x %s",
               TENSOR_TEXT(value), TENSOR_TEXT(x));
    Tensor *y = tape_view(tape, ready(value), value->placement);
    Node *node = tape_operation(tape, "recompute", recompute_gradient, y, 1, &x);
    if (!node)
        return y;
    node->with.recompute = call;
    node_keep_or_compute(node, 0, x);
    if (segment->mask)
        node->with.recompute.segment.mask = node_keep(node, 1, segment->mask);
    return y;
}
