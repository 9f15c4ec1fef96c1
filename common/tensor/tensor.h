/** @file
 * A tensor: numbers in a buffer, a shape, and what they are to the ranks of a tensor-parallel group (the
 * placement).
 *
 * A Tensor is a small record in an arena of the tape or the model that it belongs to; it holds one reference
 * on its buffer. Several tensors may share a buffer (views).
 */
#pragma once

#include "balise.h"
#include "base/real.h"
#include "tensor/pool.h"

/** The type of a tensor's numbers. */
typedef enum DType {
    REAL,  /**< `real`, see base/real.h */
    INT32, /**< ids, labels and masks */
} DType;

/** What a tensor is, seen over the ranks of a tensor-parallel group; and what its gradient then is. The four
 * types of a value are those that Megatron's f and g move between (figure 3 of arXiv:1909.08053). */
typedef enum PlacementKind {
    WHOLE,   /**< the same on every rank; so is its gradient                            */
    COPIED,  /**< the same on every rank, after f: its gradient is a partial sum        */
    SHARD,   /**< this rank's part along `dim`; its gradient is this part's             */
    PARTIAL, /**< one addend of a sum over the ranks; its gradient is the same everywhere */
    UNKNOWN, /**< touched by tensor_data() or apply(): the next operation that needs to know says what it is */
    UNDECIDED, /**< a skeleton's parameter                                                */
} PlacementKind;

struct Tape;
struct Node;
struct Parameter;

/** Belongs to its tape, or as a parameter to its model; holds one reference on its buffer. */
struct Tensor {
    Buffer *buffer;        /**< NULL: not computed yet (see tape_later()), or released */
    void *data;            /**< the first number, within `buffer`; NULL as long as there are none */
    DType dtype;           /**< of its numbers */
    Shape shape;           /**< of what this rank holds */
    Placement placement;   /**< what it is to the ranks of the tp group */
    struct Tape *tape;     /**< NULL for a parameter */
    struct Node *producer; /**< the operation on the tape that made it, or NULL */
    struct Parameter *parameter; /**< what it is the value of, or NULL */
    int64_t undivided;   /**< of a parameter's shard: the size of the whole along placement.dim */
    Tensor *gradient;    /**< of the same shape; NULL before the backward pass has reached it */
    bool needs_gradient; /**< a parameter, or computed from something that needs one */
    bool kept; /**< a gradient, what a backward pass will read, or what was changed in place */
    int uses;  /**< of a parameter: recorded operations that have not added to its gradient yet */
    struct CommRequest *sum; /**< what group_all_reduce_start() has started */
    void *summing;       /**< the line of a group_all_reduce_start() not waited for yet, or NULL */
    bool gradient_set;   /**< of a parameter: its gradient holds numbers of this step */
    bool is_table;       /**< of a parameter: rows of it were looked up; few may have a gradient */
    bool gradient_zeros; /**< of a parameter: its gradient is zeros, nothing was added to them */
    bool may_be_shared;  /**< its buffer may be another's too; it is copied before it is written */
    bool reached;        /**< tensor_data() has given a pointer to its numbers */
};

int64_t shape_count(Shape shape);   /**< how many numbers: 1 for rank 0 */
bool shape_equal(Shape a, Shape b); /**< the same rank and sizes */
int64_t shape_last(Shape shape);    /**< the size of the last dimension; 1 for rank 0 */
Shape shape_with(Shape shape, int dim, int64_t size); /**< with another size of one dimension */

/** dim, negative ones (LAST) counted from the end; ends the run where there is no such dimension. */
int shape_dim(const char *function, Shape shape, int dim);

/** "[2,3,24]" */
const char *shape_text(Shape shape, char text[64]);

/** The same in memory of the block that this stands in, for messages. */
#define SHAPE_TEXT(shape) shape_text((shape), (char[64]){0})

/** "whole", "copied", "shard(2)", "partial sum", "unknown" */
const char *placement_text(Placement placement, char text[32]);

/** "[2,3,24] shard(2)": for messages */
const char *tensor_text(const Tensor *x, char text[96]);

/** The same in memory of the block that this stands in. */
#define TENSOR_TEXT(x) tensor_text((x), (char[96]){0})

/** Of the same kind and, where they are shards, along the same dimension. */
bool placement_equal(Placement a, Placement b);

/** The numbers of a REAL tensor, row by row. They belong to its buffer. */
static inline real *reals(const Tensor *x)
{
    return x->data;
}

/** The numbers of an INT32 tensor, row by row. They belong to its buffer. */
static inline int32_t *ints(const Tensor *x)
{
    return x->data;
}

/** Part `part`, from 0, of `parts` parts of 0..size-1, as torch.chunk cuts: ceil(size/parts) each, the last short or empty. */
Range chunk(int64_t size, int part, int parts);
