/* AdamW and the gradient of a large table, when few rows have a gradient. */
#include <check.h>
#include <string.h>

#include "model/tests/fixture.h"
#include "optim/optim.h"

Suite *suite(void);

enum { ROWS = 40, COLUMNS = 48, COUNT = ROWS * COLUMNS, IDS = 3 };

static Model *model;
static Tensor *before, *table; /* `before` makes the table begin inside a block */
static Tape *tape;
static Optimizer *optimizer;

static void start(void)
{
    pool_up();
    model = model_of_rank(0, 1);
    before = parameter(model->builder, "before", SHAPE(16), whole());
    table = parameter(model->builder, "table", SHAPE(ROWS, COLUMNS), whole());
    model_finish(model);
    tape = tape_new(pool, &mesh);
    optimizer = optimizer_new(
        model, &(OptimizerConfig){ADAMW, 0.1, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8});
}

static void stop(void)
{
    optimizer_free(optimizer);
    tape_free(tape);
    model_free(model);
    pool_down();
}

/** The gradient of a pass that looks up row ids[i], with dy = i + 1. */
static void look_up(const int32_t ids[IDS])
{
    static const int64_t samples[IDS];
    real upstream[IDS * COLUMNS];
    for (int i = 0; i < IDS * COLUMNS; i++)
        upstream[i] = (real)(i / COLUMNS + 1);
    tape_reset(tape, (TapeBatch){.count = IDS, .samples = samples});
    model_use_tape(model, tape);
    model_clear_gradients(model);
    Tensor *y = lookup(tape_ints(tape, SHAPE(IDS, 1), ids), table);
    tape_backward(tape, y, tape_reals(tape, y->shape, whole(), upstream, false));
}

static void must_be_gradient_of(const int32_t ids[IDS])
{
    real expected[ROWS] = {0};
    for (int i = 0; i < IDS; i++)
        expected[ids[i]] += (real)(i + 1);
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(reals(table->gradient)[i] == expected[i / COLUMNS],
                      "row %d: %g instead of %g", i / COLUMNS, (double)reals(table->gradient)[i],
                      (double)expected[i / COLUMNS]);
}

static const int32_t STEPS[4][IDS] = {{0, 7, 7}, {39, 8, 0}, {20, 21, 7}, {5, 5, 5}};

START_TEST(a_step_leaves_nothing_of_its_gradient_to_the_next)
{
    for (int step = 0; step < 4; step++) {
        look_up(STEPS[step]);
        must_be_gradient_of(STEPS[step]);
        optimizer_step(optimizer, 0.01);
    }
}
END_TEST

/* A sum over replicas would also set gradients in rows that this replica has not used. */
START_TEST(a_step_leaves_nothing_of_a_sum_over_replicas_to_the_next)
{
    for (int step = 0; step < 4; step++) {
        look_up(STEPS[step]);
        must_be_gradient_of(STEPS[step]);
        reals(table->gradient)[(12 + step) * COLUMNS + 40] = 5;
        optimizer_step(optimizer, 0.01);
    }
}
END_TEST

START_TEST(without_a_step_in_between_each_pass_has_its_own_gradient)
{
    look_up(STEPS[0]);
    optimizer_step(optimizer, 0.01);
    for (int pass = 1; pass < 4; pass++) {
        look_up(STEPS[pass]);
        must_be_gradient_of(STEPS[pass]);
    }
}
END_TEST

START_TEST(rows_that_never_had_a_gradient_are_not_cleared_again)
{
    look_up(STEPS[0]);
    optimizer_step(optimizer, 0.01);
    reals(table->gradient)[30 * COLUMNS] = 5;
    look_up(STEPS[1]);
    ck_assert(reals(table->gradient)[30 * COLUMNS] == 5);
}
END_TEST

START_TEST(a_table_whose_rows_all_had_a_gradient_is_cleared_by_the_next_pass)
{
    for (int row = 0; row < ROWS; row += 2) {
        look_up((int32_t[]){row, row + 1, row});
        must_be_gradient_of((int32_t[]){row, row + 1, row});
        optimizer_step(optimizer, 0.01);
    }
    look_up(STEPS[1]);
    optimizer_step(optimizer, 0.01);
    must_be_gradient_of(STEPS[1]);
    look_up(STEPS[2]);
    must_be_gradient_of(STEPS[2]);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("optimiser: tables");
    TCase *tests = tcase_create("tables");
    tcase_add_checked_fixture(tests, start, stop);
    tcase_add_test(tests, a_step_leaves_nothing_of_its_gradient_to_the_next);
    tcase_add_test(tests, a_step_leaves_nothing_of_a_sum_over_replicas_to_the_next);
    tcase_add_test(tests, without_a_step_in_between_each_pass_has_its_own_gradient);
    tcase_add_test(tests, rows_that_never_had_a_gradient_are_not_cleared_again);
    tcase_add_test(tests, a_table_whose_rows_all_had_a_gradient_is_cleared_by_the_next_pass);
    suite_add_tcase(s, tests);
    return s;
}
