/* Tensors that the forward pass releases and the backward pass recomputes. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

static Tensor *itself(Tensor *x, const Mesh *with)
{
    return x;
}

/* Returns x itself, in forward and backward. */
static Tensor *passed_on(Tensor *x)
{
    return call_pair((PairCall){.op = {"passed on", itself, itself}, .mesh = &mesh}, x, whole());
}

static Tensor *gain, *shift, *weight; /* parameters, made before the pass */

static Tensor *cheap_norm(Tensor *x)
{
    return layer_norm_with(x, gain, shift, 0.1);
}

static Tensor *cheap_dropout(Tensor *x)
{
    return dropout_with(gelu(x), "cheap", 0.5);
}

static Tensor *cheap_rms_norm(Tensor *x)
{
    return rms_norm(x, gain, 0.1);
}

static Tensor *cheap_swiglu(Tensor *x)
{
    return swiglu(x, x);
}

static Tensor *(*const cheap[])(Tensor *x) = {cheap_norm,     gelu,      cheap_dropout,
                                              cheap_rms_norm, gelu_tanh, cheap_swiglu};
enum { CHEAP = 6, WAYS = 4 * CHEAP };

static Tensor *input_and_layer(void)
{
    gain = normal("gain", SHAPE(5), whole());
    shift = normal("shift", SHAPE(5), whole());
    weight = normal("weight", SHAPE(4, 5), whole());
    return normal("x", SHAPE(2, 3, 5), whole());
}

/* Computes the gradients of two linear layers that read the result of cheap[way / 4]. If way & 1,
 * the result first goes through passed_on(); if way & 2, it is changed in place. If `release`, the
 * result is released before the backward pass. Returns whether its numbers were still there
 * then. */
static bool released_between(int way, bool release, real dx[30], real dweight[20])
{
    next_step(1);
    Tensor *x = input_and_layer();
    TapeMark mark = tape_mark(tape);
    Tensor *y = cheap[way / 4](x), *z = way & 1 ? passed_on(y) : y;
    if (way & 2)
        scale(z, 3);
    Tensor *sum = add(linear(z, weight), linear(z, weight));
    if (release)
        tape_release_since(tape, mark, sum);
    bool there = y->buffer || z->buffer;
    tape_backward(tape, sum, normal("dy", sum->shape, whole()));
    memcpy(dx, reals(x->gradient), 30 * sizeof *dx);
    memcpy(dweight, reals(weight->gradient), 20 * sizeof *dweight);
    return there;
}

START_TEST(cheap_results_are_released_at_a_mark_and_recomputed)
{
    real dx[2][30], dweight[2][20];
    ck_assert(released_between(_i, false, dx[0], dweight[0]));
    bool changed = _i & 2;
    ck_assert(released_between(_i, true, dx[1], dweight[1]) == changed);
    ck_assert_mem_eq(dx[0], dx[1], sizeof *dx);
    ck_assert_mem_eq(dweight[0], dweight[1], sizeof *dweight);
}
END_TEST

START_TEST(a_released_result_is_not_recomputed_from_released_inputs)
{
    Tensor *x = input_and_layer(), *y = cheap[_i](x), *z = linear(y, weight);
    tape_backward(tape, z, normal("dy", z->shape, whole()));
    ASSERT_MISUSE(linear(y, weight), "released");
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("tape: computed again");
    TCase *tcase = tcase_create("computed again");
    tcase_add_checked_fixture(tcase, tape_up, tape_down);
    tcase_add_loop_test(tcase, cheap_results_are_released_at_a_mark_and_recomputed, 0, WAYS);
    tcase_add_loop_test(tcase, a_released_result_is_not_recomputed_from_released_inputs, 0, CHEAP);
    suite_add_tcase(s, tcase);
    return s;
}
