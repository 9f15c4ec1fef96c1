/** @file
 * The tape: the operations of a forward pass in order, for reverse-mode differentiation.
 *
 * A tape owns its tensors and operations. They live in its arena until tape_reset(); their buffers
 * come from its pool. Several tapes may exist at once. A function finds its tape through its
 * arguments.
 */
#pragma once

#include "backend/backend.h"
#include "tensor/tensor.h"

/** The tensors and operations of one pass. Not thread-safe. */
typedef struct Tape Tape;
/** An operation on a tape, which owns it. */
typedef struct Node Node;

/** The properties of the batch that operations need. */
typedef struct TapeBatch {
    uint64_t seed;          /**< of the run */
    int64_t step;           /**< of the run, from 0: masks differ from step to step */
    int64_t count;          /**< B */
    const int64_t *samples; /**< [B] numbers of the rows; the caller's, until tape_reset() */
    bool training;          /**< dropout drops only if this is set */
    int64_t
        past; /**< positions before the first one of this pass: their keys and values are cached */
    /** the divisor of the sum of losses: the number of targets in a replica's step, on average over
     * the replicas; 0 stands for the number in this batch */
    double tokens;
    int64_t draw; /**< selects the masks that dropout draws; see segment_run() */
} TapeBatch;

/** A call of an operation that is a pair of plain functions on values: f, g, the gather, the
 *  scatter, the pairs along the sequence, or apply(). */
typedef struct PairCall {
    Op op;            /**< the pair, and its name for messages */
    const Mesh *mesh; /**< the mesh of the call */
    /** forward and backward of the gather and the scatter; they replace op's, because they take a
     *  dimension */
    Tensor *(*along[2])(Tensor *x, int dim, const Mesh *mesh);
    int dim;         /**< that dimension */
    bool adds[2];    /**< do forward and backward add partial sums over tp? */
    bool resizes;    /**< the result of op's forward differs in shape from its argument */
    bool is_own;     /**< a lab's own pair, by apply() */
    bool runs_again; /**< the backward pass calls forward again; its result is not kept */
} PairCall;

/** The members of balise.h's Segment. */
struct Segment {
    /** x [B,S,H], mask [B,S] or NULL -> [B,S,H]; records what it computes */
    Tensor *(*run)(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh);
    const void *layer; /**< its layers; the caller's */
    Tensor *mask;      /**< of this batch, or NULL */
};

/** A call of a segment that is run again in the backward pass. */
typedef struct RecomputeCall {
    struct Segment segment; /**< the part of the model */
    int64_t draw;           /**< which masks its dropout draws */
    const Mesh *mesh;       /**< the mesh of the call */
} RecomputeCall;

/** Key or value heads, each shared by several query heads. */
typedef struct Repetition {
    int heads; /**< of the argument */
    int times; /**< how many times each is repeated */
} Repetition;

/** One of several equal parts of a tensor along a dimension: runs of numbers at a fixed distance
 *  from each other. */
typedef struct PartOf {
    int64_t rows;   /**< how many runs */
    int64_t stride; /**< from one run to the next, in numbers */
    int64_t begin;  /**< index of the first run's first number */
    int64_t width;  /**< numbers in a run */
} PartOf;

enum {
    NODE_INPUTS = 4, /**< the most tensor arguments that an operation has */
    SAVED = 5,       /**< the most tensors that an operation saves */
    ATTRIBUTES = 3   /**< the most other arguments that an operation tells */
};

/** An argument of an operation that is not a tensor. */
typedef struct Attribute {
    const char *name; /**< "factor"; NULL if there is none */
    double number;    /**< its value */
    const char *text; /**< if not NULL, its value in place of `number` */
} Attribute;

/** The attributes of an operation, without gaps. */
typedef struct Attributes {
    Attribute of[ATTRIBUTES]; /**< in the order of a report */
} Attributes;

/** One recorded operation. */
struct Node {
    const char *name; /**< "linear": for messages and profiles */
    /** Adds to the gradients of the inputs; dy is the gradient of the output. */
    void (*backward)(Node *node, Tensor *dy);
    /** Computes the output if its computation was deferred (lazy), or again after an early
     *  release; NULL if not possible. */
    void (*compute)(Node *node);
    Tensor *output;             /**< its result */
    Tensor *input[NODE_INPUTS]; /**< its arguments, then NULL */
    Tensor *saved[SAVED];       /**< views of what backward or compute reads: see node_keep() */
    bool takes_16_bits;  /**< backward also takes a dy in 16 bits: set it after tape_operation() */
    bool writes_16_bits; /**< compute writes numbers of the type that the output has by then */
    void *address; /**< the line of the lab that called it, if there is an observer; or NULL */
    /** Arguments other than tensors; the operation determines which member is valid. */
    union {
        AttentionShape attention; /**< of attention, causal or not */
        Rotary rotary;            /**< of rotary positions */
        Repetition repeat;        /**< of repeat_heads */
        double probability;       /**< of dropout */
        PairCall pair;            /**< of call_pair() */
        RecomputeCall recompute;  /**< of recompute() */
        PartOf part;              /**< of part() and take() */
        double epsilon;           /**< of a layer norm or an RMS norm */
        bool by_tanh;             /**< of a GELU */
    } with;
    Node *previous; /**< the operation recorded before, or NULL */
};

/** Returns an empty tape that records. The caller frees it with tape_free(); pool and mesh must
 *  outlive it. */
Tape *tape_new(Pool *pool, const Mesh *mesh);
/** Frees the tape with its tensors and operations. */
void tape_free(Tape *tape);

/** Ends the run if a sum or a send of one of the tape's tensors was started and not waited for.
 *  Call it before tape_reset(), which does not reuse such a tensor's memory, because the transport
 *  may still use it. */
void tape_must_be_summed(const Tape *tape);

/** Drops all operations and tensors and begins a new pass over `batch`. */
void tape_reset(Tape *tape, TapeBatch batch);

/** Switches recording on or off; returns the previous setting. */
bool tape_record(Tape *tape, bool record);

/** Differentiates y. Computes the gradient of every tensor that y was computed from and that needs
 * one; adds to the gradients of parameters. Releases the tensors that the pass has used. `dy` is
 * the gradient of y, of y's shape; NULL stands for 1 if y has one element. */
void tape_backward(Tape *tape, Tensor *y, Tensor *dy);

/** The same for the operations recorded after `floor`, within the backward pass of an operation. No
 *  operation recorded before `floor` may use their parameters. */
void tape_backward_to(Tape *tape, const Node *floor, Tensor *y, Tensor *dy);

/** Observes gradients that become complete during the backward pass, to reduce them. */
typedef struct GradientWatch {
    /** called when every operation that used the parameter has added its part */
    void (*complete)(void *context, Tensor *parameter);
    void *context; /**< passed to the function */
} GradientWatch;

/** Observes the result of each recorded operation of all tapes, and later its gradient. All
 *  functions may be NULL. No tape leads to it, so that a graded program cannot reach its context
 *  through a tensor. */
typedef struct Observer {
    /** `function`, which a lab called at `address` (or NULL), has computed `output` from `input`,
     *  whose elements may be NULL, with the attributes that its tape's `next` has. If `back`, the
     *  gradient of `output` is complete, and is about to be added to those of the inputs that need
     *  one. */
    void (*operation)(void *context, const char *function, void *address, const Tensor *output,
                      int inputs, Tensor *const *input, bool back);
    void *context; /**< passed to it */
    /** Called after each operation of either pass, with the tape's mesh. */
    void (*between)(const Mesh *mesh);
} Observer;

/** The observer of this process's tapes; all zero unless somebody sets it. */
Observer *tape_observer(void);

/** Records of equal size that never move. */
typedef struct Arena {
    char **chunks;       /**< each holds the same number of records */
    int64_t room, count; /**< capacity and number of records */
} Arena;

/** The members of a Tape. */
struct Tape {
    Pool *pool;           /**< of its tensors' buffers; the caller's */
    const Mesh *mesh;     /**< the caller's */
    TapeBatch batch;      /**< of this pass, as given to tape_reset() */
    bool recording;       /**< see tape_record() */
    Arena tensors, nodes; /**< in the order in which they were made */
    Node *last;           /**< the last recorded operation, or NULL */
    Node *floor;          /**< in recompute_backward(): the last operation before it; or NULL */
    const RecomputeCall *call; /**< in recompute_forward() and recompute_backward(); or NULL */
    bool went_back;            /**< recompute_backward() has called segment_backward() */
    bool recomputes_attention; /**< blocks recompute their attention: see attention_segment() */
    Attributes next;           /**< set it before tape_operation(), which clears it */
    void *next_calls;          /**< likewise: the function that the operation calls, or NULL */
    GradientWatch watch;       /**< observes backward passes, if not zero */
    int64_t exchanges; /**< calls so far that may have brought other ranks' numbers into a tensor */
};

/** A point on the tape, for tape_release_since(). Valid until tape_reset(). */
typedef struct TapeMark {
    int64_t tensors; /**< number of tensors at that point */
} TapeMark;
/** Returns the current end of the tape. */
TapeMark tape_mark(const Tape *tape);

/** Releases the values of tensors made since `mark`, except `result` and those that an operation
 * keeps for its backward. The caller must not read the released values again; the backward pass
 * recomputes those that are cheap to compute. */
void tape_release_since(Tape *tape, TapeMark mark, const Tensor *result);

/** Releases the values of all tensors made since `mark`, gradients too. Keeps `result`, and tensors
 *  whose memory was reached through tensor_data() or slice(). */
void tape_drop_since(Tape *tape, TapeMark mark, const Tensor *result);

/** Releases the values of all tensors, gradients too: nothing reads them after the backward pass.
 *  Keeps `a` and `b`, which may be NULL, and tensors whose memory was reached through
 *  tensor_data() or slice(), until tape_reset(). */
void tape_release_all(Tape *tape, const Tensor *a, const Tensor *b);

/* ---- for operations ---------------------------------------------------------------------------------------- */

/** Returns a new tensor with uninitialised numbers. */
Tensor *tape_tensor(Tape *tape, DType dtype, Shape shape, Placement placement);

/** Returns a new tensor whose numbers the host sets at once, before any kernel reads them. All ids,
 *  labels and attention masks are such tensors, so the host can read them without waiting. */
Tensor *tape_host_tensor(Tape *tape, DType dtype, Shape shape, Placement placement);

/** Returns a new tensor that shares x's buffer. It needs no gradient and has no producer. */
Tensor *tape_view(Tape *tape, const Tensor *x, Placement placement);

/** Returns a new tensor without numbers; its producer computes them on demand. */
Tensor *tape_later(Tape *tape, Shape shape, Placement placement);

/** Shows the observer a call that is no operation on the tape. Its line is that of the lab that
 *  made it or, if the kit called a function of the lab, the function's, `called`; otherwise NULL. */
void tape_show_call(const char *name, void *called, const Tensor *output, int inputs,
                    Tensor *const *input);

/** Records the operation that computed `output` from `inputs`, if any of them needs a gradient and
 * the tape records; otherwise returns NULL. */
Node *tape_operation(Tape *tape, const char *name, void (*backward)(Node *, Tensor *),
                     Tensor *output, int inputs, Tensor *const *input);

/** Call it for the operation just recorded, which has one argument. Moves it to just after the
 *  operation that computed this argument, so its backward runs after those of all other operations
 *  on the argument. */
void node_run_last(Node *node);

/** Returns a view that keeps x's numbers alive until the operation's backward has run. */
Tensor *node_keep(Node *node, int slot, Tensor *x);

/** The same, but numbers that can be recomputed may be released: read them through ready(). */
void node_keep_or_compute(Node *node, int slot, Tensor *x);

/** Can x be recomputed from what its operation keeps? */
bool can_be_computed(const Tensor *x);

/** Returns x's numbers to the pool. */
void tape_release_value(Tensor *x);

/** Allocates memory for x's numbers, which the caller then computes. */
void tape_allocate(Tensor *x);

/** Ends the run if an argument is not a tensor (for example an unset field of a layer) or holds
 *  ids. */
void must_not_be_ids(const char *function, const Tensor *x);

/** Runs the pair's forward on x with recording off, then records the pair. Forward may return its
 *  argument, so the result is a view. */
Tensor *call_pair(PairCall call, Tensor *x, Placement placement);

/** Returns the tape of the first argument that has one; `function` is for the message if none
 *  has. */
Tape *tape_of(const char *function, const Tensor *x, const Tensor *y);

/** Returns x with its numbers available: computes what was deferred, rejects what was released. The
 *  numbers may be in 16 bits: reals_or_halves(x). */
Tensor *available(Tensor *x);

/** The same for what is multiplied next: in 16 bits if x is not computed yet, products are in 16
 *  bits, and x's operation can write them. */
Tensor *available_narrow(Tensor *x);

/** available(x), with numbers of type `real`: from now on, a HALF tensor is a REAL one. Numbers that can
 *  be computed as reals are not widened. */
Tensor *ready(Tensor *x);

/** Returns x's numbers in 16 bits, as products multiply them (see kernel_round()): x itself or a
 *  copy. Later operations on x get the same copy, unless x changes, until tape_release_since(). An
 *  operation that keeps it with node_keep() need not keep x. */
Tensor *rounded_copy(Tape *tape, Tensor *x);

/** Gives x a buffer of its own, so writing to it changes no other tensor. */
void unshare(Tensor *x);

/** Call it before x is changed in place. Makes x's numbers available in a buffer that no other
 *  tensor shares. From now on, they are not released to be recomputed. */
void begin_change(Tensor *x);

/** Does the operation that computed x take its gradient in 16 bits? */
bool takes_16_bits(const Tensor *x);

/** Adds d to the gradient of x, if x needs one. The gradient may then share d's buffer. Sums are in
 *  `real`: d stays in 16 bits only if it is the first and takes_16_bits(x). */
void gradient_add(Tensor *x, Tensor *d);

/** Returns where a kernel writes the gradient of x or, if *accumulate, adds to it; NULL if x needs
 *  none. */
Tensor *gradient_room(Tensor *x, bool *accumulate);

/** The same for an element-wise kernel. If only the operation that saved x still reads its numbers,
 *  and x has no gradient yet, its gradient is written over them. */
Tensor *gradient_in_place(Tensor *x, const Tensor *saved, bool *accumulate);

/** Returns where a kernel adds to the gradient of x, filled with zeros if there is no gradient yet;
 *  NULL if x needs none. */
Tensor *gradient_sum(Tensor *x);

/** Returns x, or a copy of x if its numbers are in 16 bits. x stays as it is, so one rank may look
 *  at it without changing what it sends. */
Tensor *as_reals(Tensor *x);

/** Returns x with numbers of the other tensor's type. */
Tensor *in_type_of(const Tensor *other, Tensor *x);

/** Returns where to write the gradient of an argument of dy's shape and type, for gradient_add(): dy
 *  itself if nothing else holds its buffer. */
Tensor *gradient_over(Tensor *dy, Placement placement);
