/* Element-wise operations write their gradients over dy if nothing else holds its buffer. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

static Tensor *dropped(Tensor *x)
{
    return dropout_with(x, "dropout", 0.5);
}

static Tensor *gelu_dropped(Tensor *x)
{
    return dropout_with(gelu(x), "dropout", 0.5);
}

static Tensor *(*const OPERATIONS[])(Tensor *x) = {gelu, dropped, gelu_dropped};
enum { OPERATION_COUNT = 3 };

static Tensor *input(const char *name)
{
    return normal(name, SHAPE(2, 3, 5), whole());
}

/** Notes the address of the gradient of the last operation before the linear layer. */
static void see_gradient(void *context, const Tensor *x, const Tensor *gradient,
                         const char *operation, void *address)
{
    if (gradient && strcmp(operation, "linear") != 0)
        *(const void **)context = gradient->data;
}

START_TEST(a_gradient_with_one_holder_is_overwritten)
{
    const void *came = NULL;
    tape->observer = (Observer){.see = see_gradient, .context = &came};
    Tensor *x = input("x"), *y = linear(OPERATIONS[_i](x), normal("weight", SHAPE(4, 5), whole()));
    tape_backward(tape, y, normal("dy", y->shape, whole()));
    ck_assert_ptr_nonnull(came);
    ck_assert_ptr_eq(x->gradient->data, came);
}
END_TEST

START_TEST(a_gradient_that_another_tensor_shares_is_not_overwritten)
{
    Tensor *weight = normal("weight", SHAPE(4, 5), whole());
    Tensor *x = input("x"), *beside = input("beside"), *alone = input("alone");
    Tensor *y = linear(add(OPERATIONS[_i](x), beside), weight), *z = linear(alone, weight);
    Tensor *dy = normal("dy", y->shape, whole());
    tape_backward(tape, y, dy);
    tape_backward(tape, z, dy);
    assert_close("beside", 30, reals(beside->gradient), reals(alone->gradient), 0);
    ck_assert_ptr_ne(x->gradient->data, beside->gradient->data);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("tape: gradients in place");
    TCase *tcase = tcase_create("in place");
    tcase_add_checked_fixture(tcase, tape_up, tape_down);
    tcase_add_loop_test(tcase, a_gradient_with_one_holder_is_overwritten, 0, OPERATION_COUNT);
    tcase_add_loop_test(tcase, a_gradient_that_another_tensor_shares_is_not_overwritten, 0,
                        OPERATION_COUNT);
    suite_add_tcase(s, tcase);
    return s;
}
