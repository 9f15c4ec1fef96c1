/* Element-wise operations write their gradients over dy if nothing else holds its buffer, and the
 * loss writes the gradient of the logits over the logits. */
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
static void see_gradient(void *context, const char *function, void *address, const Tensor *output,
                         int inputs, Tensor *const *input, bool back)
{
    if (back && strcmp(function, "linear") != 0)
        *(const void **)context = output->gradient->data;
}

START_TEST(a_gradient_with_one_holder_is_overwritten)
{
    const void *came = NULL;
    *tape_observer() = (Observer){.operation = see_gradient, .context = &came};
    Tensor *x = input("x"), *y = linear(OPERATIONS[_i](x), normal("weight", SHAPE(4, 5), whole()));
    tape_backward(tape, y, normal("dy", y->shape, whole()));
    *tape_observer() = (Observer){0};
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

/* ---- over the logits ------------------------------------------------------------------------------------- */

static Tensor *logits_of(Tensor *x)
{
    return linear(x, normal("weight", SHAPE(4, 5), whole()));
}

static Tensor *loss_of(Tensor *logits, bool sum_first)
{
    static const int32_t TARGETS[] = {3, NO_ID, 0, 2, 2, 1};
    Tensor *most = row_max(logits), *targets = tape_ints(tape, SHAPE(2, 3), TARGETS);
    Tensor *sum = sum_first ? row_sum_exp(logits, most) : NULL;
    Tensor *right = row_pick(logits, most, targets);
    return subtract(logarithm(sum ? sum : row_sum_exp(logits, most)), right);
}

/** Notes the addresses of the logits and of their gradient. */
static void see_logits(void *context, const char *function, void *address, const Tensor *output,
                       int inputs, Tensor *const *input, bool back)
{
    if (strcmp(function, "linear") == 0)
        ((const void **)context)[back] = (back ? output->gradient : output)->data;
}

START_TEST(the_gradient_of_logits_is_written_over_them_in_any_order)
{
    const void *seen[2] = {NULL, NULL};
    *tape_observer() = (Observer){.operation = see_logits, .context = seen};
    Tensor *y = loss_of(logits_of(input("x")), _i);
    tape_backward(tape, y, normal("dy", y->shape, whole()));
    *tape_observer() = (Observer){0};
    ck_assert_ptr_nonnull(seen[0]);
    ck_assert_ptr_eq(seen[0], seen[1]);
}
END_TEST

START_TEST(logits_that_another_operation_reads_are_not_overwritten)
{
    Tensor *x[] = {input("x"), input("x"), input("x")}, *logits[3], *sum[3];
    for (int i = 0; i < 3; i++) {
        logits[i] = logits_of(x[i]);
        Tensor *g = gelu(logits[i]);
        sum[i] = row_sum_exp(g, row_max(g));
    }
    Tensor *loss = loss_of(logits[1], _i), *dy = normal("dy", loss->shape, whole());
    tape_backward(tape, loss, dy);
    tape_backward(tape, sum[2], dy);
    tape_backward(tape, subtract(loss_of(logits[0], _i), sum[0]), dy);
    kernel_vector_subtract(30, reals(x[1]->gradient), reals(x[2]->gradient), reals(x[2]->gradient));
    assert_close("dx", 30, reals(x[0]->gradient), reals(x[2]->gradient), 1e-12);
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
    tcase_add_loop_test(tcase, the_gradient_of_logits_is_written_over_them_in_any_order, 0, 2);
    tcase_add_loop_test(tcase, logits_that_another_operation_reads_are_not_overwritten, 0, 2);
    suite_add_tcase(s, tcase);
    return s;
}
