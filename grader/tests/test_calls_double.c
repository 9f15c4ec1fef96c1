/* Calls of several ranks, made up: what does not fit, what is still awaited, and the table. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/calls.h"
#include "grader/judge/table.h"

Suite *suite(void);

enum { FLOAT_TYPE = BASIC(FLOATING, 4), DOUBLE_TYPE = BASIC(FLOATING, 8), INT_TYPE = BASIC(SIGNED, 4) };
enum { WORLD = 1, OTHER = 7 };

static Calls *calls;
static int64_t now;

static void begin(void)
{
    calls = calloc(1, sizeof *calls);
    calls->ranks = 4;
    for (int r = 0; r < 4; r++) {
        calls->rank[r].call = calloc(64, sizeof(Call));
        calls->rank[r].value = calloc(64, sizeof(Value));
    }
    now = 0;
}

static void end(void)
{
    calls_free(calls);
}

static Signature numbers(int64_t count, int32_t basic)
{
    return (Signature){count, count ? (uint64_t)count * 1000 + (uint64_t)basic : 0, basic};
}

static Call *new_call(int rank, const char *name, Rule rule)
{
    RankCalls *mine = &calls->rank[rank];
    Call *call = &mine->call[mine->count++];
    *call = (Call){.rule = (int32_t)rule,
                   .root = NOBODY,
                   .to = NOBODY,
                   .from = NOBODY,
                   .waited_by = -1,
                   .time = ++now,
                   .returned = 1};
    strcpy(call->name, name);
    return call;
}

static Call *of_group(int rank, const char *name, Rule rule, uint64_t group, uint64_t members, int64_t number)
{
    Call *call = new_call(rank, name, rule);
    call->group = group;
    call->members = members;
    call->number = number;
    return call;
}

/* The next call of this rank in a group of ranks 0 and 1. */
static Call *sum(int rank, int64_t number, int64_t count)
{
    Call *call = of_group(rank, "all_reduce", REDUCTION, WORLD, 3, number);
    call->sent[0] = numbers(count, FLOAT_TYPE);
    call->reduction = SUM_OF;
    return call;
}

static Call *gather(int rank, int64_t number, int64_t sent, int64_t received)
{
    Call *call = of_group(rank, "all_gather", EXCHANGE, WORLD, 3, number);
    for (int r = 0; r < 2; r++) {
        call->sent[r] = numbers(sent, FLOAT_TYPE);
        call->received[r] = numbers(received, FLOAT_TYPE);
    }
    return call;
}

static Call *message(int rank, const char *name, int to, int from, int tag, int64_t count, int32_t basic)
{
    Call *call = new_call(rank, name, MESSAGE);
    call->group = WORLD;
    call->members = 3;
    call->to = to;
    call->from = from;
    call->to_tag = call->from_tag = tag;
    call->sent[0] = call->received[0] = numbers(count, basic);
    return call;
}

static Call *a_send(int rank, int to, int tag, int64_t count)
{
    return message(rank, "send", to, NOBODY, tag, count, FLOAT_TYPE);
}

static Call *a_receive(int rank, int from, int tag, int64_t count)
{
    return message(rank, "receive", NOBODY, from, tag, count, FLOAT_TYPE);
}

static DifferenceKind error(void)
{
    return first_error(calls, true).kind;
}

static void waits(int rank)
{
    calls->rank[rank].call[calls->rank[rank].count - 1].returned = 0;
}

static void leaves(int rank)
{
    calls->rank[rank].left = true;
}

/* ---- what does not fit ---------------------------------------------------------------------------------------------- */

START_TEST(equal_calls_fit)
{
    for (int rank = 0; rank < 2; rank++) {
        sum(rank, 1, 6);
        gather(rank, 2, 6, 6);
    }
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(another_operation_in_its_place_is_one)
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

START_TEST(a_gather_compares_what_is_sent_with_what_is_expected)
{
    gather(0, 1, 6, 6);
    Call *other = gather(1, 1, 6, 6), *alone = of_group(2, "all_gather", EXCHANGE, OTHER, 4, 1);
    alone->sent[2] = numbers(5, FLOAT_TYPE); /* to itself: nobody else has to know */
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    other->sent[0] = numbers(5, FLOAT_TYPE);
    ck_assert_int_eq(error(), OTHER_COUNT);
}
END_TEST

START_TEST(a_call_that_one_rank_never_makes_counts_when_all_is_over)
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

START_TEST(what_a_full_ring_has_lost_is_no_difference)
{
    sum(0, 1, 6);
    sum(0, 2, 6);
    sum(1, 2, 6);
    calls->rank[1].first = 1;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
}
END_TEST

START_TEST(groups_of_equal_ranks_are_told_apart)
{
    sum(0, 1, 6)->group = OTHER;
    sum(1, 1, 6);
    ck_assert_int_eq(error(), NEVER_CALLED);
}
END_TEST

START_TEST(the_first_difference_in_time_is_told)
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

START_TEST(the_rank_that_most_agree_with_speaks_for_them)
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

START_TEST(a_shorter_message_fits_a_longer_one_and_another_type_do_not)
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

START_TEST(a_receive_from_anybody_may_take_it)
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

START_TEST(calls_on_other_lines_are_allowed_and_told_when_asked)
{
    sum(0, 1, 6)->address = calls;
    sum(1, 1, 6)->address = calls + 1;
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, false).kind, NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, true).kind, OTHER_LINE);
    strcpy(calls->rank[0].call[0].where, "forward");
    ck_assert_int_eq(error(), NO_DIFFERENCE);
    ck_assert_int_eq(first_difference(calls, true, false).kind, OTHER_PLACE);
}
END_TEST

/* ---- what is still awaited ------------------------------------------------------------------------------------------ */

START_TEST(where_all_have_come_mpi_is_at_work)
{
    sum(0, 1, 6);
    sum(1, 1, 6);
    waits(0);
    waits(1);
    ck_assert_int_eq(hope_of(calls), ALL_THERE);
    calls->rank[1].call[0].returned = 1; /* one has left the sum, and waits in the next */
    sum(1, 2, 6);
    waits(1);
    ck_assert_int_eq(hope_of(calls), ALL_THERE);
}
END_TEST

START_TEST(where_one_has_left_the_others_wait_for_ever)
{
    sum(0, 1, 6);
    waits(0);
    leaves(1);
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(two_groups_crosswise_wait_for_ever)
{
    sum(0, 1, 6);
    sum(1, 1, 6)->group = OTHER;
    waits(0);
    waits(1);
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(calls_that_do_not_fit_may_come_to_something)
{
    sum(0, 1, 6);
    gather(1, 1, 6, 6);
    waits(0);
    waits(1);
    ck_assert_int_eq(hope_of(calls), UNLIKELY);
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
    ck_assert_int_eq(hope_of(calls), SOME);
    end();
    begin();
    broadcast(1);
    waits(1);
    leaves(0);
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
}
END_TEST

START_TEST(a_send_waits_for_its_own_receive)
{
    a_send(0, 1, 0, 4);
    waits(0);
    a_send(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
    calls->rank[1].call[0] = calls->rank[0].call[0];
    calls->rank[1].count = 0;
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(hope_of(calls), ALL_THERE);
}
END_TEST

START_TEST(a_receive_that_an_earlier_one_robs_waits_for_ever)
{
    a_send(0, 1, 0, 4);
    leaves(0);
    a_receive(1, 0, 0, 4);
    a_receive(1, 0, 0, 4);
    waits(1);
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
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
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
    a_send(1, 0, 0, 4);
    ck_assert_int_eq(hope_of(calls), ALL_THERE);
    started->completed = 1;
    ck_assert_int_eq(hope_of(calls), SOME);
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
    ck_assert_int_eq(hope_of(calls), NONE_LEFT);
    wait->some = 1;
    ck_assert_int_eq(hope_of(calls), ALL_THERE);
}
END_TEST

/* ---- values --------------------------------------------------------------------------------------------------------- */

static void hold(int rank, const char *word, double number)
{
    RankCalls *mine = &calls->rank[rank];
    Value *value = &mine->value[mine->values_count++];
    *value = (Value){.count = 1, .sum = number, .size = 10};
    strcpy(value->word, word);
}

START_TEST(values_called_whole_are_compared_within_a_tp_group)
{
    char text[300];
    for (int rank = 0; rank < 4; rank++)
        hold(rank, "linear", rank / 2);
    ck_assert(!wholes_differ(calls, 2, text, sizeof text));
    for (int rank = 0; rank < 4; rank++)
        hold(rank, "add", rank == 3 ? 1.5 : 1 + 1e-6 * rank);
    ck_assert(wholes_differ(calls, 2, text, sizeof text));
    ck_assert_ptr_nonnull(strstr(text, "ranks 2 and 3 hold different values"));
    ck_assert_ptr_nonnull(strstr(text, "the result of add"));
}
END_TEST

START_TEST(ranks_that_do_different_things_are_not_compared_any_more)
{
    char text[300];
    hold(0, "linear", 1);
    hold(1, "add", 2);
    ck_assert(!wholes_differ(calls, 2, text, sizeof text));
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------------------------------ */

/* Of the first two ranks. */
static char *table(void)
{
    Calls two = *calls;
    two.ranks = 2;
    char *text;
    size_t length;
    FILE *memory = open_memstream(&text, &length);
    table_print(memory, &two);
    fclose(memory);
    return text;
}

START_TEST(calls_that_met_stand_in_one_row)
{
    sum(0, 1, 6);
    sum(0, 2, 6);
    sum(1, 1, 6);
    sum(1, 2, 5);
    waits(1);
    char *text = table();
    ck_assert_str_eq(text, "\n"
                           "   call                                  rank 0  rank 1\n"
                           "-- \n"
                           "   all_reduce #1 of {0,1}, 6 float, sum  (kit)   (kit)\n"
                           ">> all_reduce #2 of {0,1}, 6 float, sum  (kit)   (kit): 5 float, sum, waits\n");
    free(text);
}
END_TEST

START_TEST(messages_stand_in_rows_of_their_own)
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

START_TEST(a_table_of_calls_crosswise_ends)
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
    hope_of(copy);
    wholes_differ(copy, 2, text, sizeof text);
    char *whole = NULL;
    size_t length;
    copy->rank[0].count = copy->rank[0].count > 50 ? 50 : copy->rank[0].count;
    FILE *memory = open_memstream(&whole, &length);
    table_print(memory, copy);
    fclose(memory);
    free(whole);
    calls_free(copy);
    free(launch);
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("calls");
    TCase *tcase = tcase_create("calls");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, equal_calls_fit);
    tcase_add_test(tcase, another_operation_in_its_place_is_one);
    tcase_add_test(tcase, counts_types_operations_and_roots_are_compared);
    tcase_add_test(tcase, a_gather_compares_what_is_sent_with_what_is_expected);
    tcase_add_test(tcase, a_call_that_one_rank_never_makes_counts_when_all_is_over);
    tcase_add_test(tcase, what_a_full_ring_has_lost_is_no_difference);
    tcase_add_test(tcase, groups_of_equal_ranks_are_told_apart);
    tcase_add_test(tcase, the_first_difference_in_time_is_told);
    tcase_add_test(tcase, the_rank_that_most_agree_with_speaks_for_them);
    tcase_add_test(tcase, a_shorter_message_fits_a_longer_one_and_another_type_do_not);
    tcase_add_test(tcase, each_send_needs_its_receive_and_each_receive_its_send);
    tcase_add_test(tcase, a_receive_from_anybody_may_take_it);
    tcase_add_test(tcase, an_exchange_is_a_send_and_a_receive);
    tcase_add_test(tcase, calls_on_other_lines_are_allowed_and_told_when_asked);
    tcase_add_test(tcase, where_all_have_come_mpi_is_at_work);
    tcase_add_test(tcase, where_one_has_left_the_others_wait_for_ever);
    tcase_add_test(tcase, two_groups_crosswise_wait_for_ever);
    tcase_add_test(tcase, calls_that_do_not_fit_may_come_to_something);
    tcase_add_test(tcase, the_root_of_a_broadcast_may_go_on_alone_and_the_others_not);
    tcase_add_test(tcase, a_send_waits_for_its_own_receive);
    tcase_add_test(tcase, a_receive_that_an_earlier_one_robs_waits_for_ever);
    tcase_add_test(tcase, a_wait_is_for_what_was_started);
    tcase_add_test(tcase, one_request_of_several_is_enough_for_some_waits);
    tcase_add_test(tcase, values_called_whole_are_compared_within_a_tp_group);
    tcase_add_test(tcase, ranks_that_do_different_things_are_not_compared_any_more);
    tcase_add_test(tcase, calls_that_met_stand_in_one_row);
    tcase_add_test(tcase, messages_stand_in_rows_of_their_own);
    tcase_add_test(tcase, a_table_of_calls_crosswise_ends);
    tcase_add_test(tcase, nonsense_in_a_ring_stays_within_bounds);
    suite_add_tcase(all, tcase);
    return all;
}
