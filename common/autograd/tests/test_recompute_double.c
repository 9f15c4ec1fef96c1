/* Recomputation: the same bits, less memory, complete gradients reported once. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

enum { B = 2, S = 3, H = 5, N = B * S * H, CALLS = 3 };

/* A segment: y = x + dropout(gelu(x W^T)). */
static Model *model;
static Tensor *weight;
static Segment segment;

static Tensor *layer(const void *of, Tensor *x, Tensor *mask, const Mesh *of_mesh)
{
    ck_assert_ptr_eq(of, &weight);
    return add(x, dropout_with(gelu(linear(x, weight)), "dropout", 0.375));
}

static void model_up(void)
{
    tape_up();
    model = model_new(pool, &mesh, 1);
    weight = parameter(model->builder, "weight", SHAPE(H, H), whole());
    model_finish(model);
    model_use_tape(model, tape);
    segment = (Segment){layer, &weight, NULL};
}

static void model_down(void)
{
    model_free(model);
    tape_down();
}

typedef struct Result {
    real y[N], dx[N], dweight[H * H];
    int64_t kept; /* bytes, between the passes */
} Result;

static int64_t held(void)
{
    return memory_use().now[ACTIVATIONS];
}

/* The segment is called CALLS times; each call has a draw of its own if `differ`. */
static Tensor *chain(Tensor *x, bool recomputes, bool differ)
{
    for (int i = 0; i < CALLS; i++) {
        const TapeMark mark = tape_mark(tape);
        x = (recomputes ? recompute : segment_run)(&segment, x, differ ? i : 0, &mesh);
        tape_release_since(tape, mark, x);
    }
    return x;
}

static Result pass(bool recomputes, bool differ)
{
    Result result;
    next_step(1);
    model_clear_gradients(model);
    Tensor *x = normal("x", SHAPE(B, S, H), whole());
    const int64_t before = held();
    Tensor *y = chain(x, recomputes, differ);
    result.kept = held() - before;
    memcpy(result.y, reals(y), sizeof result.y);
    tape_backward(tape, y, normal("dy", y->shape, whole()));
    memcpy(result.dx, reals(x->gradient), sizeof result.dx);
    memcpy(result.dweight, reals(weight->gradient), sizeof result.dweight);
    return result;
}

START_TEST(recomputation_gives_the_same_bits)
{
    const Result plain = pass(false, true), again = pass(true, true);
    ck_assert_mem_eq(plain.y, again.y, sizeof plain.y);
    ck_assert_mem_eq(plain.dx, again.dx, sizeof plain.dx);
    ck_assert_mem_eq(plain.dweight, again.dweight, sizeof plain.dweight);
}
END_TEST

START_TEST(one_input_a_call_is_kept)
{
    const int64_t x = (N * (int64_t)sizeof(real) + 63) / 64 * 64;
    /* the inputs of all calls but the first, which is not counted, and the result */
    ck_assert_int_eq(pass(true, true).kept, CALLS * x);
    ck_assert_int_gt(pass(false, true).kept, 2 * CALLS * x);
}
END_TEST

START_TEST(each_draw_drops_other_elements)
{
    const Result same = pass(true, false), others = pass(true, true);
    ck_assert_mem_ne(same.y, others.y, sizeof same.y);
}
END_TEST

START_TEST(a_weight_gets_its_gradient_even_if_the_input_needs_none)
{
    const Result wanted = pass(true, true);
    next_step(1);
    model_clear_gradients(model);
    Tensor *x = normal("x", SHAPE(B, S, H), whole());
    x->needs_gradient = false;
    Tensor *y = chain(x, true, true);
    tape_backward(tape, y, normal("dy", y->shape, whole()));
    ck_assert_mem_eq(wanted.dweight, reals(weight->gradient), sizeof wanted.dweight);
}
END_TEST

typedef struct Told {
    int times;
    real gradient[H * H];
} Told;

static void note_complete(void *context, Tensor *parameter)
{
    Told *told = context;
    told->times++;
    memcpy(told->gradient, reals(parameter->gradient), sizeof told->gradient);
}

START_TEST(a_gradient_is_complete_after_the_last_of_several_calls)
{
    Told told = {0};
    tape->watch = (GradientWatch){note_complete, &told};
    const Result result = pass(true, true);
    tape->watch = (GradientWatch){0};
    ck_assert_int_eq(told.times, 1);
    ck_assert_mem_eq(told.gradient, result.dweight, sizeof told.gradient);
}
END_TEST

START_TEST(nothing_is_left_of_the_second_runs)
{
    next_step(1);
    model_clear_gradients(model);
    Tensor *x = normal("x", SHAPE(B, S, H), whole()), *y = chain(x, true, true);
    Tensor *dy = normal("dy", y->shape, whole());
    const int64_t each = x->buffer->bytes;
    tape_backward(tape, y, dy);
    ck_assert_int_eq(held(), 4 * each); /* x, y, dy and the gradient of x */
}
END_TEST

START_TEST(a_backward_pass_outside_recomputation_is_rejected)
{
    Tensor *x = leaf(normal("x", SHAPE(B, S, H), whole()));
    Tensor *y = segment_run(&segment, x, 0, &mesh);
    ASSERT_MISUSE((segment_backward(y, y), true), "outside recompute_backward");
    ASSERT_MISUSE(leaf_gradient(x), "no backward pass has reached this leaf");
    ASSERT_MISUSE(leaf_gradient(weight), "is not a leaf");
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("recompute");
    TCase *tcase = tcase_create("recompute");
    tcase_add_checked_fixture(tcase, model_up, model_down);
    tcase_add_test(tcase, recomputation_gives_the_same_bits);
    tcase_add_test(tcase, one_input_a_call_is_kept);
    tcase_add_test(tcase, each_draw_drops_other_elements);
    tcase_add_test(tcase, a_weight_gets_its_gradient_even_if_the_input_needs_none);
    tcase_add_test(tcase, a_gradient_is_complete_after_the_last_of_several_calls);
    tcase_add_test(tcase, nothing_is_left_of_the_second_runs);
    tcase_add_test(tcase, a_backward_pass_outside_recomputation_is_rejected);
    suite_add_tcase(suite, tcase);
    return suite;
}
