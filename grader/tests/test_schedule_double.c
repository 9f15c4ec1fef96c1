/* The clock of a pipeline's schedule: the lengths in the papers, waits, and messages that complete
 * only because MPI buffers them. */
#include "grader/judge/mpi/schedule.h"
#include "grader/tests/made_up_calls.h"

Suite *suite(void);

enum { TAG = 0, COUNT = 6, MOST_MICROS = 6 };
static const Label step = {.of = THE_MODEL, .step = 0}, another = {.of = THE_MODEL, .step = 1};
static StepSchedule schedule;
static int stages;    /* p */
static bool blocking; /* sends */

static void up(void)
{
    begin();
    schedule = (StepSchedule){0};
    stages = 2;
    blocking = false;
}

static Call *here(Call *call)
{
    call->where = step;
    return call;
}

/* A pass multiplies once. */
static void ran(int rank, int micro, bool backward)
{
    const int before = schedule.count[rank]++;
    schedule.pass[rank][before] = (Pass){.micro = micro,
                                         .backward = backward,
                                         .calls = calls->rank[rank].count,
                                         .multiplied = before + 1};
}

static void sends(int rank, int to)
{
    here(a_send(rank, to, TAG, COUNT))->starts = !blocking;
}

/* The steps of lab 12. */
static void forward(int rank, int micro)
{
    if (rank > 0)
        here(a_receive(rank, rank - 1, TAG, COUNT));
    ran(rank, micro, false);
    if (rank < stages - 1)
        sends(rank, rank + 1);
}

static void backward(int rank, int micro)
{
    if (rank < stages - 1)
        here(a_receive(rank, rank + 1, TAG, COUNT));
    ran(rank, micro, true);
    if (rank > 0)
        sends(rank, rank - 1);
}

/* Waits for everything that the rank has started. */
static void finishes(int rank)
{
    RankCalls *mine = &calls->rank[rank];
    for (int64_t i = 0; i < mine->count; i++)
        if (mine->call[i].starts) {
            mine->call[i].waited_by = mine->count;
            mine->call[i].completed = 1;
        }
    here(new_call(rank, "wait", LOCAL));
}

static void gpipe(int micros)
{
    for (int rank = 0; rank < stages; rank++) {
        for (int i = 0; i < micros; i++)
            forward(rank, i);
        for (int i = 0; i < micros; i++)
            backward(rank, i);
        finishes(rank);
    }
}

static void one_f_one_b(int micros)
{
    for (int rank = 0; rank < stages; rank++) {
        const int most = stages - 1 - rank, ahead = micros < most ? micros : most;
        for (int i = 0; i < ahead; i++)
            forward(rank, i);
        for (int i = 0; i < micros; i++) {
            if (i + ahead < micros)
                forward(rank, i + ahead);
            backward(rank, i);
        }
        finishes(rank);
    }
}

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

static bool replayed(void)
{
    return schedule_replay(calls, &step, &schedule);
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

static int64_t overlapped(int p, int m)
{
    return 2 * (m + p - 1);
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

/* ---- at the pace of a cluster --------------------------------------------------------------------------------- */

enum { PER_PASS = 8, LATENCY = 2, BYTE = 1, FARTHER = 10, SENT = 4 * COUNT };
static const Pace pace = {.work = PER_PASS,
                          .latency = {LATENCY, FARTHER *LATENCY},
                          .byte = {BYTE, FARTHER *BYTE},
                          .node = 2,
                          .tp = 1,
                          .over_replicas = 1};
static const double takes = LATENCY + BYTE * SENT;

/* As common/bench/cost.py predicts. */
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
    tcase = tcase_create("pace");
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
