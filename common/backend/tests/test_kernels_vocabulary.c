/* The steps of a cross entropy whose rows are split over ranks, against their definitions. */
#include "backend/tests/comparison.h"

static void call_row_max(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_row_max(c->rows, c->columns, t[0].number, t[1].number);
    else
        kernel_row_max(c->rows, c->columns, t[0].single, t[1].single);
}

static void call_row_sum_exp_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_row_sum_exp_forward(c->rows, c->columns, t[0].number, t[1].number, t[2].number);
    else
        kernel_row_sum_exp_forward(c->rows, c->columns, t[0].single, t[1].single, t[2].single);
}

static void call_row_sum_exp_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_row_sum_exp_backward(c->rows, c->columns, t[3].number, t[0].number, t[1].number,
                                       t[2].number, c->accumulate);
    else
        kernel_row_sum_exp_backward(c->rows, c->columns, t[3].single, t[0].single, t[1].single,
                                    t[2].single, c->accumulate);
}

static void call_row_pick_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_row_pick_forward(c->rows, c->columns, t[0].number, t[1].number, c->ids,
                                   t[2].number);
    else
        kernel_row_pick_forward(c->rows, c->columns, t[0].single, t[1].single, c->ids, t[2].single);
}

static void call_row_pick_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_row_pick_backward(c->rows, c->columns, t[1].number, c->ids, t[0].number);
    else
        kernel_row_pick_backward(c->rows, c->columns, t[1].single, c->ids, t[0].single);
}

static void call_logarithm_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_logarithm_forward(t[0].count, t[0].number, t[1].number);
    else
        kernel_logarithm_forward(t[0].count, t[0].single, t[1].single);
}

static void call_logarithm_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_logarithm_backward(t[0].count, t[2].number, t[0].number, t[1].number);
    else
        kernel_logarithm_backward(t[0].count, t[2].single, t[0].single, t[1].single);
}

static void call_vector_subtract(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_vector_subtract(t[0].count, t[0].number, t[2].number, t[1].number);
    else
        kernel_vector_subtract(t[0].count, t[0].single, t[2].single, t[1].single);
}

/* ---- along rows ------------------------------------------------------------------------------------------ */

/* The numbers of columns on this rank: the usual sizes, none, and those of a vocabulary. */
enum { MORE = 2, LAYOUTS = SIZES + MORE, SPREADS = 3, MOST_ROWS = 301 };

static Comparison rows_of(const char *kernel, int layout, float spread)
{
    static const int64_t more[MORE][2] = {{17, 0}, {3, 50257}};
    Comparison c = comparison_of(kernel, layout % SIZES);
    if (layout >= SIZES) {
        c.rows = more[layout - SIZES][0];
        c.columns = more[layout - SIZES][1];
    }
    Twin *x = add_twin(&c, c.rows * c.columns, NORMAL);
    for (int64_t i = 0; i < x->count; i++)
        x->start[i] *= spread;
    return c;
}

/* The maxima over all ranks: in every other row, this rank has the largest number. */
static void add_maxima(Comparison *c, float spread)
{
    const float *x = c->twins[0].start;
    Twin *most = add_twin(c, c->rows, UNIFORM);
    for (int64_t r = 0; r < c->rows; r++) {
        float highest = c->columns ? x[r * c->columns] : 0;
        for (int64_t i = 0; i < c->columns; i++)
            highest = fmaxf(highest, x[r * c->columns + i]);
        most->start[r] = highest + (r % 2 ? spread * most->start[r] : 0);
    }
}

/* Adds ids: some are columns of this rank; the others are NO_ID, as if another rank had their
 * columns. */
static int32_t *add_ids(Comparison *c)
{
    int32_t *ids = tensor_memory(MOST_ROWS * sizeof *ids);
    for (int64_t r = 0; r < c->rows; r++)
        ids[r] = r % 3 == 1 || c->columns == 0 ? NO_ID : (int32_t)((7 * r + 3) % c->columns);
    c->ids = ids;
    return ids;
}

static const float SPREAD[SPREADS] = {1, 30, 1e4f};

START_TEST(row_max_matches_its_definition)
{
    Comparison c = rows_of("row_max", _i, 1);
    add_twin(&c, c.rows, JUNK);
    compare(&c, call_row_max);
}
END_TEST

START_TEST(row_sum_exp_matches_its_definition)
{
    const float spread = SPREAD[_i % SPREADS];
    for (int way = 0; way < 3; way++) {
        Comparison c = rows_of("row_sum_exp", _i / SPREADS, spread);
        add_maxima(&c, spread);
        c.accumulate = way == 2;
        add_twin(&c, way ? c.rows * c.columns : c.rows, way == 2 ? NORMAL : JUNK);
        add_twin(&c, c.rows, NORMAL);
        compare(&c, way ? call_row_sum_exp_backward : call_row_sum_exp_forward);
    }
}
END_TEST

START_TEST(row_pick_matches_its_definition)
{
    Comparison forward = rows_of("row_pick_forward", _i, 30);
    int32_t *ids = add_ids(&forward);
    add_maxima(&forward, 30);
    add_twin(&forward, forward.rows, JUNK);
    compare(&forward, call_row_pick_forward);
    tensor_memory_free(ids);
    Comparison backward = rows_of("row_pick_backward", _i, 1);
    ids = add_ids(&backward);
    add_twin(&backward, backward.rows, NORMAL);
    compare(&backward, call_row_pick_backward);
    tensor_memory_free(ids);
}
END_TEST

START_TEST(a_sum_of_nan_is_nan_in_its_row)
{
    Comparison c = rows_of("row_sum_exp", _i, 1);
    add_maxima(&c, 1);
    c.twins[0].start[c.twins[0].count / 2] = NAN;
    add_twin(&c, c.rows, JUNK);
    compare(&c, call_row_sum_exp_forward);
}
END_TEST

/* ---- element by element ---------------------------------------------------------------------------------- */

static Call *const ELEMENT_WISE[] = {call_logarithm_forward, call_logarithm_backward,
                                     call_vector_subtract};
enum { ELEMENT_WISE_COUNT = 3 };

/* Positive numbers. Sums of exponentials are at least 1, but the logarithm's kernel takes any. */
static Comparison elements_of(int i)
{
    Comparison c = comparison_of("element-wise", i / ELEMENT_WISE_COUNT);
    const int64_t count = c.rows * c.columns;
    Twin *x = add_twin(&c, count, UNIFORM);
    for (int64_t k = 0; k < count; k++)
        x->start[k] = k % 5 == 4 ? 1e5f * x->start[k] : x->start[k] + 0.01f;
    add_twin(&c, count, JUNK);
    add_twin(&c, count, NORMAL);
    return c;
}

START_TEST(element_wise_kernels_match_their_definitions)
{
    Comparison c = elements_of(_i);
    compare(&c, ELEMENT_WISE[_i % ELEMENT_WISE_COUNT]);
}
END_TEST

START_TEST(nan_stays_nan_and_does_not_spread)
{
    Comparison c = elements_of(_i);
    for (int t = 0; t < 3; t += 2)
        for (int64_t i = t; i < c.twins[t].count; i += 5)
            c.twins[t].start[i] = NAN;
    compare(&c, ELEMENT_WISE[_i % ELEMENT_WISE_COUNT]);
}
END_TEST

/* Compares the steps, on one rank with all columns, with kernel_cross_entropy(). */
START_TEST(the_steps_together_are_the_cross_entropy)
{
    enum { R = 3, V = 7 };
    float *z = tensor_memory((R * V * 4 + 6 * R) * sizeof *z), *dz = z + R * V,
          *expected = dz + R * V, *most = expected + R * V, *sum = most + R, *right = sum + R,
          *loss = right + R, *ones = loss + R, *each = ones + R;
    int32_t *labels = tensor_memory(R * sizeof *labels);
    const PhiloxKey key = philox_key(5, "logits", 0);
    for (int i = 0; i < R * V; i++)
        z[i] = 1e4f * (float)philox_normal_at(key, (uint64_t)i);
    for (int r = 0; r < R; r++)
        labels[r] = (5 * r + 1) % V;
    kernel_cross_entropy(R, V, z, labels, each, expected);
    kernel_row_max(R, V, z, most);
    kernel_row_sum_exp_forward(R, V, z, most, sum);
    kernel_row_pick_forward(R, V, z, most, labels, right);
    kernel_logarithm_forward(R, sum, loss);
    kernel_vector_subtract(R, loss, right, loss);
    kernel_vector_fill(R, 1, ones);
    kernel_logarithm_backward(R, ones, sum, ones);
    kernel_row_sum_exp_backward(R, V, ones, z, most, dz, false);
    kernel_vector_fill(R, -1, ones);
    kernel_row_pick_backward(R, V, ones, labels, dz);
    for (int r = 0; r < R; r++)
        ck_assert_double_eq_tol(loss[r], each[r], 1e-6 * (1 + fabs(each[r])));
    for (int i = 0; i < R * V; i++)
        ck_assert_double_eq_tol(dz[i], expected[i], 1e-6);
    tensor_memory_free(z);
    tensor_memory_free(labels);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, row_max_matches_its_definition, 0, LAYOUTS);
    tcase_add_loop_test(tests, row_sum_exp_matches_its_definition, 0, SPREADS * LAYOUTS);
    tcase_add_loop_test(tests, row_pick_matches_its_definition, 0, LAYOUTS);
    tcase_add_loop_test(tests, a_sum_of_nan_is_nan_in_its_row, 0, SIZES);
    tcase_add_loop_test(tests, element_wise_kernels_match_their_definitions, 0,
                        ELEMENT_WISE_COUNT * SIZES);
    tcase_add_loop_test(tests, nan_stays_nan_and_does_not_spread, 0, ELEMENT_WISE_COUNT * SIZES);
    tcase_add_test(tests, the_steps_together_are_the_cross_entropy);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: the loss of split rows");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    return s;
}
