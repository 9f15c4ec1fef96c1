/** @file
 * The results of a run of the grader, from which all reports and output formats are written.
 */
#pragma once

#include <stdio.h>

#include "grader/judge/diagnose/result.h"
#include "base/clean.h"
#include "grader/judge/mpi/recorded.h"

enum { ISOLATION_SIZE = 320 }; /**< bytes of the sentence that tell_isolation() writes */

/** The contents of a report. The caller owns its parts. */
typedef struct Verdict {
    const LabResult *labs;  /**< all requested labs, reached or not */
    int count;              /**< number of labs */
    uint64_t seed;          /**< of all cases */
    const char *author;     /**< whose labs: "student", "mine", "solution" */
    double seconds;         /**< time that grading took so far */
    const Sandbox *sandbox; /**< how the ranks were isolated */
} Verdict;

/** The status of one check. */
typedef enum Status {
    RIGHT,       /**< it earns its points */
    HELD_BACK,   /**< right, but only because work or communication is missing; no points */
    WRONG,       /**< its numbers or counts are wrong */
    CRASHES,     /**< a rank ended early */
    HANGS,       /**< ranks wait, or one computes, forever */
    NOT_BUILT,   /**< the lab does not compile or link */
    NOT_ALLOWED, /**< the lab is refused */
    NOT_BEGUN,   /**< the lab was not started */
    UNDONE,      /**< a TODO comes before it */
    NOT_JUDGED,  /**< not reached */
    STATUSES,    /**< how many there are */
} Status;

extern const char *const status_names[STATUSES]; /**< "passed", ...: translate by _() */

/** The status of a check that the lab has. */
Status check_status(const LabResult *lab, Check check);

/** Why none of the lab's right numbers earn points, such as work that is not split; or NULL. */
const char *why_numbers_are_held_back(const LabResult *lab);

/** Why a check that passed earns nothing, or NULL. */
const char *why_held_back(const LabResult *lab, Check check);

/** Iterates over the checks of a lab that give points: `for (int check = -1; (check =
 *  next_check(lab, check)) >= 0;)`. */
int next_check(const LabResult *lab, int check);

/** The points that this check earned; points of a passed check may be held back. */
int check_score(const LabResult *lab, Check check);

/** Explains the status of a check in several lines. If it passed: why its points are held back, a
 *  note, or nothing. If the lab does not build or is refused, only its first check has the
 *  messages. */
void check_reason(const LabResult *lab, Check check, char *text, size_t size);
enum { REASON_SIZE = 4500 }; /**< bytes of an explanation */

/** One mistake may make several checks fail. Returns the failed check with points whose
 *  reason begins with the same line, or with the same line of the lab and other numbers, has the
 *  same finding with the same HINT, or is what this check's reason refers to; often that is `check`
 *  itself. */
Check cause_of(const LabResult *lab, Check check);

/** The end of a failed check's reason, after the lines that it shares with the reason of its
 *  cause_of(); all of the reason if the check is its own cause. May be empty. */
const char *own_reason(const LabResult *lab, Check check);

/** Writes `make command` for this lab with the same inputs, or only with the case in which this check
 *  failed. The command is grade or trace. */
void repeat_check(const Verdict *verdict, const LabResult *lab, Check check, const char *command,
                  char text[160]);

/** Points earned in all labs. */
int verdict_points(const Verdict *verdict);
/** The most points that these labs can earn. */
int verdict_of(const Verdict *verdict);
/** Does every lab have all of its points? */
bool verdict_is_full(const Verdict *verdict);

/** Has every requested lab been graded? */
bool verdict_is_complete(const Verdict *verdict);

/** Writes how the ranks were isolated: a sentence for every report and format. */
void tell_isolation(const Verdict *verdict, char text[ISOLATION_SIZE]);

/** Makes the texts of a result printable, because they quote the compiler and the student's
 *  program. */
void clean_result(LabResult *result);

/** Writes to result->printed how much the ranks printed, with the first `lines` lines and, if the
 *  file `stays`, its path; nothing if they printed nothing. */
void printed_tell(LabResult *result, const char *runner, int lines, bool stays);

/* ---- for people ---------------------------------------------------------------------------------------- */

/** The medium of a report. */
typedef struct Page {
    bool colour; /**< uses a terminal's escape sequences */
    int columns; /**< lines are broken at blanks so that none is longer */
} Page;

/** Without colour, 100 columns, for files. */
extern const Page plain_page;
/** A terminal: its width, at most 100, in colour unless NO_COLOR is set. For anything else, the
 *  plain page. */
Page page_of(FILE *out);

/** Escape sequences; all empty on a page without colour. */
typedef struct Paint {
    const char *good, *bad, *held; /**< what is right, wrong, held back */
    const char *quiet, *strong;    /**< what may be skipped, what stands out */
    const char *off;               /**< ends each of them */
} Paint;
/** The escape sequences of a page. */
Paint paint_of(Page page);

/** Prints a text of several lines, each indented by `indent` and broken at blanks to fit the
 *  page. */
void print_indented(FILE *out, Page page, const char *text, const char *indent);

/** Prints a lab: one line per check, reasons, and what to do next. */
void report_lab(FILE *out, const Verdict *verdict, const LabResult *lab, Page page);
/** Prints one line per check: the largest error relative to the tolerance. */
void report_margins(FILE *out, const LabResult *lab);
/** Prints where the time went, in one line. `built` is the time in seconds that make, compiler
 *  and linker took. */
void report_times(FILE *out, const Verdict *verdict, double built);
/** Prints the points, and how the ranks were isolated. */
void report_total(FILE *out, const Verdict *verdict, Page page);

/** Prints the calls in order of time, with ranks as columns. Calls that met share a row; the row of
 *  the first difference is marked. `file` is the lab's, "attention.c": its lines appear as numbers
 *  only. Names the passes of the outcome in which no rank made a call. */
void table_print(FILE *out, Page page, const Outcome *outcome, const char *file);
/** Prints the passes in which no rank made a call, after *last and before `where`; if `where` is
 *  NULL, all after *last. Advances *last, which the caller sets to NULL before the first call. */
void silent_passes_print(FILE *out, const Outcome *outcome, const Entry **last, const Label *where);
/** Prints the schedule of a case's first step, if its lab has stages; if the case hung, up to the
 *  hang. Then prints the times of the step on a cluster, if `cluster`, the output of
 *  common/bench/clusters.py, is not NULL. */
void schedule_print(FILE *out, const Case *c, const Outcome *outcome, const char *cluster);
