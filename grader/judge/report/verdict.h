/** @file
 * What a run of the grader has found, in the form from which every report and every output format is written.
 */
#pragma once

#include <stdio.h>

#include "grader/judge/diagnose/result.h"
#include "grader/judge/mpi/recorded.h"

enum { ISOLATION_SIZE = 320 }; /**< bytes of the sentence */

/** All that a report says. Its parts are the caller's. */
typedef struct Verdict {
    const LabResult *labs;  /**< all that were asked for, reached or not */
    int count;              /**< of labs */
    uint64_t seed;          /**< of all cases */
    const char *author;     /**< whose labs: "student", "mine", "solution" */
    double seconds;         /**< that grading took so far */
    const Sandbox *sandbox; /**< how the ranks were isolated */
} Verdict;

/** What became of one check. */
typedef enum Status {
    RIGHT,       /**< it earns its points */
    HELD_BACK,   /**< right, but only because work or an exchange is missing: it earns nothing */
    WRONG,       /**< its numbers, or what was counted */
    CRASHES,     /**< a rank ended early */
    HANGS,       /**< ranks wait, or one computes, for ever */
    NOT_BUILT,   /**< the lab does not compile or link */
    NOT_ALLOWED, /**< the lab is refused */
    NOT_BEGUN,   /**< the lab was not started */
    UNDONE,      /**< a TODO comes before it */
    NOT_JUDGED,  /**< the grader did not come to it */
    STATUSES,    /**< how many there are */
} Status;

extern const char
    *const status_names[STATUSES]; /**< "passed", "wrong", ...; people read _() of it */

/** The status of one check of a lab that has it. */
Status check_status(const LabResult *lab, Check check);

/** Why no number of the lab earns points, although it is right: no work was shared out. NULL: they do. */
const char *why_numbers_are_held_back(const LabResult *lab);

/** Why a check that is right earns nothing; NULL: it earns its points. */
const char *why_held_back(const LabResult *lab, Check check);

/** Points that this check has earned: what is right may have points held back. */
int check_score(const LabResult *lab, Check check);

/** Why a check has the status that it has, as a text of some lines. Where it is right: why its points are held
 * back, or a note, or nothing. */
void check_reason(const LabResult *lab, Check check, char *text, size_t size);
enum { REASON_SIZE = 4500 }; /**< bytes of a diagnosis */

/** The command that grades this lab again with the same inputs, or just the case in which this check failed. */
void repeat_check(const Verdict *verdict, const LabResult *lab, Check check, char text[160]);

/** Points earned in all labs. */
int verdict_points(const Verdict *verdict);
/** Points that there are to earn in them. */
int verdict_of(const Verdict *verdict);
/** Has every lab all of its points? */
bool verdict_is_full(const Verdict *verdict);

/** Whether every lab that was asked for has been graded. */
bool verdict_is_complete(const Verdict *verdict);

/** How the ranks were kept from everything else: a sentence that stands in every report and every format. */
void tell_isolation(const Verdict *verdict, char text[ISOLATION_SIZE]);

/** Makes a text printable everywhere, in place: bytes that are no UTF-8 and control characters become '?'. A compiler
 *  repeats what stands in a student's file. */
void clean_text(char *text);

/** Tells in result->printed how much there is, with the first `lines` lines of it, and where, if it `stays` there; nothing if
 *  there is nothing. */
void printed_tell(LabResult *result, const char *runner, int lines, bool stays);

/* ---- for people ---------------------------------------------------------------------------------------- */

/** What a report is printed on. */
typedef struct Page {
    bool colour; /**< with escape sequences of a terminal */
    int columns; /**< texts are broken at blanks so that no line is longer */
} Page;

/** Without colour, 100 columns: for a file. */
extern const Page plain_page;
/** Of a terminal: as wide as it is, up to 100, in colour if NO_COLOR is not set; else the plain one. */
Page page_of(FILE *out);

/** A text of several lines, each one behind `indent`, broken at blanks so that it fits the page. */
void print_indented(FILE *out, Page page, const char *text, const char *indent);

/** A lab: a line a check, reasons, and what to do next. */
void report_lab(FILE *out, const Verdict *verdict, const LabResult *lab, Page page);
/** One line a check: the largest error in units of what is allowed. */
void report_margins(FILE *out, const LabResult *lab);
/** Where the time went, in one line. `built` are the seconds before the grader: compiler, linker, make. */
void report_times(FILE *out, const Verdict *verdict, double built);
/** The points, and how the ranks were isolated. */
void report_total(FILE *out, const Verdict *verdict, Page page);

/** Prints the calls in the order of time, ranks as columns; calls of a group that met stand in one row, and the row of the
 *  first difference is marked.
 *  `file` is the lab's, "attention.c": its lines are told by their number alone. */
void table_print(FILE *out, const Calls *calls, const char *file);
