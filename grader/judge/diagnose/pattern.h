/** @file
 * What the cases in which a check fails have in common, and those in which it passes have not: the last clue where the
 * numbers name no cause.
 */
#ifndef BALISE_GRADER_PATTERN_H
#define BALISE_GRADER_PATTERN_H

#include "grader/protocol.h"

enum {
    TRAITS = 24, /**< properties of a case that are looked at, at most */
    SIZES = 7,   /**< sizes of a case: see case_size() */
};

/** The smallest and the largest of a size. */
typedef struct Extent {
    int low, high; /**< both are in it */
} Extent;

/** How many cases with and without each trait failed and passed. Zeros at first. */
typedef struct Pattern {
    int failed, passed; /**< cases */
    int failed_with[2][TRAITS],
        passed_with[2][TRAITS]; /**< [1]: and with several ranks to a layer */
    /** of each size, over the cases that failed and those that passed */
    Extent failing[SIZES], passing[SIZES];
} Pattern;

/** Counts one more case. */
void pattern_add(Pattern *pattern, const Case *c, bool failed);

/** One line, such as "It fails on 3 ranks only: 3 of 12 cases", if traits, or a size, divide those that fail from all others. */
bool pattern_text(const Pattern *pattern, char *text, size_t size);

#endif
