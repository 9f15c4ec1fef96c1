/** @file
 * The handling of misused functions. Functions call misuse() and misplaced(). The program
 * (training, the grader's runner, a test) provides run_ends() and run_todo(), and may provide
 * run_noted() and run_place().
 */
#pragma once

#include "base/cxx.h"
#include "base/problem.h"

BEGIN_C

/** The innermost return address on the stack that is in a lab's code, or NULL. The code of labs has
 *  a section of its own (grader/lab-object.sh), so its addresses can be recognised. */
void *callsite(void);
/** The outermost such address: a call in the lab's function that the kit has called. */
void *callsite_outermost(void);

/** "attention.c:41" for an address of this program, by addr2line; empty if unknown. */
void callsite_describe(const void *address, char *text, size_t size);

/** Ends the run (in grading, the case) because a function was called with invalid arguments. `hint`
 *  says what the student can do; `format` and its arguments say what is wrong, with shapes and
 *  placements. Both are translated (language.h). */
#define misuse(...) misuse_since(NULL, __VA_ARGS__)

/** The same for a mistake made elsewhere: `address` is the line to report, unless it is NULL. */
_Noreturn void misuse_since(void *address, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Ends the run because an argument of `function` is NULL, such as an unset field of a layer. */
void must_exist(const char *function, const void *argument);

/** What a broken placement rule makes wrong. */
typedef enum Harm {
    HARMS_RESULTS,       /**< results, and so all gradients */
    HARMS_GRADIENTS,     /**< gradients alone: f and its absence change no result */
    HARMS_GRADIENT_OF_X, /**< the gradient of an x that is not computed from parameters */
} Harm;

/** Reports a broken placement rule. In training this ends the run; in grading it is noted, and the
 *  run continues. */
#define misplaced(...) misplaced_with(HARMS_RESULTS, __VA_ARGS__)
/** The same for a rule whose violation may leave the results right; `harm` says what it makes
 * wrong. */
#define misplaced_with(...) misplaced_since(NULL, __VA_ARGS__)

/** The same for a mistake made elsewhere; `address` as for misuse_since(). */
void misplaced_since(void *address, Harm harm, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- provided by the program --------------------------------------------------------------------------- */

/** Ends the run (in grading, the case) because of `problem`, whose `where` is still empty.
 *  `address` is the call site in the student's file, or NULL. */
_Noreturn void run_ends(Problem *problem, void *address);
/** Notes a broken placement rule. In a program without this function, a broken rule ends the run.
 *  `address` as in run_ends(). */
void run_noted(Problem *problem, Harm harm, void *address);
/** Writes to `text` what the program is doing, such as "forward pass of the first layer, step 1".
 *  Without this function, the text is empty. */
void run_place(char *text, size_t size);
/** Ends the run or the case: `function`, called from `address`, reached a TODO of this lab. */
_Noreturn void run_todo(int balise, const char *function, void *address);

END_C
