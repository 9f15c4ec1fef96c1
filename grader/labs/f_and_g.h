/** @file
 * Labs 1 and 9: f, g and the gather one by one, and the situations in which a wrong answer shows although each of them alone
 * looks right. The judge has no plain layer for these, so it computes what each rank must see from the inputs of all ranks.
 */
#pragma once

#include "grader/labs/lab.h"

enum { CALLS = 3 }; /**< of each part, one after the other, before their backward passes */
enum {
    USUAL, /**< all parts */
    LARGE, /**< f and g alone, with more than a message that MPI keeps for the receiver */
};         /* kinds of cases: in a large one f and g only */
/** The parts of a case. */
enum {
    F,            /**< duplication() */
    G,            /**< all_reduce() */
    GATHER_LAST,  /**< all_gather() along the last dimension */
    GATHER_FIRST, /**< all_gather() along another one */
    READ_TWICE,   /**< what g is given is read by another operation too */
    WEIGHT_KEPT,  /**< what g is given is kept by linear() for its weight's gradient */
    PARTS,        /**< how many there are */
};

/** The shape of the input of `part`; the second of three calls has another. */
Shape operation_shape(const Case *c, int call);

/** Along which dimension of `shape` part GATHER_... joins: the last; the first, or in the third call the second. */
int operation_dimension(int part, int call, Shape shape);

/** Whose input a tensor is that is the same on the ranks of a group: no rank's, and another one in each replica. */
int operation_shared(const Case *c, int rank);

/** By part. */
static const char *const operation_names[PARTS] = {"duplication",
                                                   "all_reduce",
                                                   N_("all_gather along LAST"),
                                                   N_("all_gather along 0"),
                                                   N_("all_reduce beside another reader"),
                                                   N_("all_reduce beside a linear")};
/** What an input of this part and call is drawn by: "x", "dy" or "weight". */
void operation_key(char key[KEY_SIZE], const char *what, int part, int call);

/** Is the entry about this part? */
static inline bool is_operation(const Entry *entry, int part)
{
    return entry->label.of == AN_OPERATION && entry->label.index == part;
}

/** What a rank does in a case of lab 1 or 9. */
ScenarioFunction run_operations;
/** Bytes that the ranks send in all in the first call of f and of g, forward and backward. */
CountFunction bytes_of_f_and_g;
/** What f, g and the gather may send. */
AllowanceFunction operations_send_forward, operations_send_backward;
