/* For calls that wait: can what they wait for still arrive? */
#include "grader/tests/made_up_calls.h"

Suite *suite(void);

START_TEST(where_all_have_come_mpi_is_at_work)
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

START_TEST(where_one_has_left_the_others_wait_for_ever)
{
    sum(0, 1, 6);
    waits(0);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(where_mpi_has_refused_the_call_to_one_the_others_wait_for_ever)
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

START_TEST(a_rank_that_has_left_hardly_completes_what_it_started)
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

START_TEST(two_groups_crosswise_wait_for_ever)
{
    sum(0, 1, 6);
    sum(1, 1, 6)->group = OTHER;
    waits(0);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(calls_that_do_not_fit_may_come_to_something)
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

START_TEST(the_root_of_a_broadcast_may_go_on_alone_and_the_others_not)
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

START_TEST(a_receive_that_an_earlier_one_robs_waits_for_ever)
{
    a_send(0, 1, 0, 4);
    leaves(0);
    a_receive(1, 0, 0, 4);
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(outlook_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(what_one_receive_has_taken_is_not_there_for_one_from_anybody)
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

START_TEST(a_rank_that_has_left_hardly_takes_a_message_any_more)
{
    a_send(0, 1, 0, 4);
    waits(0);
    a_receive(1, ANYBODY, 0, 4);
    leaves(1);
    ck_assert_int_eq(outlook_of(calls), SOME);
}
END_TEST

START_TEST(a_wait_is_for_what_was_started)
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
    tcase_add_test(tcase, where_all_have_come_mpi_is_at_work);
    tcase_add_test(tcase, where_one_has_left_the_others_wait_for_ever);
    tcase_add_test(tcase, where_mpi_has_refused_the_call_to_one_the_others_wait_for_ever);
    tcase_add_test(tcase, a_rank_that_has_left_hardly_completes_what_it_started);
    tcase_add_test(tcase, two_groups_crosswise_wait_for_ever);
    tcase_add_test(tcase, calls_that_do_not_fit_may_come_to_something);
    tcase_add_test(tcase, the_root_of_a_broadcast_may_go_on_alone_and_the_others_not);
    tcase_add_test(tcase, a_send_waits_for_its_own_receive);
    tcase_add_test(tcase, a_receive_that_an_earlier_one_robs_waits_for_ever);
    tcase_add_test(tcase, what_one_receive_has_taken_is_not_there_for_one_from_anybody);
    tcase_add_test(tcase, a_rank_that_has_left_hardly_takes_a_message_any_more);
    tcase_add_test(tcase, a_wait_is_for_what_was_started);
    tcase_add_test(tcase, one_request_of_several_is_enough_for_some_waits);
    suite_add_tcase(all, tcase);
    return all;
}
