/** @file
 * Labs 1 and 9: f, g and the gather one by one, and combinations that reveal mistakes that a
 * single function does not show. The judge has no plain layer for these, so it computes what each
 * rank must see from the inputs of all ranks.
 */
#pragma once

#include "grader/labs/lab.h"

enum { CALLS = 3 }; /**< of each part, one after the other, before their backward passes */
/** The kinds of cases. */
enum {
    USUAL, /**< all parts */
    LARGE, /**< f and g alone, on more data than MPI buffers for a receiver */
};
/** The parts of a case. */
enum {
    F,            /**< duplication() */
    G,            /**< all_reduce() */
    GATHER_LAST,  /**< all_gather() along the last dimension */
    GATHER_FIRST, /**< all_gather() along another one */
    READ_TWICE,   /**< another operation also reads the input of g */
    WEIGHT_KEPT,  /**< linear() also keeps the input of g, for its weight's gradient */
    PARTS,        /**< how many there are */
};

/** The shape of a part's input. The second call has a different shape, unless the case reverses the
 *  backward passes. */
Shape operation_shape(const Case *c, int call);

/** The dimension of `shape` along which a gather joins: for GATHER_LAST the last; for GATHER_FIRST the
 *  first or, in the third call, the second. */
int operation_dimension(int part, int call, Shape shape);

/** The `rank` argument that draws a tensor which is the same on all ranks of a group, but different
 *  in each replica. */
int operation_shared(const Case *c, int rank);

/** The names of the parts, for reports. */
static const char *const operation_names[PARTS] = {
    "duplication",
    "all_reduce",
    N_("all_gather along LAST"),
    N_("all_gather along 0"),
    N_("all_reduce of an x that another operation also reads"),
    N_("all_reduce of an x that linear() also reads")};
/** Writes the key by which an input of this part and call is drawn: "x", "dy" or "weight". */
void operation_key(char key[KEY_SIZE], const char *what, int part, int call);

/** Is the entry about this part? */
static inline bool is_operation(const Entry *entry, int part)
{
    return entry->label.of == AN_OPERATION && entry->label.index == part;
}

/** In the judge: why results are wrong, after the mistakes that it replays. */
extern Finder *const operations_more_reasons[];
/** In the judge: what a rank brings to a sum of f or g. */
Summand operation_summand(Scenario *run, const Entry *want, int of, int on);
/** What a rank does in a case of lab 1 or 9. */
ScenarioFunction run_operations;
/** Bytes that the ranks send in all in the first call of f and of g, forward and backward. */
CountFunction bytes_of_f_and_g;
/** What f, g and the gather may send. */
AllowanceFunction operations_send_forward, operations_send_backward;
