/* Invalid arguments are rejected, with the shapes in the message and a hint. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

static Tensor *reals_of(int64_t a, int64_t b, int64_t c)
{
    return normal("x", SHAPE(a, b, c), whole());
}

static Tensor *matrix(int64_t rows, int64_t columns)
{
    return normal("w", SHAPE(rows, columns), whole());
}

static Tensor *ids_of(Shape shape, int32_t id)
{
    int32_t numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = id;
    return tape_ints(tape, shape, numbers);
}

START_TEST(linear_requires_the_sizes_of_its_weight)
{
    Tensor *x = reals_of(2, 3, 5);
    ASSERT_MISUSE(linear(x, matrix(4, 6)), "linear: x [2,3,5]", "[4,6]");
    ASSERT_MISUSE(linear(x, matrix(5, 4)), "[5,4]");
    ASSERT_MISUSE(linear(x, normal("w", SHAPE(5), whole())), "[5] whole");
    ASSERT_MISUSE(linear(ids_of(SHAPE(2, 5), 1), matrix(4, 5)), "[2,5]");
    ASSERT_MISUSE(linear_with_bias(x, matrix(4, 5), normal("b", SHAPE(5), whole())), "bias [5]",
                  "[4,5]");
    ASSERT_MISUSE(linear_with_bias(x, matrix(4, 5), matrix(4, 1)), "bias [4,1]");
}
END_TEST

static Tensor *same(Tensor *x, const Mesh *of)
{
    return x;
}

START_TEST(null_is_no_argument)
{
    static const Op whole_op = {"mine", same, same}, half_op = {"mine", same, NULL};
    ASSERT_MISUSE(gelu(NULL), "gelu: an argument is NULL");
    ASSERT_MISUSE((scale(NULL, 2), 0), "scale: an argument is NULL");
    ASSERT_MISUSE(tensor_data(NULL), "tensor_data: an argument is NULL");
    ASSERT_MISUSE(tensor_copy(NULL), "tensor_copy: an argument is NULL");
    ASSERT_MISUSE(tensor_count(NULL), "tensor_count: an argument is NULL");
    ASSERT_MISUSE(tensor_size(NULL, 0), "tensor_size: an argument is NULL");
    ASSERT_MISUSE((tensor_print("x", NULL, &mesh), 0), "tensor_print: an argument is NULL");
    ASSERT_MISUSE(placed(NULL, whole()), "placed: an argument is NULL");
    ASSERT_MISUSE(shard_begin(NULL), "shard_begin: an argument is NULL");
    ASSERT_MISUSE(apply(NULL, reals_of(2, 3, 5), &mesh), "apply: an argument is NULL");
    ASSERT_MISUSE(apply(&whole_op, NULL, &mesh), "mine: an argument is NULL");
    ASSERT_MISUSE(apply(&half_op, reals_of(2, 3, 5), &mesh), "no forward or no backward");
    ASSERT_MISUSE(dropout(NULL, reals_of(2, 3, 5)), "dropout: an argument is NULL");
    ASSERT_MISUSE(layer_norm(NULL, reals_of(2, 3, 5)), "layer_norm: an argument is NULL");
    ASSERT_MISUSE(linear_forward(NULL, reals_of(2, 3, 5)), "linear_forward: an argument is NULL");
}
END_TEST

START_TEST(lookup_requires_ids_of_rows_in_the_table)
{
    ASSERT_MISUSE(lookup(ids_of(SHAPE(2, 3), 7), matrix(7, 4)), "id 7", "[7,4]", "7 rows");
    ASSERT_MISUSE(lookup(ids_of(SHAPE(2, 3), -2), matrix(7, 4)), "id -2");
    ASSERT_MISUSE(lookup(reals_of(2, 3, 4), matrix(7, 4)), "does not hold ids");
    ASSERT_MISUSE(lookup(ids_of(SHAPE(2, 3), 1), reals_of(7, 4, 2)), "[7,4,2]", "is not a table");
    ASSERT_MISUSE(lookup(ids_of(SHAPE(2, 1, 3, 2), 1), matrix(7, 4)), "too many dimensions");
    ASSERT_MISUSE(ids_between(reals_of(2, 3, 4), 0, 3), "does not hold ids");
    Tensor *shifted = ids_between(ids_of(SHAPE(2, 3), 6), 4, 7);
    ck_assert_int_eq(ints(shifted)[0], 2);
    ck_assert_int_eq(ints(ids_between(ids_of(SHAPE(2, 3), 6), 4, 6))[0], NO_ID);
    ck_assert_int_eq(ints(ids_between(ids_of(SHAPE(2, 3), 6), 6, 7))[5], 0);
}
END_TEST

START_TEST(attention_requires_equal_shapes_and_heads_that_divide)
{
    Tensor *q = reals_of(2, 3, 6), *mask = ids_of(SHAPE(2, 3), 1);
    ASSERT_MISUSE(attention(q, reals_of(2, 3, 4), q, mask, 2, 1), "q [2,3,6]", "k [2,3,4]");
    ASSERT_MISUSE(attention(q, q, reals_of(2, 2, 6), mask, 2, 1), "v [2,2,6]");
    ASSERT_MISUSE(attention(matrix(2, 6), matrix(2, 6), matrix(2, 6), mask, 2, 1), "[2,6]");
    ASSERT_MISUSE(attention(q, q, q, mask, 4, 1), "4 heads", "[2,3,6]");
    ASSERT_MISUSE(attention(q, q, q, mask, 0, 1), "0 heads");
}
END_TEST

START_TEST(attention_requires_a_mask_that_shows_a_key)
{
    Tensor *q = reals_of(2, 3, 6);
    Tensor *half = tape_ints(tape, SHAPE(2, 3), (int32_t[]){1, 0, 0, 0, 0, 0});
    ASSERT_MISUSE(attention(q, q, q, NULL, 2, 1), "the mask is NULL");
    ASSERT_MISUSE(attention(q, q, q, ids_of(SHAPE(2, 2), 1), 2, 1), "mask [2,2]");
    ASSERT_MISUSE(attention(q, q, q, ids_of(SHAPE(3, 3), 1), 2, 1), "mask [3,3]");
    ASSERT_MISUSE(attention(q, q, q, matrix(2, 3), 2, 1), "mask [2,3]");
    ASSERT_MISUSE(attention(q, q, q, half, 2, 1), "row 1 of the mask hides every key");
}
END_TEST

START_TEST(a_hidden_key_changes_nothing)
{
    Tensor *q = reals_of(2, 3, 6), *k = normal("k", SHAPE(2, 3, 6), whole());
    Tensor *mask = tape_ints(tape, SHAPE(2, 3), (int32_t[]){1, 0, 1, 0, 1, 1});
    real before[36];
    memcpy(before, reals(attention(q, k, k, mask, 2, 1)), sizeof before);
    for (int i = 0; i < 6; i++)
        reals(k)[6 + i] = reals(k)[18 + i] = 1e30f; /* the hidden keys: (0,1) and (1,0) */
    assert_close("y", 36, reals(attention(q, k, k, mask, 2, 1)), before, 0);
}
END_TEST

START_TEST(the_other_operations_check_shapes)
{
    Tensor *x = reals_of(2, 3, 5);
    ASSERT_MISUSE(add(x, reals_of(2, 3, 4)), "add: [2,3,5]", "[2,3,4]");
    ASSERT_MISUSE(first_token(matrix(3, 5)), "first_token: x [3,5]");
    ASSERT_MISUSE(layer_norm_with(x, normal("w", SHAPE(3), whole()), x, 1e-5), "x [2,3,5]", "[3]");
    ASSERT_MISUSE(add_positions(x, matrix(2, 5)), "x [2,3,5]", "table [2,5]");
    ASSERT_MISUSE(add_positions(x, matrix(3, 4)), "table [3,4]");
    ASSERT_MISUSE(add_bias(x, normal("b", SHAPE(3), whole())), "bias [3]", "x [2,3,5]");
    tape->batch.past = 2;
    ASSERT_MISUSE(add_positions(x, matrix(4, 5)), "x [2,3,5]", "table [4,5]");
    ASSERT_MISUSE(dropout_with(normal("x", SHAPE(5), whole()), "dropout", 0.5), "[B,..,H]");
    ASSERT_MISUSE(tensor_size(x, 3), "tensor_size", "dimension 3", "[2,3,5]");
    ASSERT_MISUSE(placed(x, shard(3)), "placed", "dimension 3");
}
END_TEST

START_TEST(causal_attention_requires_keys_for_all_queries)
{
    Tensor *q = reals_of(2, 3, 6), *k = reals_of(2, 5, 6);
    ASSERT_MISUSE(attention_causal(k, q, q, NULL, 2, 1), "attention_causal: q [2,5,6]",
                  "k [2,3,6]");
    ASSERT_MISUSE(attention_causal(q, k, q, NULL, 2, 1), "v [2,3,6]");
    ASSERT_MISUSE(attention_causal(q, reals_of(2, 3, 4), reals_of(2, 3, 4), NULL, 2, 1),
                  "k [2,3,4]");
    ASSERT_MISUSE(attention_causal(q, q, q, NULL, 4, 1), "attention_causal: 4 heads");
    ASSERT_MISUSE(attention_causal(q, q, q, ids_of(SHAPE(2, 4), 1), 2, 1), "mask [2,4]");
    ASSERT_MISUSE(attention_causal(q, q, q, ids_of(SHAPE(2, 3), 0), 2, 1), "hides every key");
    ASSERT_MISUSE(attention_causal(q, q, q, NULL, 2, 0), "scale factor");
}
END_TEST

START_TEST(a_cache_of_keys_and_values_is_for_inference)
{
    Tensor *q = reals_of(2, 3, 6), *k = reals_of(2, 5, 6);
    ASSERT_MISUSE(attention_causal(q, k, k, NULL, 2, 1), "[2,3,6]", "[2,5,6]",
                  "a gradient is needed");
    tape_record(tape, false);
    ck_assert(shape_equal(attention_causal(q, k, k, NULL, 2, 1)->shape, q->shape));
}
END_TEST

START_TEST(operations_of_heads_require_whole_heads_of_the_right_size)
{
    Tensor *x = reals_of(2, 3, 6);
    ASSERT_MISUSE(rotary(x, 2, 0, (RotaryAngles){.theta = 100}), "rotary", "odd size", "[2,3,6]");
    ASSERT_MISUSE(rotary(x, 4, 0, (RotaryAngles){.theta = 100}), "rotary: 4 heads", "[2,3,6]");
    ASSERT_MISUSE(rotary(matrix(3, 6), 3, 0, (RotaryAngles){.theta = 100}), "rotary: 3 heads",
                  "[3,6]");
    ASSERT_MISUSE(rotary(x, 3, -1, (RotaryAngles){.theta = 100}), "first position is -1");
    ASSERT_MISUSE(rotary(x, 3, 0, (RotaryAngles){.theta = 0}), "theta is 0");
    ASSERT_MISUSE(repeat_heads(x, 4, 2), "repeat_heads: 4 heads");
    ASSERT_MISUSE(repeat_heads(x, 2, 0), "repeat_heads: 0 times");
    ASSERT_MISUSE(rms_norm(x, normal("w", SHAPE(5), whole()), 1e-5), "rms_norm: x [2,3,6]", "[5]");
    ASSERT_MISUSE(swiglu(x, reals_of(2, 3, 5)), "swiglu: [2,3,6]", "[2,3,5]");
    ASSERT_MISUSE(gelu_tanh(ids_of(SHAPE(2, 3), 1)), "gelu_tanh", "holds integers");
}
END_TEST

START_TEST(cross_entropy_requires_one_label_per_row)
{
    Tensor *logits = matrix(2, 3);
    ASSERT_MISUSE(cross_entropy_mean(logits, ids_of(SHAPE(3), 0), 2, NULL), "[2,3]", "labels [3]");
    ASSERT_MISUSE(cross_entropy_mean(logits, ids_of(SHAPE(2), 3), 2, NULL),
                  "label 3 with 3 classes");
    ASSERT_MISUSE(cross_entropy_mean(logits, ids_of(SHAPE(2), -1), 2, NULL), "label -1");
    ASSERT_MISUSE(cross_entropy_mean(reals_of(2, 3, 1), ids_of(SHAPE(2), 0), 2, NULL), "[2,3,1]");
}
END_TEST

START_TEST(the_loss_of_split_rows_requires_maxima_and_ids_of_its_rows)
{
    Tensor *logits = reals_of(2, 3, 5), *most = matrix(2, 3), *ids = ids_of(SHAPE(2, 3), 4);
    ASSERT_MISUSE(row_sum_exp(logits, matrix(3, 2)), "row_sum_exp: the maxima [3,2]", "[2,3,5]");
    ASSERT_MISUSE(row_sum_exp(logits, ids), "holds integers");
    ASSERT_MISUSE(row_pick(logits, matrix(2, 5), ids), "row_pick: the maxima [2,5]", "[2,3,5]");
    ASSERT_MISUSE(row_pick(logits, most, most), "row_pick", "does not hold ids");
    ASSERT_MISUSE(row_pick(logits, most, NULL), "row_pick", "does not hold ids");
    ASSERT_MISUSE(row_pick(logits, most, ids_of(SHAPE(2, 5), 0)), "ids [2,5]", "[2,3,5]");
    ASSERT_MISUSE(row_pick(logits, most, ids_of(SHAPE(2, 3), 5)), "id 5", "5 columns");
    ASSERT_MISUSE(row_pick(logits, most, ids_of(SHAPE(2, 3), -2)), "id -2");
    ASSERT_MISUSE(row_max(ids), "row_max", "holds integers");
    ASSERT_MISUSE(row_max(normal("x", (Shape){0}, whole())), "has no rows");
    ASSERT_MISUSE(own_ids(ids_of(SHAPE(2, 3), 5), logits), "own_ids: id 5", "5 columns");
    ASSERT_MISUSE(own_ids(most, logits), "does not hold ids");
    ASSERT_MISUSE(logarithm(ids), "logarithm", "holds integers");
    ASSERT_MISUSE(subtract(most, matrix(3, 2)), "subtract: [2,3]", "[3,2]");
    ASSERT_MISUSE(mean_over_tokens(most, ids_of(SHAPE(3, 2), 0)), "x [2,3]", "targets [3,2]");
    ASSERT_MISUSE(mean_over_tokens(most, most), "mean_over_tokens", "does not hold ids");
    ASSERT_MISUSE(group_all_max(mesh.tp, most), "group_all_max", "does not exist yet");
}
END_TEST

START_TEST(part_requires_equal_parts)
{
    Tensor *x = reals_of(2, 3, 6);
    ASSERT_MISUSE(part(x, LAST, 0, 4), "dimension 2", "[2,3,6]", "4 equal parts");
    ASSERT_MISUSE(part(x, 1, 3, 3), "no part 3 of 3");
    ASSERT_MISUSE(part(x, 1, -1, 3), "no part -1");
    ASSERT_MISUSE(part(x, 3, 0, 2), "dimension 3");
    ASSERT_MISUSE(part(x, 0, 0, 0), "0 equal parts");
}
END_TEST

START_TEST(a_part_is_its_slice)
{
    Tensor *x = reals_of(4, 3, 6);
    const int parts[] = {2, 3, 3};
    for (int dim = 0; dim < 3; dim++)
        for (int k = 0; k < parts[dim]; k++) {
            Tensor *y = part(x, dim - 3, k, parts[dim]);
            int64_t *size = y->shape.size;
            int64_t begin[3] = {0};
            begin[dim] = k * size[dim];
            for (int64_t a = 0; a < size[0]; a++)
                for (int64_t b = 0; b < size[1]; b++)
                    for (int64_t c = 0; c < size[2]; c++)
                        ck_assert_float_eq(
                            reals(y)[(a * size[1] + b) * size[2] + c],
                            reals(x)[((a + begin[0]) * 3 + b + begin[1]) * 6 + c + begin[2]]);
        }
}
END_TEST

START_TEST(a_group_that_does_not_exist_yet_is_refused)
{
    Tensor *x = reals_of(2, 3, 4);
    double number = 1;
    ASSERT_MISUSE(group_all_reduce(mesh.tp, x), "group_all_reduce", "does not exist yet");
    ck_assert_ptr_nonnull(strstr(expectation.problem.hint, "lab 8"));
    ASSERT_MISUSE(group_all_gather(mesh.tp, x, 0), "group_all_gather");
    ASSERT_MISUSE(group_reduce_scatter(mesh.tp, x, 0), "group_reduce_scatter");
    ASSERT_MISUSE(group_broadcast(mesh.tp, x, 0), "group_broadcast");
    ASSERT_MISUSE(group_all_reduce_start(mesh.dp, x), "group_all_reduce_start");
    ASSERT_MISUSE((group_sum(mesh.dp, &number, 1), 0), "group_sum");
    ASSERT_MISUSE(group_size(mesh.tp), "group_size");
    ASSERT_MISUSE(group_rank(mesh.tp), "group_rank");
    ASSERT_MISUSE(group_split(mesh.tp, 0, 0), "group_split");
    ASSERT_MISUSE((pending_wait(NULL), 0), "there is nothing to wait for");
}
END_TEST

START_TEST(operations_require_a_pass)
{
    Model *model = model_new(pool, &mesh, 1);
    Tensor *w = parameter(model->builder, "weight", SHAPE(6, 4), whole());
    model_finish(model);
    ASSERT_MISUSE(gelu(w), "gelu was called outside a forward or backward pass");
    model_free(model);
}
END_TEST

static Tensor *nothing(Tensor *x, const Mesh *of)
{
    return NULL;
}

static Tensor *itself(Tensor *x, const Mesh *of)
{
    return x;
}

static Tensor *its_first_row(Tensor *x, const Mesh *of)
{
    return first_token(x);
}

START_TEST(a_custom_operation_must_return_tensors_of_the_right_shape)
{
    const Op no_forward = {"mine", nothing, itself}, no_backward = {"mine", itself, nothing},
             wrong = {"mine", itself, its_first_row},
             wrong_forward = {"mine", its_first_row, itself};
    Tensor *x = reals_of(2, 3, 4), *dy = reals_of(2, 3, 4);
    ASSERT_MISUSE(apply(&no_forward, x, &mesh), "mine, forward: it returned NULL");
    next_step(1);
    x = reals_of(2, 3, 4), dy = reals_of(2, 3, 4);
    Tensor *y = apply(&no_backward, x, &mesh);
    ASSERT_MISUSE((tape_backward(tape, y, dy), 0), "mine, backward: it returned NULL", "[2,3,4]");
    next_step(1);
    x = reals_of(2, 3, 4), dy = reals_of(2, 3, 4);
    y = apply(&wrong, x, &mesh);
    ASSERT_MISUSE((tape_backward(tape, y, dy), 0), "mine, backward: it returned [2,4]", "[2,3,4]");
    next_step(1);
    x = reals_of(2, 3, 4), dy = reals_of(2, 4, 1);
    y = apply(&wrong_forward, x, &mesh);
    dy->shape = y->shape;
    ASSERT_MISUSE((tape_backward(tape, y, dy), 0), "for which forward returned [2,4]", "[2,3,4]");
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("misuse");
    TCase *tcase = tcase_create("misuse");
    tcase_add_checked_fixture(tcase, tape_up, tape_down);
    tcase_add_test(tcase, null_is_no_argument);
    tcase_add_test(tcase, linear_requires_the_sizes_of_its_weight);
    tcase_add_test(tcase, lookup_requires_ids_of_rows_in_the_table);
    tcase_add_test(tcase, attention_requires_equal_shapes_and_heads_that_divide);
    tcase_add_test(tcase, attention_requires_a_mask_that_shows_a_key);
    tcase_add_test(tcase, a_hidden_key_changes_nothing);
    tcase_add_test(tcase, the_other_operations_check_shapes);
    tcase_add_test(tcase, the_loss_of_split_rows_requires_maxima_and_ids_of_its_rows);
    tcase_add_test(tcase, causal_attention_requires_keys_for_all_queries);
    tcase_add_test(tcase, a_cache_of_keys_and_values_is_for_inference);
    tcase_add_test(tcase, operations_of_heads_require_whole_heads_of_the_right_size);
    tcase_add_test(tcase, cross_entropy_requires_one_label_per_row);
    tcase_add_test(tcase, part_requires_equal_parts);
    tcase_add_test(tcase, a_part_is_its_slice);
    tcase_add_test(tcase, a_group_that_does_not_exist_yet_is_refused);
    tcase_add_test(tcase, operations_require_a_pass);
    tcase_add_test(tcase, a_custom_operation_must_return_tensors_of_the_right_shape);
    suite_add_tcase(suite, tcase);
    return suite;
}
