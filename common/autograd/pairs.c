/* The pairs on the tape that the student writes: f, g and the gather in labs 1 and 9, those along the
 * sequence in lab 18. They are in their own object file because the serial model does not call them. */
#include "autograd/placement.h"
#include "base/optional_labs.h"
#include "base/run.h"

Tensor *duplication(Tensor *x, const Mesh *mesh)
{
    must_not_be_ids("duplication", x);
    const PairCall call = {.op = {"duplication", duplication_forward, duplication_backward},
                           .mesh = mesh,
                           .adds = {false, true}};
    return call_pair(call, x,
                     place_result(tape_of("duplication", x, NULL), PLACE_DUPLICATION, "duplication",
                                  x, NULL, LAST));
}

Tensor *all_reduce(Tensor *x, const Mesh *mesh)
{
    must_not_be_ids("all_reduce", x);
    const PairCall call = {.op = {"all_reduce", all_reduce_forward, all_reduce_backward},
                           .mesh = mesh,
                           .adds = {true, false}};
    return call_pair(call, x,
                     place_result(tape_of("all_reduce", x, NULL), PLACE_ALL_REDUCE, "all_reduce", x,
                                  NULL, LAST));
}

Tensor *all_gather(Tensor *x, int dim, const Mesh *mesh)
{
    must_not_be_ids("all_gather", x);
    const PairCall call = {.op = {.name = "all_gather"},
                           .mesh = mesh,
                           .along = {all_gather_forward, all_gather_backward},
                           .dim = shape_dim("all_gather", x->shape, dim)};
    return call_pair(call, x,
                     place_result(tape_of("all_gather", x, NULL), PLACE_ALL_GATHER, "all_gather", x,
                                  NULL, call.dim));
}

static void must_have_positions(const char *function, const Tensor *x)
{
    must_not_be_ids(function, x);
    if (x->shape.rank != 3)
        misuse("it takes [B,S,H], or this rank's positions [B,S/tp,H]", "%s: x %s", function,
               TENSOR_TEXT(x));
}

Tensor *gather_sequence(Tensor *x, const Mesh *mesh)
{
    must_have_positions("gather_sequence", x);
    const PairCall call = {
        .op = {"gather_sequence", gather_sequence_forward, gather_sequence_backward},
        .mesh = mesh,
        .adds = {false, true},
        .resizes = true,
        .runs_again = true};
    return call_pair(call, x,
                     place_result(tape_of("gather_sequence", x, NULL), PLACE_GATHER_SEQUENCE,
                                  "gather_sequence", x, NULL, 1));
}

Tensor *reduce_scatter_sequence(Tensor *x, const Mesh *mesh)
{
    must_have_positions("reduce_scatter_sequence", x);
    const PairCall call = {.op = {"reduce_scatter_sequence", reduce_scatter_sequence_forward,
                                  reduce_scatter_sequence_backward},
                           .mesh = mesh,
                           .adds = {true, false},
                           .resizes = true};
    Tape *tape = tape_of("reduce_scatter_sequence", x, NULL);
    return call_pair(
        call, x,
        place_result(tape, PLACE_REDUCE_SCATTER_SEQUENCE, "reduce_scatter_sequence", x, NULL, 1));
}
