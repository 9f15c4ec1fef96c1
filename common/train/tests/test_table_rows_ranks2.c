/* For a large table, only the rows that some replica has used are summed; the result is the same as
 * the sum of all rows. */
#include <check.h>

#include "comm/tests/ranks.h"
#include "mesh/mesh.h"
#include "model/model.h"
#include "train/buckets.h"

enum { ROWS = 2100, COLUMNS = 512, COUNT = ROWS * COLUMNS };

static Mesh mesh;
static Pool *pool;
static Model *model;
static Tensor *table;
static real expected[COUNT];

static void start(void)
{
    pool = pool_new(0, false);
    mesh_open(&mesh, world, 1, 1);
    model = model_new(pool, &mesh, 5);
    table = parameter(model->builder, "table", SHAPE(ROWS, COLUMNS), whole());
    model_finish(model);
    table->parameter->is_table = true;
}

static void stop(void)
{
    model_free(model);
    pool_free(pool);
}

static real number_at(int rank, int row, int column)
{
    return (real)(rank * 1000 + row + column % 7 + 1);
}

/* Does this rank give a gradient to this row? Some rows get one from both ranks. */
static bool gives(int rank, int row, int pattern)
{
    return pattern == 0   ? row % 97 == 3 * rank || row == ROWS - 1
           : pattern == 1 ? rank == 0 && row < 5
           : pattern == 2 ? false
                          : row % 3 != rank; /* every row, on one rank or both */
}

static void fill(int pattern)
{
    const int rank = group_rank(world);
    for (int i = 0; i < COUNT; i++) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        reals(table->gradient)[i] = gives(rank, row, pattern) ? number_at(rank, row, column) : 0;
        expected[i] = 0;
        for (int r = 0; r < 2; r++)
            expected[i] += gives(r, row, pattern) ? number_at(r, row, column) : 0;
    }
}

static int rows_of_any(int pattern)
{
    int rows = 0;
    for (int row = 0; row < ROWS; row++)
        rows += gives(0, row, pattern) || gives(1, row, pattern);
    return rows;
}

/* One TableRows serves all patterns, as it serves all steps of a run. */
START_TEST(rows_of_all_replicas_are_summed_where_they_belong)
{
    TableRows *rows = table_rows_new(table);
    for (int pattern = 0; pattern < 4; pattern++) {
        fill(pattern);
        int64_t numbers = table_rows_pack(rows, world);
        comm_all_reduce(world, reals(table->gradient), reals(table->gradient), numbers);
        table_rows_unpack(rows);
        ck_assert_int_eq(numbers, pattern == 3 ? COUNT : rows_of_any(pattern) * COLUMNS);
        int wrong = COUNT; /* one assertion for all rows, because each assertion writes a file */
        for (int i = COUNT - 1; i >= 0; i--)
            wrong = reals(table->gradient)[i] == expected[i] ? wrong : i;
        ck_assert_msg(wrong == COUNT, "pattern %d: number %d of row %d", pattern, wrong % COLUMNS,
                      wrong / COLUMNS);
    }
    table_rows_free(rows);
}
END_TEST

START_TEST(the_bytes_of_the_row_mask_and_of_the_rows_are_counted)
{
    TableRows *rows = table_rows_new(table);
    fill(1);
    group_reset_counters(world);
    int64_t numbers = table_rows_pack(rows, world);
    comm_all_reduce(world, reals(table->gradient), reals(table->gradient), numbers);
    /* each of two ranks sends 2 (n - 1) / n = 1 times the bits and the rows */
    int64_t bytes = group_counter(world, ALL_REDUCE).bytes;
    table_rows_unpack(rows);
    table_rows_free(rows);
    ck_assert_int_eq(bytes, ((ROWS + 31) / 32 + 5 * COLUMNS) * (int64_t)sizeof(real));
}
END_TEST

START_TEST(small_tables_and_other_parameters_are_sent_whole)
{
    Parameter looked_up = {.is_table = true}, other = {0};
    Tensor small = {.parameter = &looked_up, .shape = SHAPE(1000, 128)},
           weight = {.parameter = &other, .shape = SHAPE(4096, 1024)};
    ck_assert(has_table_rows(table));
    ck_assert(!has_table_rows(&small));
    ck_assert(!has_table_rows(&weight));
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("rows of a table");
    TCase *tests = tcase_create("rows");
    tcase_add_unchecked_fixture(tests, ranks_up, ranks_down);
    tcase_add_checked_fixture(tests, start, stop);
    tcase_add_test(tests, rows_of_all_replicas_are_summed_where_they_belong);
    tcase_add_test(tests, the_bytes_of_the_row_mask_and_of_the_rows_are_counted);
    tcase_add_test(tests, small_tables_and_other_parameters_are_sent_whole);
    suite_add_tcase(suite, tests);
    return suite;
}
