/* f, g and the gather on the tape: the student writes these pairs in labs 1 and 9. They are in
 * their own object file because the serial model does not call them. */
#include "autograd/placement.h"

Tensor *duplication(Tensor *x, const Mesh *mesh)
{
    must_be_real("duplication", x);
    const PairCall call = {.op = {"duplication", duplication_forward, duplication_backward},
                           .mesh = mesh};
    return call_pair(call, x,
                     place_result(tape_of("duplication", x, NULL), PLACE_DUPLICATION, "duplication",
                                  x, NULL, LAST));
}

Tensor *all_reduce(Tensor *x, const Mesh *mesh)
{
    must_be_real("all_reduce", x);
    const PairCall call = {.op = {"all_reduce", all_reduce_forward, all_reduce_backward},
                           .mesh = mesh};
    return call_pair(call, x,
                     place_result(tape_of("all_reduce", x, NULL), PLACE_ALL_REDUCE, "all_reduce", x,
                                  NULL, LAST));
}

Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh)
{
    must_be_real("all_gather", x);
    const PairCall call = {.op = {.name = "all_gather"},
                           .mesh = mesh,
                           .along = {all_gather_forward, all_gather_backward},
                           .dim = shape_dim("all_gather", x->shape, dim)};
    return call_pair(call, x,
                     place_result(tape_of("all_gather", x, NULL), PLACE_ALL_GATHER, "all_gather", x,
                                  NULL, call.dim));
}
