/* Dropout, alone and with GELU, against its definition, and its mask against the documentation of
 * DropoutMask. */
#include "backend/tests/comparison.h"

static const double PROBABILITY = 0.3; /* of dropping an element */

static void call_dropout_apply(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_dropout(DROPOUT, c->rows, c->columns, PROBABILITY, c->kept, (DoubleNumbers){0},
                          in_double(t[0].number), in_double(t[1].number));
    else
        kernel_dropout(DROPOUT, c->rows, c->columns, PROBABILITY, c->kept, (Numbers){0},
                       in_full(t[0].single), in_full(t[1].single));
}

static void call_gelu_dropout_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_dropout(GELU_DROPOUT, c->rows, c->columns, PROBABILITY, c->kept,
                          (DoubleNumbers){0}, in_double(t[0].number), in_double(t[1].number));
    else
        kernel_dropout(GELU_DROPOUT, c->rows, c->columns, PROBABILITY, c->kept, (Numbers){0},
                       in_full(t[0].single), in_full(t[1].single));
}

static void call_gelu_dropout_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_dropout(GELU_DROPOUT_BACKWARD, c->rows, c->columns, PROBABILITY, c->kept,
                          in_double(t[0].number), in_double(t[1].number), in_double(t[2].number));
    else
        kernel_dropout(GELU_DROPOUT_BACKWARD, c->rows, c->columns, PROBABILITY, c->kept,
                       in_full(t[0].single), in_full(t[1].single), in_full(t[2].single));
}

/* A mask for texts of 7 positions, from column `column_begin` on. Philox takes the two halves of a
 * sample number as two words, so the numbers here differ in all 63 bits that a row number can
 * have. */
enum { POSITIONS = 7, SAMPLES = 43 };

static DropoutMask mask_of(double probability, int64_t column_begin, int64_t samples[SAMPLES])
{
    for (int64_t i = 0; i < SAMPLES; i++)
        samples[i] = (int64_t)((uint64_t)(i + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 1);
    return (DropoutMask){
        philox_key(3, "mask", 5), probability, samples, POSITIONS, column_begin, 0};
}

static uint32_t *drawn(int64_t rows, int64_t columns, const DropoutMask *mask)
{
    uint32_t *kept = tensor_memory((size_t)(rows * dropout_words(columns)) * sizeof *kept);
    kernel_dropout_draw(rows, columns, mask, kept);
    return kept;
}

static Comparison case_of(const char *kernel, int size, int arguments)
{
    Comparison c = comparison_of(kernel, size);
    int64_t samples[SAMPLES];
    const DropoutMask mask = mask_of(PROBABILITY, size % 9, samples);
    c.kept = drawn(c.rows, c.columns, &mask);
    c.bound = 0x1p-22;
    for (int t = 0; t <= arguments; t++)
        add_twin(&c, c.rows * c.columns, t < arguments ? NORMAL : JUNK);
    for (int64_t i = 0; i < c.twins[0].count; i++)
        c.twins[0].start[i] *= 3; /* reaches the tails of the function */
    return c;
}

static void compare_case(Comparison *c, Call *call)
{
    compare(c, call);
    tensor_memory_free((void *)c->kept);
}

/* Also compares the bits after the last column, because all words are written in full. */
START_TEST(dropout_draw_matches_its_definition)
{
    const int64_t rows = ROWS[_i / COLUMN_SIZES], columns = COLUMNS[_i % COLUMN_SIZES];
    const size_t bytes = (size_t)(rows * dropout_words(columns)) * sizeof(uint32_t);
    int64_t samples[SAMPLES];
    for (int begin = 0; begin < 6; begin++) {
        DropoutMask mask = mask_of(PROBABILITY, begin, samples);
        mask.position_begin = INT64_C(77777777) * begin;
        uint32_t *kept = tensor_memory(bytes), *expected = malloc(bytes);
        memset(kept, 0x55, bytes);
        memset(expected, 0xAA, bytes);
        kernel_dropout_draw(rows, columns, &mask, kept);
        reference_dropout_draw(rows, columns, &mask, expected);
        ck_assert_mem_eq(kept, expected, bytes);
        tensor_memory_free(kept);
        free(expected);
    }
}
END_TEST

START_TEST(dropout_of_many_samples_is_drawn_by_each_ones_number)
{
    enum { MANY = 700, EACH = 2, WIDTH = 5 };
    int64_t samples[MANY];
    for (int i = 0; i < MANY; i++)
        samples[i] = INT64_C(7) * (MANY - i) << (i % 30);
    const DropoutMask mask = {philox_key(3, "mask", 5), PROBABILITY, samples, EACH, 1, 0};
    uint32_t *kept = drawn(MANY * EACH, WIDTH, &mask), expected[MANY * EACH];
    reference_dropout_draw(MANY * EACH, WIDTH, &mask, expected);
    ck_assert_mem_eq(kept, expected, sizeof expected);
    tensor_memory_free(kept);
}
END_TEST

START_TEST(dropout_matches_its_definition)
{
    Comparison c = case_of("dropout_apply", _i, 1);
    compare_case(&c, call_dropout_apply);
}
END_TEST

START_TEST(gelu_dropout_is_gelu_and_then_dropout)
{
    Comparison forward = case_of("gelu_dropout_forward", _i, 1);
    compare_case(&forward, call_gelu_dropout_forward);
    Comparison backward = case_of("gelu_dropout_backward", _i, 2);
    compare_case(&backward, call_gelu_dropout_backward);
}
END_TEST

START_TEST(gelu_dropout_backward_of_rows_of_zeros_matches_its_definition)
{
    Comparison c = case_of("gelu_dropout_backward", _i % SIZES, 2);
    make_zeros(&c.twins[0], _i / SIZES, c.rows, 7);
    compare_case(&c, call_gelu_dropout_backward);
}
END_TEST

START_TEST(nan_stays_nan_and_does_not_spread)
{
    Call *calls[] = {call_dropout_apply, call_gelu_dropout_forward, call_gelu_dropout_backward};
    const int arguments[] = {1, 1, 2};
    for (int k = 0; k < 3; k++) {
        Comparison c = case_of("with NaN", _i, arguments[k]);
        for (int t = 0; t < arguments[k]; t++)
            for (int64_t i = t; i < c.twins[t].count; i += 4)
                c.twins[t].start[i] = NAN;
        compare_case(&c, calls[k]);
    }
}
END_TEST

static bool is_kept(const DropoutMask *mask, int64_t row, int64_t column)
{
    const uint64_t sample = (uint64_t)mask->samples[row / mask->positions];
    const int64_t whole = mask->column_begin + column;
    const Philox4 drawn =
        philox(mask->key, (uint32_t)sample, (uint32_t)(sample >> 32),
               (uint32_t)(mask->position_begin + row % mask->positions), (uint32_t)(whole / 4));
    return philox_uniform(drawn.word[whole % 4]) >= mask->probability;
}

START_TEST(dropout_keeps_the_elements_that_its_mask_selects)
{
    enum { ROWS_HERE = 15, COLUMNS_HERE = 701 };
    static const double probabilities[] = {0, 0x1p-24, 0.1, 0.5, 1 - 0x1p-24, 1};
    static const int64_t begins[] = {0, 1, 2, 3, 4, 255, 768};
    float *x = tensor_memory(2 * ROWS_HERE * COLUMNS_HERE * sizeof *x),
          *y = x + ROWS_HERE * COLUMNS_HERE;
    int64_t samples[SAMPLES], wrong = 0, zeros = 0;
    DropoutMask mask = mask_of(probabilities[_i % 6], begins[_i / 6], samples);
    mask.position_begin = begins[6 - _i / 6];
    const float factor = (float)(1 / (1 - mask.probability));
    for (int64_t i = 0; i < ROWS_HERE * COLUMNS_HERE; i++)
        x[i] = 1;
    uint32_t *kept = drawn(ROWS_HERE, COLUMNS_HERE, &mask);
    kernel_dropout(DROPOUT, ROWS_HERE, COLUMNS_HERE, mask.probability, kept, (Numbers){0},
                   in_full(x), in_full(y));
    tensor_memory_free(kept);
    for (int64_t r = 0; r < ROWS_HERE; r++)
        for (int64_t c = 0; c < COLUMNS_HERE; c++) {
            wrong += y[r * COLUMNS_HERE + c] != (is_kept(&mask, r, c) ? factor : 0);
            zeros += y[r * COLUMNS_HERE + c] == 0;
        }
    ck_assert_int_eq(wrong, 0);
    const double count = ROWS_HERE * COLUMNS_HERE, p = mask.probability;
    ck_assert(fabs((double)zeros - p * count) <= 4 * sqrt(count * p * (1 - p)) + 1);
    tensor_memory_free(x);
}
END_TEST

START_TEST(dropout_keeps_an_element_whose_number_is_the_probability)
{
    int64_t samples[SAMPLES];
    DropoutMask mask = mask_of(0, 0, samples);
    uint32_t *kept = tensor_memory(sizeof *kept);
    for (int column = 0; column < 4; column++) {
        const Philox4 drawn =
            philox(mask.key, (uint32_t)samples[0], (uint32_t)(samples[0] >> 32), 0, 0);
        mask.probability = philox_uniform(drawn.word[column]);
        kernel_dropout_draw(1, 4, &mask, kept);
        ck_assert(*kept >> column & 1);
        mask.probability += 0x1p-26;
        kernel_dropout_draw(1, 4, &mask, kept);
        ck_assert(!(*kept >> column & 1));
    }
    tensor_memory_free(kept);
}
END_TEST

/* The columns of a tensor of 3 rows in uneven shards, put together again. */
START_TEST(dropout_on_three_shards_equals_dropout_on_the_whole)
{
    enum { WIDTH = 103, HEIGHT = 3 };
    static const int64_t first[] = {0, 37, 70, WIDTH};
    enum { ALL = HEIGHT * WIDTH };
    float *x = tensor_memory(4 * ALL * sizeof *x), *y = x + ALL, *shard = y + ALL,
          *together = shard + ALL;
    int64_t samples[SAMPLES];
    DropoutMask mask = mask_of(0.4, 0, samples);
    for (int i = 0; i < HEIGHT * WIDTH; i++)
        x[i] = (float)(i + 1);
    uint32_t *kept = drawn(HEIGHT, WIDTH, &mask);
    kernel_dropout(DROPOUT, HEIGHT, WIDTH, mask.probability, kept, (Numbers){0}, in_full(x),
                   in_full(y));
    for (int s = 0; s < 3; s++) {
        const int64_t columns = first[s + 1] - first[s];
        mask.column_begin = first[s];
        kernel_copy_rows(HEIGHT, columns, x + first[s], WIDTH, shard, columns);
        kernel_dropout_draw(HEIGHT, columns, &mask, kept);
        kernel_dropout(DROPOUT, HEIGHT, columns, mask.probability, kept, (Numbers){0},
                       in_full(shard), in_full(shard));
        kernel_copy_rows(HEIGHT, columns, shard, columns, together + first[s], WIDTH);
    }
    ck_assert_mem_eq(together, y, ALL * sizeof *y);
    tensor_memory_free(x);
    tensor_memory_free(kept);
}
END_TEST

/* The positions of two samples in three shards, put together again. */
START_TEST(dropout_of_three_shards_of_positions_is_dropout_of_the_whole)
{
    enum { TEXTS = 2, EACH = 5, WIDTH = 37, ALL = TEXTS * 3 * EACH * WIDTH };
    float *x = tensor_memory(3 * ALL * sizeof *x), *y = x + ALL, *shard = y + ALL;
    int64_t samples[SAMPLES];
    DropoutMask mask = mask_of(0.4, 3, samples);
    mask.positions = 3 * EACH;
    for (int i = 0; i < ALL; i++)
        x[i] = (float)(i + 1);
    uint32_t *kept = drawn(TEXTS * 3 * EACH, WIDTH, &mask);
    kernel_dropout(DROPOUT, TEXTS * 3 * EACH, WIDTH, mask.probability, kept, (Numbers){0},
                   in_full(x), in_full(y));
    mask.positions = EACH;
    for (int s = 0; s < 3; s++) {
        mask.position_begin = EACH * s;
        kernel_copy_rows(TEXTS, EACH * WIDTH, x + EACH * WIDTH * s, 3 * EACH * WIDTH, shard,
                         EACH * WIDTH);
        kernel_dropout_draw(TEXTS * EACH, WIDTH, &mask, kept);
        kernel_dropout(DROPOUT, TEXTS * EACH, WIDTH, mask.probability, kept, (Numbers){0},
                       in_full(shard), in_full(shard));
        for (int b = 0; b < TEXTS; b++)
            ck_assert_mem_eq(shard + b * EACH * WIDTH, y + (3 * b + s) * EACH * WIDTH,
                             EACH * WIDTH * sizeof *y);
    }
    tensor_memory_free(x);
    tensor_memory_free(kept);
}
END_TEST

START_TEST(results_may_be_written_over_arguments)
{
    enum { COUNT = 5 * 331 };
    const size_t bytes = COUNT * sizeof(float);
    float *x = tensor_memory(4 * bytes), *dy = x + COUNT, *y = dy + COUNT, *z = y + COUNT;
    int64_t samples[SAMPLES];
    const DropoutMask mask = mask_of(0.4, 2, samples);
    for (int i = 0; i < COUNT; i++) {
        x[i] = (float)philox_normal_at(mask.key, (uint64_t)i);
        dy[i] = (float)philox_normal_at(mask.key, COUNT + (uint64_t)i);
    }
    uint32_t *kept = drawn(5, 331, &mask);
    kernel_dropout(GELU_DROPOUT_BACKWARD, 5, 331, 0.4, kept, in_full(dy), in_full(x), in_full(y));
    memcpy(z, dy, bytes);
    kernel_dropout(GELU_DROPOUT_BACKWARD, 5, 331, 0.4, kept, in_full(z), in_full(x), in_full(z));
    ck_assert_mem_eq(y, z, bytes);
    memcpy(z, x, bytes);
    kernel_dropout(GELU_DROPOUT_BACKWARD, 5, 331, 0.4, kept, in_full(dy), in_full(z), in_full(z));
    ck_assert_mem_eq(y, z, bytes);
    kernel_dropout(GELU_DROPOUT, 5, 331, 0.4, kept, (Numbers){0}, in_full(x), in_full(y));
    memcpy(z, x, bytes);
    kernel_dropout(GELU_DROPOUT, 5, 331, 0.4, kept, (Numbers){0}, in_full(z), in_full(z));
    ck_assert_mem_eq(y, z, bytes);
    kernel_dropout(DROPOUT, 5, 331, 0.4, kept, (Numbers){0}, in_full(x), in_full(y));
    memcpy(z, x, bytes);
    kernel_dropout(DROPOUT, 5, 331, 0.4, kept, (Numbers){0}, in_full(z), in_full(z));
    ck_assert_mem_eq(y, z, bytes);
    tensor_memory_free(kept);
    tensor_memory_free(x);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, dropout_draw_matches_its_definition, 0, SIZES);
    tcase_add_test(tests, dropout_of_many_samples_is_drawn_by_each_ones_number);
    tcase_add_loop_test(tests, dropout_matches_its_definition, 0, SIZES);
    tcase_add_loop_test(tests, gelu_dropout_is_gelu_and_then_dropout, 0, SIZES);
    tcase_add_loop_test(tests, gelu_dropout_backward_of_rows_of_zeros_matches_its_definition, 0,
                        ZERO_PATTERNS * SIZES);
    tcase_add_loop_test(tests, nan_stays_nan_and_does_not_spread, 0, SIZES);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: dropout");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host())
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    TCase *tests = tcase_create("properties");
    tcase_add_checked_fixture(tests, one_thread, NULL);
    tcase_add_loop_test(tests, dropout_keeps_the_elements_that_its_mask_selects, 0, 6 * 7);
    tcase_add_test(tests, dropout_keeps_an_element_whose_number_is_the_probability);
    tcase_add_test(tests, dropout_on_three_shards_equals_dropout_on_the_whole);
    tcase_add_test(tests, dropout_of_three_shards_of_positions_is_dropout_of_the_whole);
    tcase_add_test(tests, results_may_be_written_over_arguments);
    suite_add_tcase(s, tests);
    return s;
}
