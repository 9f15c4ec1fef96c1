/* The difference between two programs, on made-up records: what is told, and what is not. */
#include <check.h>
#include <stdarg.h>
#include <string.h>

#include "grader/judge/reason/program.h"

Suite *suite(void);

enum { MOST = 16, END = 0 };

/* The programs of a rank and of the plain layer. Tensors are numbers from 1 on. */
static struct {
    TapeOperation operation[MOST];
    int count;
} rank_has, plain_has;

static ProgramDifference difference;

static void up(void)
{
    memset(&rank_has, 0, sizeof rank_has);
    memset(&plain_has, 0, sizeof plain_has);
}

static TapeTensor tensor(int number)
{
    static const char *const parameters[] = {"first.up.weight", "first.down.weight",
                                             "first.norm1.weight"};
    TapeTensor t = {.tensor = (const char *)&rank_has + number, .shape = {3, {2, 3, 24}}};
    if (number > 90)
        snprintf(t.parameter, sizeof t.parameter, "%s", parameters[number - 91]);
    return t;
}

enum { X = 50, MORE_X, UP = 91, DOWN, NORM1 };

/* Appends an operation: its result, then its arguments up to END. @return it */
static TapeOperation *append_to(TapeOperation *program, int *count, const char *name, int result,
                                va_list arguments)
{
    TapeOperation *o = &program[(*count)++];
    snprintf(o->name, sizeof o->name, "%s", name);
    o->output = tensor(result);
    o->address = program + *count;
    for (int number; (number = va_arg(arguments, int)) != END;)
        o->input[o->inputs++] = tensor(number);
    return o;
}

static TapeOperation *rank_does(const char *name, int result, ...)
{
    va_list arguments;
    va_start(arguments, result);
    TapeOperation *o = append_to(rank_has.operation, &rank_has.count, name, result, arguments);
    va_end(arguments);
    return o;
}

static TapeOperation *plain_does(const char *name, int result, ...)
{
    va_list arguments;
    va_start(arguments, result);
    TapeOperation *o = append_to(plain_has.operation, &plain_has.count, name, result, arguments);
    va_end(arguments);
    return o;
}

static void with(TapeOperation *o, const char *name, double number, const char *text)
{
    TapeAttribute *a = o->attribute;
    while (a->name[0])
        a++;
    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->text, sizeof a->text, "%s", text);
    a->number = number;
}

static bool they_differ(void)
{
    return program_difference((OperationList){rank_has.operation, rank_has.count},
                              (OperationList){plain_has.operation, plain_has.count}, &difference);
}

static void differ_by(const char *words)
{
    ck_assert(they_differ());
    ck_assert_msg(strstr(difference.text, words) != NULL, "%s", difference.text);
}

/* down(gelu(up(x))) */
static void plain_pair(void)
{
    plain_does("linear", 1, X, UP, END);
    plain_does("gelu", 2, 1, END);
    plain_does("linear", 3, 2, DOWN, END);
}

START_TEST(moves_between_ranks_are_no_difference)
{
    plain_pair();
    rank_does("duplication", 1, X, END);
    rank_does("linear", 2, 1, UP, END);
    rank_does("gelu", 3, 2, END);
    rank_does("linear", 4, 3, DOWN, END);
    rank_does("all_reduce", 5, 4, END);
    ck_assert(!they_differ());
}
END_TEST

START_TEST(the_order_of_a_sum_is_no_difference)
{
    plain_does("gelu", 1, X, END);
    plain_does("add", 2, X, 1, END);
    plain_does("add", 3, 2, 1, END);
    rank_does("gelu", 1, X, END);
    rank_does("add", 2, 1, 1, END);
    rank_does("add", 3, 2, X, END);
    ck_assert(!they_differ());
}
END_TEST

START_TEST(a_missing_operation_is_named_with_its_neighbours)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("linear", 2, 1, DOWN, END);
    differ_by("gelu is missing between linear(up) of x");
    ck_assert_ptr_eq(difference.address, rank_has.operation[1].address);
}
END_TEST

START_TEST(an_operation_applied_twice_is_named)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("gelu", 2, 1, END);
    rank_does("gelu", 3, 2, END);
    rank_does("linear", 4, 3, DOWN, END);
    differ_by("is applied to its own result: the layer applies it once");
}
END_TEST

START_TEST(all_terms_of_a_sum_too_many_are_named)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("gelu", 2, 1, END);
    rank_does("linear", 3, 2, DOWN, END);
    rank_does("add", 4, 3, X, END);
    differ_by("takes linear(down), x and is one too many: the layer has no such operation there");
}
END_TEST

START_TEST(another_order_is_told_of_the_operation_without_a_weight)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("linear", 2, 1, DOWN, END);
    rank_does("gelu", 3, 2, END);
    differ_by("gelu at  comes too late: the layer applies it before linear(down)");
}
END_TEST

START_TEST(a_value_that_is_not_added_is_named)
{
    plain_does("linear", 1, X, UP, END);
    plain_does("add", 2, X, 1, END);
    plain_does("linear", 3, 2, DOWN, END);
    plain_does("add", 4, 2, 3, END);
    rank_does("linear", 1, X, UP, END);
    rank_does("add", 2, X, 1, END);
    rank_does("linear", 3, 2, DOWN, END);
    differ_by("x + linear(up) at  is not added to linear(down) at ");
}
END_TEST

/* linear(first.down) is computed twice, where the layer has linear(first.down) and linear(first.up). */
START_TEST(a_product_computed_twice_has_the_wrong_weight)
{
    plain_does("linear", 1, X, DOWN, END);
    plain_does("linear", 2, X, UP, END);
    plain_does("subtract", 3, 1, 2, END);
    rank_does("linear", 1, X, DOWN, END);
    rank_does("linear", 2, X, DOWN, END);
    rank_does("subtract", 3, 1, 2, END);
    differ_by("takes down, where the layer takes up");
    ck_assert_ptr_eq(difference.address, rank_has.operation[1].address);
}
END_TEST

START_TEST(another_parameter_is_named)
{
    plain_pair();
    rank_does("linear", 1, X, DOWN, END);
    rank_does("gelu", 2, 1, END);
    rank_does("linear", 3, 2, DOWN, END);
    differ_by("takes down, where the layer takes up");
}
END_TEST

START_TEST(another_attribute_is_told_with_both_values)
{
    with(plain_does("dropout", 1, X, END), "probability", 0.25, "");
    with(rank_does("dropout", 1, X, END), "probability", 0.5, "");
    differ_by("probability 0.5, expected 0.25");
}
END_TEST

/* Also a factor that is none of the usual mistakes; see reading_of_factor(). */
START_TEST(a_factor_of_attention_is_told_as_it_is)
{
    TapeOperation *plain = plain_does("attention", 4, 1, 2, 3, END),
                  *rank = rank_does("attention", 4, 1, 2, 3, END);
    with(plain, "heads", 6, "");
    with(rank, "heads", 6, "");
    with(plain, "factor", 0.5, "");
    with(rank, "factor", 0.15, "");
    differ_by("factor 0.15, expected 1/sqrt(head size) = 0.5");
    rank->attribute[1].number = 0.25;
    differ_by("factor 0.25 = 1/head size, expected");
}
END_TEST

START_TEST(an_operation_of_the_labs_own_may_be_right)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    with(rank_does("my_gelu", 2, 1, END), "through", 0, "my_gelu");
    rank_does("linear", 3, 2, DOWN, END);
    differ_by("an operation of your own, is where the layer has gelu");
}
END_TEST

/* A loop over raw numbers made it, so what it computes is unknown. */
START_TEST(a_program_with_a_part_off_the_tape_is_not_judged)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("linear", 3, MORE_X, DOWN, END);
    ck_assert(!they_differ());
}
END_TEST

START_TEST(an_operation_without_effect_is_no_difference)
{
    plain_pair();
    rank_does("linear", 1, X, UP, END);
    rank_does("gelu", 4, X, END);
    rank_does("gelu", 2, 1, END);
    rank_does("linear", 3, 2, DOWN, END);
    ck_assert(!they_differ());
}
END_TEST

START_TEST(an_empty_program_is_not_judged)
{
    plain_pair();
    ck_assert(!they_differ());
}
END_TEST

Suite *suite(void)
{
    Suite *all = suite_create("the difference between two programs");
    TCase *tests = tcase_create("programs");
    tcase_add_checked_fixture(tests, up, NULL);
    tcase_add_test(tests, moves_between_ranks_are_no_difference);
    tcase_add_test(tests, the_order_of_a_sum_is_no_difference);
    tcase_add_test(tests, a_missing_operation_is_named_with_its_neighbours);
    tcase_add_test(tests, an_operation_applied_twice_is_named);
    tcase_add_test(tests, all_terms_of_a_sum_too_many_are_named);
    tcase_add_test(tests, another_order_is_told_of_the_operation_without_a_weight);
    tcase_add_test(tests, a_value_that_is_not_added_is_named);
    tcase_add_test(tests, a_product_computed_twice_has_the_wrong_weight);
    tcase_add_test(tests, another_parameter_is_named);
    tcase_add_test(tests, another_attribute_is_told_with_both_values);
    tcase_add_test(tests, a_factor_of_attention_is_told_as_it_is);
    tcase_add_test(tests, an_operation_of_the_labs_own_may_be_right);
    tcase_add_test(tests, a_program_with_a_part_off_the_tape_is_not_judged);
    tcase_add_test(tests, an_operation_without_effect_is_no_difference);
    tcase_add_test(tests, an_empty_program_is_not_judged);
    suite_add_tcase(all, tests);
    return all;
}
