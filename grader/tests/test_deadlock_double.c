/* The deadlock analysis: can a waiting call still complete? */
#include "grader/tests/made_up_calls.h"

Suite *suite(void);

START_TEST(if_all_ranks_have_called_mpi_can_complete_the_call)
{
    sum(0, 1, 6);
    sum(1, 1, 6);
    waits(0);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
    calls->rank[1].call[0].returned = 1; /* one has left the sum, and waits in the next */
    sum(1, 2, 6);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(if_one_rank_has_left_the_others_wait_for_ever)
{
    sum(0, 1, 6);
    waits(0);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    ck_assert_uint_eq(ranks_lacked(calls, 0), 1 << 1);
    ck_assert_uint_eq(ranks_lacked(calls, 1), 0);
}
END_TEST

START_TEST(a_rank_lacks_those_whose_messages_have_not_come)
{
    a_send(1, 0, 5, 6);
    a_receive(0, 1, 5, 6);
    waits(0);
    ck_assert_uint_eq(ranks_lacked(calls, 0), 0);
    calls->rank[0].call[0].from_tag = 4;
    ck_assert_uint_eq(ranks_lacked(calls, 0), 1 << 1);
    calls->rank[0].call[0].from = ANYBODY;
    ck_assert_uint_eq(ranks_lacked(calls, 0), 1 << 1);
}
END_TEST

START_TEST(if_mpi_rejected_the_call_of_one_rank_the_others_wait_for_ever)
{
    sum(0, 1, 6);
    sum(1, 1, 6);
    waits(0);
    waits(1);
    leaves(1); /* while it is in the call */
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    calls->rank[1].call[0].returned = 1;
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(a_rank_that_has_left_is_unlikely_to_complete_what_it_started)
{
    Call *awaited = sum(0, 1, 6), *started = sum(1, 1, 6);
    awaited->starts = started->starts = 1;
    awaited->waited_by = 1;
    new_call(0, "wait", LOCAL);
    waits(0);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), SOME);
    started->completed = 1;
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(crossed_calls_in_two_groups_wait_for_ever)
{
    sum(0, 1, 6);
    sum(1, 1, 6)->group = OTHER;
    waits(0);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(mismatched_calls_may_still_complete)
{
    sum(0, 1, 6);
    gather(1, 1, 6, 6);
    waits(0);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), UNLIKELY);
}
END_TEST

static Call *broadcast(int rank)
{
    Call *call = of_group(rank, "broadcast", EXCHANGE, WORLD, 3, 1);
    call->root = 0;
    *(rank == 0 ? &call->sent[1] : &call->received[0]) = numbers(6, FLOAT_TYPE);
    return call;
}

START_TEST(the_root_of_a_broadcast_may_continue_alone_and_the_others_may_not)
{
    broadcast(0);
    waits(0);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), SOME);
    end();
    begin();
    broadcast(1);
    waits(1);
    leaves(0);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(a_send_waits_for_its_own_receive)
{
    a_send(0, 1, 0, 4);
    waits(0);
    a_send(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    calls->rank[1].call[0] = calls->rank[0].call[0];
    calls->rank[1].count = 0;
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(a_receive_whose_message_an_earlier_one_took_waits_for_ever)
{
    a_send(0, 1, 0, 4);
    leaves(0);
    a_receive(1, 0, 0, 4);
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(a_message_that_was_received_does_not_complete_a_receive_from_any_source)
{
    a_send(0, 1, 0, 4);
    leaves(0);
    a_receive(1, 0, 0, 4);
    a_receive(1, ANYBODY, 0, 4);
    waits(1);
    ck_assert_int_ne(outlook_of(calls), ALL_THERE);
    a_send(0, 1, 0, 4);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(a_rank_that_has_left_is_unlikely_to_receive_a_message)
{
    a_send(0, 1, 0, 4);
    waits(0);
    a_receive(1, ANYBODY, 0, 4);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), SOME);
}
END_TEST

START_TEST(a_message_that_a_rank_had_only_started_to_send_when_it_left_is_unlikely_to_arrive)
{
    Call *started = a_send(0, 1, 0, 4);
    started->starts = 1;
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
    leaves(0);
    ck_assert_int_eq(outlook_of(calls), SOME);
    started->completed = 1;
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(a_wait_completes_with_the_started_call)
{
    Call *started = a_receive(0, 1, 0, 4);
    started->starts = 1;
    started->waited_by = 1;
    new_call(0, "wait", LOCAL);
    waits(0);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    a_send(1, 0, 0, 4);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
    started->completed = 1;
    ck_assert_int_eq(outlook_of(calls), SOME);
}
END_TEST

START_TEST(a_started_send_may_be_buffered_and_a_synchronous_one_waits_for_its_receive)
{
    Call *started = a_send(0, 1, 0, 4);
    started->starts = 1;
    started->waited_by = 1;
    new_call(0, "wait", LOCAL);
    waits(0);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), SOME);
    started->synchronous = 1;
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    calls->rank[1].left = false;
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

START_TEST(one_request_of_several_is_enough_for_some_waits)
{
    for (int tag = 1; tag <= 2; tag++) {
        Call *started = a_receive(0, 1, tag, 4);
        started->starts = 1;
        started->waited_by = 2;
    }
    Call *wait = new_call(0, "wait", LOCAL);
    waits(0);
    a_send(1, 0, 2, 4);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
    wait->some = 1;
    ck_assert_int_eq(outlook_of(calls), ALL_THERE);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("calls that wait");
    TCase *tcase = tcase_create("calls that wait");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, if_all_ranks_have_called_mpi_can_complete_the_call);
    tcase_add_test(tcase, if_one_rank_has_left_the_others_wait_for_ever);
    tcase_add_test(tcase, a_rank_lacks_those_whose_messages_have_not_come);
    tcase_add_test(tcase, if_mpi_rejected_the_call_of_one_rank_the_others_wait_for_ever);
    tcase_add_test(tcase, a_rank_that_has_left_is_unlikely_to_complete_what_it_started);
    tcase_add_test(tcase, crossed_calls_in_two_groups_wait_for_ever);
    tcase_add_test(tcase, mismatched_calls_may_still_complete);
    tcase_add_test(tcase, the_root_of_a_broadcast_may_continue_alone_and_the_others_may_not);
    tcase_add_test(tcase, a_send_waits_for_its_own_receive);
    tcase_add_test(tcase, a_receive_whose_message_an_earlier_one_took_waits_for_ever);
    tcase_add_test(tcase, a_message_that_was_received_does_not_complete_a_receive_from_any_source);
    tcase_add_test(tcase, a_rank_that_has_left_is_unlikely_to_receive_a_message);
    tcase_add_test(
        tcase, a_message_that_a_rank_had_only_started_to_send_when_it_left_is_unlikely_to_arrive);
    tcase_add_test(tcase, a_wait_completes_with_the_started_call);
    tcase_add_test(tcase,
                   a_started_send_may_be_buffered_and_a_synchronous_one_waits_for_its_receive);
    tcase_add_test(tcase, one_request_of_several_is_enough_for_some_waits);
    suite_add_tcase(all, tcase);
    return all;
}
