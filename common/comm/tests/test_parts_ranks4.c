/* Sums and gathers of parts of different sizes, in groups of 1, 2, 3 and 4 ranks. */
#include <stdlib.h>

#include "backend/backend.h"
#include "comm/tests/ranks.h"

Suite *suite(void);

static const int64_t LENGTHS[] = {0, 1, 2, 7, 1000, MOST};
enum { LENGTHS_TRIED = sizeof LENGTHS / sizeof *LENGTHS };

/* Where the parts of `count` numbers begin. Their sizes differ by 1 at most; or if `lopsided`, the
 * last part holds half of the numbers, and the second of 4 parts is empty. */
static void cut(const Group *group, int64_t count, bool lopsided, int64_t begin[5])
{
    const int n = group_size(group);
    for (int k = 0; k <= n; k++)
        begin[k] = !lopsided ? count * k / n : k == 0 ? 0 : k < n - 1 ? count / 7 : count / 2;
    begin[n] = count;
}

/* In single precision, the sum over the ranks depends on their order, as in 2^25 + 1 - 2^25. */
static real number(int rank, int64_t i)
{
    const real large = (real)(1 << 25);
    return rank == 0 ? large : rank == 2 ? -large : (real)(1 + rank + i % 97);
}

static real sum_in_order(const Group *group, int64_t i)
{
    real sum = number(0, i);
    for (int rank = 1; rank < group_size(group); rank++)
        sum += number(rank, i);
    return sum;
}

static real *numbers_of(int rank, int64_t count)
{
    real *numbers = backend_memory((count + 1) * (int64_t)sizeof *numbers, HOST_MEMORY);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = number(rank, i);
    return numbers;
}

/* Exchange: the collective under test. Right: does x hold the expected numbers afterwards? Part k
 * is [begin[k], begin[k + 1]). */
typedef void Exchange(Group *group, real *x, const int64_t *begin);
typedef bool Right(const Group *group, const real *x, const int64_t *begin);

/* Checks the exchange for each length, with equal and with lopsided parts. */
static void exchange_parts(int ranks, Exchange *exchange, Right *right)
{
    Group *group = group_of_first(ranks);
    for (int k = 0; k < 2 * LENGTHS_TRIED; k++) {
        int64_t begin[5], count = LENGTHS[k / 2];
        real *x = numbers_of(group_rank(group), count);
        cut(group, count, k % 2, begin);
        exchange(group, x, begin);
        backend_wait();
        const bool is_right = right(group, x, begin);
        backend_memory_free(x, HOST_MEMORY);
        ck_assert_msg(is_right, "%ld numbers", (long)count);
    }
}

static bool own_part_is_summed(const Group *group, const real *x, const int64_t *begin)
{
    const int rank = group_rank(group);
    bool right = true;
    for (int64_t i = 0; i < begin[group_size(group)]; i++) {
        const bool mine = i >= begin[rank] && i < begin[rank + 1];
        right = right && x[i] == (mine ? sum_in_order(group, i) : number(rank, i));
    }
    return right;
}

START_TEST(a_rank_gets_the_sum_of_its_part_in_the_order_of_the_ranks_wherever_it_begins)
{
    exchange_parts(_i, comm_reduce_scatter_parts, own_part_is_summed);
}
END_TEST

static bool all_parts_are_there(const Group *group, const real *x, const int64_t *begin)
{
    bool right = true;
    for (int owner = 0; owner < group_size(group); owner++)
        for (int64_t i = begin[owner]; i < begin[owner + 1]; i++)
            right = right && x[i] == number(owner, i);
    return right;
}

START_TEST(every_rank_gets_all_parts)
{
    exchange_parts(_i, comm_all_gather_parts, all_parts_are_there);
}
END_TEST

START_TEST(all_ranks_together_send_two_all_gathers)
{
    Group *group = group_of_first(_i);
    const int64_t count = 1000, n = group_size(group);
    int64_t begin[5];
    real *x = numbers_of(group_rank(group), count);
    group_reset_counters(group);
    cut(group, count, true, begin);
    comm_reduce_scatter_parts(group, x, begin);
    comm_all_gather_parts(group, x, begin);
    double bytes[] = {(double)group_counter(group, REDUCE_SCATTER).bytes,
                      (double)group_counter(group, ALL_GATHER).bytes};
    group_sum(group, bytes, 2);
    backend_memory_free(x, HOST_MEMORY);
    for (int half = 0; half < 2; half++)
        ck_assert(bytes[half] == (double)((n - 1) * count * (int64_t)sizeof(real)));
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("parts");
    TCase *tcase = tcase_create("parts");
    tcase_set_timeout(tcase, 120);
    mpi_piece = PIECE;
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_checked_fixture(tcase, NULL, free_groups);
    tcase_add_loop_test(
        tcase, a_rank_gets_the_sum_of_its_part_in_the_order_of_the_ranks_wherever_it_begins, 1, 5);
    tcase_add_loop_test(tcase, every_rank_gets_all_parts, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, all_ranks_together_send_two_all_gathers, 1, GROUPS_TRIED);
    suite_add_tcase(suite, tcase);
    return suite;
}
