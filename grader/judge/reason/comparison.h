/** @file
 * The parts of program_difference(): both programs, how values are called, and the sentences.
 */
#pragma once

#include <string.h>

#include "grader/judge/reason/numbering.h"

enum {
    MOST_TOLD = 3, /**< differences that are told */
    LINE = 400,    /**< bytes of a sentence */
};

/** Two programs being compared, and what was told of them. */
typedef struct Comparison {
    Forms f;                       /**< both programs */
    int layer;                     /**< length of what the names of its parameters begin with */
    bool matters[RING_OPERATIONS]; /**< the rank's last result depends on this operation */
    char told[MOST_TOLD][LINE];    /**< the sentences */
    int of[MOST_TOLD];   /**< the form of the plain program that each is about; or NO_FORM */
    int count;           /**< how many */
    const void *address; /**< of the first operation that differs, or NULL */
    Form extra; /**< the last operation that the layer does not have there, if its `by` is set */
} Comparison;

/** Numbers the values of two programs. The caller frees it. @return NULL if the rank's is empty */
Comparison *comparison_new(OperationList rank, OperationList plain);

/** The form with this number. */
static inline const Form *form_at(const Comparison *c, int number)
{
    return &c->f.form[number];
}

/** What operation i of the rank computes. */
static inline const Form *form_by(const Comparison *c, int i)
{
    return form_at(c, c->f.made[RANK][i]);
}

/** The operation of a program before its operation i that has made this tensor, or NO_FORM. */
static inline int maker_of(const Comparison *c, Side side, int i, const void *tensor)
{
    do
        i--;
    while (i >= 0 && c->f.program[side].operation[i].output.tensor != tensor);
    return i;
}

/** Is it an operation of the kit? Its result and gradients are right if what it takes is. The others
 *  are functions of labs. */
static inline bool is_of_kit(const Comparison *c, const TapeOperation *o)
{
    return !is_move(&c->f, o) || !strcmp(o->name, "placed") || !strcmp(o->name, "part");
}

/** Does this operation add? */
static inline bool is_sum(const Form *form)
{
    return !form->is_outside && !strcmp(form->name, "add");
}

/** Does the plain program not compute what operation i of the rank computes? A sum that only sums
 *  take does not count: their terms may come in any order. */
bool is_other(const Comparison *c, int i);
/** Have two operations the same other arguments? */
bool same_attributes(const Form *a, const Form *b);
/** Do two operations have the same name, parameters and other arguments? */
bool same_operation(const Comparison *c, const Form *a, const Form *b);
/** The arguments of a that b lacks; for a sum in any order. @return how many */
int only_in(const Form *a, const Form *b, int other[MOST_INPUTS]);
/** The first argument that is not a parameter; NO_FORM if there is none. */
int data_of(const Comparison *c, const Form *form);

/* ---- how values are called ------------------------------------------------------------------------------- */

/** Appends "linear(up)", "dropout(dropout1)", "gelu". */
void append_operation(const Comparison *c, const Form *form, char *text);
/** How much of the name "first.up.weight" is said. */
typedef enum Naming {
    SHORT,      /**< "up" */
    WITH_KIND,  /**< "up.weight" */
    WITH_LAYER, /**< "first.up.weight" */
} Naming;

/** Is this parameter one of another layer? */
bool is_of_another_layer(const Comparison *c, int number);
/** Appends "x", "up", "layer_norm(norm1) of x", "x + linear(up)". */
void append_value(const Comparison *c, int number, Naming naming, char *text);
/** The same with the rank's line, "linear(up) at colrow-pair.c:22", if an operation has made it. */
void append_placed(const Comparison *c, int number, char *text);
/** Appends values in a row. Weight and bias of a norm have one short name. */
void append_values(const Comparison *c, const int *form, int count, Naming naming, char *text);
/** The value that a sum adds to `from`. */
int added_to(const Form *sum, int from);

/* ---- sentences ------------------------------------------------------------------------------------------- */

/** Does the plain program compute `to` from `from`, through operations that the rank lacks? Sets
 *  *first to the first of them, which takes `from`. What enters the pass may be taken in many
 *  places, so it does not say which sum is missing. */
bool leads_to(const Comparison *c, int from, int to, int *first);
/** Tells that `missing` is not where it should be: after `from` and before operation i, or at the
 *  end if i is NO_FORM. @return whether it was told, as the functions below */
bool tell_missing(Comparison *c, int i, int from, int missing);
/** Tells how operation i of the rank differs from what it should compute. */
bool tell_difference(Comparison *c, int i, int meant);
/** Tells of a dropout whose tensor is a rank's part and not marked as a shard. */
void tell_unmarked(Comparison *c);
/** Tells of an operation that the layer does not have there, unless it was already told that it
 *  comes too late. */
bool tell_extra(Comparison *c, int i);
