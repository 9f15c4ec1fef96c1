/* Mismatches between the ranks' calls. */
#include "grader/tests/made_up_calls.h"

Suite *suite(void);

START_TEST(equal_calls_match)
{
    for (int rank = 0; rank < 2; rank++) {
        sum(rank, 1, 6);
        gather(rank, 2, 6, 6);
    }
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(another_operation_is_a_mismatch)
{
    sum(0, 1, 6);
    sum(1, 1, 6);
    sum(0, 2, 6);
    gather(1, 2, 3, 3);
    Difference d = first_error(calls, true);
    ck_assert_int_eq(d.kind, OTHER_OPERATION);
    ck_assert_ptr_eq(d.call[0], &calls->rank[0].call[1]);
    ck_assert_ptr_eq(d.call[1], &calls->rank[1].call[1]);
    char text[600];
    difference_text(calls, &d, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "all_reduce #2 of {0,1} (6 float, sum)"));
    ck_assert_ptr_nonnull(strstr(text, "all_gather #2 of the same group (3 float)"));
}
END_TEST

START_TEST(counts_types_operations_and_roots_are_compared)
{
    sum(0, 1, 6);
    sum(1, 1, 5);
    ck_assert_int_eq(error(), OTHER_COUNT);
    calls->rank[1].call[0].sent[0] = numbers(6, INT_TYPE);
    ck_assert_int_eq(error(), OTHER_TYPE);
    calls->rank[1].call[0].sent[0] = numbers(3, DOUBLE_TYPE);
    ck_assert_int_eq(error(), OTHER_TYPE);
    calls->rank[1].call[0].sent[0] = numbers(6, FLOAT_TYPE);
    calls->rank[1].call[0].reduction = MAX_OF;
    ck_assert_int_eq(error(), OTHER_REDUCTION);
    calls->rank[1].call[0].reduction = SUM_OF;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    calls->rank[1].call[0].root = 1;
    ck_assert_int_eq(error(), OTHER_ROOT);
}
END_TEST

START_TEST(a_gather_compares_sent_with_expected_counts)
{
    gather(0, 1, 6, 6);
    Call *other = gather(1, 1, 6, 6), *alone = of_group(2, "all_gather", EXCHANGE, OTHER, 4, 1);
    alone->sent[2] = numbers(5, FLOAT_TYPE); /* to itself, so other ranks need not match it */
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    other->sent[0] = numbers(5, FLOAT_TYPE);
    ck_assert_int_eq(error(), OTHER_COUNT);
}
END_TEST

START_TEST(a_call_that_one_rank_never_makes_is_a_mismatch_at_the_end)
{
    sum(0, 1, 6);
    sum(1, 1, 6);
    sum(0, 2, 6);
    ck_assert_int_eq(first_error(calls, false).kind, NO_DIFFERENCE);
    Difference d = first_error(calls, true);
    ck_assert_int_eq(d.kind, NEVER_CALLED);
    ck_assert_int_eq(d.rank[1], 1);
}
END_TEST

START_TEST(calls_lost_by_a_full_ring_are_no_difference)
{
    sum(0, 1, 6);
    sum(0, 2, 6);
    sum(1, 2, 6);
    calls->rank[1].first = 1;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(groups_of_equal_ranks_are_distinguished)
{
    sum(0, 1, 6)->group = OTHER;
    sum(1, 1, 6);
    ck_assert_int_eq(error(), NEVER_CALLED);
}
END_TEST

START_TEST(the_earliest_difference_is_reported)
{
    Call *late = of_group(2, "barrier", TOGETHER, OTHER, 12, 1);
    sum(0, 1, 6);
    sum(1, 1, 5);
    late->time = 100;
    ck_assert_int_eq(error(), OTHER_COUNT);
    late->time = 0;
    ck_assert_int_eq(error(), NEVER_CALLED);
}
END_TEST

START_TEST(the_call_of_the_majority_is_the_expected_one)
{
    for (int rank = 0; rank < 4; rank++) {
        Call *call = sum(rank, 1, rank == 0 ? 5 : 6);
        call->members = 15;
    }
    Difference d = first_error(calls, true);
    ck_assert_int_eq(d.rank[0], 1);
    ck_assert_int_eq(d.rank[1], 0);
}
END_TEST

/* Checks the sentence about the first difference. */
static void difference_says(const char *words)
{
    char text[600];
    const Difference d = first_error(calls, false);
    difference_text(calls, &d, text, sizeof text);
    ck_assert_msg(strstr(text, words), "%s", text);
}

START_TEST(forms_that_differ_are_named_if_all_else_is_equal)
{
    sum(0, 1, 6);
    sum(1, 1, 6)->starts = 1;
    difference_says("must use the same form");
    calls->rank[1].call[0].sent[0] = numbers(5, FLOAT_TYPE);
    difference_says("rank 0 or rank 1 left a call out");
}
END_TEST

START_TEST(a_rank_whose_call_is_the_next_one_of_another_has_left_one_out)
{
    sum(0, 1, 6);
    sum(0, 2, 6)->starts = 1;
    sum(1, 1, 6)->starts = 1;
    difference_says(": rank 1 left a call out");
}
END_TEST

START_TEST(a_shorter_message_matches_a_longer_one_or_another_type_does_not)
{
    a_send(0, 1, 0, 4);
    Call *receive = a_receive(1, 0, 0, 6);
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    receive->received[0] = numbers(3, FLOAT_TYPE);
    ck_assert_int_eq(error(), OTHER_COUNT);
    receive->received[0] = numbers(6, INT_TYPE);
    ck_assert_int_eq(error(), OTHER_TYPE);
}
END_TEST

START_TEST(each_send_needs_its_receive_and_each_receive_its_send)
{
    a_send(0, 1, 0, 4);
    ck_assert_int_eq(error(), NEVER_RECEIVED);
    a_receive(1, 0, 9, 4);
    ck_assert(error() == NEVER_RECEIVED || error() == NEVER_SENT); /* by another tag */
    calls->rank[1].call[0].from_tag = 0;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    a_receive(1, 0, 0, 4);
    ck_assert_int_eq(error(), NEVER_SENT);
}
END_TEST

START_TEST(a_receive_from_any_source_may_match_a_send)
{
    a_send(0, 1, 3, 4);
    a_receive(1, ANYBODY, ANY_TAG, 4);
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(an_exchange_is_a_send_and_a_receive)
{
    message(0, "send and receive", 1, 1, 0, 4, FLOAT_TYPE);
    a_receive(1, 0, 0, 4);
    a_send(1, 0, 0, 4);
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(a_ready_send_needs_its_receive_before_it)
{
    Call *receive = a_receive(1, 0, 0, 6), *send = a_send(0, 1, 0, 6);
    send->ready = 1;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    receive->time = send->time + 1;
    ck_assert_int_eq(error(), NOT_YET_RECEIVED);
    send->ready = 0;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(calls_on_other_lines_match_and_are_reported_on_request)
{
    sum(0, 1, 6)->address = calls;
    sum(1, 1, 6)->address = calls + 1;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, false).kind, NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, true).kind, OTHER_LINE);
    calls->rank[0].call[0].where = label_of(FORWARD_OF, A_LAYER, 0, 0);
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, false).kind, OTHER_PLACE);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("calls that do not fit");
    TCase *tcase = tcase_create("calls that do not fit");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, equal_calls_match);
    tcase_add_test(tcase, another_operation_is_a_mismatch);
    tcase_add_test(tcase, counts_types_operations_and_roots_are_compared);
    tcase_add_test(tcase, a_gather_compares_sent_with_expected_counts);
    tcase_add_test(tcase, a_call_that_one_rank_never_makes_is_a_mismatch_at_the_end);
    tcase_add_test(tcase, calls_lost_by_a_full_ring_are_no_difference);
    tcase_add_test(tcase, groups_of_equal_ranks_are_distinguished);
    tcase_add_test(tcase, the_earliest_difference_is_reported);
    tcase_add_test(tcase, the_call_of_the_majority_is_the_expected_one);
    tcase_add_test(tcase, forms_that_differ_are_named_if_all_else_is_equal);
    tcase_add_test(tcase, a_rank_whose_call_is_the_next_one_of_another_has_left_one_out);
    tcase_add_test(tcase, a_shorter_message_matches_a_longer_one_or_another_type_does_not);
    tcase_add_test(tcase, each_send_needs_its_receive_and_each_receive_its_send);
    tcase_add_test(tcase, a_receive_from_any_source_may_match_a_send);
    tcase_add_test(tcase, an_exchange_is_a_send_and_a_receive);
    tcase_add_test(tcase, a_ready_send_needs_its_receive_before_it);
    tcase_add_test(tcase, calls_on_other_lines_match_and_are_reported_on_request);
    suite_add_tcase(all, tcase);
    return all;
}
