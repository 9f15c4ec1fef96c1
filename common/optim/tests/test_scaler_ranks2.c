/* The gradient scaler: an infinite gradient on one rank makes both ranks skip the step. */
#include <math.h>

#include "comm/tests/ranks.h"
#include "mesh/mesh.h"
#include "model/transformer.h"
#include "optim/optim.h"

Suite *suite(void);

static Mesh mesh;
static Pool *pool;
static Model *model;
static Optimizer *optimizer;

static void make_model(void)
{
    mesh_open(&mesh, world, 2, 1);
    pool = pool_new(0, true);
    model = model_new(pool, &mesh, 1);
    parameter(model->builder, "weight", SHAPE(4, 5), whole());
    model_finish(model);
    for (int64_t i = 0; i < model->arena_size; i++)
        model_gradients(model)[i] = (real)(SCALE_AT_FIRST * (double)i);
    optimizer = optimizer_new(model, &(OptimizerConfig){.kind = SGD});
}

static void free_model(void)
{
    optimizer_free(optimizer);
    model_free(model);
    pool_free(pool);
}

START_TEST(gradients_are_divided_by_the_scale_without_rounding)
{
    GradScaler scaler = {.scale = SCALE_AT_FIRST};
    ck_assert(scaler_unscale(&scaler, optimizer));
    backend_wait();
    for (int64_t i = 0; i < 20; i++)
        ck_assert(model_gradients(model)[i] == (real)i);
    ck_assert(scaler.scale == SCALE_AT_FIRST && scaler.left_out == 0);
}
END_TEST

START_TEST(a_gradient_that_is_not_finite_on_one_rank_skips_the_step_on_both_and_halves_the_scale)
{
    static const real others[] = {INFINITY, -INFINITY, NAN};
    GradScaler scaler = {.scale = SCALE_AT_FIRST};
    if (group_rank(world) == _i % 2)
        model_gradients(model)[7] = others[_i / 2];
    ck_assert(!scaler_unscale(&scaler, optimizer));
    ck_assert(scaler.scale == SCALE_AT_FIRST / 2.0);
    ck_assert_int_eq(scaler.left_out, 1);
    ck_assert_int_eq(scaler.good, 0);
}
END_TEST

START_TEST(large_gradients_are_finite)
{
    GradScaler scaler = {.scale = 1};
    for (int64_t i = 0; i < 20; i++)
        model_gradients(model)[i] = 3e38f;
    ck_assert(scaler_unscale(&scaler, optimizer));
}
END_TEST

START_TEST(the_scale_is_doubled_after_enough_good_steps_in_a_row)
{
    GradScaler scaler = {.scale = 4, .good = STEPS_BEFORE_GROWTH - 2};
    scaler_unscale(&scaler, optimizer);
    ck_assert(scaler.scale == 4);
    scaler_unscale(&scaler, optimizer);
    ck_assert(scaler.scale == 8);
    ck_assert_int_eq(scaler.good, 0);
}
END_TEST

START_TEST(the_scale_is_not_halved_below_1)
{
    GradScaler scaler = {.scale = 1};
    model_gradients(model)[0] = INFINITY;
    ck_assert(!scaler_unscale(&scaler, optimizer));
    ck_assert(scaler.scale == 1);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("scaler");
    TCase *tests = tcase_create("scaler");
    tcase_add_unchecked_fixture(tests, ranks_up, ranks_down);
    tcase_add_checked_fixture(tests, make_model, free_model);
    tcase_add_test(tests, gradients_are_divided_by_the_scale_without_rounding);
    tcase_add_loop_test(
        tests,
        a_gradient_that_is_not_finite_on_one_rank_skips_the_step_on_both_and_halves_the_scale, 0,
        6);
    tcase_add_test(tests, large_gradients_are_finite);
    tcase_add_test(tests, the_scale_is_doubled_after_enough_good_steps_in_a_row);
    tcase_add_test(tests, the_scale_is_not_halved_below_1);
    suite_add_tcase(s, tests);
    return s;
}
