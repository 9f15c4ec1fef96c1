/** @file
 * Which ranks' contributions a result has, and how often.
 */
#pragma once

#include "grader/judge/diagnose/evidence.h"

/** What the ranks bring to a sum or a mean. */
typedef struct Brought {
    int ranks;                  /**< of the world */
    bool member[MAX_RANKS];     /**< should this rank's numbers be in the result? */
    double weight[MAX_RANKS];   /**< how often they count in the result of the rank's own group */
    bool equal;                 /**< do all members count equally often? */
    double *numbers[MAX_RANKS]; /**< each rank's, of the part that is compared */
    bool fits;                  /**< do `times` explain the whole result? */
    double times[MAX_RANKS];    /**< how often they are in it; NAN: they are all zero */
} Brought;

/** Asks the lab what the ranks bring to this result, and finds by least squares how often it has
 *  each rank's numbers; false if it is neither a sum nor a mean. Call forget_brought() after it. */
bool find_brought(const Evidence *e, Brought *b);
/** Frees the numbers. */
void forget_brought(Brought *b);
/** Does the result have the numbers of these ranks, a bit each, and of no others? */
bool has_just(const Brought *b, uint64_t ranks);
/** Does it have the numbers of none of these ranks? */
bool has_none_of(const Brought *b, uint64_t ranks);
/** The ranks that should be in it. */
uint64_t members_of(const Brought *b);
/** Are two numbers of times equal? */
bool same_times(double a, double b);
/** Is the result made of this rank's numbers alone, although others should be in it? */
bool is_own_alone(const Evidence *e, const Brought *b);
/** Is it so, although the ranks have exchanged as much in this call as the sum takes? */
bool is_own_though_summed(const Evidence *e, Label call);
/** The number that each of these ranks' times has when divided by its weight, or without that if
 *  `by_weight` is false; NAN if they differ. */
double common_factor(const Brought *b, uint64_t ranks, bool by_weight);
/** Writes what has the value n in this case, " (here tp = 2)", or "". */
void name_number(const Case *c, double n, char text[100]);
/** Are the numbers another combination of the contributions, such as the largest? */
bool combined_otherwise(const Evidence *e, const Brought *b);
