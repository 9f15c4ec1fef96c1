/* f, g and the gather: the pairs of plain functions that the student writes in balise 1 (and 9) are put on
 * the tape here. Nothing serial calls them, so they are an object file of their own. */
#include <string.h>

#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

typedef Tensor *Backward(const Node *node, Tensor *dy);

static void must_be_like(const char *word, const Tensor *dx, const Tensor *x)
{
    char a[96], b[96];
    if (!dx)
        misuse("return a tensor", "%s, backward: it returned NULL", word);
    if (!shape_equal(dx->shape, x->shape))
        misuse("the gradient of an argument has its shape", "%s, backward: it returned %s for an argument %s",
               word, tensor_text(dx, a), tensor_text(x, b));
}

/* The student's functions run without the tape: what they compute by the way is not part of the model. */
static void pair_gradient(Node *node, Tensor *dy, Backward *backward)
{
    Tensor *dx = backward(node, dy);
    must_be_like(node->name, dx, node->input[0]);
    gradient_add(node->input[0], ready(dx));
}

/* What the forward function returned may be its argument, or kept somewhere: the tape gets a view of its own.
 */
static Node *on_the_tape(const char *name, Tensor *x, Tensor *y, Placement placement,
                         void (*backward)(Node *, Tensor *), const Mesh *mesh, Tensor **result)
{
    if (!y)
        misuse("return a tensor", "%s, forward: it returned NULL", name);
    *result = tape_view(x->tape ? x->tape : tape_of(name, y, NULL), ready(y), placement);
    Node *node = tape_operation((*result)->tape, name, backward, *result, 1, &x);
    if (node)
        node->with.pair.mesh = mesh;
    return node;
}

static Tensor *f_backward(const Node *node, Tensor *dy)
{
    return duplication_backward(dy, node->with.pair.mesh);
}

static void f_gradient(Node *node, Tensor *dy)
{
    pair_gradient(node, dy, f_backward);
}

Tensor *duplication(Tensor *x, const Mesh *mesh)
{
    Tensor *y;
    must_be_real("duplication", x);
    Tape *tape = tape_of("duplication", x, NULL);
    Placement placement = place_duplication(tape, x);
    bool recording = tape_record(tape, false);
    Tensor *value = duplication_forward(ready(x), mesh);
    tape_record(tape, recording);
    on_the_tape("duplication", x, value, placement, f_gradient, mesh, &y);
    return y;
}

static Tensor *g_backward(const Node *node, Tensor *dy)
{
    return all_reduce_backward(dy, node->with.pair.mesh);
}

static void g_gradient(Node *node, Tensor *dy)
{
    pair_gradient(node, dy, g_backward);
}

Tensor *all_reduce(Tensor *x, const Mesh *mesh)
{
    Tensor *y;
    must_be_real("all_reduce", x);
    Tape *tape = tape_of("all_reduce", x, NULL);
    Placement placement = place_all_reduce(tape, x);
    bool recording = tape_record(tape, false);
    Tensor *value = all_reduce_forward(ready(x), mesh);
    tape_record(tape, recording);
    on_the_tape("all_reduce", x, value, placement, g_gradient, mesh, &y);
    return y;
}

static Tensor *gather_backward(const Node *node, Tensor *dy)
{
    return all_gather_backward(dy, node->with.pair.dim, node->with.pair.mesh);
}

static void gather_gradient(Node *node, Tensor *dy)
{
    pair_gradient(node, dy, gather_backward);
}

Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh)
{
    Tensor *y;
    must_be_real("all_gather", x);
    Tape *tape = tape_of("all_gather", x, NULL);
    dim = shape_dim("all_gather", x->shape, dim);
    Placement placement = place_all_gather(tape, x, dim);
    bool recording = tape_record(tape, false);
    Tensor *value = all_gather_forward(ready(x), dim, mesh);
    tape_record(tape, recording);
    Node *node = on_the_tape("all_gather", x, value, placement, gather_gradient, mesh, &y);
    if (node)
        node->with.pair.dim = dim;
    return y;
}
