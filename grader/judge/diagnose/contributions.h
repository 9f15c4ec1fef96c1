/** @file
 * What the explanations of a wrong sum over the ranks have in common.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"

/** What the ranks bring to a sum. */
typedef struct Brought {
    int ranks;                  /**< of the world */
    bool member[MAX_RANKS];     /**< should this rank's numbers be in the sum? */
    double share;               /**< the factor for a member's numbers */
    double *numbers[MAX_RANKS]; /**< each rank's, of the part that is compared */
} Brought;

/** Finds, by least squares, how many times each rank's numbers are in the result; false unless this
 *  explains the whole result. NAN stands for a rank that contributed only zeros. */
bool times_of_ranks(const Evidence *e, const Brought *b, double times[MAX_RANKS]);
/** Are the numbers another combination of the contributions, such as the largest? */
bool combined_otherwise(const Evidence *e, const Brought *b);
