/* The clock of a pipeline's schedule: the lengths in the papers, waits, and messages that complete
 * only because MPI buffers them. */
#include "grader/tests/made_up_schedule.h"

Suite *suite(void);

static const Label another = {.of = THE_MODEL, .step = 1};

static void one_by_one(int micros)
{
    for (int rank = 0; rank < stages; rank++) {
        for (int i = 0; i < micros; i++) {
            forward(rank, i);
            backward(rank, i);
        }
        finishes(rank);
    }
}

/* Checks the schedule's length and each stage's idle slots, for 1 to 4 stages. */
static void has_length(void (*steps)(int micros), int64_t (*length)(int p, int m))
{
    for (int p = 1; p <= 4; p++)
        for (int m = 1; m <= MOST_MICROS; m++) {
            end();
            up();
            stages = p;
            steps(m);
            ck_assert(replayed());
            ck_assert_double_eq(schedule.length, (double)length(p, m));
            for (int rank = 0; rank < p; rank++)
                ck_assert_double_eq(idle_time(&schedule, rank), (double)(length(p, m) - 2 * m));
        }
}

static int64_t one_after_the_other(int p, int m)
{
    return 2 * p * m;
}

START_TEST(gpipe_takes_m_plus_p_minus_1_slots_in_each_direction)
{
    has_length(gpipe, overlapped);
}
END_TEST

START_TEST(one_f_one_b_takes_as_long)
{
    has_length(one_f_one_b, overlapped);
}
END_TEST

START_TEST(a_micro_batch_at_a_time_takes_p_times_m)
{
    has_length(one_by_one, one_after_the_other);
}
END_TEST

START_TEST(a_wait_is_reported_with_its_length_and_its_call)
{
    stages = 3;
    one_by_one(2);
    ck_assert(replayed());
    const Pass *back = &schedule.pass[0][1];
    ck_assert(back->backward);
    ck_assert_double_eq(back->begin, 5);
    ck_assert_double_eq(back->waited, 4);
    ck_assert_ptr_eq(back->waited_in, &calls->rank[0].call[1]);
    ck_assert_double_eq(schedule.pass[0][0].waited, 0);
    ck_assert_ptr_null(schedule.pass[0][0].waited_in);
}
END_TEST

START_TEST(blocking_sends_suffice_for_gpipe)
{
    stages = 4;
    blocking = true;
    gpipe(MOST_MICROS);
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, (double)overlapped(4, MOST_MICROS));
}
END_TEST

START_TEST(blocking_sends_that_cross_are_stuck_although_the_calls_have_returned)
{
    blocking = true;
    one_f_one_b(3);
    ck_assert(!replayed());
    ck_assert_ptr_nonnull(schedule.stuck[0]);
    ck_assert_int_eq(schedule.stuck[0]->to, 1);
    ck_assert_ptr_nonnull(schedule.stuck[1]);
    ck_assert_int_eq(schedule.stuck[1]->to, 0);
}
END_TEST

START_TEST(a_started_send_that_is_waited_for_at_once_is_like_a_blocking_one)
{
    for (int rank = 0; rank < 2; rank++) {
        sends(rank, 1 - rank);
        finishes(rank);
        here(a_receive(rank, 1 - rank, TAG, COUNT));
    }
    ck_assert(!replayed());
    ck_assert_int_eq(schedule.stuck[0]->rule, LOCAL);
}
END_TEST

START_TEST(sending_and_receiving_in_one_call_does_not_cross)
{
    for (int rank = 0; rank < 2; rank++) {
        ran(rank, 0, false);
        if (rank == 1)
            ran(rank, 1, false);
        here(message(rank, "send and receive", 1 - rank, 1 - rank, TAG, COUNT, FLOAT_TYPE));
        ran(rank, 0, true);
    }
    ck_assert(replayed());
    ck_assert_double_eq(schedule.pass[0][1].begin, 2);
    ck_assert_double_eq(schedule.length, 3);
}
END_TEST

START_TEST(a_collective_waits_for_its_last_rank)
{
    ran(0, 0, false);
    ran(0, 1, false);
    here(sum(0, 1, COUNT));
    here(sum(1, 1, COUNT));
    ran(1, 0, false);
    ck_assert(replayed());
    ck_assert_double_eq(schedule.pass[1][0].begin, 2);
    ck_assert_double_eq(schedule.pass[1][0].waited, 2);
}
END_TEST

START_TEST(calls_of_other_steps_are_not_waited_for)
{
    a_receive(1, 0, TAG, COUNT)->where = another;
    here(a_receive(1, 0, TAG, COUNT));
    ran(1, 0, false);
    a_send(0, 1, TAG, COUNT)->where = another;
    a_send(0, 1, TAG, COUNT)->where = another;
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, 1);
}
END_TEST

START_TEST(a_receive_without_a_send_is_stuck)
{
    here(a_receive(0, 1, TAG, COUNT));
    ran(0, 0, false);
    ck_assert(!replayed());
    ck_assert_ptr_eq(schedule.stuck[0], &calls->rank[0].call[0]);
    ck_assert_ptr_null(schedule.stuck[1]);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tcase = tcase_create("schedule");
    tcase_add_checked_fixture(tcase, up, end);
    tcase_add_test(tcase, gpipe_takes_m_plus_p_minus_1_slots_in_each_direction);
    tcase_add_test(tcase, one_f_one_b_takes_as_long);
    tcase_add_test(tcase, a_micro_batch_at_a_time_takes_p_times_m);
    tcase_add_test(tcase, a_wait_is_reported_with_its_length_and_its_call);
    tcase_add_test(tcase, blocking_sends_suffice_for_gpipe);
    tcase_add_test(tcase, blocking_sends_that_cross_are_stuck_although_the_calls_have_returned);
    tcase_add_test(tcase, a_started_send_that_is_waited_for_at_once_is_like_a_blocking_one);
    tcase_add_test(tcase, sending_and_receiving_in_one_call_does_not_cross);
    tcase_add_test(tcase, a_collective_waits_for_its_last_rank);
    tcase_add_test(tcase, calls_of_other_steps_are_not_waited_for);
    tcase_add_test(tcase, a_receive_without_a_send_is_stuck);
    suite_add_tcase(suite, tcase);
    return suite;
}
