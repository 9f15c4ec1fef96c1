/** @file
 * Forms: what the values of two programs are computed from, numbered so that equal values of both
 * programs have the same number.
 */
#pragma once

#include <string.h>

#include "grader/judge/reason/program.h"

/** The two programs. */
typedef enum Side {
    RANK,  /**< what a rank has recorded */
    PLAIN, /**< what the judge's plain layer has recorded */
    SIDES, /**< how many there are */
} Side;

enum {
    MOST_FORMS = 512, /**< of both programs together */
    MOST_TERMS = 8,   /**< of a sum of sums */
    NO_FORM = -1,     /**< no form; no operation */
};

/** How a value is computed, whatever the layout. */
typedef struct Form {
    char name[44];                 /**< of the operation, or of what comes from outside the pass */
    bool is_outside;               /**< a parameter, x, ids, a mask */
    bool is_parameter;             /**< a parameter */
    int key[MOST_TERMS], keys;     /**< the forms that decide whether two forms are equal */
    int taken[MOST_INPUTS], takes; /**< the forms of the arguments, in order */
    TapeAttribute attribute[MOST_ATTRIBUTES]; /**< the other arguments */
    const TapeOperation *by[SIDES]; /**< the first operation of each program that computes it */
} Form;

/** Both programs and their forms. */
typedef struct Forms {
    OperationList program[SIDES];     /**< the operations */
    Form form[MOST_FORMS];            /**< all forms */
    int count, plain;                 /**< how many; how many of them the plain program has */
    int made[SIDES][RING_OPERATIONS]; /**< of each operation's result */
    int forced
        [RING_OPERATIONS]; /**< what an operation of the rank is taken to compute; or NO_FORM */
    int outside[SIDES];    /**< number of tensors that no operation of the pass has made */
    bool is_full;          /**< there were too many forms */
} Forms;

/** Computes the forms of all operations again, with those that are forced. */
void forms_make(Forms *f);
/** Is this a pair of functions of the lab's own, forward and backward? */
static inline bool is_pair(const TapeOperation *o)
{
    return !strcmp(o->attribute[0].name, "through");
}
/** Does this operation only move numbers between ranks? */
bool is_move(const Forms *f, const TapeOperation *o);
/** Are these two other arguments equal? */
bool same_attribute(const TapeAttribute *a, const TapeAttribute *b);
