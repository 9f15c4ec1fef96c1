/* The scatter on the tape: the student writes the pair in lab 20. It is in its own object file
 * because earlier labs do not define the pair. */
#include "autograd/placement.h"

Tensor *scatter(Tensor *x, int dim, const Mesh *mesh)
{
    must_not_be_ids("scatter", x);
    const PairCall call = {.op = {.name = "scatter"},
                           .mesh = mesh,
                           .along = {scatter_forward, scatter_backward},
                           .dim = shape_dim("scatter", x->shape, dim)};
    return call_pair(
        call, x,
        place_result(tape_of("scatter", x, NULL), PLACE_SCATTER, "scatter", x, NULL, call.dim));
}
