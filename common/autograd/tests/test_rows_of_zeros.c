/* A gradient with zero rows: a linear layer skips them, and the gradients stay the same. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

enum { ROWS = 24, IN = 10, OUT = 7 };

/* With a pattern, row r is nonzero if pattern[r % 8] is true. */
static const bool PATTERNS[][8] = {
    {true}, {true, true, true}, {false}, {true, true, true, true, true, true, true}};
enum { PATTERNS_TRIED = sizeof PATTERNS / sizeof *PATTERNS };

/* x is used twice, so the second gradient is added to the first. */
static void gradients(const real *upstream, real *dx, real *dw, real *db)
{
    tape_up();
    Tensor *x = normal("x", SHAPE(3, 8, IN), whole()),
           *weight = normal("w", SHAPE(OUT, IN), whole()), *bias = normal("b", SHAPE(OUT), whole());
    Tensor *y = add(linear_with_bias(x, weight, bias), linear_with_bias(x, weight, bias));
    tape_backward(tape, y, tape_reals(tape, y->shape, whole(), upstream, false));
    memcpy(dx, reals(x->gradient), ROWS * IN * sizeof *dx);
    memcpy(dw, reals(weight->gradient), OUT * IN * sizeof *dw);
    memcpy(db, reals(bias->gradient), OUT * sizeof *db);
    tape_down();
}

/* The definition: dx = 2 dy w, dw = 2 dy^T x, db = 2 sum of dy. */
static void expect_gradients(const real *upstream, double *dx, double *dw, double *db)
{
    real x[ROWS * IN], w[OUT * IN];
    fill_normal("x", ROWS * IN, x);
    fill_normal("w", OUT * IN, w);
    for (int r = 0; r < ROWS; r++)
        for (int o = 0; o < OUT; o++) {
            const double dy = 2 * (double)upstream[r * OUT + o];
            db[o] += dy;
            for (int i = 0; i < IN; i++) {
                dx[r * IN + i] += dy * (double)w[o * IN + i];
                dw[o * IN + i] += dy * (double)x[r * IN + i];
            }
        }
}

static void must_be_close(const char *what, int count, const real *is, const double *expected)
{
    for (int i = 0; i < count; i++)
        ck_assert_msg(fabs((double)is[i] - expected[i]) <= 1e-5,
                      "%s: number %d is %g instead of %g", what, i, (double)is[i], expected[i]);
}

START_TEST(rows_of_zeros_may_be_left_out)
{
    real upstream[ROWS * OUT], dx[ROWS * IN], dw[OUT * IN], db[OUT];
    double right_dx[ROWS * IN] = {0}, right_dw[OUT * IN] = {0}, right_db[OUT] = {0};
    fill_normal("dy", ROWS * OUT, upstream);
    for (int i = 0; i < ROWS * OUT; i++)
        upstream[i] = PATTERNS[_i][i / OUT % 8] ? upstream[i] : 0;
    gradients(upstream, dx, dw, db);
    expect_gradients(upstream, right_dx, right_dw, right_db);
    must_be_close("dx", ROWS * IN, dx, right_dx);
    must_be_close("dw", OUT * IN, dw, right_dw);
    must_be_close("db", OUT, db, right_db);
}
END_TEST

/* The last rank may hold no rows of a table that is split by rows. */
START_TEST(without_outputs_the_gradient_of_x_is_zero)
{
    tape_up();
    Tensor *x = normal("x", SHAPE(3, 8, IN), whole()), *none = normal("w", SHAPE(0, IN), whole());
    Tensor *y = linear(x, none);
    tape_backward(tape, y, tape_reals(tape, y->shape, whole(), (real[]){0}, false));
    for (int i = 0; i < ROWS * IN; i++)
        ck_assert_double_eq((double)reals(x->gradient)[i], 0);
    tape_down();
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("rows of zeros");
    TCase *tests = tcase_create("linear");
    tcase_add_loop_test(tests, rows_of_zeros_may_be_left_out, 0, PATTERNS_TRIED);
    tcase_add_test(tests, without_outputs_the_gradient_of_x_is_zero);
    suite_add_tcase(s, tests);
    return s;
}
