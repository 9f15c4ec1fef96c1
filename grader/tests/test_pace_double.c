/* The clock of a pipeline's schedule at the pace of a cluster: messages and sums take time. */
#include "grader/tests/made_up_schedule.h"

Suite *suite(void);

enum { PER_PASS = 8, LATENCY = 2, BYTE = 1, FARTHER = 10, SENT = 4 * COUNT };
static const Pace pace = {.work = PER_PASS,
                          .latency = {LATENCY, FARTHER *LATENCY},
                          .byte = {BYTE, FARTHER *BYTE},
                          .node = 2,
                          .tp = 1,
                          .over_replicas = 1};
static const double takes = LATENCY + BYTE * SENT;

/* As common/bench/pace.py predicts. */
static double with_messages(int p, int m)
{
    return PER_PASS * (double)overlapped(p, m) + (p > 1 ? 2 * (m + p - 2) * takes : 0);
}

START_TEST(messages_lengthen_gpipe_as_make_model_predicts)
{
    for (int p = 1; p <= 4; p++)
        for (int m = 1; m <= MOST_MICROS; m++) {
            end();
            up();
            stages = p;
            schedule.pace = pace;
            schedule.pace.node = p;
            gpipe(m);
            ck_assert(replayed());
            ck_assert_double_eq(schedule.length, with_messages(p, m));
            ck_assert_double_eq(idle_time(&schedule, 0), with_messages(p, m) - 2 * m * PER_PASS);
        }
}
END_TEST

START_TEST(one_f_one_b_with_messages_takes_no_longer)
{
    stages = 4;
    schedule.pace = pace;
    schedule.pace.node = stages;
    one_f_one_b(MOST_MICROS);
    ck_assert(replayed());
    ck_assert_double_gt(schedule.length, PER_PASS * (double)overlapped(4, MOST_MICROS));
    ck_assert_double_le(schedule.length, with_messages(4, MOST_MICROS));
}
END_TEST

START_TEST(a_pass_has_its_begin_and_its_end)
{
    schedule.pace = pace;
    gpipe(1);
    ck_assert(replayed());
    ck_assert_double_eq(schedule.pass[1][0].begin, PER_PASS + takes);
    ck_assert_double_eq(schedule.pass[1][0].end, 2 * PER_PASS + takes);
    ck_assert_double_eq(schedule.pass[1][0].waited, PER_PASS + takes);
    ck_assert_double_eq(schedule.pass[1][1].begin, schedule.pass[1][0].end);
}
END_TEST

START_TEST(messages_between_nodes_take_longer)
{
    stages = 3;
    schedule.pace = pace;
    gpipe(1);
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, 6 * PER_PASS + 2 * (1 + FARTHER) * takes);
}
END_TEST

/* Two buckets of a backward pass of three parts, as in lab 11. */
static void two_buckets(int n)
{
    for (int rank = 0; rank < n; rank++) {
        for (int bucket = 0; bucket < 2; bucket++) {
            Call *start = here(sum(rank, bucket + 1, COUNT));
            start->members = ((uint64_t)1 << n) - 1;
            start->starts = start->completed = 1;
            start->multiplied = bucket + 1;
            start->waited_by = 2 + bucket;
        }
        for (int bucket = 0; bucket < 2; bucket++)
            here(new_call(rank, "wait", LOCAL))->multiplied = 3;
    }
    schedule.pace = pace;
    schedule.pace.node = n;
}

/* Two ranks exchange halves, twice. */
static const double ring = 2 * (LATENCY + BYTE * (double)SENT / 2);

START_TEST(sums_that_start_early_overlap_but_not_each_other)
{
    two_buckets(2);
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, PER_PASS + 2 * ring);
    ck_assert_double_eq(schedule.busy[0], 3 * PER_PASS);
}
END_TEST

START_TEST(without_an_early_start_sums_follow_the_work)
{
    two_buckets(2);
    schedule.pace.late = true;
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, 3 * PER_PASS + 2 * ring);
}
END_TEST

START_TEST(only_sums_over_replicas_have_the_size_of_gradients)
{
    two_buckets(2);
    schedule.pace.over_replicas = 3;
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length,
                        PER_PASS + 2 * 2 * (LATENCY + 3 * BYTE * (double)SENT / 2));
    schedule = (StepSchedule){.pace = schedule.pace};
    schedule.pace.tp = 2;
    ck_assert(replayed());
    ck_assert_double_eq(schedule.length, PER_PASS + 2 * ring);
}
END_TEST

START_TEST(replicas_are_a_multiple_of_tp_apart)
{
    ck_assert(are_replicas(0x3, 1));
    ck_assert(are_replicas(0x5, 2));
    ck_assert(!are_replicas(0x3, 2));
    ck_assert(!are_replicas(0x7, 2));
    ck_assert(!are_replicas(0x2, 1));
    ck_assert(!are_replicas(0, 1));
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("pace");
    TCase *tcase = tcase_create("pace");
    tcase_add_checked_fixture(tcase, up, end);
    tcase_add_test(tcase, messages_lengthen_gpipe_as_make_model_predicts);
    tcase_add_test(tcase, one_f_one_b_with_messages_takes_no_longer);
    tcase_add_test(tcase, a_pass_has_its_begin_and_its_end);
    tcase_add_test(tcase, messages_between_nodes_take_longer);
    tcase_add_test(tcase, sums_that_start_early_overlap_but_not_each_other);
    tcase_add_test(tcase, without_an_early_start_sums_follow_the_work);
    tcase_add_test(tcase, only_sums_over_replicas_have_the_size_of_gradients);
    tcase_add_test(tcase, replicas_are_a_multiple_of_tp_apart);
    suite_add_tcase(suite, tcase);
    return suite;
}
