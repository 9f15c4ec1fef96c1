/* f, g and the gather: the pairs of plain functions that the student writes in balise 1 (and 9). Nothing serial calls them,
 * so they are an object file of their own. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static Tensor *f_forward(Tensor *x, const PairCall *call)
{
    return duplication_forward(x, call->mesh);
}

static Tensor *f_backward(Tensor *dy, const PairCall *call)
{
    return duplication_backward(dy, call->mesh);
}

Tensor *duplication(Tensor *x, const Mesh *mesh)
{
    must_be_real("duplication", x);
    PairCall call = {"duplication", f_forward, f_backward, .mesh = mesh};
    return call_pair(call, x, place_duplication(tape_of("duplication", x, NULL), x));
}

static Tensor *g_forward(Tensor *x, const PairCall *call)
{
    return all_reduce_forward(x, call->mesh);
}

static Tensor *g_backward(Tensor *dy, const PairCall *call)
{
    return all_reduce_backward(dy, call->mesh);
}

Tensor *all_reduce(Tensor *x, const Mesh *mesh)
{
    must_be_real("all_reduce", x);
    PairCall call = {"all_reduce", g_forward, g_backward, .mesh = mesh};
    return call_pair(call, x, place_all_reduce(tape_of("all_reduce", x, NULL), x));
}

static Tensor *gather_forward(Tensor *x, const PairCall *call)
{
    return all_gather_forward(x, call->dim, call->mesh);
}

static Tensor *gather_backward(Tensor *dy, const PairCall *call)
{
    return all_gather_backward(dy, call->dim, call->mesh);
}

Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh)
{
    must_be_real("all_gather", x);
    PairCall call = {"all_gather", gather_forward, gather_backward, .mesh = mesh};
    call.dim = shape_dim("all_gather", x->shape, dim);
    return call_pair(call, x, place_all_gather(tape_of("all_gather", x, NULL), x, call.dim));
}
