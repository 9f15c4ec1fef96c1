/* The pairs along the sequence on the tape: the student writes them in lab 18. They are in their
 * own object file because earlier labs do not define these pairs. */
#include "autograd/placement.h"
#include "base/run.h"

static void must_have_positions(const char *function, const Tensor *x)
{
    must_be_real(function, x);
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
                           .resizes = true};
    Tape *tape = tape_of("reduce_scatter_sequence", x, NULL);
    return call_pair(
        call, x,
        place_result(tape, PLACE_REDUCE_SCATTER_SEQUENCE, "reduce_scatter_sequence", x, NULL, 1));
}
