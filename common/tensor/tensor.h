/** @file
 * A tensor: numbers in a buffer, a shape, and a placement, which describes how the tensor is
 * distributed over the ranks of a tensor-parallel group.
 *
 * A Tensor is a small record in an arena of its tape or its model. It holds one reference to its
 * buffer; several tensors may share a buffer (views).
 */
#pragma once

#include "balise.h"
#include "base/real.h"
#include "tensor/pool.h"

/** The type of a tensor's numbers. */
typedef enum DType {
    REAL,  /**< `real`, see base/real.h */
    INT32, /**< ids, labels and masks */
    HALF,  /**< numbers in 16 bits, until ready() makes the tensor REAL */
} DType;

/** The placement of a tensor over the ranks of a tensor-parallel group. It also determines the
 * placement of the gradient. The first four occur around Megatron's f and g (figure 3 of
 * arXiv:1909.08053). */
typedef enum PlacementKind {
    WHOLE,     /**< the same on every rank; so is its gradient                            */
    COPIED,    /**< the same on every rank, after f: its gradient is a partial sum        */
    SHARD,     /**< this rank's part along `dim`; its gradient is the same part */
    PARTIAL,   /**< one term of a sum over the ranks; its gradient is the same on every rank */
    UNKNOWN,   /**< after tensor_data() or apply(): any placement that the next operation needs */
    UNDECIDED, /**< in a start file: a parameter's placement, not chosen yet */
} PlacementKind;

struct Tape;
struct Node;

/** Axes of the grid over which numbers can be partial sums: terms that must still be added up. */
typedef enum Axis {
    OVER_TP = 1,                            /**< the ranks that split the model */
    OVER_DP = 2,                            /**< the replicas */
    OVER_PP = 4,                            /**< the stages */
    ALL_AXES = OVER_TP | OVER_DP | OVER_PP, /**< all of them */
} Axis;

/** Belongs to its tape or, as a parameter, to its model. Holds one reference to its buffer. */
struct Tensor {
    Buffer *buffer;              /**< NULL: not computed yet (see tape_later()), or released */
    void *data;                  /**< the first number, within `buffer`; NULL if there are none */
    DType dtype;                 /**< of its numbers */
    Shape shape;                 /**< of this rank's part */
    Placement placement;         /**< how it is distributed over the tp ranks */
    struct Tape *tape;           /**< NULL for a parameter */
    struct Node *producer;       /**< the operation on the tape that computes it, or NULL */
    struct Parameter *parameter; /**< the parameter whose value it is, or NULL */
    int64_t undivided;           /**< of a shard, if known: the full size along placement.dim */
    Tensor *gradient;    /**< of the same shape; NULL before the backward pass has reached it */
    bool needs_gradient; /**< a parameter, or computed from something that needs one */
    bool kept;           /**< not released: a gradient, saved for backward, or changed in place */
    struct Tensor *rounded;  /**< its numbers in 16 bits, see rounded_copy(); or NULL */
    struct CommRequest *sum; /**< the sum or the send in progress */
    void *summing;           /**< the call site that started it, until the wait; otherwise NULL */
    bool is_over;            /**< the step of its tape has ended */
    /** of numbers that a function of a lab adds up: the Axis over which they are still partial sums,
     *  or 0; NULL for other tensors. Slices share it */
    unsigned *partial;
    bool may_be_shared; /**< its buffer may belong to another tensor too; copy it before writing */
    bool
        reached; /**< tensor_data() has returned a pointer to its numbers, or a slice shares them */
};

/** The distribution of a parameter's initial values; see model_finish(). */
typedef enum Initial {
    LINEAR_WEIGHT, /**< uniform in ±1/sqrt(in), as in PyTorch's nn.Linear; `in` is the last dimension */
    EMBEDDING_WEIGHT, /**< N(0, 0.02), as in BERT; see Parameter.deviation */
    ONES,             /**< a norm's weight */
    ZEROS,            /**< biases */
} Initial;

/** A parameter that a layer has declared. Belongs to the model. */
typedef struct Parameter {
    const char *name;    /**< "blocks.0.feed_forward.up.weight" */
    Shape shape;         /**< of the full parameter */
    Placement placement; /**< as the layer declared it */
    Initial initial;     /**< how its initial values are drawn */
    double deviation;    /**< of EMBEDDING_WEIGHT: 0.02, unless set before model_finish() */
    int twin; /**< another stage that holds it too (tied weights), or -1; see parameter_is_copy() */
    Range held; /**< if it is a shard: the part of shape.size[placement.dim] that this rank holds */
    /** this rank's part; from model_finish() on, its numbers are in the model's arena */
    Tensor *value;
    struct Parameter *next; /**< the parameter made after it, or NULL */
    int uses; /**< operations of this backward pass that have not added to its gradient yet */
    bool gradient_set;   /**< its gradient holds numbers of this step */
    bool gradient_zeros; /**< its gradient is zeros, nothing added yet */
    bool is_table;       /**< rows were looked up in it */
    bool is_multiplied;  /**< linear() has multiplied by it */
    bool may_be_uneven;  /**< no operation joins the results of its shards */
    /** the Axis over which its gradient of this step is still a partial sum. Until they are summed:
     *  mesh->dp, as each replica has other rows; mesh->pp, if another stage holds it too; mesh->tp, if
     *  this rank applied it to a shard of the positions */
    unsigned partial;
    bool rounded_is_old; /**< value->rounded: the numbers have changed since, or it has none yet */
} Parameter;

int64_t shape_count(Shape shape);   /**< the number of elements: 1 for rank 0 */
bool shape_equal(Shape a, Shape b); /**< the same rank and sizes */
int64_t shape_last(Shape shape);    /**< the size of the last dimension; 1 for rank 0 */
Shape shape_with(Shape shape, int dim, int64_t size); /**< with a different size in one dimension */

/** Returns dim, counted from the end if negative (LAST); ends the run if there is no such
 *  dimension. */
int shape_dim(const char *function, Shape shape, int dim);

/** "[2,3,24]" */
const char *shape_text(Shape shape, char text[64]);

/** The same, for messages, in memory that lives until the enclosing block ends. */
#define SHAPE_TEXT(shape) shape_text((shape), (char[64]){0})

/** "whole", "copied", "shard(2)", "partial sum", "unknown" */
const char *placement_text(Placement placement, char text[32]);

/** "dp", "tp" or "pp": the name in Mesh of the first Axis in `axes` */
const char *axis_name(unsigned axes);

/** "[2,3,24] shard(2)", "[96] partial sum over dp", or "[2,3,24]" if the placement is unknown: for
 *  messages */
const char *tensor_text(const Tensor *x, char text[96]);

/** The same, in memory that lives until the enclosing block ends. */
#define TENSOR_TEXT(x) tensor_text((x), (char[96]){0})

/** Do both have the same kind and, if they are shards, the same dimension? */
bool placement_equal(Placement a, Placement b);

/** The numbers of a REAL tensor, row by row, in its buffer. */
static inline real *reals(const Tensor *x)
{
    return x->data;
}

/** The numbers of an INT32 tensor, row by row, in its buffer. */
static inline int32_t *ints(const Tensor *x)
{
    return x->data;
}

/** The numbers of a HALF tensor, row by row, in its buffer. */
static inline uint16_t *halves(const Tensor *x)
{
    return x->data;
}

/** The numbers of a REAL or HALF tensor, for a kernel that takes both. */
static inline Numbers reals_or_halves(const Tensor *x)
{
    return x->dtype == HALF ? (Numbers){.halves = x->data} : (Numbers){.reals = x->data};
}

/** The range of part `part` (from 0) of 0..size-1 in `parts` parts, like torch.chunk: each has
 *  ceil(size / parts) elements, but the last ones may be shorter or empty. */
Range chunk(int64_t size, int part, int parts);
