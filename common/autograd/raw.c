/* A lab's own operations and access to raw numbers, for labs that need more than balise.h's
 * operations. */
#include <string.h>

#include "autograd/placement.h"
#include "base/run.h"

static const Placement unknown = {UNKNOWN, 0};

Tensor *apply(const Op *op, Tensor *x, const Mesh *mesh)
{
    must_exist("apply", op);
    must_exist("apply", op->name);
    if (!op->forward || !op->backward)
        misuse("an Op is {name, forward, backward}",
               "apply: %s has no forward or no backward function", op->name);
    must_not_be_ids(op->name, x);
    return call_pair((PairCall){.op = *op, .mesh = mesh, .is_own = true}, x,
                     is_split(tape_of(op->name, x, NULL)) ? unknown : whole());
}

static void placed_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
}

Tensor *placed(Tensor *x, Placement placement)
{
    must_exist("placed", x);
    Tape *tape = tape_of("placed", x, NULL);
    if (placement.kind == SHARD)
        placement.dim = shape_dim("placed", x->shape, placement.dim);
    Tensor *y = tape_view(tape, ready(x), is_split(tape) ? placement : whole());
    tape_operation(tape, "placed", placed_gradient, y, 1, &x);
    return y;
}

Tensor *tensor_copy(Tensor *x)
{
    must_exist("tensor_copy", x);
    Tape *tape = tape_of("tensor_copy", x, NULL);
    ready(x);
    if (x->dtype == INT32) {
        Tensor *ids = tape_host_tensor(tape, INT32, x->shape, x->placement);
        memcpy(ints(ids), ints(x), (size_t)tensor_count(x) * sizeof(int32_t));
        return ids;
    }
    Tensor *y = tape_tensor(tape, REAL, x->shape, x->placement);
    kernel_vector_copy(tensor_count(x), reals(x), reals(y));
    return y;
}

/* If only kernels can access x's numbers, moves them, until the step ends, to memory that the host
 * can access too. */
static void bring_to_host(Tensor *x)
{
    if (backend_on_host(x->data))
        return;
    if (x->buffer->category != ACTIVATIONS)
        misuse("use the functions of balise.h (group_all_reduce, scale, ...), or train with "
               "BACKEND=cpu",
               "tensor_data: during training on a GPU, the host cannot read weights or their "
               "gradients, such as %s",
               TENSOR_TEXT(x));
    Buffer *reached = pool_get_for_host(x->buffer->pool, x->buffer->bytes, x->shape);
    backend_read(reached->data, x->data, tensor_count(x) * (int64_t)sizeof(real));
    buffer_release(x->buffer);
    x->buffer = reached;
    x->data = reached->data;
}

float *tensor_data(Tensor *x)
{
    must_exist("tensor_data", x);
    begin_change(x);
    if (x->tape && is_split(x->tape) && !x->parameter)
        x->placement = unknown;
    partial_sums_change(x);
    if (x->tape)
        x->tape->exchanges++; /* MPI may write there */
    bring_to_host(x);
    x->reached = true;
    backend_wait();
    backend_wait_always(true); /* the kit cannot observe when a lab uses the pointer */
    return x->data;
}
