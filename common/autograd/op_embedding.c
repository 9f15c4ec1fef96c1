/* Table lookups and learned positions. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/run.h"

static void lookup_gradient(Node *node, Tensor *dy)
{
    Tensor *weight = node->input[1];
    Tensor *dw = gradient_sum(weight);
    kernel_lookup_backward(tensor_count(node->saved[0]), weight->shape.size[1],
                           ints(node->saved[0]), reals(dy), reals(dw));
}

static void check_ids(Tensor *ids, const Tensor *weight)
{
    if (ids->dtype != INT32 || weight->shape.rank != 2)
        misuse("lookup(ids [B,S], weight [V,H])",
               "lookup: %s does not hold ids, or %s is not a table", TENSOR_TEXT(ids),
               TENSOR_TEXT(weight));
    int64_t count = tensor_count(ids), rows = weight->shape.size[0];
    for (int64_t i = 0; i < count; i++)
        if (ints(ready(ids))[i] != NO_ID && (ints(ids)[i] < 0 || ints(ids)[i] >= rows))
            misuse(
                "this rank holds some rows of the table only: move the ids to its range, ids_between(ids, "
                "first, end), with first = shard_begin(weight) and as many ids as it holds rows",
                "lookup: id %d, but the table %s has %lld rows here", ints(ids)[i],
                TENSOR_TEXT(weight), (long long)rows);
}

Tensor *lookup(Tensor *ids, Tensor *weight)
{
    must_not_be_ids("lookup", weight);
    if (!ids)
        misuse("pass the ids on unchanged", "lookup: there are no ids");
    check_ids(ids, weight);
    Tape *tape = tape_of("lookup", ids, weight);
    if (weight->placement.dim == 1) /* otherwise results are added, so shards may be uneven */
        must_be_cut_evenly(tape, "lookup", weight);
    Shape shape = ids->shape;
    if (shape.rank == 4)
        misuse("ids are [B,S]", "lookup: too many dimensions");
    shape.size[shape.rank++] = weight->shape.size[1];
    Tensor *y =
        tape_tensor(tape, REAL, shape, place_result(tape, PLACE_LOOKUP, "lookup", ids, weight, 0));
    kernel_lookup_forward(tensor_count(ids), weight->shape.size[1], ints(ids),
                          reals_or_halves(ready(weight)), reals_or_halves(y));
    if (weight->parameter)
        weight->parameter->is_table = true;
    Node *node = tape_operation(tape, "lookup", lookup_gradient, y, 2, (Tensor *[]){ids, weight});
    if (node)
        node_keep(node, 0, ids);
    return y;
}

Tensor *ids_between(Tensor *ids, int first, int end)
{
    Tape *tape = tape_of("ids_between", ids, NULL);
    if (ids->dtype != INT32)
        misuse("it takes ids", "ids_between: %s does not hold ids", TENSOR_TEXT(ids));
    Tensor *mine = tape_host_tensor(tape, INT32, ids->shape, ids->placement);
    int64_t count = tensor_count(ids);
    for (int64_t i = 0; i < count; i++) {
        int32_t id = ints(ready(ids))[i];
        ints(mine)[i] = first <= id && id < end ? id - first : NO_ID;
    }
    return mine;
}

static void rows_gradient(Node *node, Tensor *dy)
{
    Tensor *dx = gradient_sum(node->input[0]);
    kernel_lookup_backward(tensor_count(node->saved[0]), shape_last(dy->shape),
                           ints(node->saved[0]), reals(dy), reals(dx));
}

static Tensor *rows_at(Tensor *x, Tensor *numbers)
{
    Tape *tape = tape_of("rows_at", x, numbers);
    const int64_t count = tensor_count(numbers), columns = shape_last(x->shape);
    Tensor *y = tape_tensor(tape, REAL, SHAPE(1, count, columns),
                            place_result(tape, PLACE_ALL_OF_X, "rows_at", x, NULL, LAST));
    kernel_lookup_forward(count, columns, ints(numbers), reals_or_halves(ready(x)),
                          reals_or_halves(y));
    Node *node = tape_operation(tape, "rows_at", rows_gradient, y, 1, &x);
    if (node)
        node_keep(node, 0, numbers);
    return y;
}

Tensor *rows_with_targets(Tensor *x, Tensor **targets)
{
    const int64_t count = tensor_count(*targets);
    const int32_t *all = ints(*targets);
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        found += all[i] != NO_ID;
    const Shape shape = SHAPE(1, found > 0 ? found : 1);
    Tensor *numbers = tape_host_tensor(x->tape, INT32, shape, whole()),
           *theirs = tape_host_tensor(x->tape, INT32, shape, whole());
    ints(numbers)[0] = 0;
    ints(theirs)[0] = NO_ID;
    for (int64_t i = 0, at = 0; i < count; i++)
        if (all[i] != NO_ID) {
            ints(numbers)[at] = (int32_t)i;
            ints(theirs)[at++] = all[i];
        }
    *targets = theirs;
    return rows_at(x, numbers);
}

static void add_positions_backward(Node *node, Tensor *dy)
{
    Tensor *table = node->input[1];
    int64_t batch = dy->shape.size[0], count = dy->shape.size[1] * dy->shape.size[2];
    gradient_add(node->input[0], dy);
    Tensor *dtable = gradient_sum(table);
    for (int64_t b = 0; dtable && b < batch; b++)
        kernel_vector_accumulate(count, reals(dy) + b * count,
                                 reals(dtable) + dy->tape->batch.past * dy->shape.size[2]);
}

Tensor *add_positions(Tensor *x, Tensor *table)
{
    Tape *tape = tape_of("add_positions", x, table);
    if (x->shape.rank != 3 || tape->batch.past + x->shape.size[1] > table->shape.size[0] ||
        x->shape.size[2] != table->shape.size[1])
        misuse("the table has a row for each position",
               "add_positions: x %s does not fit the table %s", TENSOR_TEXT(x), TENSOR_TEXT(table));
    Tensor *y = tape_tensor(tape, REAL, x->shape,
                            place_result(tape, PLACE_ALL_OF_X, "add_positions", x, NULL, LAST));
    int64_t batch = x->shape.size[0], count = x->shape.size[1] * x->shape.size[2];
    const real *rows = reals(ready(table)) + tape->batch.past * x->shape.size[2];
    for (int64_t i = 0; i < batch; i++)
        kernel_vector_add(count, reals(ready(x)) + i * count, in_full(rows), reals(y) + i * count);
    tape_operation(tape, "add_positions", add_positions_backward, y, 2, (Tensor *[]){x, table});
    return y;
}
