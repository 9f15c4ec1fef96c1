/* Values that the ranks hold, the table of their calls, and how a ring is copied. */
#include "grader/judge/compare/expected.h"
#include "grader/judge/report/verdict.h"
#include "grader/tests/made_up_calls.h"

Suite *suite(void);

/* ---- values --------------------------------------------------------------------------------------------------------- */

static void hold(int rank, const char *operation, double number)
{
    RankCalls *mine = &calls->rank[rank];
    TapeOperation *o = &mine->operation[mine->operations_count++];
    *o = (TapeOperation){.output = {.kind = WHOLE, .sum = {number}, .size = 10}};
    strcpy(o->name, operation);
}

START_TEST(values_called_whole_are_compared_within_a_tp_group)
{
    char text[300];
    for (int rank = 0; rank < 4; rank++)
        hold(rank, "linear", rank / 2);
    ck_assert(
        !replicas_diverge(calls, &(Case){.world = 2, .tp = 2, .pp = 1}, false, text, sizeof text));
    for (int rank = 0; rank < 4; rank++)
        hold(rank, "add", rank == 3 ? 1.5 : 1 + 1e-6 * rank);
    ck_assert(
        replicas_diverge(calls, &(Case){.world = 2, .tp = 2, .pp = 1}, false, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "ranks 2 and 3 hold different values"));
    ck_assert_ptr_nonnull(strstr(text, "the result of add"));
}
END_TEST

START_TEST(gradients_do_not_explain_a_forward_pass)
{
    const Case two_ranks = {.world = 2, .tp = 2, .pp = 1};
    char text[300];
    for (int rank = 0; rank < 2; rank++) {
        hold(rank, "linear", rank);
        calls->rank[rank].operation[0].back = true;
    }
    ck_assert(replicas_diverge(calls, &two_ranks, false, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "different gradients"));
    ck_assert(!replicas_diverge(calls, &two_ranks, true, text, sizeof text));
    for (int rank = 0; rank < 2; rank++)
        hold(rank, "add", rank);
    ck_assert(replicas_diverge(calls, &two_ranks, true, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "the result of add"));
}
END_TEST

START_TEST(ranks_are_not_compared_after_they_diverge)
{
    char text[300];
    hold(0, "linear", 1);
    hold(1, "add", 2);
    ck_assert(
        !replicas_diverge(calls, &(Case){.world = 2, .tp = 2, .pp = 1}, false, text, sizeof text));
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------------------------------ */

/* The table of the first two ranks' calls; the caller frees it. */
static char *table(void)
{
    Calls two = *calls;
    two.ranks = 2;
    char *text;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    table_print(memory, plain_page, &(Outcome){.calls = &two}, "lab.c");
    fclose(memory);
    return text;
}

START_TEST(calls_that_matched_share_a_row)
{
    sum(0, 1, 6);
    sum(0, 2, 6);
    sum(1, 1, 6);
    sum(1, 2, 5);
    waits(1);
    char *text = table();
    ck_assert_str_eq(
        text, "\n"
              "   call                                  rank 0  rank 1\n"
              "-- \n"
              "   all_reduce #1 of {0,1}, 6 float, sum  (kit)   (kit)\n"
              ">> all_reduce #2 of {0,1}, 6 float, sum  (kit)   (kit): 5 float, sum, waits\n");
    free(text);
}
END_TEST

START_TEST(messages_have_rows_of_their_own)
{
    a_send(0, 1, 0, 4);
    a_receive(1, 0, 0, 4);
    char *text = table();
    ck_assert_str_eq(text, "\n"
                           "   call                                   rank 0  rank 1\n"
                           "-- \n"
                           "   send to rank 1 of {0,1}, 4 float       (kit)\n"
                           "   receive from rank 0 of {0,1}, 4 float          (kit)\n");
    free(text);
}
END_TEST

START_TEST(a_table_of_crossed_calls_ends)
{
    sum(0, 1, 6);
    sum(0, 2, 6);
    sum(1, 2, 6);
    sum(1, 1, 6);
    char *text = table();
    ck_assert_ptr_nonnull(strstr(text, "all_reduce #1"));
    ck_assert_ptr_nonnull(strstr(text, "all_reduce #2"));
    free(text);
}
END_TEST

/* ---- copies --------------------------------------------------------------------------------------------------------- */

START_TEST(nonsense_in_a_ring_stays_within_bounds)
{
    Launch *launch = calloc(1, FILE_BYTES);
    memset(rings_of(launch, 0), 0x7f, sizeof(Rings));
    memset(rings_of(launch, 1), 0xff, sizeof(Rings));
    for (int rank = 0; rank < 2; rank++)
        atomic_store(&rings_of(launch, rank)->number, 1);
    Calls *copy = calls_copy(launch, 2, 1);
    ck_assert_int_eq(copy->rank[0].count, RING_CALLS);
    ck_assert_int_eq(copy->rank[1].count, 0);
    char text[2000];
    Difference first = first_difference(copy, true, true);
    if (first.kind != NO_DIFFERENCE)
        difference_text(copy, &first, text, sizeof text);
    outlook_of(copy);
    replicas_diverge(copy, &(Case){.world = 2, .tp = 2, .pp = 1}, false, text, sizeof text);
    char *whole = NULL;
    size_t length;
    copy->rank[0].count = copy->rank[0].count > 50 ? 50 : copy->rank[0].count;
    FILE *memory = open_memstream(&whole, &length);
    table_print(memory, plain_page, &(Outcome){.calls = copy}, "lab.c");
    fclose(memory);
    free(whole);
    calls_free(copy);
    free(launch);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("calls and values");
    TCase *tcase = tcase_create("calls and values");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, values_called_whole_are_compared_within_a_tp_group);
    tcase_add_test(tcase, gradients_do_not_explain_a_forward_pass);
    tcase_add_test(tcase, ranks_are_not_compared_after_they_diverge);
    tcase_add_test(tcase, calls_that_matched_share_a_row);
    tcase_add_test(tcase, messages_have_rows_of_their_own);
    tcase_add_test(tcase, a_table_of_crossed_calls_ends);
    tcase_add_test(tcase, nonsense_in_a_ring_stays_within_bounds);
    suite_add_tcase(all, tcase);
    return all;
}
