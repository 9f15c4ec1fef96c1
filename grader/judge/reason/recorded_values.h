/** @file
 * What the ranks have recorded of a tensor's numbers, beside the plain program's. Each record has two
 * sums over the numbers, weighted by the place in the whole tensor. Added up over the ranks as the
 * placement says, they do not depend on the layout.
 */
#pragma once

#include "grader/judge/reason/comparison.h"

/** In place of an argument's number. */
enum { RESULT = -1 };

/** A tensor as the ranks of a group have recorded it, and the plain program's. */
typedef struct Recorded {
    const TapeTensor *rank[MAX_RANKS]; /**< [ranks] */
    const TapeTensor *plain;           /**< what it should be */
    int ranks;                         /**< how many */
    bool added;                        /**< it is the sum of what the ranks hold */
    double level; /**< numbers of this size have gone into it: rounding is relative to them */
} Recorded;

/** What is wrong with a tensor, as far as the sums show it. */
typedef enum Wrong {
    NOT_WRONG,    /**< it is right, up to rounding */
    ANOTHER,      /**< no more is known */
    ZERO,         /**< on all ranks */
    TIMES,        /**< a multiple of what it should be */
    PARTS,        /**< each rank has a part, and needs all */
    WHOLE_PARTS,  /**< each rank has all, where one term is due */
    LOST_TERMS,   /**< the ranks' terms of a sum are taken for the whole */
    OF_EACH_RANK, /**< an argument differs between the ranks */
} Wrong;

/** Compares the ranks' tensor with the plain one. Sets *factor if it is TIMES. */
Wrong wrong_of(const Recorded *r, double *factor);
/** Writes how it is wrong, as the end of a sentence. */
void say_how(Wrong wrong, double factor, char how[LINE]);
/** Are two pairs of sums equal, for numbers whose absolute values have the sum `size`? */
bool is_sum_of(const double is[2], const double right[2], double size);

/** The operation of the plain program that computes what operation i of the rank does, or NULL. */
const TapeOperation *plain_operation(const Comparison *c, int i);
/** The record of the gradient of this operation's result, or NULL. */
const TapeOperation *gradient_of(OperationList back, const TapeOperation *o);
/** What was recorded of the result of operation i, or of its gradient. @return whether all of it */
bool find_recorded(const Comparison *c, const PassPrograms *p, int i, bool gradient, Recorded *r);
/** The same of argument k of operation i, beside what the plain program takes there or, if that is
 *  another operation, what it takes with the same name. */
bool find_argument(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r);
/** What all ranks have recorded of argument k of operation i or, if k is RESULT, of its result,
 *  without `plain`. @return whether all have */
bool find_on_ranks(const Comparison *c, const PassPrograms *p, int i, int k, Recorded *r);
/** Does the plain program have a tensor with these numbers? */
typedef enum Known {
    NOT_COMPARED,  /**< the numbers of a tensor that it may be were not recorded */
    OTHER_NUMBERS, /**< no */
    KNOWN_NUMBERS, /**< yes */
} Known;

/** Looks for a tensor of the plain program with these numbers. If there is none, writes how they
 *  differ from its results, as far as it is known. Sets *by to the operation with this result, or to
 *  NO_FORM. */
Known are_known_numbers(const Comparison *c, Recorded *r, int *by, char how[LINE]);
/** Is argument k of operation i a tensor of values only: made by no operation, and without a
 *  gradient, as what enters the pass has? */
bool is_values_only(const Comparison *c, int i, int k);
/** Finds what the lab's own functions compute, and what values without a history are, by their
 *  numbers. */
void identify(Comparison *c, const PassPrograms *p);
/** Is the result of a function of the lab right: a tensor of the plain program, or what it took? If
 *  not, writes how it differs, as far as it is known. */
Known is_right_move(const Comparison *c, const PassPrograms *p, int i, char how[LINE]);
