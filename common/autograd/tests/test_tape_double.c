/* The tape: the order of differentiation, what is kept, and what is freed. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

/* A model with one weight, so gradients accumulate between passes. */
static Model *model;
static Tensor *weight;

static void model_up(void)
{
    tape_up();
    model = model_new(pool, &mesh, 1);
    weight = parameter(model->builder, "weight", SHAPE(4, 5), whole());
    model_finish(model);
    model_use_tape(model, tape);
}

static void model_down(void)
{
    model_free(model);
    tape_down();
}

static Tensor *net(Tensor *x)
{
    return gelu(linear(x, weight));
}

static Tensor *upstream_of(const char *name, const Tensor *y)
{
    return normal(name, y->shape, whole());
}

/* Runs one pass over the sample `name` only. Writes the gradients of x and of the weight. */
static void alone(const char *name, real *dx, real *dweight)
{
    next_step(1);
    model_clear_gradients(model);
    Tensor *x = normal(name, SHAPE(2, 3, 5), whole()), *y = net(x);
    tape_backward(tape, y, upstream_of(name, y));
    memcpy(dx, reals(x->gradient), 30 * sizeof *dx);
    memcpy(dweight, reals(weight->gradient), 20 * sizeof *dweight);
}

/* _i determines the order of the two backward passes. */
START_TEST(two_forward_passes_before_two_backward_passes)
{
    real dx[2][30], dw[2][20], sum[20];
    const char *const names[] = {"one", "two"};
    for (int i = 0; i < 2; i++)
        alone(names[i], dx[i], dw[i]);
    for (int i = 0; i < 20; i++)
        sum[i] = dw[0][i] + dw[1][i];
    next_step(1);
    model_clear_gradients(model);
    Tensor *x[2], *y[2];
    for (int i = 0; i < 2; i++) {
        x[i] = normal(names[i], SHAPE(2, 3, 5), whole());
        y[i] = net(x[i]);
    }
    for (int i = 0; i < 2; i++)
        tape_backward(tape, y[_i ^ i], upstream_of(names[_i ^ i], y[_i ^ i]));
    for (int i = 0; i < 2; i++)
        assert_close(names[i], 30, reals(x[i]->gradient), dx[i], 0);
    assert_close("weight", 20, reals(weight->gradient), sum, 1e-15 * 20);
}
END_TEST

START_TEST(gradients_of_micro_batches_add_up_to_the_batch_gradient)
{
    real numbers[30], upstream[24];
    fill_normal("x", 30, numbers);
    fill_normal("dy", 24, upstream);
    real expected[20];
    for (int parts = 1; parts <= 2; parts++) {
        model_clear_gradients(model);
        for (int k = 0; k < parts; k++) {
            next_step(1);
            Tensor *x = tape_reals(tape, SHAPE(2 / parts, 3, 5), whole(), numbers + k * 15, false);
            Tensor *y = net(x);
            tape_backward(tape, y, tape_reals(tape, y->shape, whole(), upstream + k * 12, false));
        }
        if (parts == 1)
            memcpy(expected, reals(weight->gradient), sizeof expected);
    }
    assert_close("weight", 20, reals(weight->gradient), expected, 1e-14);
}
END_TEST

START_TEST(a_backward_pass_starts_from_any_tensor)
{
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole());
    Tensor *middle = linear(x, weight), *y = gelu(middle);
    Tensor *dmiddle = upstream_of("dmiddle", middle);
    tape_backward(tape, middle, dmiddle);
    ck_assert_ptr_null(y->gradient);
    real expected[30] = {0};
    for (int row = 0; row < 6; row++)
        for (int out = 0; out < 4; out++)
            for (int in = 0; in < 5; in++)
                expected[row * 5 + in] +=
                    reals(dmiddle)[row * 4 + out] * reals(weight)[out * 5 + in];
    assert_close("x", 30, reals(x->gradient), expected, 1e-14);
}
END_TEST

START_TEST(the_gradient_of_one_number_starts_with_one)
{
    Tensor *x = normal("x", SHAPE(1), whole()), *y = add(x, x);
    tape_backward(tape, y, NULL);
    ck_assert_double_eq(reals(x->gradient)[0], 2);
}
END_TEST

START_TEST(the_given_gradient_is_not_changed)
{
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole());
    Tensor *y = add(add(x, x), gelu(x)), *dy = upstream_of("dy", y);
    real before[30];
    memcpy(before, reals(dy), sizeof before);
    tape_backward(tape, y, dy);
    assert_close("dy", 30, reals(dy), before, 0);
}
END_TEST

START_TEST(gelu_deferred_for_dropout_gives_the_same_numbers)
{
    real value[24], gradient[24];
    for (int put_off = 0; put_off < 2; put_off++) {
        next_step(1);
        Tensor *x = normal("x", SHAPE(2, 3, 4), whole()), *y = gelu(x);
        if (!put_off)
            ready(y);
        Tensor *z = dropout_with(y, "dropout", 0.4);
        ck_assert_msg((y->buffer == NULL) == put_off, "gelu is deferred until its result is read");
        ck_assert_str_eq(z->producer->name, put_off ? "gelu and dropout" : "dropout");
        tape_backward(tape, z, upstream_of("dz", z));
        if (put_off) {
            assert_close("y", 24, reals(z), value, 1e-15);
            assert_close("dx", 24, reals(x->gradient), gradient, 1e-15);
        }
        memcpy(value, reals(z), sizeof value);
        memcpy(gradient, reals(x->gradient), sizeof gradient);
    }
}
END_TEST

START_TEST(without_recording_nothing_is_kept)
{
    bool before = tape_record(tape, false);
    ck_assert(before);
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole()), *y = net(x);
    ck_assert(!tape_record(tape, true));
    ck_assert_ptr_null(y->producer);
    ck_assert(!y->needs_gradient);
    ck_assert_ptr_nonnull(y->buffer);
}
END_TEST

static int64_t held(void)
{
    return memory_use().now[ACTIVATIONS];
}

START_TEST(results_that_no_backward_pass_needs_are_released_at_a_mark)
{
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole());
    TapeMark mark = tape_mark(tape);
    int64_t before = held();
    Tensor *h = linear(x, weight), *sum = add(h, h), *y = gelu(sum);
    ready(y);
    tape_release_since(tape, mark, y);
    /* y and `sum`, which gelu's backward reads, have 24 doubles each (192 bytes). h is freed. */
    ck_assert_int_eq(held() - before, 2 * 192);
    ck_assert_ptr_null(h->buffer);
    ASSERT_MISUSE(gelu(h), "released");
    tape_backward(tape, y, upstream_of("dy", y));
    real dx[30], dw[20];
    memcpy(dx, reals(x->gradient), sizeof dx);
    memcpy(dw, reals(weight->gradient), sizeof dw);
    next_step(1);
    model_clear_gradients(model);
    x = normal("x", SHAPE(2, 3, 5), whole());
    h = linear(x, weight);
    y = gelu(add(h, h));
    tape_backward(tape, y, upstream_of("dy", y));
    assert_close("dx", 30, reals(x->gradient), dx, 0);
    assert_close("dw", 20, reals(weight->gradient), dw, 0);
}
END_TEST

START_TEST(a_result_that_shares_memory_survives_the_mark)
{
    TapeMark mark = tape_mark(tape);
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole()), *view = tape_view(tape, x, whole());
    real first = reals(x)[0];
    tape_release_since(tape, mark, view);
    ck_assert_ptr_null(x->buffer);
    ck_assert_double_eq(reals(view)[0], first);
}
END_TEST

START_TEST(tensors_are_released_once_a_backward_pass_has_used_them)
{
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole()), *dy = normal("dy", SHAPE(2, 3, 4), whole());
    int64_t before = held();
    Tensor *y = net(x);
    tape_backward(tape, y, dy);
    /* Only the result (24 numbers) and the gradient of x (30 numbers, rounded up to lines of 64
     * bytes) are left. */
    ck_assert_int_eq(held() - before, 192 + 256);
    ck_assert_ptr_nonnull(x->gradient->buffer);
}
END_TEST

START_TEST(the_result_can_be_read_after_the_backward_pass)
{
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole()),
           *y = net(x); /* gelu: deferred until it is read */
    tape_backward(tape, y, upstream_of("dy", y));
    Tensor *again = net(x);
    assert_close("y", 24, reals(ready(y)), reals(ready(again)), 0);
}
END_TEST

/* The observer's record: how many times the weight's gradient was reported complete, its values
 * then, and the number of operations before that report and in all. */
typedef struct Told {
    int complete, operations, operations_before;
    real gradient[20];
} Told;

static void note_complete(void *context, Tensor *parameter)
{
    Told *told = context;
    ck_assert_ptr_eq(parameter, weight);
    told->complete++;
    told->operations_before = told->operations;
    memcpy(told->gradient, reals(parameter->gradient), sizeof told->gradient);
}

static Told told;

static void note_operation(const Mesh *of)
{
    ck_assert_ptr_eq(of, &mesh);
    told.operations++;
}

START_TEST(an_observer_is_called_when_a_gradient_has_its_last_addend)
{
    model_clear_gradients(model);
    model_use_tape(model, tape);
    told = (Told){0};
    tape->watch = (GradientWatch){note_complete, &told};
    tape_observer()->between = note_operation;
    Tensor *x = normal("x", SHAPE(2, 3, 5), whole()), *first = gelu(x);
    Tensor *y = add(linear(first, weight), linear(x, weight));
    ck_assert_int_eq(told.operations, 4);
    told.operations = 0;
    tape_backward(tape, y, upstream_of("dy", y));
    tape->watch = (GradientWatch){0};
    tape_observer()->between = NULL;
    ck_assert_int_eq(told.complete, 1);
    ck_assert_int_eq(told.operations, 4);
    ck_assert_int_eq(told.operations_before,
                     2); /* the sum and one of the products; gelu's backward runs later */
    assert_close("weight", 20, told.gradient, reals(weight->gradient), 0);
}
END_TEST

static void see_nothing(void *context, const char *function, void *address, const Tensor *output,
                        int inputs, Tensor *const *input, bool back)
{
}

START_TEST(no_member_of_a_tape_points_to_what_observes_it)
{
    static int context;
    const void *word[sizeof *tape / sizeof(void *)];
    *tape_observer() = (Observer){.operation = see_nothing, .context = &context};
    gelu(normal("x", SHAPE(2, 3, 5), whole()));
    memcpy(word, tape, sizeof word);
    *tape_observer() = (Observer){0};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        ck_assert_ptr_ne(word[i], &context);
        ck_assert_ptr_ne(word[i], tape_observer());
    }
}
END_TEST

START_TEST(no_step_after_the_first_allocates_memory)
{
    int64_t allocations = 0;
    for (int step = 1; step <= 4; step++) {
        next_step(step);
        model_clear_gradients(model);
        Tensor *x = normal("x", SHAPE(2, 3, 5), whole());
        Tensor *y = dropout_with(gelu(linear(x, weight)), "dropout", 0.3);
        y = add(y, layer_norm_with(y, normal("w", SHAPE(4), whole()),
                                   normal("b", SHAPE(4), whole()), 1e-5));
        tape_backward(tape, y, upstream_of("dy", y));
        if (step == 1)
            allocations = pool_allocations(pool);
        ck_assert_int_eq(pool_allocations(pool), allocations);
    }
}
END_TEST

START_TEST(a_long_tape_keeps_its_tensors_in_place)
{
    Tensor *x = normal("x", SHAPE(1), whole()), *y = x;
    for (int i = 0; i < 1000; i++)
        y = add(y, x);
    tape_backward(tape, y, NULL);
    ck_assert_double_eq(reals(x->gradient)[0], 1001);
}
END_TEST

START_TEST(two_tapes_live_at_once)
{
    Tape *other = tape_new(pool, &mesh);
    tape_reset(other, (TapeBatch){0});
    Tensor *x = normal("x", SHAPE(2, 3), whole());
    Tensor *z = tape_reals(other, SHAPE(2, 3), whole(), reals(x), true);
    Tensor *y = gelu(x), *w = gelu(z);
    tape_reset(tape, (TapeBatch){0});
    ck_assert_ptr_null(y->buffer);
    tape_backward(other, w, tape_reals(other, SHAPE(2, 3), whole(), reals(z), false));
    ck_assert_ptr_nonnull(z->gradient);
    tape_free(other);
}
END_TEST

START_TEST(a_gradient_can_be_written_without_changing_another)
{
    /* add gives both arguments one gradient; they share its memory until one of them is written */
    Tensor *x = normal("x", SHAPE(2, 3), whole()), *y = normal("y", SHAPE(2, 3), whole());
    Tensor *z = add(x, y), *dz = normal("dz", SHAPE(2, 3), whole());
    tape_backward(tape, z, dz);
    unshare(x->gradient);
    reals(x->gradient)[0] = 100;
    ck_assert_double_eq(reals(y->gradient)[0], reals(dz)[0]);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("tape");
    TCase *tcase = tcase_create("tape");
    tcase_add_checked_fixture(tcase, model_up, model_down);
    tcase_add_loop_test(tcase, two_forward_passes_before_two_backward_passes, 0, 2);
    tcase_add_test(tcase, gradients_of_micro_batches_add_up_to_the_batch_gradient);
    tcase_add_test(tcase, a_backward_pass_starts_from_any_tensor);
    tcase_add_test(tcase, the_gradient_of_one_number_starts_with_one);
    tcase_add_test(tcase, the_given_gradient_is_not_changed);
    tcase_add_test(tcase, gelu_deferred_for_dropout_gives_the_same_numbers);
    tcase_add_test(tcase, without_recording_nothing_is_kept);
    tcase_add_test(tcase, results_that_no_backward_pass_needs_are_released_at_a_mark);
    tcase_add_test(tcase, a_result_that_shares_memory_survives_the_mark);
    tcase_add_test(tcase, tensors_are_released_once_a_backward_pass_has_used_them);
    tcase_add_test(tcase, the_result_can_be_read_after_the_backward_pass);
    tcase_add_test(tcase, an_observer_is_called_when_a_gradient_has_its_last_addend);
    tcase_add_test(tcase, no_member_of_a_tape_points_to_what_observes_it);
    tcase_add_test(tcase, no_step_after_the_first_allocates_memory);
    tcase_add_test(tcase, a_long_tape_keeps_its_tensors_in_place);
    tcase_add_test(tcase, two_tapes_live_at_once);
    tcase_add_test(tcase, a_gradient_can_be_written_without_changing_another);
    suite_add_tcase(suite, tcase);
    return suite;
}
