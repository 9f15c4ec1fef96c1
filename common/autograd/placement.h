/** @file
 * The placement rules: which placements a function accepts, and which one its result has (DTensor's
 * Shard, Replicate and Partial, and the copied value of Megatron's f). A broken rule is reported to
 * misplaced(). If the run then continues (in grading), the function returns the placement that its
 * result would have had, so a shard stays a shard; or UNKNOWN if none fits. If the tp group has one
 * rank, everything is whole and no rule applies.
 */
#pragma once

#include "autograd/tape.h"
#include "base/run.h"

/** Is the model of this tape split over several ranks? */
bool is_split(const Tape *tape);

/** Rejects a weight with shards of different sizes: the results could not be joined. */
void must_be_cut_evenly(const Tape *tape, const char *function, const Tensor *weight);

/** What an operation asks of its arguments, and what it makes of them: rows of the table in
 *  placement.c. */
typedef enum Law {
    /** x W^T. A weight split along its last dimension gives a partial sum, and needs x split in the
     *  same way; a weight split along another dimension gives this rank's columns. */
    PLACE_LINEAR = 1 << 0,
    /** x + bias: x holds this rank's columns if the bias is split; otherwise x is whole, not
     *  copied, or holds this rank's rows. */
    PLACE_ADD_BIAS = 1 << 1,
    /** Rows of the table y: in shard(0) it gives a partial sum, in shard(1) this rank's columns. */
    PLACE_LOOKUP = 1 << 2,
    PLACE_ALIKE = 1 << 3, /**< an element-wise function of x and y, which have the same placement */
    PLACE_NOT_PARTIAL = 1 << 4, /**< a nonlinear function: not of each term of a sum */
    PLACE_HEADS = 1 << 5,    /**< of each head at each position: whole, or heads of all positions */
    PLACE_ROWS = 1 << 6,     /**< of each row, with weights that every rank holds */
    PLACE_ALL_OF_X = 1 << 7, /**< of whole rows on every rank */
    PLACE_ROW_MAX = 1 << 8,  /**< maxima of rows: unknown if each rank has some columns */
    PLACE_ROW_SUM = 1 << 9,  /**< sums over rows: a partial sum if each rank has some columns */
    PLACE_FIRST_TOKEN = 1 << 10, /**< [B,S,H] -> [B,H] */
    PLACE_TAKE = 1 << 11,        /**< x[..,i,..] along `dim`, along which x must not be split */
    PLACE_PART = 1 << 12, /**< part k of x along `dim`: unknown, ranks may take different parts */
    PLACE_DUPLICATION = 1 << 13,     /**< f: x is whole, the result copied */
    PLACE_ALL_REDUCE = 1 << 14,      /**< g: x is a partial sum, the result whole */
    PLACE_ALL_GATHER = 1 << 15,      /**< x is a shard along `dim`, the result whole */
    PLACE_GATHER_SEQUENCE = 1 << 16, /**< x is a shard of the positions, the result copied */
    PLACE_REDUCE_SCATTER_SEQUENCE =
        1 << 17,             /**< x is a partial sum, the result a shard of positions */
    PLACE_SCATTER = 1 << 18, /**< x is whole, the result a shard along `dim` */
} Law;

/** The placement of the operation's result. Reports a broken rule.
 *  @param tape the tape of the operation, whose mesh says whether anything is split
 *  @param law what the operation asks
 *  @param function the operation's name, for the report
 *  @param x the first argument
 *  @param y the second argument: another operand, a weight or a bias; or NULL
 *  @param dim the dimension in question; negative: from the end. It is the last one for a product, a
 *  bias, heads and rows, that of the positions for the first token; PLACE_ALIKE ignores it. */
Placement place_result(const Tape *tape, Law law, const char *function, const Tensor *x,
                       const Tensor *y, int dim);

/** If x holds this rank's rows only, marks the weights that are applied to each row: their
 *  gradients are partial sums over tp. */
void mark_by_positions(const Tape *tape, const Tensor *x, Tensor *const *weights, int count);

/** A lab may change x's numbers in any way: it is not known any more whether they are partial sums (see
 *  Tensor.partial). */
void partial_sums_change(const Tensor *x);

/** Reports numbers that are still partial sums over an Axis of `partial`, which `function` should have
 *  added up. `what` names them: "the gradient of norm1.weight". `harm` is what they make wrong;
 *  `address` is in the function, or NULL. */
void must_be_added(unsigned partial, Harm harm, void *address, const char *function,
                   const char *what);

/** A function of a lab is about to add up the terms in x over this axis, in place. From now on, *partial
 *  says whether it has (see Tensor.partial). */
void terms_begin(Tensor *x, unsigned *partial, Axis axis);
/** The function, which is called `name`, has returned: reports terms that it has not added up. `what`
 *  as for must_be_added(). */
void terms_end(Tensor *x, void *function, const char *name, const char *what);

/** Is x split along its last dimension, or is its placement unknown? */
bool may_be_columns(const Tensor *x);

/** linear()'s HINT for an x that is not split and a weight that is split along its inputs. */
extern const char *const linear_takes_shard;
