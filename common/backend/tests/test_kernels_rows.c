/* Layer norm, RMS norm and cross entropy against their definitions. */
#include "backend/tests/comparison.h"

static void call_layer_norm_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_layer_norm_forward(c->rows, c->columns, t[0].number, t[1].number, t[2].number,
                                     1e-5, in_double(t[3].number), t[4].number, t[5].number);
    else
        kernel_layer_norm_forward(c->rows, c->columns, t[0].single, t[1].single, t[2].single, 1e-5,
                                  in_full(t[3].single), t[4].single, t[5].single);
}

START_TEST(layer_norm_forward_matches_its_definition)
{
    Comparison c = comparison_of("layer_norm_forward", _i);
    Twin *x = add_twin(&c, c.rows * c.columns, NORMAL);
    for (int64_t i = 0; i < x->count; i++)
        x->start[i] = x->start[i] * 2 + 3; /* a mean that is not 0 */
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    add_twin(&c, c.rows, JUNK);
    add_twin(&c, c.rows, JUNK);
    compare(&c, call_layer_norm_forward);
}
END_TEST

static void call_layer_norm_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_layer_norm_backward(c->rows, c->columns, t[0].number, t[1].number, t[2].number,
                                      t[3].number, t[4].number, t[5].number, c->accumulate,
                                      t[6].number, t[7].number);
    else
        kernel_layer_norm_backward(c->rows, c->columns, t[0].single, t[1].single, t[2].single,
                                   t[3].single, t[4].single, t[5].single, c->accumulate,
                                   t[6].single, t[7].single);
}

static Comparison layer_norm_backward_of(int size, bool accumulate)
{
    Comparison c = comparison_of("layer_norm_backward", size);
    c.accumulate = accumulate;
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows, NORMAL);
    add_twin(&c, c.rows, UNIFORM);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    return c;
}

START_TEST(layer_norm_backward_matches_its_definition_written_or_added)
{
    Comparison c = layer_norm_backward_of(_i / 2, _i % 2 == 1);
    compare(&c, call_layer_norm_backward);
}
END_TEST

START_TEST(layer_norm_backward_of_rows_of_zeros_matches_its_definition)
{
    Comparison c = layer_norm_backward_of(SIZES - 3, _i % 2 == 1);
    make_zeros(&c.twins[0], _i / 2, c.rows, 7);
    compare(&c, call_layer_norm_backward);
}
END_TEST

START_TEST(nan_spreads_to_its_row)
{
    Comparison c = comparison_of("layer_norm_forward", _i);
    add_twin(&c, c.rows * c.columns, NORMAL)->start[c.rows * c.columns / 2] = NAN;
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    add_twin(&c, c.rows, JUNK);
    add_twin(&c, c.rows, JUNK);
    compare(&c, call_layer_norm_forward);
}
END_TEST

static void call_rms_norm_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_rms_norm_forward(c->rows, c->columns, t[0].number, t[1].number, 1e-5,
                                   in_double(t[2].number), t[3].number);
    else
        kernel_rms_norm_forward(c->rows, c->columns, t[0].single, t[1].single, 1e-5,
                                in_full(t[2].single), t[3].single);
}

START_TEST(rms_norm_forward_matches_its_definition)
{
    Comparison c = comparison_of("rms_norm_forward", _i / 2);
    Twin *x = add_twin(&c, c.rows * c.columns, NORMAL);
    for (int64_t i = 0; i < x->count; i++)
        x->start[i] = x->start[i] * 2 + 3;
    if (_i % 2)
        x->start[x->count / 2] = NAN; /* stays in its row */
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    add_twin(&c, c.rows, JUNK);
    compare(&c, call_rms_norm_forward);
}
END_TEST

static void call_rms_norm_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_rms_norm_backward(c->rows, c->columns, t[0].number, t[1].number, t[2].number,
                                    t[3].number, t[4].number, c->accumulate, t[5].number);
    else
        kernel_rms_norm_backward(c->rows, c->columns, t[0].single, t[1].single, t[2].single,
                                 t[3].single, t[4].single, c->accumulate, t[5].single);
}

static Comparison rms_norm_backward_of(int size, bool accumulate)
{
    Comparison c = comparison_of("rms_norm_backward", size);
    c.accumulate = accumulate;
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows, UNIFORM);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    add_twin(&c, c.columns, NORMAL);
    return c;
}

START_TEST(row_whose_squares_overflow_is_nan)
{
    Comparison c = comparison_of("norms", _i);
    Twin *x = add_twin(&c, c.rows * c.columns, NORMAL);
    const int64_t begin = c.rows / 2 * c.columns;
    for (int64_t i = 0; i < c.columns; i++)
        x->start[begin + i] = i % 2 ? -3e38 : 3e38;
    for (int t = 0; t < 2; t++)
        add_twin(&c, c.columns, NORMAL);
    Twin *y = add_twin(&c, c.rows * c.columns, JUNK);
    for (int t = 0; t < 2; t++)
        add_twin(&c, c.rows, JUNK);
    run(&c, call_layer_norm_forward, false);
    for (int64_t i = 0; i < y->count; i++)
        ck_assert(c.columns == 1 || isnan(y->single[i]) == (i >= begin && i < begin + c.columns));
    kernel_rms_norm_forward(c.rows, c.columns, x->single, c.twins[1].single, 1e-5,
                            in_full(y->single), c.twins[4].single);
    for (int64_t i = 0; i < y->count; i++)
        ck_assert(isnan(y->single[i]) == (i >= begin && i < begin + c.columns));
    free_twins(&c);
}
END_TEST

START_TEST(rms_norm_backward_matches_its_definition_written_or_added)
{
    Comparison c = rms_norm_backward_of(_i / 2, _i % 2 == 1);
    compare(&c, call_rms_norm_backward);
}
END_TEST

START_TEST(rms_norm_backward_of_rows_of_zeros_matches_its_definition)
{
    Comparison c = rms_norm_backward_of(SIZES - 3, _i % 2 == 1);
    make_zeros(&c.twins[0], _i / 2, c.rows, 7);
    compare(&c, call_rms_norm_backward);
}
END_TEST

static void call_cross_entropy(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_cross_entropy(c->rows, c->columns, t[0].number, c->ids, t[1].number, t[2].number);
    else
        kernel_cross_entropy(c->rows, c->columns, t[0].single, c->ids, t[1].single, t[2].single);
}

static Comparison loss_of(int size, float spread, int32_t *labels)
{
    Comparison c = comparison_of("cross_entropy", size);
    Twin *logits = add_twin(&c, c.rows * c.columns, NORMAL);
    for (int64_t i = 0; i < logits->count; i++)
        logits->start[i] *= spread;
    add_twin(&c, c.rows, JUNK);
    add_twin(&c, c.rows * c.columns, JUNK);
    for (int64_t r = 0; r < c.rows; r++)
        labels[r] = (int32_t)((7 * r + 3) % c.columns);
    c.ids = labels;
    return c;
}

START_TEST(cross_entropy_matches_its_definition)
{
    int32_t *labels = tensor_memory(301 * sizeof *labels);
    static const float spread[] = {1, 30, 1000};
    Comparison c = loss_of(_i / 3, spread[_i % 3], labels);
    compare(&c, call_cross_entropy);
    tensor_memory_free(labels);
}
END_TEST

START_TEST(cross_entropy_of_nan_is_nan_in_its_row)
{
    int32_t *labels = tensor_memory(301 * sizeof *labels);
    Comparison c = loss_of(_i, 1, labels);
    c.twins[0].start[c.twins[0].count / 2] = NAN;
    compare(&c, call_cross_entropy);
    tensor_memory_free(labels);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, layer_norm_forward_matches_its_definition, 0, SIZES);
    tcase_add_loop_test(tests, layer_norm_backward_matches_its_definition_written_or_added, 0,
                        2 * SIZES);
    tcase_add_loop_test(tests, layer_norm_backward_of_rows_of_zeros_matches_its_definition, 0,
                        2 * ZERO_PATTERNS);
    tcase_add_loop_test(tests, nan_spreads_to_its_row, 0, SIZES);
    tcase_add_loop_test(tests, rms_norm_forward_matches_its_definition, 0, 2 * SIZES);
    tcase_add_loop_test(tests, row_whose_squares_overflow_is_nan, 0, SIZES);
    tcase_add_loop_test(tests, rms_norm_backward_matches_its_definition_written_or_added, 0,
                        2 * SIZES);
    tcase_add_loop_test(tests, rms_norm_backward_of_rows_of_zeros_matches_its_definition, 0,
                        2 * ZERO_PATTERNS);
    tcase_add_loop_test(tests, cross_entropy_matches_its_definition, 0, 3 * SIZES);
    tcase_add_loop_test(tests, cross_entropy_of_nan_is_nan_in_its_row, 0, SIZES);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: norms and cross entropy");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    return s;
}
