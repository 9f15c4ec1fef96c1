/* An error is printed in up to three lines: what, where, HINT. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "balise.h"
#include "base/problem.h"
#include "tests/run_for_tests.h"

static void assert_prints(const Problem *problem, const char *expected)
{
    char *text;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    problem_print(stream, problem);
    fclose(stream);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(an_error_is_printed_as_what_where_and_hint)
{
    Problem problem;
    ck_assert(!problem_set(&problem, "train.csv:7", "give it one", "row %d has no label", 7));
    assert_prints(&problem, "error: row 7 has no label\n  at train.csv:7\n  HINT: give it one\n");
}
END_TEST

START_TEST(names_of_others_bring_no_control_character_to_a_terminal)
{
    Problem problem;
    problem_set(&problem, "\033[31mmodel\n", "choose another",
                "%s is\tno\nname: \302\233K \303\251", "\033]0;x\007");
    ck_assert_str_eq(problem.what, "?]0;x? is\tno\nname: \302\277K \303\251");
    ck_assert_ptr_null(strchr(problem.where, '\033'));
}
END_TEST

START_TEST(without_a_place_there_is_no_where_line)
{
    Problem problem;
    problem_set(&problem, NULL, "choose another", "TP=%d", 3);
    assert_prints(&problem, "error: TP=3\n  HINT: choose another\n");
}
END_TEST

START_TEST(on_a_terminal_lines_are_broken_between_words_to_fit_80_columns)
{
    Problem problem;
    setenv("BALISE_PROGRESS", "1", 1); /* as on a terminal */
    problem_set(
        &problem, "/a/path/that/is/longer/than/the/eighty/columns/of/a/terminal/stays/whole.csv:1",
        "choisissez une balise qui existe, ou omettez LAB pour corriger toutes (PART=2 : la 2)",
        "there is no lab 99");
    assert_prints(
        &problem,
        "error: there is no lab 99\n"
        "  at /a/path/that/is/longer/than/the/eighty/columns/of/a/terminal/stays/whole.csv:1\n"
        "  HINT: choisissez une balise qui existe, ou omettez LAB pour corriger toutes\n"
        "    (PART=2 : la 2)\n");
}
END_TEST

START_TEST(a_text_that_is_too_long_is_cut_and_stays_terminated)
{
    char longest[sizeof(Problem)];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    Problem problem;
    problem_set(&problem, longest, longest, "%s", longest);
    ck_assert_uint_eq(strlen(problem.what), sizeof problem.what - 1);
    ck_assert_uint_eq(strlen(problem.where), sizeof problem.where - 1);
    ck_assert_uint_eq(strlen(problem.hint), sizeof problem.hint - 1);
}
END_TEST

START_TEST(a_misuse_ends_the_run_with_its_message)
{
    ASSERT_MISUSE((misuse("put the right one", "linear: %d does not fit", 3), 0),
                  "linear: 3 does not fit");
}
END_TEST

START_TEST(a_todo_names_its_balise)
{
    ASSERT_TODO((todo(4, "attention_new"), 0), 4);
}
END_TEST

START_TEST(outside_a_lab_no_line_is_found)
{
    char text[64] = "something";
    ck_assert_ptr_null(callsite());
    callsite_describe(NULL, text, sizeof text);
    ck_assert_str_eq(text, "");
}
END_TEST

/* This function is in the section into which lab-object.sh moves the code of labs. */
__attribute__((section("balise_labs"), noinline)) static void *
line_of_a_lab(void *(*function)(void))
{
    void *address = function(); /* the line to be found */
    __asm__ volatile("" ::);    /* prevents a tail call: labs have none */
    return address;
}
enum { LINE_LOOKED_FOR = __LINE__ - 4 };

START_TEST(the_line_of_a_lab_is_found)
{
    char text[64], expected[64];
    void *address = line_of_a_lab(callsite);
    ck_assert_ptr_nonnull(address);
    callsite_describe(address, text, sizeof text);
    snprintf(expected, sizeof expected, "test_problem.c:%d", LINE_LOOKED_FOR);
    ck_assert_str_eq(text, expected);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("problem");
    TCase *tcase = tcase_create("problem");
    tcase_add_test(tcase, names_of_others_bring_no_control_character_to_a_terminal);
    tcase_add_test(tcase, an_error_is_printed_as_what_where_and_hint);
    tcase_add_test(tcase, without_a_place_there_is_no_where_line);
    tcase_add_test(tcase, on_a_terminal_lines_are_broken_between_words_to_fit_80_columns);
    tcase_add_test(tcase, a_text_that_is_too_long_is_cut_and_stays_terminated);
    tcase_add_test(tcase, a_misuse_ends_the_run_with_its_message);
    tcase_add_test(tcase, a_todo_names_its_balise);
    tcase_add_test(tcase, outside_a_lab_no_line_is_found);
    tcase_add_test(tcase, the_line_of_a_lab_is_found);
    suite_add_tcase(suite, tcase);
    return suite;
}
