/** @file
 * Misuse in tests: an expected misuse returns to the test. Any other one, or an unexpected note,
 * fails the test with its message.
 */
#pragma once

#include <check.h>
#include <setjmp.h>
#include <string.h>

#include "base/run.h"

typedef struct Expectation {
    jmp_buf back;
    bool misuse;     /**< run_ends() and run_todo() return to `back` */
    bool notes;      /**< run_noted() counts */
    int noted, todo; /**< notes so far; the lab of the TODO that was reached */
    Problem problem; /**< the last misuse or note */
} Expectation;

extern Expectation expectation;

/** Fails unless `call` is rejected with a hint and a message that contains each of the words. */
#define ASSERT_MISUSE(call, ...)                                                                   \
    do {                                                                                           \
        expectation.misuse = true;                                                                 \
        if (setjmp(expectation.back) == 0) {                                                       \
            (void)(call);                                                                          \
            ck_abort_msg("%s was accepted", #call);                                                \
        }                                                                                          \
        expectation.misuse = false;                                                                \
        assert_says(&expectation.problem, (const char *const[]){__VA_ARGS__, NULL});               \
    } while (0)

/** Fails unless `call` reaches a TODO, or an undecided placement, of lab `balise`. */
#define ASSERT_TODO(call, balise)                                                                  \
    do {                                                                                           \
        expectation.misuse = true;                                                                 \
        expectation.todo = 0;                                                                      \
        if (setjmp(expectation.back) == 0) {                                                       \
            (void)(call);                                                                          \
            ck_abort_msg("%s was accepted", #call);                                                \
        }                                                                                          \
        expectation.misuse = false;                                                                \
        ck_assert_int_eq(expectation.todo, (balise));                                              \
    } while (0)

/** Fails unless the message contains each of `words` and there is a hint. */
static inline void assert_says(const Problem *problem, const char *const *words)
{
    for (; *words; words++)
        ck_assert_msg(strstr(problem->what, *words) != NULL, "'%s' does not say '%s'",
                      problem->what, *words);
    ck_assert_msg(strlen(problem->hint) > 10, "'%s' has no hint", problem->what);
}

/** From now on, notes are counted and do not fail the test; resets the count. */
static inline void expect_notes(void)
{
    expectation.notes = true;
    expectation.noted = 0;
}

/** Call this at the start of a test: a test without a process of its own would inherit the
 *  expectations of the test before it. */
static inline void expect_nothing(void)
{
    expectation.notes = expectation.misuse = false;
}
