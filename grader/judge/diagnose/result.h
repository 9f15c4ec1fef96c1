/** @file
 * The result of grading a lab: one result per check, with its reason.
 */
#pragma once

#include "grader/judge/launch/outcome.h"

enum { TRAITS = 24 }; /**< the most properties of a case that are compared */

/** The range of a size. */
typedef struct Extent {
    int low, high; /**< both included */
} Extent;

/** Counts the failed and the passed cases with each trait. If the numbers name no cause, the report
 *  says what distinguishes the failing cases from all others. Starts as zeros. */
typedef struct Pattern {
    int lab, failed, passed;                            /**< its lab; numbers of cases */
    int failed_with[2][TRAITS], passed_with[2][TRAITS]; /**< index 1: only cases with tp above 1 */
    /** the range of each size over the cases that failed and that passed */
    Extent failing[CASE_SIZES], passing[CASE_SIZES];
} Pattern;

/** The result of one check of a lab. */
typedef struct CheckResult {
    bool looked_at, failed; /**< in any case so far */
    bool to_do;             /**< a TODO prevented some entry that it needs */
    bool compared;          /**< some of its numbers were available */
    bool explained;         /**< the reason names a cause */
    bool may_have_pattern;  /**< in which cases this cause holds may show its origin */
    bool if_in_few;         /**< the same, unless it fails in most cases */
    int searched_case;      /**< the last case in which a cause was searched for */
    int explanations;       /**< number of searches in it */
    int case_index;         /**< of the reported failure: the first, or the first with a cause */
    Ending ending;          /**< how that case ended; COMPLETE if its numbers are the reason */
    bool with_nan;          /**< only the step with NaN failed: any other failure says more */
    bool in_calls;          /**< the reason is in the ranks' calls, which make trace shows */
    bool repeated, alone;   /**< its case was run again, alone; it failed there too */
    double margin;          /**< the largest error, relative to the tolerance */
    bool looks, fails;      /**< looked at, and failed, in the case being judged */
    Pattern pattern;        /**< of the cases in which it fails */
    char reason[3072];      /**< of the reported failure, several lines */
    char note[240];         /**< a note about a check that passed */
} CheckResult;

/** The reason of a step that applies a wrong gradient. */
extern const char follows_gradient[];

/** The state of grading a lab. */
typedef enum LabState {
    GRADED,          /**< its cases were run and judged */
    NOT_STARTED_YET, /**< the file is as handed out */
    DOES_NOT_BUILD,  /**< the compiler or linker rejects it */
    IS_REFUSED,      /**< it compiles, but does what the grader cannot judge or does not allow */
    NOT_GRADED_YET,  /**< not reached yet, or it waits for other labs */
    LAB_STATES,      /**< number of states */
} LabState;

extern const char *const state_names[LAB_STATES]; /**< "graded", "not started", ... */

/** What a lab sent or kept in the passes that the judge counts. */
typedef struct Bytes {
    bool counted; /**< there was such a pass */
    double count; /**< bytes of single-precision numbers */
} Bytes;

/** The result of grading one lab. */
typedef struct LabResult {
    const Lab *lab;      /**< the lab */
    LabState state;      /**< how far grading came */
    char remark[4096];   /**< why it does not build or is refused, or which TODO is next */
    bool untouched;      /**< the file is as it was at the start */
    char variables[160]; /**< the lab's static and file-scope variables, "`a`, `b`" */
    char stack[400];     /**< the labs it was graded on, if not only the reference's own labs */
    CheckResult check[CHECKS]; /**< by Check */
    bool split, unsplit;       /**< in some case, work was split; a rank did all of it */
    bool misplaced;            /**< in some case, a block was in no stage, in two or out of order */
    bool unsharded;            /**< one part of the optimiser's state is nearly all of it */
    Ending cut_short;          /**< the ending that kept other cases from running, or COMPLETE */
    int not_run;               /**< number of cases not run: cut short, or every check had failed */
    bool serial, overlaps; /**< in some step, stages worked one after the other; at the same time */
    bool sends_too_little; /**< in a case with wrong numbers, ranks sent less than they need */
    bool exchanges;        /**< something was sent in some case */
    Bytes sent;            /**< by all ranks, in the passes of all cases together */
    Bytes kept;            /**< after a pass of any case, on the rank that kept the most */
    char printed[8192];    /**< its ranks' output: how much, where it is kept, the first lines */
    const void
        *equivalent; /**< where its program differs on one rank, with right results; or NULL */
    int points, of;  /**< points earned; the most that it can earn */
    uint64_t seed;   /**< of its cases */
    int cases;       /**< number of cases, run or not */
    bool one_case;   /**< only one case was asked for: it has results, but no points */
    int kit_cases;   /**< the kit's own cases, which come first, before the instructor's */
    double seconds;  /**< that grading took */
    Times times;     /**< where these seconds went */
} LabResult;

/** Compares an outcome with the expected entries, and records in `result` which checks it concerns,
 *  which of them fail, and why. */
void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome);

/** Why cases were not run, as a translated clause that follows "since". */
const char *why_cut_short(const LabResult *result);

/** Counts one case. */
void pattern_add(Pattern *pattern, const Case *c, bool failed);

/** Writes a line such as "It fails only on one rank: 3 of 12 cases", if traits or, `by_size`, a size
 *  separate the failing cases from all others. @return whether they do */
bool pattern_text(const Pattern *pattern, bool by_size, char *text, size_t size);
