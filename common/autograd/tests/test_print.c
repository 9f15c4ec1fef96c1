/* tensor_print shows a rank's part of a tensor, and changes nothing. */
#include "autograd/tests/fixture.h"
#include "autograd/placement.h"

#include <string.h>
#include <unistd.h>

Suite *suite(void);

static char said[8192];

/* Captures the output of tensor_print in `said`. */
static void print(const char *name, Tensor *x)
{
    FILE *file = tmpfile();
    fflush(stdout);
    int terminal = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    tensor_print(name, x, &mesh);
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
    rewind(file);
    said[fread(said, 1, sizeof said - 1, file)] = '\0';
    fclose(file);
}

static const char *place = "";
/* Replaces the runner's function, which writes the layer, pass and step. */
void run_place(char *text, size_t size)
{
    snprintf(text, size, "%s", place);
}

static Tensor *counted(Shape shape, Placement placement)
{
    real numbers[1024];
    for (int i = 0; i < 1024; i++)
        numbers[i] = (real)i / 2;
    return tape_reals(tape, shape, placement, numbers, true);
}

START_TEST(a_small_tensor_is_printed_in_full)
{
    rank_up(1, 2);
    print("h", counted(SHAPE(2, 1, 3), shard(2)));
    ck_assert_str_eq(said, "rank 1: h [2,1,3] shard(2)\n"
                           "1 [0,0,:]          0        0.5          1\n"
                           "1 [1,0,:]        1.5          2        2.5\n");
    tape_down();
}
END_TEST

START_TEST(numbers_in_16_bits_are_printed_and_stay_so)
{
    tape_up();
    Tensor *x = counted(SHAPE(1, 3), whole()), *narrow = tape_tensor(tape, HALF, x->shape, whole());
    kernel_round(3, reals(x), halves(narrow));
    print("h", narrow);
    ck_assert_str_eq(said, "rank 0: h [1,3] whole\n"
                           "0 [0,:]          0        0.5          1\n");
    ck_assert_int_eq(narrow->dtype, HALF); /* so this rank sends what the others send */
    tape_down();
}
END_TEST

START_TEST(the_middle_of_a_large_tensor_is_left_out_and_columns_are_aligned)
{
    tape_up();
    print("w", counted(SHAPE(12, 7), whole()));
    ck_assert_str_eq(
        said, "rank 0: w [12,7] whole\n"
              "0 [ 0,:]          0        0.5          1        ...        2.5          3\n"
              "0 [ 1,:]        3.5          4        4.5        ...          6        6.5\n"
              "0 [ 2,:]          7        7.5          8        ...        9.5         10\n"
              "0 [ 3,:]       10.5         11       11.5        ...         13       13.5\n"
              "0 ...\n"
              "0 [ 9,:]       31.5         32       32.5        ...         34       34.5\n"
              "0 [10,:]         35       35.5         36        ...       37.5         38\n"
              "0 [11,:]       38.5         39       39.5        ...         41       41.5\n");
    tape_down();
}
END_TEST

START_TEST(the_first_line_says_what_the_program_is_doing)
{
    tape_up();
    place = "forward pass of the first layer, step 1";
    print("h", counted(SHAPE(1), whole()));
    place = "";
    ck_assert_str_eq(said, "rank 0: h [1] whole, forward pass of the first layer, step 1\n"
                           "0 [:]          0\n");
    tape_down();
}
END_TEST

START_TEST(ids_are_integers)
{
    tape_up();
    print("ids", tape_ints(tape, SHAPE(1, 3), (const int32_t[]){101, 7592, 102}));
    ck_assert_ptr_nonnull(strstr(said, "[0,:]        101       7592        102\n"));
    tape_down();
}
END_TEST

START_TEST(a_sum_before_its_all_reduce_is_called_partial)
{
    rank_up(1, 2);
    Tensor *h = counted(SHAPE(1, 2), shard(1)), *w = counted(SHAPE(2, 2), shard(1));
    print("y", linear(h, w));
    ck_assert_ptr_nonnull(strstr(said, "y [1,2] partial sum\n"));
    tape_down();
}
END_TEST

START_TEST(gradients_that_replicas_must_still_add_up_are_partial_over_dp)
{
    unsigned partial = OVER_DP;
    tape_up();
    Tensor *bucket = counted(SHAPE(4), whole());
    bucket->partial = &partial;
    print("bucket", bucket);
    ck_assert_ptr_nonnull(strstr(said, "bucket [4] partial sum over dp\n"));
    partial = 0;
    print("bucket", bucket);
    ck_assert_ptr_nonnull(strstr(said, "bucket [4] whole\n"));
    tape_down();
}
END_TEST

START_TEST(printing_changes_nothing)
{
    rank_up(1, 2);
    Tensor *x = counted(SHAPE(1, 2), shard(1)), *y = gelu(x);
    print("x", x);
    print("y", y);
    ck_assert(placement_equal(x->placement, shard(1)) && placement_equal(y->placement, shard(1)));
    ck_assert(!x->reached && !y->reached);
    tape_down();
}
END_TEST

START_TEST(an_empty_tensor_is_one_line)
{
    tape_up();
    print("nothing", counted(SHAPE(0, 4), whole()));
    ck_assert_str_eq(said, "rank 0: nothing [0,4] whole\n");
    tape_down();
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("print");
    TCase *all = tcase_create("all");
    tcase_add_test(all, a_small_tensor_is_printed_in_full);
    tcase_add_test(all, numbers_in_16_bits_are_printed_and_stay_so);
    tcase_add_test(all, the_middle_of_a_large_tensor_is_left_out_and_columns_are_aligned);
    tcase_add_test(all, the_first_line_says_what_the_program_is_doing);
    tcase_add_test(all, ids_are_integers);
    tcase_add_test(all, a_sum_before_its_all_reduce_is_called_partial);
    tcase_add_test(all, gradients_that_replicas_must_still_add_up_are_partial_over_dp);
    tcase_add_test(all, printing_changes_nothing);
    tcase_add_test(all, an_empty_tensor_is_one_line);
    suite_add_tcase(s, all);
    return s;
}
