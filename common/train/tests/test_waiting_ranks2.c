/* How long a rank waited for the other follows from the durations of their exchanges. */
#include <string.h>
#include <time.h>

#include "comm/tests/ranks.h"
#include "train/profile.h"

Suite *suite(void);

enum { EXCHANGES = 3 };

static void spend(double milliseconds)
{
    struct timespec time = {.tv_nsec = (long)(1e6 * milliseconds)};
    nanosleep(&time, NULL);
}

static const SpanTotal *find(const SpanTotal *spans, int count, const char *what)
{
    for (int i = 0; i < count; i++)
        if (strcmp(spans[i].what, what) == 0)
            return &spans[i];
    return NULL;
}

/* Makes a span called `what`; returns the seconds that the clock attributed to it. */
static double exchange(const char *what, double milliseconds)
{
    SpanTotal before[MAX_SPANS], after[MAX_SPANS];
    const SpanTotal *had = find(before, spans_read(before), what);
    spend(milliseconds);
    span_end(what, true);
    return find(after, spans_read(after), what)->seconds[1] - (had ? had->seconds[1] : 0);
}

static void from_the_start(void)
{
    spans_run(false);
    spans_forget();
    waiting_begin();
    spans_run(true);
}

/* Makes three exchanges: rank 0 waits in two of them, rank 1 in the other. `own` gets their seconds
 * on this rank. Returns the seconds that this rank waited. */
static double waited_by_both(double own[EXCHANGES])
{
    const double milliseconds[2][EXCHANGES] = {{8, 2, 8}, {2, 8, 2}};
    double least[EXCHANGES], waited = 0;
    for (int i = 0; i < EXCHANGES; i++)
        own[i] = exchange("duplication", milliseconds[group_rank(world)][i]);
    MPI_Allreduce(own, least, EXCHANGES, MPI_DOUBLE, MPI_MIN, group_comm(world));
    for (int i = 0; i < EXCHANGES; i++)
        waited += own[i] - least[i];
    return waited;
}

START_TEST(each_exchange_takes_as_long_as_on_the_rank_that_came_last)
{
    SpanTotal spans[MAX_SPANS];
    Mesh mesh = {.world = world};
    double own[EXCHANGES];
    from_the_start();
    exchange("linear", 4.0 * group_rank(world));
    double waited = waited_by_both(own);
    waiting_step(&mesh);
    waiting_step(&mesh); /* a step without exchanges */
    spans_run(false);
    int count = spans_read(spans);
    ck_assert_int_eq(count, 3);
    ck_assert_str_eq(spans[2].what, WAITING_FOR_OTHERS);
    ck_assert_double_gt(waited, 0);
    ck_assert_double_eq_tol(spans[2].seconds[1], waited, 1e-9);
    ck_assert_double_eq(spans[2].seconds[0], 0);
    ck_assert_double_eq_tol(find(spans, count, "duplication")->seconds[1],
                            own[0] + own[1] + own[2] - waited, 1e-9);
    ck_assert_double_ge(find(spans, count, "linear")->seconds[1], 4e-3 * group_rank(world));
}
END_TEST

START_TEST(ranks_that_split_a_model_do_not_wait_for_those_of_another_replica)
{
    SpanTotal spans[MAX_SPANS];
    Group *alone = group_split(world, group_rank(world), 0);
    Mesh mesh = {.world = world, .tp = alone, .dp = world};
    double own[EXCHANGES];
    from_the_start();
    waited_by_both(own);
    waiting_step(&mesh);
    ck_assert_int_eq(spans_read(spans), 1);
    const char *const over_replicas[] = {REDUCTION_ROWS, REDUCTION_EXPOSED};
    double took[2], least[2];
    for (int i = 0; i < 2; i++)
        took[i] = exchange(over_replicas[i], group_rank(world) ? 2 : 8);
    MPI_Allreduce(took, least, 2, MPI_DOUBLE, MPI_MIN, group_comm(world));
    waiting_step(&mesh);
    spans_run(false);
    spans_read(spans);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(find(spans, 3, over_replicas[i])->seconds[1], least[i], 1e-9);
}
END_TEST

START_TEST(a_start_forgets_earlier_times_and_unequal_numbers_of_exchanges_are_not_compared)
{
    SpanTotal spans[MAX_SPANS];
    Mesh mesh = {.world = world};
    double own[EXCHANGES];
    from_the_start();
    waited_by_both(own);
    from_the_start();
    waiting_step(&mesh);
    exchange("all_gather", group_rank(world) ? 2 : 8);
    if (group_rank(world))
        exchange("all_gather", 1);
    waiting_step(&mesh);
    spans_run(false);
    ck_assert_int_eq(spans_read(spans), 1);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("waiting");
    TCase *tests = tcase_create("waiting");
    tcase_add_unchecked_fixture(tests, ranks_up, ranks_down);
    tcase_add_test(tests, each_exchange_takes_as_long_as_on_the_rank_that_came_last);
    tcase_add_test(tests, ranks_that_split_a_model_do_not_wait_for_those_of_another_replica);
    tcase_add_test(tests,
                   a_start_forgets_earlier_times_and_unequal_numbers_of_exchanges_are_not_compared);
    suite_add_tcase(suite, tests);
    return suite;
}
