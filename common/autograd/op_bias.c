/* y = x + bias on the tape: adds a bias after a sum over ranks. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static void add_bias_gradient(Node *node, Tensor *dy)
{
    Tensor *bias = node->input[1], *db = gradient_sum(bias);
    const int64_t columns = shape_last(dy->shape);
    if (db)
        kernel_linear_backward_bias(tensor_count(dy) / columns, columns, reals_or_halves(dy),
                                    reals(db));
    gradient_add(node->input[0], dy);
}

Tensor *add_bias(Tensor *x, Tensor *bias)
{
    must_not_be_ids("add_bias", x);
    must_not_be_ids("add_bias", bias);
    if (bias->shape.rank != 1 || x->shape.rank < 1 || shape_last(x->shape) != bias->shape.size[0])
        misuse("a bias has one number for each column of x",
               "add_bias: the bias %s does not fit x %s", TENSOR_TEXT(bias), TENSOR_TEXT(x));
    Tape *tape = tape_of("add_bias", x, bias);
    const int64_t columns = shape_last(x->shape), rows = tensor_count(x) / columns;
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_ADD_BIAS, "add_bias", x, bias, LAST));
    mark_by_positions(tape, x, &bias, 1);
    Tensor *zeros = tape_tensor(tape, INT32, SHAPE(rows), whole());
    backend_set_bytes(ints(zeros), 0, rows * (int64_t)sizeof(int32_t));
    kernel_lookup_forward(rows, columns, ints(zeros), reals_or_halves(ready(bias)),
                          reals_or_halves(y));
    kernel_vector_add(tensor_count(x), reals(y), reals_or_halves(available(x)), reals(y));
    tape_operation(tape, "add_bias", add_bias_gradient, y, 2, (Tensor *[]){x, bias});
    return y;
}
