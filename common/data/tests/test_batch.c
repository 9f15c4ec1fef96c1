/* Batches contain the rows with which they were filled. */
#include "balise.h"
#include "tests/run_for_tests.h"
#include "data/data.h"
#include "temporary.h"

Suite *suite(void);

enum { S = 6, ROWS = 4, PADDING = 9 };

static const int64_t begin[] = {0, 2, 8, 11, 15};
static const int32_t ids[] = {1, 2, 1, 3, 4, 5, 6, 2, 1, 7, 2, 1, 8, 8, 2}, labels[] = {0, 1, 1, 0};
static const TokenSet set = {.rows = ROWS,
                             .seq = S,
                             .vocabulary = 10,
                             .pad = PADDING,
                             .begin = begin,
                             .labels = labels,
                             .ids = ids};

START_TEST(rows_have_the_requested_order_with_padding_and_mask)
{
    static const int64_t rows[] = {2, 1, 0, 2};
    static const int32_t expected[4][S] = {
        {1, 7, 2, 9, 9, 9}, {1, 3, 4, 5, 6, 2}, {1, 2, 9, 9, 9, 9}, {1, 7, 2, 9, 9, 9}};
    static const int32_t mask[4][S] = {{1, 1, 1}, {1, 1, 1, 1, 1, 1}, {1, 1}, {1, 1, 1}};
    static const int32_t expected_labels[] = {1, 1, 0, 1};
    Batch *batch = batch_new(4, S);
    batch_fill(&set, rows, 4, batch);
    ck_assert_int_eq(batch->count, 4);
    ck_assert_mem_eq(batch->ids, expected, sizeof expected);
    ck_assert_mem_eq(batch->mask, mask, sizeof mask);
    ck_assert_mem_eq(batch->labels, expected_labels, sizeof expected_labels);
    ck_assert_mem_eq(batch->samples, rows, sizeof rows);
    batch_free(batch);
}
END_TEST

START_TEST(refilling_removes_the_previous_rows)
{
    static const int64_t long_row[] = {1, 1}, short_row[] = {0};
    static const int32_t expected[S] = {1, 2, 9, 9, 9, 9}, mask[S] = {1, 1};
    Batch *batch = batch_new(2, S);
    batch_fill(&set, long_row, 2, batch);
    batch_fill(&set, short_row, 1, batch);
    ck_assert_int_eq(batch->count, 1);
    ck_assert_mem_eq(batch->ids, expected, sizeof expected);
    ck_assert_mem_eq(batch->mask, mask, sizeof mask);
    batch_fill(&set, NULL, 0, batch);
    ck_assert_int_eq(batch->count, 0);
    static const int64_t none[] = {ROWS}, before[] = {-1};
    ASSERT_MISUSE(batch_fill(&set, none, 1, batch), "row 4", "0 to 3");
    ASSERT_MISUSE(batch_fill(&set, before, 1, batch), "row -1");
    batch_free(batch);
}
END_TEST

START_TEST(permutation_has_every_row_once)
{
    enum { N = 1000 };
    int64_t order[N];
    int seen[N] = {0}, moved = 0;
    permutation(order, N, 7, 3);
    for (int i = 0; i < N; i++) {
        ck_assert(order[i] >= 0 && order[i] < N);
        seen[order[i]]++;
        moved += order[i] != i;
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_int_gt(moved, N - 20);
}
END_TEST

START_TEST(permutation_follows_seed_and_epoch_alone)
{
    int64_t a[100], b[100];
    permutation(a, 100, 7, 3);
    permutation(b, 100, 7, 3);
    ck_assert_mem_eq(a, b, sizeof a);
    permutation(b, 100, 8, 3);
    ck_assert(memcmp(a, b, sizeof a) != 0);
    permutation(b, 100, 7, 4);
    ck_assert(memcmp(a, b, sizeof a) != 0);
    permutation(a, 1, 7, 3);
    ck_assert_int_eq(a[0], 0);
    permutation(a, 0, 7, 3);
}
END_TEST

/* 24 orders, 24000 epochs: chi-square with 23 degrees of freedom exceeds 56 once in 7000 seeds; the
 * seed here is fixed. */
START_TEST(every_order_of_four_rows_is_as_frequent)
{
    int count[256] = {0};
    double chi_square = 0;
    for (int epoch = 0; epoch < 24000; epoch++) {
        int64_t order[4];
        permutation(order, 4, 1, epoch);
        count[order[0] * 64 + order[1] * 16 + order[2] * 4 + order[3]]++;
    }
    int orders = 0;
    for (int i = 0; i < 256; i++) {
        orders += count[i] > 0;
        chi_square += count[i] > 0 ? (count[i] - 1000.0) * (count[i] - 1000.0) / 1000.0 : 0;
    }
    ck_assert_int_eq(orders, 24);
    ck_assert_double_lt(chi_square, 56);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("batch");
    TCase *t = tcase_create("batch");
    tcase_add_test(t, rows_have_the_requested_order_with_padding_and_mask);
    tcase_add_test(t, refilling_removes_the_previous_rows);
    tcase_add_test(t, permutation_has_every_row_once);
    tcase_add_test(t, permutation_follows_seed_and_epoch_alone);
    tcase_add_test(t, every_order_of_four_rows_is_as_frequent);
    suite_add_tcase(s, t);
    return s;
}
