/* Communication in groups of 1, 2, 3 and 4 ranks, with integers, so every sum is exact; and
 * its counters. Two groups work at once: the first _i ranks and the others. */
#include <stdlib.h>

#include "backend/backend.h"
#include "tests/run_for_tests.h"
#include "comm/tests/ranks.h"
#include "mesh/mesh.h"

Suite *suite(void);

static const int64_t LENGTHS[] = {0, 1, 7, 1000, MOST};
enum { LENGTHS_TRIED = sizeof LENGTHS / sizeof *LENGTHS };

/* The number at index i of rank r: exact in single precision, and so is its sum over the ranks. */
static real number(int rank, int64_t i)
{
    return (real)((rank + 1) * 10000 + i % 9973);
}

static real *numbers_of(int rank, int64_t count)
{
    real *numbers = backend_memory((count + 1) * (int64_t)sizeof *numbers, HOST_MEMORY);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = number(rank, i);
    return numbers;
}

static void give_back(real *numbers)
{
    backend_memory_free(numbers, HOST_MEMORY);
}

static real sum_over(const Group *group, int64_t i)
{
    real sum = 0;
    for (int rank = 0; rank < group_size(group); rank++)
        sum += number(rank, i);
    return sum;
}

static bool is_sum(const Group *group, const real *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (x[i] != sum_over(group, i))
            return false;
    return true;
}

START_TEST(all_reduce_adds_on_every_rank)
{
    Group *group = group_of_first(_i);
    for (int k = 0; k < LENGTHS_TRIED; k++) {
        real *x = numbers_of(group_rank(group), LENGTHS[k]), *y = numbers_of(99, LENGTHS[k]);
        comm_all_reduce(group, x, y, LENGTHS[k]);
        bool in_place_too = is_sum(group, y, LENGTHS[k]);
        for (int64_t i = 0; i < LENGTHS[k]; i++)
            in_place_too =
                in_place_too && x[i] == number(group_rank(group), i); /* x is not changed */
        comm_all_reduce(group, x, x, LENGTHS[k]);
        in_place_too = in_place_too && is_sum(group, x, LENGTHS[k]);
        give_back(x);
        give_back(y);
        ck_assert_msg(in_place_too, "%ld numbers", (long)LENGTHS[k]);
    }
}
END_TEST

/* All numbers are negative, so the maximum is rank 0's, not 0 and not the last rank's. */
START_TEST(all_max_takes_the_largest_number_on_every_rank)
{
    Group *group = group_of_first(_i);
    for (int k = 0; k < LENGTHS_TRIED; k++) {
        real *x = numbers_of(group_rank(group), LENGTHS[k]), *y = numbers_of(99, LENGTHS[k]);
        kernel_vector_scale(LENGTHS[k], -1, x);
        backend_wait();
        comm_all_max(group, x, y, LENGTHS[k]);
        comm_all_max(group, x, x, LENGTHS[k]);
        bool right = true;
        for (int64_t i = 0; i < LENGTHS[k]; i++)
            right = right && y[i] == -number(0, i) && x[i] == -number(0, i);
        give_back(x);
        give_back(y);
        ck_assert_msg(right, "%ld numbers", (long)LENGTHS[k]);
    }
}
END_TEST

START_TEST(all_reduce_started_early_adds_too)
{
    Group *group = group_of_first(_i);
    bool right = true;
    real *x[LENGTHS_TRIED];
    CommRequest *request[LENGTHS_TRIED];
    for (int k = 0; k < LENGTHS_TRIED; k++) {
        x[k] = numbers_of(group_rank(group), LENGTHS[k]);
        request[k] = comm_all_reduce_start(group, x[k], LENGTHS[k]);
    }
    for (int k = LENGTHS_TRIED - 1; k >= 0; k--) {
        comm_wait(request[k]);
        right = right && is_sum(group, x[k], LENGTHS[k]);
        give_back(x[k]);
    }
    ck_assert(right);
}
END_TEST

/* Every second rank waits for the sums in reverse order. */
START_TEST(sums_of_two_groups_may_be_waited_for_in_any_order)
{
    Group *group[] = {group_of_first(_i), group_of_first(_i)};
    const int first = group_rank(world) % 2, order[] = {first, 1 - first};
    real *x[2];
    CommRequest *request[2];
    for (int k = 0; k < 2; k++) {
        x[k] = numbers_of(group_rank(group[k]), MOST);
        request[k] = comm_all_reduce_start(group[k], x[k], MOST);
    }
    comm_wait(request[order[0]]);
    comm_wait(request[order[1]]);
    const bool right = is_sum(group[0], x[0], MOST) && is_sum(group[1], x[1], MOST);
    give_back(x[0]);
    give_back(x[1]);
    ck_assert(right);
}
END_TEST

START_TEST(a_group_is_poked_only_while_something_is_under_way)
{
    Group *group = group_of_first(_i);
    const int rank = group_rank(group), ranks = group_size(group);
    real *x = numbers_of(0, MOST);
    bool right = !comm_poke(group);
    if (rank == 0 && ranks > 1) {
        CommRequest *message = comm_send_start(group, x, MOST, 1);
        right = right && comm_poke(group);
        comm_wait(message);
        right = right && !comm_poke(group);
    }
    if (rank == 1)
        comm_receive(group, x, MOST, 0);
    CommRequest *sum = comm_all_reduce_start(group, x, MOST);
    right = right && comm_poke(group) == (ranks > 1);
    comm_wait(sum);
    right = right && !comm_poke(group);
    give_back(x);
    ck_assert(right);
}
END_TEST

/* The other ranks send to rank 0 only after their sum, which needs rank 0. */
START_TEST(a_sum_continues_while_a_rank_waits_for_a_message)
{
    Group *group = group_of_first(_i);
    real *x = numbers_of(group_rank(group), MOST), *message = numbers_of(0, 1);
    CommRequest *request = comm_all_reduce_start(group, x, MOST);
    for (int from = 1; group_rank(group) == 0 && from < group_size(group); from++)
        comm_receive(group, message, 1, from);
    comm_wait(request);
    if (group_rank(group) > 0)
        comm_send(group, x, 1, 0);
    const bool right = is_sum(group, x, MOST);
    give_back(x);
    give_back(message);
    ck_assert(right);
}
END_TEST

/* A gather while a sum is in progress, then sends by rank 0. The other ranks receive only after
 * their sum, which needs rank 0. */
START_TEST(a_sum_continues_in_other_calls)
{
    Group *group = group_of_first(_i);
    const int rank = group_rank(group), size = group_size(group);
    real *x = numbers_of(rank, MOST), *y = numbers_of(rank, 1000), *all = numbers_of(0, 4000);
    CommRequest *sum = comm_all_reduce_start(group, x, MOST), *sent[4];
    comm_all_gather(group, y, all, 1, 1000);
    for (int to = 1; rank == 0 && to < size; to++)
        sent[to] = comm_send_start(group, y, 1000, to);
    for (int to = 1; rank == 0 && to < size; to++)
        comm_wait(sent[to]);
    comm_wait(sum);
    if (rank > 0)
        comm_receive(group, y, 1000, 0);
    bool right = is_sum(group, x, MOST);
    for (int64_t i = 0; i < 1000 * size; i++)
        right = right && all[i] == number((int)(i / 1000), i % 1000);
    for (int64_t i = 0; i < 1000; i++)
        right = right && y[i] == number(0, i);
    give_back(x);
    give_back(y);
    give_back(all);
    ck_assert(right);
}
END_TEST

/* Rank 3 leaves out the all-reduce and goes on to group_sum(), in which it waits for the others. */
START_TEST(a_rank_that_leaves_out_a_sum_is_reported)
{
    comm_share_memory(true);
    Group *group = group_of(MPI_COMM_WORLD, "all");
    comm_share_memory(false);
    real *x = numbers_of(0, 8);
    if (group_is_over_mpi(group) && group->transport->all_reduce != over_mpi.all_reduce) {
        double value = 1;
        if (group_rank(group) < 3)
            ASSERT_MISUSE(comm_all_reduce(group, x, x, 8),
                          "this rank waits in a collective of 8 numbers, but rank 3");
        group_sum(group, &value, 1);
    }
    give_back(x);
    group_free(group);
}
END_TEST

/* Only in shared memory: MPI would report a truncated message, or nothing. The misuse leaves the
 * group unusable. */
START_TEST(ranks_that_sum_arrays_of_different_sizes_are_reported)
{
    comm_share_memory(true);
    Group *group = group_of(MPI_COMM_WORLD, "all");
    comm_share_memory(false);
    const int64_t count = group_rank(group) == 3 ? 7 : 8;
    real *x = numbers_of(group_rank(group), 8);
    if (group_is_over_mpi(group) && group->transport->all_reduce != over_mpi.all_reduce)
        ASSERT_MISUSE(comm_all_reduce(group, x, x, count), "all-reduce (sum) of 7 numbers",
                      "all-reduce (sum) of 8 numbers", "of its group all calls");
    give_back(x);
    MPI_Barrier(MPI_COMM_WORLD);
    group_free(group);
}
END_TEST

/* One matrix [rows, columns] per rank, side by side. */
static const int64_t SHAPES[][2] = {{1, 12},   {5, 1},     {3, 4},     {1, 0},       {0, 3},
                                    {7, 1000}, {70, 1001}, {40000, 1}, {1, MOST / 4}};
enum { SHAPES_TRIED = sizeof SHAPES / sizeof *SHAPES };

START_TEST(all_gather_joins_the_blocks_side_by_side)
{
    Group *group = group_of_first(_i);
    for (int s = 0; s < SHAPES_TRIED; s++) {
        int64_t rows = SHAPES[s][0], columns = SHAPES[s][1], size = group_size(group);
        real *x = numbers_of(group_rank(group), rows * columns),
             *all = numbers_of(99, rows * columns * size);
        comm_all_gather(group, x, all, rows, columns);
        bool right = true;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns * size; c++)
                right = right && all[r * columns * size + c] ==
                                     number((int)(c / columns), r * columns + c % columns);
        give_back(x);
        give_back(all);
        ck_assert_msg(right, "[%ld,%ld]", (long)rows, (long)columns);
    }
}
END_TEST

START_TEST(reduce_scatter_gives_each_rank_its_columns_of_the_sum)
{
    Group *group = group_of_first(_i);
    const int64_t shapes[][2] = {{1, 12},   {5, 1},     {3, 4},     {1, 0},
                                 {7, 1000}, {70, 1001}, {40000, 1}, {1, MOST}};
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        int64_t rows = shapes[s][0], columns = shapes[s][1], size = group_size(group);
        real *x = numbers_of(group_rank(group), rows * columns * size),
             *mine = numbers_of(99, rows * columns);
        comm_reduce_scatter(group, x, mine, rows, columns);
        bool right = true;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++)
                right = right && mine[r * columns + c] ==
                                     sum_over(group, (r * size + group_rank(group)) * columns + c);
        give_back(x);
        give_back(mine);
        ck_assert_msg(right, "[%ld,%ld]", (long)rows, (long)columns);
    }
}
END_TEST

/* Small integers, which 16 bits hold exactly, and so do they the sums over four ranks. */
static real small(int rank, int64_t i)
{
    return (real)((rank + 1) * (i % 23));
}

static uint16_t *halves_of(int rank, int64_t count)
{
    real *numbers = numbers_of(rank, count);
    uint16_t *halves = (uint16_t *)numbers_of(0, count);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = small(rank, i);
    kernel_round(count, numbers, halves);
    backend_wait();
    give_back(numbers);
    return halves;
}

/* Is number c of row r of `sums` [rows, columns] the sum of the ranks' numbers
 * `first` + r * `width` + c? Gives the memory back. */
static bool are_small_sums(const Group *group, uint16_t *sums, int64_t rows, int64_t columns,
                           int64_t first, int64_t width)
{
    real *numbers = numbers_of(0, rows * columns);
    bool right = true;
    kernel_widen(rows * columns, sums, numbers);
    backend_wait();
    for (int64_t i = 0; i < rows * columns; i++) {
        real sum = 0;
        for (int rank = 0; rank < group_size(group); rank++)
            sum += small(rank, first + i / columns * width + i % columns);
        right = right && numbers[i] == sum;
    }
    give_back(numbers);
    give_back((real *)sums);
    return right;
}

START_TEST(sums_of_numbers_in_16_bits_travel_as_such)
{
    Group *group = group_of_first(_i);
    const int n = group_size(group), rank = group_rank(group);
    for (size_t k = 0; k < sizeof SHAPES / sizeof *SHAPES; k++) {
        const int64_t rows = SHAPES[k][0], columns = SHAPES[k][1] * HALVES, width = n * columns,
                      count = rows * width;
        uint16_t *x = halves_of(rank, count), *room = halves_of(9, count),
                 *all = halves_of(9, count), *mine = halves_of(9, count);
        group_reset_counters(group);
        comm_all_reduce_halves(group, x, all, count, room);
        comm_reduce_scatter_halves(group, x, mine, rows, columns, room);
        double bytes[] = {(double)group_counter(group, ALL_REDUCE).bytes,
                          (double)group_counter(group, REDUCE_SCATTER).bytes};
        group_sum(group, bytes, 2);
        bool right = are_small_sums(group, mine, rows, columns, rank * columns, width);
        right = are_small_sums(group, all, 1, count, 0, 0) && right;
        give_back((real *)x);
        give_back((real *)room);
        ck_assert_msg(right, "%ld rows of %ld numbers", (long)rows, (long)columns);
        ck_assert_double_eq(bytes[0], (double)(2 * (n - 1) * count * 2));
        ck_assert_double_eq(bytes[1], (double)((n - 1) * count * 2));
    }
}
END_TEST

START_TEST(broadcast_gives_all_ranks_the_numbers_of_the_root)
{
    Group *group = group_of_first(_i);
    bool right = true;
    for (int root = 0; root < group_size(group); root++)
        for (int k = 0; k < LENGTHS_TRIED; k++) {
            real *x = numbers_of(group_rank(group), LENGTHS[k]);
            comm_broadcast(group, x, LENGTHS[k], root);
            for (int64_t i = 0; i < LENGTHS[k]; i++)
                right = right && x[i] == number(root, i);
            give_back(x);
        }
    ck_assert(right);
}
END_TEST

typedef void Exchange(Group *group, const real *x, real *y, int64_t numbers, int left, int right);

/* Does each rank of the ring get the numbers of its left neighbour? */
static bool around_the_ring(Group *group, Exchange *exchange)
{
    int size = group_size(group), rank = group_rank(group), left = (rank + size - 1) % size;
    bool right = true;
    for (int k = 0; k < LENGTHS_TRIED && size > 1; k++) {
        real *x = numbers_of(rank, LENGTHS[k]), *y = numbers_of(99, LENGTHS[k]);
        exchange(group, x, y, LENGTHS[k], left, (rank + 1) % size);
        for (int64_t i = 0; i < LENGTHS[k]; i++)
            right = right && y[i] == number(left, i);
        give_back(x);
        give_back(y);
    }
    return right;
}

static void one_after_the_other(Group *group, const real *x, real *y, int64_t numbers, int left,
                                int right)
{
    if (group_rank(group) > 0)
        comm_receive(group, y, numbers, left);
    comm_send(group, x, numbers, right);
    if (group_rank(group) == 0)
        comm_receive(group, y, numbers, left);
}

START_TEST(a_message_arrives)
{
    ck_assert(around_the_ring(group_of_first(_i), one_after_the_other));
}
END_TEST

/* Every rank starts a send before it receives, twice. */
static void crossing(Group *group, const real *x, real *y, int64_t numbers, int left, int right)
{
    enum { TIMES = 2 };
    CommRequest *started[TIMES];
    for (int i = 0; i < TIMES; i++) {
        started[i] = comm_send_start(group, x, numbers, right);
        comm_receive(group, y, numbers, left);
    }
    for (int i = 0; i < TIMES; i++)
        comm_wait(started[i]);
}

START_TEST(sends_that_are_started_may_cross)
{
    ck_assert(around_the_ring(group_of_first(_i), crossing));
}
END_TEST

START_TEST(a_few_numbers_are_added_in_place)
{
    Group *group = group_of_first(_i);
    double values[] = {group_rank(group) + 1, 0.5, 1e-300};
    int size = group_size(group);
    group_sum(group, values, 3);
    ck_assert_double_eq(values[0], size * (size + 1) / 2);
    ck_assert_double_eq(values[1], size * 0.5);
    ck_assert_double_eq_tol(values[2], size * 1e-300, 1e-315);
}
END_TEST

START_TEST(ranks_of_a_split_are_ordered_by_key)
{
    int rank = group_rank(world);
    Group *even = group_split(world, rank % 2, -rank);
    ck_assert_int_eq(group_size(even), 2);
    ck_assert_int_eq(group_rank(even), rank < 2 ? 1 : 0);
    Group *same = group_split(world, 0, 5); /* equal keys: in the order of the world */
    ck_assert_int_eq(group_rank(same), rank);
    Group *alone = group_split(even, group_rank(even), 0); /* splits a group made by a split */
    ck_assert_int_eq(group_size(alone), 1);
    ck_assert_ptr_nonnull(strstr(group_name(even), "world"));
}
END_TEST

START_TEST(a_communicator_of_the_caller_becomes_a_group_of_its_parent)
{
    MPI_Comm comm;
    int rank = group_rank(world);
    MPI_Comm_split(group_comm(world), rank / 2, -rank, &comm);
    ASSERT_MISUSE(group_adopt(world, MPI_COMM_SELF), "predefined communicator");
    Group *pair = group_adopt(world, comm);
    ck_assert(group_comm(pair) == comm);
    ck_assert_int_eq(group_size(pair), 2);
    ck_assert_int_eq(group_rank(pair), 1 - rank % 2);
    ck_assert_ptr_nonnull(strstr(group_name(pair), "world"));
}
END_TEST

static void exchange_all(Group *group, real *x, real *y)
{
    comm_all_reduce(group, x, y, 6);
    comm_all_max(group, x, y, 6);
    comm_wait(comm_all_reduce_start(group, x, 24));
    comm_all_gather(group, x, y, 3, 4);
    comm_reduce_scatter(group, x, y, 3, 4);
    comm_broadcast(group, x, 12, 0);
}

START_TEST(counters_follow_the_formulas)
{
    Group *group = group_of_first(_i);
    int64_t n = group_size(group), bytes = sizeof(real);
    real *x = numbers_of(0, 1000), *y = numbers_of(0, 1000);
    exchange_all(group, x, y);
    give_back(x);
    give_back(y);
    /* An all-reduce of N numbers sends 2(n-1)N over the group, 2(n-1)N/n per rank. A gather to N
     * numbers, or a reduce-scatter of N, sends (n-1)N over the group. */
    ck_assert_int_eq(group_counter(group, ALL_REDUCE).bytes, 2 * (n - 1) * 36 / n * bytes);
    ck_assert_int_eq(group_counter(group, ALL_REDUCE).calls, 3);
    ck_assert_int_eq(group_counter(group, ALL_GATHER).bytes, (n - 1) * 12 * bytes);
    ck_assert_int_eq(group_counter(group, ALL_GATHER).calls, 1);
    ck_assert_int_eq(group_counter(group, REDUCE_SCATTER).bytes, (n - 1) * 12 * bytes);
    int64_t sent = group_rank(group) == 0 ? (n - 1) * 12 * bytes : 0;
    ck_assert_int_eq(group_counter(group, BROADCAST).bytes, sent);
    ck_assert_int_eq(group_total(group).calls, 6);
    ck_assert_int_eq(group_total(group).bytes,
                     2 * (n - 1) * 36 / n * bytes + 2 * (n - 1) * 12 * bytes + sent);
    ck_assert(group_total(group).seconds > 0 && group_total(group).seconds < 60);
    ck_assert_int_eq(group_total(world).calls, 0);
    group_reset_counters(group);
    ck_assert_int_eq(group_total(group).calls, 0);
}
END_TEST

START_TEST(sending_counts_and_receiving_does_not)
{
    real *x = numbers_of(0, 10);
    int rank = group_rank(world);
    if (rank == 0)
        comm_send(world, x, 10, 1);
    if (rank == 1)
        comm_receive(world, x, 10, 0);
    ck_assert_int_eq(group_counter(world, SEND).bytes, rank == 0 ? 40 : 0);
    ck_assert_int_eq(group_counter(world, RECEIVE).bytes, 0);
    ck_assert_int_eq(group_counter(world, RECEIVE).calls, rank == 1);
    give_back(x);
    group_reset_counters(world);
}
END_TEST

START_TEST(the_bytes_of_all_ranks_are_the_formula_of_the_group)
{
    Group *group = group_of_first(_i);
    int64_t n = group_size(group);
    real *x = numbers_of(0, 7); /* 7 is not divisible by 2, 3 or 4 */
    comm_all_reduce(group, x, x, 7);
    give_back(x);
    double sum = (double)group_counter(group, ALL_REDUCE).bytes;
    group_sum(group, &sum, 1);
    ck_assert_double_eq(sum, (double)(2 * (n - 1) * 7 * (int64_t)sizeof(real)));
}
END_TEST

START_TEST(before_balise_8_the_world_splits_the_model)
{
    Mesh mesh;
    mesh_open(&mesh, world, 4, 1);
    ck_assert_ptr_eq(mesh.world, world);
    ck_assert_ptr_null(mesh.tp);
    ck_assert_ptr_null(mesh.dp);
    ck_assert_int_eq(mesh.tp_rank, group_rank(world));
    ck_assert_int_eq(mesh.tp_degree, 4);
    ck_assert_int_eq(mesh.dp_rank, 0);
    ck_assert_int_eq(mesh.dp_degree, 1);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("comm");
    TCase *tcase = tcase_create("comm");
    tcase_set_timeout(tcase, 120);
    mpi_piece = PIECE;
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_checked_fixture(tcase, NULL, free_groups);
    tcase_add_loop_test(tcase, all_reduce_adds_on_every_rank, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, all_max_takes_the_largest_number_on_every_rank, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, all_reduce_started_early_adds_too, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, sums_of_two_groups_may_be_waited_for_in_any_order, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, a_group_is_poked_only_while_something_is_under_way, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, a_sum_continues_while_a_rank_waits_for_a_message, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, a_sum_continues_in_other_calls, 1, GROUPS_TRIED);
    tcase_add_test(tcase, a_rank_that_leaves_out_a_sum_is_reported);
    tcase_add_test(tcase, ranks_that_sum_arrays_of_different_sizes_are_reported);
    tcase_add_loop_test(tcase, all_gather_joins_the_blocks_side_by_side, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, reduce_scatter_gives_each_rank_its_columns_of_the_sum, 1,
                        GROUPS_TRIED);
    tcase_add_loop_test(tcase, sums_of_numbers_in_16_bits_travel_as_such, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, broadcast_gives_all_ranks_the_numbers_of_the_root, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, a_message_arrives, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, sends_that_are_started_may_cross, 1, GROUPS_TRIED);
    tcase_add_loop_test(tcase, a_few_numbers_are_added_in_place, 1, GROUPS_TRIED);
    tcase_add_test(tcase, ranks_of_a_split_are_ordered_by_key);
    tcase_add_test(tcase, a_communicator_of_the_caller_becomes_a_group_of_its_parent);
    tcase_add_loop_test(tcase, counters_follow_the_formulas, 1, GROUPS_TRIED);
    tcase_add_test(tcase, sending_counts_and_receiving_does_not);
    tcase_add_loop_test(tcase, the_bytes_of_all_ranks_are_the_formula_of_the_group, 1,
                        GROUPS_TRIED);
    tcase_add_test(tcase, before_balise_8_the_world_splits_the_model);
    suite_add_tcase(suite, tcase);
    return suite;
}
