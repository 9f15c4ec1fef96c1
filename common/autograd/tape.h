/** @file
 * The tape: what was computed, in order, so that it can be differentiated backwards (reverse mode).
 *
 * A tape owns its tensors and operations; they live in its arena until tape_reset(), and their buffers come
 * from its pool. Several tapes may be alive at once. A function finds its tape through its arguments.
 */
#pragma once

#include "backend/backend.h"
#include "tensor/tensor.h"

/** Tensors and operations of one pass, and what they stand in. Not for several threads. */
typedef struct Tape Tape;
/** An operation on a tape; belongs to it. */
typedef struct Node Node;

/** What the operations need to know of the batch: dropout finds its numbers by these. */
typedef struct TapeBatch {
    uint64_t seed;          /**< of the run */
    int64_t step;           /**< of the run, from 0: masks differ from step to step */
    int64_t count;          /**< B */
    const int64_t *samples; /**< [B] rows of the data set; the caller's, until tape_reset() */
    bool training;          /**< dropout drops */
} TapeBatch;

/** A call of an operation that somebody wrote as a pair of plain functions of values: f, g, the gather, apply(). */
typedef struct PairCall {
    Op op;            /**< the pair, and its name for messages */
    const Mesh *mesh; /**< that the function was called with */
    /** of the gather instead of op's: forward and backward along a dimension */
    Tensor *(*along[2])(Tensor *x, int dim, const Mesh *mesh);
    int dim; /**< of the gather */
} PairCall;

/** One operation that was done. */
struct Node {
    const char *name; /**< "linear": for messages and profiles */
    /** Adds to the gradients of the inputs, given that of the output. */
    void (*backward)(Node *node, Tensor *dy);
    /** Computes the output where that was put off (lazy) or released early; NULL where it cannot. */
    void (*compute)(Node *node);
    Tensor *output;   /**< what it returned */
    Tensor *input[4]; /**< what it was computed from, NULL behind the last */
    Tensor *saved[2]; /**< views of what backward or compute reads: see node_keep() */
    void *address;    /**< the line of the lab that did it, where there is an observer, or NULL */
    /** What the operation was called with, beside tensors; which one its kind says. */
    union {
        AttentionShape attention; /**< of attention */
        double probability;       /**< of dropout */
        PairCall pair;            /**< of f, g, the gather and apply() */
        double epsilon;           /**< of a layer norm */
    } with;
    Node *previous; /**< recorded before it, or NULL */
};

/** An empty tape, which records; the caller's, to be freed with tape_free(). Pool and mesh must outlive it. */
Tape *tape_new(Pool *pool, const Mesh *mesh);
/** Frees the tape with all its tensors and operations. */
void tape_free(Tape *tape);

/** Ends the run where a sum that was started of one of its tensors was not waited for. To be asked before tape_reset(), which keeps such a
 *  tensor's memory from everybody else: it is still written into. */
void tape_must_be_summed(const Tape *tape);

/** Drops all operations and tensors and begins a new pass over `batch`. */
void tape_reset(Tape *tape, TapeBatch batch);

/** Records operations from now on, or not; returns what was set before. */
bool tape_record(Tape *tape, bool record);

/** Differentiates y: every tensor that it was computed from and that needs a gradient gets the sum of what
 * flows back to it, parameters included (theirs is added to). What the pass has used is released.
 *  `dy` is the gradient of y, of y's shape, or NULL for 1 (y then has one element). */
void tape_backward(Tape *tape, Tensor *y, Tensor *dy);

/** Whoever reduces gradients while the backward pass goes on. */
typedef struct GradientWatch {
    /** every operation that used the parameter has added its part */
    void (*complete)(void *context, Tensor *parameter);
    void (*between)(void *context); /**< after each operation; may be NULL */
    void *context;                  /**< the watcher's own, handed back to it */
} GradientWatch;

/** Sees what each operation returns when it is recorded, and later the gradient of that. */
typedef struct Observer {
    /** x is what `function` returned, called at `address` of a lab (or NULL), where its numbers are there; or, if `gradient` is not
     *  NULL, that has now all of its gradient. */
    void (*see)(void *context, const Tensor *x, const Tensor *gradient, const char *function,
                void *address);
    void *context; /**< the observer's own, handed back to it */
} Observer;

/** Records of one size, which never move. */
typedef struct Arena {
    char **chunks;       /**< of equally many records each */
    int64_t room, count; /**< records there is room for, and those in use */
} Arena;

/** The parts of a Tape. */
struct Tape {
    Pool *pool;           /**< where its tensors' buffers come from; the caller's */
    const Mesh *mesh;     /**< the caller's */
    TapeBatch batch;      /**< of this pass: what tape_reset() was given last */
    bool recording;       /**< see tape_record() */
    Arena tensors, nodes; /**< in the order of making */
    Node *last;           /**< the operation that was recorded last, or NULL */
    GradientWatch watch;  /**< is told of the progress of backward passes; one of zeros is not */
    Observer observer;    /**< sees what happens on this tape; one of zeros does not */
};

/** A point on the tape, for tape_release_since(). Good until tape_reset(). */
typedef struct TapeMark {
    int64_t tensors; /**< how many the tape had then */
} TapeMark;
/** The end of the tape as it is now. */
TapeMark tape_mark(const Tape *tape);

/** Releases the values of tensors made since `mark` that no operation keeps for its backward, but not
 * `result`. The caller says by this that nobody will read them again; a backward pass computes anew what costs little. */
void tape_release_since(Tape *tape, TapeMark mark, const Tensor *result);

/* ---- for operations ---------------------------------------------------------------------------------------- */

/** A new tensor, its numbers unset. */
Tensor *tape_tensor(Tape *tape, DType dtype, Shape shape, Placement placement);

/** A new tensor whose numbers the host sets now, before any kernel reads them. All ids, labels and masks are such tensors, so that
 *  the host may read them without waiting. */
Tensor *tape_host_tensor(Tape *tape, DType dtype, Shape shape, Placement placement);

/** A new tensor that shares x's buffer. It does not need a gradient and has no producer. */
Tensor *tape_view(Tape *tape, const Tensor *x, Placement placement);

/** A new tensor without numbers: its producer computes them when somebody asks. */
Tensor *tape_later(Tape *tape, Shape shape, Placement placement);

/** Puts the operation that made `output` of `inputs` on the tape if any of these needs a gradient and the
 * tape records; otherwise returns NULL. */
Node *tape_operation(Tape *tape, const char *name, void (*backward)(Node *, Tensor *),
                     Tensor *output, int inputs, Tensor *const *input);

/** A view that keeps x's numbers alive until the operation's backward has run. */
Tensor *node_keep(Node *node, int slot, Tensor *x);

/** The same, but where x can be computed again its numbers may be released: ask by ready(). */
void node_keep_or_compute(Node *node, int slot, Tensor *x);

/** Can x be computed again, from what its operation keeps? */
bool can_be_computed(const Tensor *x);

/** x's numbers are no longer those that its operation computes: they are not released to be computed again. */
void changed_in_place(Tensor *x);

/** Gives x's numbers back to the pool. */
void tape_release_value(Tensor *x);

/** Gives x, whose numbers are being computed, memory for them. */
void tape_allocate(Tensor *x);

/** Ends the run where an argument of the function is no tensor (a field of a layer that was not set, say) or holds ids. */
void must_be_real(const char *function, const Tensor *x);

/** Runs the pair's forward on x with the tape switched off, and puts the pair on the tape. What forward returns may be its
 *  argument: the result is a view. */
Tensor *call_pair(PairCall call, Tensor *x, Placement placement);

/** The tape of the first argument that has one; the function's name is for the message when there is none. */
Tape *tape_of(const char *function, const Tensor *x, const Tensor *y);

/** Makes sure that x's numbers are there: computes what was put off, refuses what was released. Returns x. */
Tensor *ready(Tensor *x);

/** Makes x's buffer its own, so that it can be written without changing another tensor. */
void unshare(Tensor *x);

/** Adds d to the gradient of x, if x needs one. d's buffer may be taken over. */
void gradient_add(Tensor *x, Tensor *d);

/** Where a kernel writes (or, if *accumulate, adds) the gradient of x; NULL if x needs none. */
Tensor *gradient_room(Tensor *x, bool *accumulate);

/** Where a kernel that can only add adds the gradient of x: zeros are there if nothing else is. NULL if x needs none. */
Tensor *gradient_sum(Tensor *x);

/** Where to write the gradient of an argument of dy's shape, for gradient_add(): over dy if nobody else holds it. */
Tensor *gradient_over(Tensor *dy, Placement placement);
