/* Attention against its definition. */
#include "backend/tests/comparison.h"

static void call_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference) {
        double *work = malloc((size_t)reference_attention_work(c->shape) * sizeof *work);
        reference_attention_forward(c->shape, in_double(t[0].number), in_double(t[1].number),
                                    in_double(t[2].number), c->ids, in_double(t[3].number),
                                    t[4].number, t[5].number, work);
        free(work);
    } else {
        float *work = tensor_memory((size_t)kernel_attention_work(c->shape) * sizeof *work);
        kernel_attention_forward(c->shape, in_full(t[0].single), in_full(t[1].single),
                                 in_full(t[2].single), c->ids, in_full(t[3].single), t[4].single,
                                 t[5].single, work);
        tensor_memory_free(work);
    }
}

/** Calls forward first, because backward reads the numbers that it keeps. */
static void call_backward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    call_forward(c, reference);
    if (reference) {
        double *work = malloc((size_t)reference_attention_work(c->shape) * sizeof *work);
        reference_attention_backward(c->shape, in_double(t[0].number), in_double(t[1].number),
                                     in_double(t[2].number), c->ids, t[4].number, t[5].number,
                                     in_double(t[6].number), in_double(t[7].number),
                                     in_double(t[8].number), in_double(t[9].number), work);
        free(work);
    } else {
        float *work = tensor_memory((size_t)kernel_attention_work(c->shape) * sizeof *work);
        kernel_attention_backward(c->shape, in_full(t[0].single), in_full(t[1].single),
                                  in_full(t[2].single), c->ids, t[4].single, t[5].single,
                                  in_full(t[6].single), in_full(t[7].single), in_full(t[8].single),
                                  in_full(t[9].single), work);
        tensor_memory_free(work);
    }
}

/* The last two shapes take several tiles of queries. */
enum { SHAPES = 11, MASKS = 7, MOST_KEYS = 2048 };

static AttentionShape shape_of(int i)
{
    static const int64_t batch[] = {1, 2, 3, 1, 2, 3, 2, 5, 6, 2, 1},
                         positions[] = {1, 3, 17, 64, 5, 33, 128, 48, 40, 257, 700};
    static const int64_t heads[] = {1, 2, 3, 1, 3, 2, 2, 3, 4, 2, 1},
                         sizes[] = {1, 5, 12, 64, 24, 7, 32, 16, 9, 6, 4};
    return (AttentionShape){.batch = batch[i],
                            .positions = positions[i],
                            .heads = heads[i],
                            .head_size = sizes[i],
                            .factor = 1 / sqrt((double)sizes[i])};
}

/* The patterns show every key, or hide the last third (like padding), every other key, or all
 * except one. From pattern CAUSAL on, attention is causal. The causal patterns show every key, or
 * hide padding on the left (where queries see no key), or the last third. */
enum { CAUSAL = 4 };
static void fill_mask(const AttentionShape *shape, int pattern, int32_t *mask)
{
    for (int64_t i = 0; i < shape->batch * shape->positions; i++) {
        const int64_t key = i % shape->positions, sample = i / shape->positions;
        mask[i] = pattern == 0 || pattern == CAUSAL       ? 1
                  : pattern == 1 || pattern == CAUSAL + 2 ? 3 * key <= 2 * shape->positions - sample
                  : pattern == 2                          ? key % 2 == 0
                  : pattern == 3                          ? key == sample % shape->positions
                                                          : key > sample % shape->positions;
    }
}

/** Adds q, k, v, y, and the numbers kept for each row of scores. */
static Comparison forward_of(int i, AttentionShape *shape, int32_t *mask)
{
    *shape = shape_of(i / MASKS);
    shape->causal = i % MASKS >= CAUSAL;
    fill_mask(shape, i % MASKS, mask);
    const int64_t keys = shape->batch * shape->positions,
                  count = keys * shape->heads * shape->head_size;
    ck_assert_int_le(keys, MOST_KEYS);
    Comparison c = {
        .kernel = "attention", .rows = keys, .columns = shape->heads, .inner = shape->head_size};
    c.shape = shape;
    c.ids = i % MASKS == CAUSAL ? NULL : mask; /* NULL: no key is hidden */
    for (int t = 0; t < 3; t++)
        add_twin(&c, count, NORMAL);
    add_twin(&c, count, JUNK);
    add_twin(&c, keys * shape->heads, JUNK);
    add_twin(&c, keys * shape->heads, JUNK);
    return c;
}

START_TEST(attention_forward_matches_its_definition)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = forward_of(_i, &shape, mask);
    compare(&c, call_forward);
    tensor_memory_free(mask);
}
END_TEST

/** The same tensors, then dy, dq, dk and dv. */
static Comparison backward_of(int i, AttentionShape *shape, int32_t *mask)
{
    Comparison c = forward_of(i, shape, mask);
    add_twin(&c, c.twins[3].count, NORMAL);
    for (int t = 0; t < 3; t++)
        add_twin(&c, c.twins[3].count, JUNK);
    return c;
}

/** Does number i of q, k, v, y or their gradients belong to a hidden key? */
static bool is_hidden(const AttentionShape *shape, const int32_t *mask, int64_t i)
{
    return !mask[i / (shape->heads * shape->head_size)];
}

/* Hidden keys and values may contain anything, and may have high scores. */
START_TEST(hidden_keys_and_values_change_nothing_and_get_no_gradient)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = backward_of(_i, &shape, mask);
    run(&c, call_backward, false);
    const size_t bytes = (size_t)c.twins[0].count * sizeof(float);
    float *y = malloc(bytes), *dq = malloc(bytes);
    memcpy(y, c.twins[3].single, bytes);
    memcpy(dq, c.twins[7].single, bytes);
    for (int64_t i = 0; i < c.twins[1].count; i++)
        if (is_hidden(&shape, mask, i)) {
            c.twins[1].start[i] *= 1e6f;
            c.twins[2].start[i] *= 1e6f;
        }
    run(&c, call_backward, false);
    ck_assert_mem_eq(y, c.twins[3].single, bytes);
    ck_assert_mem_eq(dq, c.twins[7].single, bytes);
    int64_t wrong = 0;
    for (int64_t i = 0; i < c.twins[1].count; i++)
        if (is_hidden(&shape, mask, i))
            wrong += c.twins[8].single[i] != 0 || c.twins[9].single[i] != 0;
    ck_assert_int_eq(wrong, 0);
    free(y);
    free(dq);
    free_twins(&c);
    tensor_memory_free(mask);
}
END_TEST

/** Does query i, counted over all samples, see a key? */
static bool sees_a_key(const AttentionShape *shape, const int32_t *mask, int64_t i)
{
    const int64_t query = i % shape->positions;
    const int32_t *shown = mask + i - query;
    for (int64_t key = 0; key < (shape->causal ? query + 1 : shape->positions); key++)
        if (shown[key])
            return true;
    return false;
}

START_TEST(probabilities_add_up_to_1_or_to_0_if_no_key_is_seen)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = forward_of(_i, &shape, mask);
    for (int64_t i = 0; i < c.twins[0].count; i++) {
        c.twins[0].start[i] *= 100;
        c.twins[2].start[i] = 1; /* so that y is their sum */
    }
    run(&c, call_forward, false);
    int64_t wrong = 0;
    for (int64_t i = 0, width = shape.heads * shape.head_size; i < c.twins[3].count; i++) {
        const float sum = sees_a_key(&shape, mask, i / width) ? 1 : 0;
        wrong += !(fabsf(c.twins[3].single[i] - sum) <= 0x1p-22f * sum * (float)shape.positions);
    }
    for (int64_t i = 0; i < c.twins[5].count; i++)
        wrong += !(c.twins[5].single[i] >= 1);
    ck_assert_int_eq(wrong, 0);
    free_twins(&c);
    tensor_memory_free(mask);
}
END_TEST

START_TEST(attention_with_scores_far_from_zero_does_not_overflow)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = forward_of(_i, &shape, mask);
    for (int64_t i = 0; i < c.twins[0].count; i++)
        c.twins[0].start[i] *= 1000;
    run(&c, call_forward, false);
    int64_t wrong = 0;
    for (int64_t i = 0; i < c.twins[3].count; i++)
        wrong += !isfinite(c.twins[3].single[i]);
    ck_assert_int_eq(wrong, 0);
    free_twins(&c);
    tensor_memory_free(mask);
}
END_TEST

START_TEST(a_nan_in_a_query_stays_in_its_row)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = forward_of(_i, &shape, mask);
    c.twins[0].start[c.twins[0].count / 2] = NAN;
    compare(&c, call_forward);
    tensor_memory_free(mask);
}
END_TEST

START_TEST(attention_backward_matches_its_definition)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    Comparison c = backward_of(_i, &shape, mask);
    compare(&c, call_backward);
    tensor_memory_free(mask);
}
END_TEST

START_TEST(attention_backward_of_queries_without_a_gradient_matches_its_definition)
{
    AttentionShape shape;
    int32_t *mask = tensor_memory(MOST_KEYS * sizeof *mask);
    const int pattern = _i % ZERO_PATTERNS, at = _i / ZERO_PATTERNS;
    Comparison c = backward_of(at * MASKS + (pattern + at) % MASKS, &shape, mask);
    make_zeros(&c.twins[6], pattern, c.rows, shape.positions);
    compare(&c, call_backward);
    tensor_memory_free(mask);
}
END_TEST

START_TEST(work_space_grows_no_faster_than_positions)
{
    const AttentionShape some = {1, 512, 12, 64, 1, false, 0},
                         many = {1, 8192, 12, 64, 1, false, 0};
    ck_assert_int_le(kernel_attention_work(&many), 16 * kernel_attention_work(&some));
}
END_TEST

START_TEST(each_thread_has_work_space_of_its_own)
{
    enum { COUNT = 2 * 128 * 64, EACH = 2 * 128 * 128, THREADS = 2 };
    static float x[COUNT], dy[COUNT], dx[3][COUNT], kept[2][4 * 128], work[THREADS * EACH];
    static int32_t mask[2 * 128];
    const AttentionShape shape = {2, 128, 2, 32, 1, false, 0};
    if (!kernels_run_on_the_host())
        return;
    for (int i = 0; i < 2 * 128; i++)
        mask[i] = 1;
    backend_set_threads(THREADS);
    ck_assert_int_eq(kernel_attention_work(&shape), THREADS * EACH);
    kernel_vector_fill(THREADS * EACH, NAN, work);
    kernel_attention_forward(&shape, in_full(x), in_full(x), in_full(x), mask, in_full(dx[0]),
                             kept[0], kept[1], work);
    ck_assert(work[0] == 1 && work[EACH] == 1);
    kernel_vector_fill(COUNT, 1, dy);
    kernel_attention_backward(&shape, in_full(x), in_full(x), in_full(x), mask, kept[0], kept[1],
                              in_full(dy), in_full(dx[0]), in_full(dx[1]), in_full(dx[2]), work);
    ck_assert(work[0] == 1.0f / 128 && work[EACH] == 1.0f / 128);
}
END_TEST

static TCase *all_kernels(const char *name, void (*set_threads)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_threads, NULL);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, attention_forward_matches_its_definition, 0, SHAPES * MASKS);
    tcase_add_loop_test(tests, hidden_keys_and_values_change_nothing_and_get_no_gradient, 0,
                        SHAPES * MASKS);
    tcase_add_loop_test(tests, probabilities_add_up_to_1_or_to_0_if_no_key_is_seen, 0,
                        SHAPES * MASKS);
    tcase_add_loop_test(tests, attention_with_scores_far_from_zero_does_not_overflow, 0,
                        SHAPES * MASKS);
    tcase_add_loop_test(tests, a_nan_in_a_query_stays_in_its_row, 0, SHAPES * MASKS);
    tcase_add_loop_test(tests, attention_backward_matches_its_definition, 0, SHAPES * MASKS);
    tcase_add_loop_test(tests,
                        attention_backward_of_queries_without_a_gradient_matches_its_definition, 0,
                        ZERO_PATTERNS * SHAPES);
    return tests;
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: attention");
    suite_add_tcase(s, all_kernels("one thread", one_thread));
    if (kernels_run_on_the_host()) {
        TCase *wide = all_kernels("wide model", one_thread);
        tcase_add_unchecked_fixture(wide, wide_model, back_to_fp32);
        suite_add_tcase(s, wide);
        suite_add_tcase(s, all_kernels("two threads", two_threads));
    }
    TCase *threads = tcase_create("threads");
    tcase_add_test(threads, each_thread_has_work_space_of_its_own);
    tcase_add_test(threads, work_space_grows_no_faster_than_positions);
    suite_add_tcase(s, threads);
    return s;
}
