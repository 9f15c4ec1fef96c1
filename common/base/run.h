/** @file
 * What happens when a lab misuses a function, and who decides it. Functions call misuse() and misplaced(); the
 * program that is linked (training, the grader's runner, a test) provides the three run_... functions.
 */
#pragma once

#include "base/cxx.h"
#include "base/problem.h"

BEGIN_C

/** The innermost return address on the stack that lies in a lab's object file; NULL when there is none.
 *  Labs are linked in sections of their own (see the Makefile), so that their code can be told apart. */
void *callsite(void);

/** "attention.c:41" for an address of this program, by addr2line; an empty string when unknown. */
void callsite_describe(const void *address, char *text, size_t size);

/** Ends the run, or in grading the case: a function was called with arguments that make no sense. `hint` says what the student can
 *  do, `format` and what follows what is wrong, with shapes and placements; both are said in the reader's language (language.h). */
#define misuse(...) misuse_since(NULL, __VA_ARGS__)

/** The same, for a mistake that was made elsewhere: where no lab is on the stack, `address` is the line that is told. */
_Noreturn void misuse_since(void *address, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** A placement rule is broken. In training that ends the run; in grading it is noted, and the run goes on. */
void misplaced(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- provided by the program --------------------------------------------------------------------------- */

/** Ends the run, or in grading the case, because of `problem`, whose `where` is still empty. `address` is the callsite in
 *  the student's file, or NULL. */
_Noreturn void run_ends(Problem *problem, void *address);
/** Notes a broken rule of placement; a program that has no such function ends the run. `address` as in run_ends(). */
void run_noted(Problem *problem, void *address);
/** Ends the run or the case: a TODO of this balise was reached in `function`, called from `address`. */
_Noreturn void run_todo(int balise, const char *function, void *address);

END_C
