/** @file
 * What grading a lab has given: a result for each check, with its reason.
 */
#pragma once

#include "grader/judge/launch/outcome.h"

enum { TRAITS = 24 }; /**< properties of a case that are looked at, at most */

/** The smallest and the largest of a size. */
typedef struct Extent {
    int low, high; /**< both are in it */
} Extent;

/** How many cases with and without each trait failed and passed: what those in which a check fails have in common, and the
 *  others have not, is the last clue where the numbers name no cause. Zeros at first. */
typedef struct Pattern {
    int failed, passed; /**< cases */
    int failed_with[2][TRAITS],
        passed_with[2][TRAITS]; /**< [1]: and with several ranks to a layer */
    /** of each size, over the cases that failed and those that passed */
    Extent failing[CASE_SIZES], passing[CASE_SIZES];
} Pattern;

/** What has become of one check of a lab. */
typedef struct CheckResult {
    bool looked_at, failed; /**< in any case so far */
    bool to_do;             /**< a TODO was reached before something that it looks at */
    bool compared;          /**< some numbers that it looks at were there */
    bool explained;         /**< the reason names a cause */
    int explanations;       /**< how often one was looked for */
    int case_index;       /**< of the failure that is told: the first, or the first with a cause */
    Ending ending;        /**< how that case ended; COMPLETE where numbers are the reason */
    bool in_calls;        /**< the reason is what ranks have called, which make trace shows */
    bool repeated, alone; /**< its case was run once more by itself; and failed again */
    double margin;        /**< the largest error in units of what is allowed */
    bool looks, fails;    /**< in the case that is being judged */
    Pattern pattern;      /**< of the cases in which it fails */
    char reason[3072];    /**< of the failure that is told, some lines */
    char note[240];       /**< what is worth saying of a check that passed */
} CheckResult;

/** How far the grader has come with a lab. */
typedef enum LabState {
    GRADED,          /**< its cases were run and judged */
    NOT_STARTED_YET, /**< it is as it was handed out, or a TODO comes before everything */
    DOES_NOT_BUILD,  /**< the compiler or the linker refuses it */
    IS_REFUSED,      /**< it builds, and would do what the grader cannot judge or does not allow */
    NOT_GRADED_YET,  /**< the grader has not come to it */
    LAB_STATES,      /**< how many there are */
} LabState;

extern const char *const state_names[LAB_STATES]; /**< "graded", "not started", ... */

/** What grading one lab has given. */
typedef struct LabResult {
    const Lab *lab;            /**< which one */
    LabState state;            /**< how far it came */
    char remark[4096];         /**< why it does not build or is refused, or which TODO is next */
    bool untouched;            /**< the file is as it was at the start */
    char variables[160];       /**< its static and file-scope ones, "`a`, `b`" */
    char stack[400];           /**< what it was graded on, when that is not the reference alone */
    CheckResult check[CHECKS]; /**< by Check */
    bool split, unsplit;       /**< work was shared out; a rank did all of a layer */
    bool looped;           /**< a rank computed for ever, and the cases after that were not run */
    bool sends_too_little; /**< in a case whose numbers are wrong, less than the exchange takes */
    char printed[8192];    /**< by its ranks: how much, where it is kept, the first lines */
    int points, of;        /**< earned, and what there is to earn */
    uint64_t seed;         /**< of its cases */
    int cases;             /**< that were run */
    int kit_cases;         /**< the first of these, everybody's; then come the instructor's */
    double seconds;        /**< that it took */
    Times times;           /**< what of these seconds went where */
} LabResult;

/** Compares an outcome with what must come out, and notes each failed check that has not failed before. */
void judge_case(LabResult *result, const Case *c, int case_index, const Outcome *outcome);

/** Counts one more case. */
void pattern_add(Pattern *pattern, const Case *c, bool failed);

/** One line, such as "It fails on 3 ranks only: 3 of 12 cases", if traits, or a size, divide those that fail from all others. */
bool pattern_text(const Pattern *pattern, char *text, size_t size);
