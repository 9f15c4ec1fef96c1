/* Placements beyond the operations' rules: raw access and a lab's own operation make a
 * placement unknown, placed() declares it, and parts may be uneven. On rank 1 of 2. */
#include "autograd/tests/fixture.h"

#include "autograd/placement.h"

Suite *suite(void);

enum { B = 2, S = 3, H = 4 };

static Tensor *twice(Tensor *x, const Mesh *of)
{
    return add(x, x);
}

static const Op TWICE = {"twice", twice, twice};

START_TEST(raw_access_makes_a_placement_unknown)
{
    Tensor *x = normal("x", SHAPE(B, S, H), whole());
    ck_assert_ptr_eq(tensor_data(x), x->data);
    ck_assert_int_eq(x->placement.kind, UNKNOWN);
    Tensor *y = apply(&TWICE, normal("x", SHAPE(B, S, H), whole()), &mesh);
    ck_assert_int_eq(y->placement.kind, UNKNOWN);
}
END_TEST

START_TEST(placed_says_what_a_tensor_is)
{
    Tensor *x = normal("x", SHAPE(B, S, H), (Placement){UNKNOWN, 0});
    Tensor *y = placed(x, shard(LAST)), *w = normal("w", SHAPE(5, H), shard(1));
    ck_assert(placement_equal(y->placement, shard(2)));
    ck_assert_int_eq(linear(y, w)->placement.kind, PARTIAL);
    Tensor *dy = normal("dy", SHAPE(B, S, H), whole());
    tape_backward(tape, y, dy);
    assert_close("dx", B * S * H, reals(x->gradient), reals(dy), 0);
}
END_TEST

START_TEST(a_custom_operation_is_differentiated_by_its_own_backward)
{
    Tensor *x = normal("x", SHAPE(B, S, H), whole()), *y = apply(&TWICE, x, &mesh);
    Tensor *dy = normal("dy", SHAPE(B, S, H), whole());
    tape_backward(tape, y, dy);
    for (int i = 0; i < B * S * H; i++) {
        ck_assert_float_eq(reals(y)[i], 2 * reals(x)[i]);
        ck_assert_float_eq(reals(x->gradient)[i], 2 * reals(dy)[i]);
    }
}
END_TEST

START_TEST(raw_access_to_a_parameter_leaves_its_shard)
{
    Model *model = model_new(pool, &mesh, 1);
    Tensor *w = parameter(model->builder, "weight", SHAPE(6, H), shard(0));
    model_finish(model);
    model_use_tape(model, tape);
    tensor_data(w)[0] = 1;
    ck_assert(placement_equal(w->placement, shard(0)));
    model_free(model);
}
END_TEST

START_TEST(a_shard_that_was_noted_keeps_its_dropout)
{
    expect_notes();
    real ones[B * S * H];
    for (int i = 0; i < B * S * H; i++)
        ones[i] = 1;
    /* Without f, a broken rule is noted, but this rank's columns are still the second half. */
    Tensor *y = linear(normal("x", SHAPE(B, S, H), whole()), normal("w", SHAPE(H, H), shard(0)));
    memcpy(reals(y), ones, sizeof ones);
    real mine[B * S * H];
    memcpy(mine, reals(dropout_with(y, "dropout", 0.5)), sizeof mine);
    ck_assert_int_eq(expectation.noted, 1);
    Tensor *shard_of_ones = tape_reals(tape, SHAPE(B, S, H), shard(2), ones, false);
    assert_close("mask", B * S * H, mine, reals(dropout_with(shard_of_ones, "dropout", 0.5)), 0);
}
END_TEST

START_TEST(a_bias_in_a_term_of_a_sum_is_refused)
{
    Tensor *x = normal("x", SHAPE(B, S, H), shard(2));
    ASSERT_MISUSE(
        linear_with_bias(x, normal("w", SHAPE(5, H), shard(1)), normal("b", SHAPE(5), whole())),
        "the bias belongs after that sum");
}
END_TEST

START_TEST(uneven_parts_are_only_for_lookups_by_row)
{
    Model *model = model_new(pool, &mesh, 1);
    Builder *b = model->builder;
    Tensor *rows = parameter(b, "rows", SHAPE(5, H), shard(0)),
           *columns = parameter(b, "columns", SHAPE(H, 5), shard(1));
    model_finish(model);
    model_use_tape(model, tape);
    Tensor *ids = tape_ints(tape, SHAPE(B, S), (int32_t[]){0, 1, NO_ID, 1, 0, 0});
    Tensor *x = normal("x", SHAPE(B, S, H), (Placement){COPIED, 0}),
           *narrow = normal("x", SHAPE(B, S, 2), shard(2));
    ASSERT_MISUSE(linear(x, rows), "linear", "5 rows", "2 equal parts");
    ASSERT_MISUSE(linear(narrow, columns), "linear", "5 columns", "2 equal parts");
    ASSERT_MISUSE(lookup(ids, columns), "lookup", "5 columns", "2 equal parts");
    ck_assert_int_eq(lookup(ids, rows)->placement.kind, PARTIAL);
    model_free(model);
}
END_TEST

START_TEST(logits_of_a_split_table_know_their_columns)
{
    Model *model = model_new(pool, &mesh, 1);
    Tensor *table = parameter(model->builder, "table", SHAPE(6, H), shard(0)),
           *uneven = parameter(model->builder, "uneven", SHAPE(5, H), shard(0));
    uneven->parameter->may_be_uneven = true;
    model_finish(model);
    model_use_tape(model, tape);
    Tensor *ids = tape_ints(tape, SHAPE(B, S), (int32_t[]){0, 3, NO_ID, 5, 2, 4});
    Tensor *x = normal("x", SHAPE(B, S, H), (Placement){COPIED, 0}), *logits = linear(x, table);
    static const int32_t own[] = {NO_ID, 0, NO_ID, 2, NO_ID, 1};
    ck_assert_mem_eq(ints(own_ids(ids, logits)), own, sizeof own);
    ck_assert_mem_eq(ints(own_ids(own_ids(ids, logits), x)), own, sizeof own); /* x is not split */
    ASSERT_MISUSE(own_ids(ids, normal("y", SHAPE(B, S, 3), shard(2))), "own_ids",
                  "[2,3,3] shard(2)", "not known");
    ASSERT_MISUSE(own_ids(ids, linear(x, uneven)), "own_ids", "id 5", "5 columns");
    ints(ids)[3] = 1;
    static const int32_t shorter[] = {NO_ID, 0, NO_ID, NO_ID, NO_ID, 1}; /* rows 3 and 4 */
    ck_assert_mem_eq(ints(own_ids(ids, linear(x, uneven))), shorter, sizeof shorter);
    model_free(model);
}
END_TEST

static void second_of_two_up(void)
{
    rank_up(1, 2);
}

Suite *suite(void)
{
    Suite *suite = suite_create("placement kept");
    TCase *tcase = tcase_create("placement kept");
    tcase_add_checked_fixture(tcase, second_of_two_up, tape_down);
    tcase_add_test(tcase, raw_access_makes_a_placement_unknown);
    tcase_add_test(tcase, placed_says_what_a_tensor_is);
    tcase_add_test(tcase, a_custom_operation_is_differentiated_by_its_own_backward);
    tcase_add_test(tcase, raw_access_to_a_parameter_leaves_its_shard);
    tcase_add_test(tcase, a_shard_that_was_noted_keeps_its_dropout);
    tcase_add_test(tcase, logits_of_a_split_table_know_their_columns);
    tcase_add_test(tcase, a_bias_in_a_term_of_a_sum_is_refused);
    tcase_add_test(tcase, uneven_parts_are_only_for_lookups_by_row);
    suite_add_tcase(suite, tcase);
    return suite;
}
