/* Messages of more than 2^31 bytes between two ranks. Skipped if there is not enough memory. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/run_for_tests.h"
#include "comm/tests/ranks.h"

Suite *suite(void);

static const int64_t COUNT = 550000000; /* 2.2 GB in single precision */
static const double GIGABYTES_NEEDED = 8;

static double available_gigabytes(void)
{
    char line[128];
    double kilobytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes / 1e6;
}

/* Is there enough memory? Rank 0 decides for both. */
static bool fits(void)
{
    double available = group_rank(world) == 0 ? available_gigabytes() : 0;
    group_sum(world, &available, 1);
    if (available < GIGABYTES_NEEDED && group_rank(world) == 0)
        printf("skip - messages above 2^31 bytes: %.0f GB of memory are free, %.0f are needed\n",
               available, GIGABYTES_NEEDED);
    return available >= GIGABYTES_NEEDED;
}

static real number(int rank, int64_t i)
{
    return (real)((rank + 1) * 100000 + i % 99991);
}

static real *numbers_of(int rank, int64_t count)
{
    real *x = malloc((size_t)count * sizeof *x);
    ck_assert_ptr_nonnull(x);
    for (int64_t i = 0; i < count; i++)
        x[i] = number(rank, i);
    return x;
}

static int64_t first_wrong_sum(const real *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] != number(0, i) + number(1, i))
            return i;
    return -1;
}

START_TEST(all_reduce_above_2_to_the_31_bytes)
{
    if (!fits())
        return;
    real *x = numbers_of(group_rank(world), COUNT);
    comm_all_reduce(world, x, x, COUNT);
    int64_t wrong = first_wrong_sum(x, COUNT);
    free(x);
    ck_assert_int_eq(wrong, -1);
    ck_assert_int_eq(group_counter(world, ALL_REDUCE).bytes % 4, 0);
    ck_assert_int_gt(group_counter(world, ALL_REDUCE).bytes, (int64_t)1 << 31);
}
END_TEST

START_TEST(all_reduce_started_early_above_2_to_the_31_bytes)
{
    if (!fits())
        return;
    real *x = numbers_of(group_rank(world), COUNT);
    comm_wait(comm_all_reduce_start(world, x, COUNT));
    int64_t wrong = first_wrong_sum(x, COUNT);
    free(x);
    ck_assert_int_eq(wrong, -1);
}
END_TEST

/* Each rank has half of the numbers, in _i rows. */
START_TEST(all_gather_above_2_to_the_31_bytes)
{
    if (!fits())
        return;
    int64_t rows = _i, columns = COUNT / 2 / rows, wrong = -1;
    real *x = numbers_of(group_rank(world), rows * columns),
         *all = malloc((size_t)COUNT * sizeof *all);
    comm_all_gather(world, x, all, rows, columns);
    for (int64_t r = 0; r < rows && wrong < 0; r++)
        for (int64_t c = 0; c < 2 * columns && wrong < 0; c++)
            if (all[r * 2 * columns + c] != number((int)(c / columns), r * columns + c % columns))
                wrong = r * 2 * columns + c;
    free(x);
    free(all);
    ck_assert_int_eq(wrong, -1);
}
END_TEST

START_TEST(reduce_scatter_above_2_to_the_31_bytes)
{
    if (!fits())
        return;
    int64_t half = COUNT / 2, wrong = -1;
    real *x = numbers_of(group_rank(world), COUNT), *mine = malloc((size_t)half * sizeof *mine);
    comm_reduce_scatter(world, x, mine, 1, half);
    for (int64_t i = 0, begin = group_rank(world) * half; i < half && wrong < 0; i++)
        if (mine[i] != number(0, begin + i) + number(1, begin + i))
            wrong = i;
    free(x);
    free(mine);
    ck_assert_int_eq(wrong, -1);
}
END_TEST

START_TEST(broadcast_and_send_above_2_to_the_31_bytes)
{
    if (!fits())
        return;
    real *x = numbers_of(group_rank(world), COUNT);
    comm_broadcast(world, x, COUNT, 1);
    int64_t wrong = x[COUNT - 1] != number(1, COUNT - 1);
    if (group_rank(world) == 0) {
        x[COUNT - 1] = 3;
        comm_send(world, x, COUNT, 1);
    } else {
        comm_receive(world, x, COUNT, 0);
        wrong += x[COUNT - 1] != 3;
    }
    free(x);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("big messages");
    TCase *tcase = tcase_create("big messages");
    tcase_set_timeout(tcase, 600);
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_test(tcase, all_reduce_above_2_to_the_31_bytes);
    tcase_add_test(tcase, all_reduce_started_early_above_2_to_the_31_bytes);
    tcase_add_loop_test(tcase, all_gather_above_2_to_the_31_bytes, 1, 3);
    tcase_add_test(tcase, reduce_scatter_above_2_to_the_31_bytes);
    tcase_add_test(tcase, broadcast_and_send_above_2_to_the_31_bytes);
    suite_add_tcase(suite, tcase);
    return suite;
}
