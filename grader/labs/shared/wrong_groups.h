/** @file
 * What the explanations of wrong groups in labs 8, 10 and 14 have in common.
 */
#pragma once

#include "grader/judge/diagnose/trial.h"
#include "grader/labs/groups.h"

/** Are these the members, in this order? */
bool has_members(const Entry *got, Members m);
/** Does the group have the right members, in any order? */
bool same_set(const Entry *got, const Entry *want);

/** Formulas that a lab might use by mistake for a rank or a degree. A formula is the cause if it
 *  gives the numbers of all ranks. */
typedef enum Taken {
    IN_WORLD,    /**< the rank in the world */
    IN_TP,       /**< rank % tp */
    REPLICA,     /**< rank / tp */
    BY_GROUPS,   /**< rank % number of groups */
    OVER_GROUPS, /**< rank / number of groups */
    ALL_RANKS,   /**< the size of the world */
    GROUPS_MADE, /**< number of groups */
    TAKEN        /**< number of formulas */
} Taken;

/** Does each rank have the number that this formula gives? */
bool all_are(const Trial *t, Label label, Taken what);
/** Has this rank made the right group before the wrong one, or split a group that lacks a member?
 *  @return the sentence, or NULL */
const char *made_of_wrong_split(const Trial *t, const Entry *got, const Entry *want);
/** The number that all ranks wrote, or -1 if they differ. */
double on_all_ranks(const Trial *t, Label label);
