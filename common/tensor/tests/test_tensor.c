/* Shapes, placements and their text forms. */
#include <check.h>
#include <string.h>

#include "tests/run_for_tests.h"
#include "tensor/tensor.h"

START_TEST(an_overwritten_tensor_is_called_overwritten)
{
    char text[96];
    Tensor x = {.shape = SHAPE(2, 3), .placement = whole()};
    ck_assert_str_eq(tensor_text(&x, text), "[2,3] whole");
    x.shape.rank = 7;
    ck_assert_ptr_nonnull(strstr(tensor_text(&x, text), "overwritten"));
    x.shape.rank = 2;
    memset(&x.placement, 0x41, sizeof x.placement);
    ck_assert_ptr_nonnull(strstr(tensor_text(&x, text), "overwritten"));
}
END_TEST

START_TEST(a_shape_knows_its_count_and_its_last_size)
{
    ck_assert_int_eq(shape_count(SHAPE(2, 3, 5)), 30);
    ck_assert_int_eq(shape_count((Shape){0}), 1);
    ck_assert_int_eq(shape_count(SHAPE(4, 0, 5)), 0);
    ck_assert_int_eq(shape_count(SHAPE(65536, 65536)), (int64_t)1 << 32);
    ck_assert_int_eq(shape_last(SHAPE(2, 3, 5)), 5);
    ck_assert_int_eq(shape_last((Shape){0}), 1);
}
END_TEST

START_TEST(shapes_are_equal_when_rank_and_sizes_are)
{
    ck_assert(shape_equal(SHAPE(2, 3), SHAPE(2, 3)));
    ck_assert(!shape_equal(SHAPE(2, 3), SHAPE(3, 2)));
    ck_assert(!shape_equal(SHAPE(2, 3), SHAPE(2, 3, 1)));
    ck_assert(shape_equal(shape_with(SHAPE(2, 3), 1, 7), SHAPE(2, 7)));
}
END_TEST

START_TEST(dimensions_count_from_either_end)
{
    ck_assert_int_eq(shape_dim("test", SHAPE(2, 3, 5), 0), 0);
    ck_assert_int_eq(shape_dim("test", SHAPE(2, 3, 5), LAST), 2);
    ck_assert_int_eq(shape_dim("test", SHAPE(2, 3, 5), -3), 0);
    ASSERT_MISUSE(shape_dim("all_gather", SHAPE(2, 3, 5), 3), "all_gather", "dimension 3",
                  "[2,3,5]");
    ASSERT_MISUSE(shape_dim("all_gather", SHAPE(2, 3, 5), -4), "dimension -4");
}
END_TEST

START_TEST(messages_show_shape_and_placement)
{
    char text[96];
    Tensor x = {.shape = SHAPE(2, 3, 24), .placement = {SHARD, 2}};
    ck_assert_str_eq(tensor_text(&x, text), "[2,3,24] shard(2)");
    x.placement.kind = UNKNOWN;
    ck_assert_str_eq(tensor_text(&x, text), "[2,3,24]");
    const char *const names[] = {"whole",       "copied",  "shard(0)",
                                 "partial sum", "unknown", "undecided"};
    for (int kind = WHOLE; kind <= UNDECIDED; kind++)
        ck_assert_str_eq(placement_text((Placement){kind, 0}, text), names[kind]);
    ck_assert_str_eq(shape_text((Shape){0}, text), "[]");
    shape_text(SHAPE(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX), text);
    ck_assert_uint_lt(strlen(text), 64);
}
END_TEST

START_TEST(placements_are_equal_when_kind_and_cut_are)
{
    ck_assert(placement_equal(whole(), whole()));
    ck_assert(placement_equal(shard(1), shard(1)));
    ck_assert(!placement_equal(shard(1), shard(0)));
    ck_assert(!placement_equal(shard(0), whole()));
    ck_assert(placement_equal((Placement){PARTIAL, 1}, (Placement){PARTIAL, 0}));
}
END_TEST

/* The lengths of the parts of torch.chunk(torch.arange(size), parts). If torch.chunk returns fewer
 * parts, the last ones here are empty. */
static const struct Cut {
    int64_t size;
    int parts;
    int64_t lengths[5];
} CUTS[] = {
    {30522, 4, {7631, 7631, 7631, 7629}},
    {10, 3, {4, 4, 2}},
    {5, 4, {2, 2, 1, 0}},
    {2, 4, {1, 1, 0, 0}},
    {4, 3, {2, 2, 0}},
    {12, 4, {3, 3, 3, 3}},
    {7, 1, {7}},
    {1, 5, {1, 0, 0, 0, 0}},
    {3 * ((int64_t)1 << 40) + 1,
     3,
     {((int64_t)1 << 40) + 1, ((int64_t)1 << 40) + 1, ((int64_t)1 << 40) - 1}},
};

START_TEST(parts_equal_those_of_torch_chunk)
{
    const struct Cut *cut = &CUTS[_i];
    int64_t end = 0;
    for (int part = 0; part < cut->parts; part++) {
        Range range = chunk(cut->size, part, cut->parts);
        ck_assert_int_eq(range.begin, end);
        ck_assert_int_eq(range.end - range.begin, cut->lengths[part]);
        end = range.end;
    }
    ck_assert_int_eq(end, cut->size);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("tensor");
    TCase *tcase = tcase_create("tensor");
    tcase_add_test(tcase, an_overwritten_tensor_is_called_overwritten);
    tcase_add_test(tcase, a_shape_knows_its_count_and_its_last_size);
    tcase_add_test(tcase, shapes_are_equal_when_rank_and_sizes_are);
    tcase_add_test(tcase, dimensions_count_from_either_end);
    tcase_add_test(tcase, messages_show_shape_and_placement);
    tcase_add_test(tcase, placements_are_equal_when_kind_and_cut_are);
    tcase_add_loop_test(tcase, parts_equal_those_of_torch_chunk, 0, sizeof CUTS / sizeof *CUTS);
    suite_add_tcase(suite, tcase);
    return suite;
}
