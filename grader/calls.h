/** @file
 * The flight recorder's data: the MPI calls that a rank made in the running case, and the operations
 * on its tapes. They are in two rings in shared memory. The runner writes them, and the judge reads them. A lab could have written them too, so the judge
 * copies everything and checks all bounds.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "balise.h"
#include "grader/label.h"

enum {
    MAX_RANKS = 8,         /**< per launch */
    RING_CALLS = 4096,     /**< capacity of a rank's ring of calls */
    RING_OPERATIONS = 512, /**< capacity of its ring of operations */
    MOST_INPUTS = 4,       /**< recorded of an operation */
    MOST_ATTRIBUTES = 3,   /**< recorded of an operation */
};

/** The basic elements that some elements of a datatype consist of. Two sides of an exchange match
 *  if these are equal, whatever the names of their types (MPI 3.1, 3.3.1). */
typedef struct Signature {
    int64_t count; /**< number of basic elements */
    int32_t basic; /**< their type: a BasicKind and a size in bytes */
} Signature;

/** The kinds of basic types that the judge distinguishes. */
typedef enum BasicKind {
    FLOATING = 1, /**< float, double */
    SIGNED,       /**< signed integers */
    UNSIGNED,     /**< unsigned integers */
    CHARACTER,    /**< char, as text */
    COMPLEX,      /**< two floating-point numbers */
    LOGICAL,      /**< bool */
    PAIR,         /**< a number and its location, as for MPI_MAXLOC */
    BYTES,        /**< MPI_BYTE, and everything else */
} BasicKind;
enum {
    BASIC_SIZE = 256, /**< all sizes are below this */
};
/** A kind and a size in bytes in one number. */
#define BASIC(kind, size) ((int32_t)(BASIC_SIZE * (kind) + (size)))

/** What the ranks of a group must agree on in a call. */
typedef enum Rule {
    LOCAL,     /**< nothing: the call only completes a request */
    TOGETHER,  /**< every rank of the group makes it; arguments may differ */
    REDUCTION, /**< `sent`, the operation and the root are the same on every rank */
    EXCHANGE, /**< what i sends to j is what j expects from i; the root is the same on every rank */
    MESSAGE,  /**< to one rank, from one rank, or both: see `to` and `from` */
} Rule;

/** The operations of MPI_Reduce and similar calls. */
typedef enum Reduction {
    NO_REDUCTION,  /**< the call reduces nothing */
    SUM_OF,        /**< MPI_SUM */
    MAX_OF,        /**< MPI_MAX */
    MIN_OF,        /**< MPI_MIN */
    PRODUCT_OF,    /**< MPI_PROD */
    ALL_OF,        /**< MPI_LAND */
    ANY_OF,        /**< MPI_LOR */
    ONE_OF,        /**< MPI_LXOR */
    BITS_AND,      /**< MPI_BAND */
    BITS_OR,       /**< MPI_BOR */
    BITS_XOR,      /**< MPI_BXOR */
    MAX_AND_PLACE, /**< MPI_MAXLOC */
    MIN_AND_PLACE, /**< MPI_MINLOC */
    REDUCTIONS,    /**< the number of reductions */
} Reduction;

enum {
    NOBODY = -1,  /**< no rank */
    ANYBODY = -2, /**< MPI_ANY_SOURCE */
    ANY_TAG = -2, /**< MPI_ANY_TAG */
};

/** The mark in a buffer that MPI is about to fill: NaN in single and in double precision. */
enum { UNDER_WAY = 0x7ffda5a5 };

/** The communicator of the case's ranks, which stands for MPI_COMM_WORLD. */
enum { THE_WORLD = 1 };

/** An MPI call. Ranks are numbered as in the launch. */
typedef struct Call {
    char name[40];     /**< "all_reduce", "wait" */
    Label where;       /**< what the rank was doing */
    int32_t rule;      /**< a Rule */
    uint64_t group;    /**< the communicator: one number, the same on all of its ranks */
    uint64_t members;  /**< bit r: rank r */
    int64_t number;    /**< the call's number in the group, from 1; 0 for LOCAL and MESSAGE */
    uint64_t made;     /**< the communicator that it created, or 0 */
    int64_t time;      /**< in nanoseconds, on a clock that all ranks share */
    int64_t ended;     /**< on the same clock: when it returned */
    int32_t reduction; /**< a Reduction */
    int32_t root;      /**< a rank, or NOBODY if the call has none */
    /** of a MESSAGE, otherwise NOBODY; from_tag is also the tag of create_group */
    int32_t to, to_tag, from, from_tag;
    Signature sent[MAX_RANKS];     /**< to each rank; for a MESSAGE and most REDUCTIONs only one */
    Signature received[MAX_RANKS]; /**< expected from each rank; for a MESSAGE only one */
    int32_t starts;                /**< starts a request: returns at once, to be waited for later */
    int32_t probes;                /**< waits for a message without receiving it */
    int32_t ready;                 /**< a ready send: its receive must have been posted */
    int32_t synchronous;           /**< completes no earlier than its receive has been posted */
    int32_t some;                  /**< a wait that any one of its requests ends */
    int32_t polls; /**< no call of the lab's, but a series of polls, which may end in vain */
    int32_t returned, completed; /**< the rank left the call; what the call started is complete */
    int32_t late;                /**< but it was not when its pass ended */
    int64_t multiplied;          /**< multiply-adds of its rank from work_begin() to this call */
    double charged;              /**< what its rank sends in it, in numbers of 4 bytes */
    int64_t waited_by; /**< of a request: index of the call that now waits for it, or -1 */
    void *address;     /**< call site in the student's file, or NULL */
    int32_t at_once;   /**< it waits in a function that must return at once */
    int32_t of_tensor; /**< a REDUCTION of numbers in a tensor's memory */
    void *inner; /**< the same, in the function that made the call; see callsite_outermost() */
} Call;

/** A tensor that an operation takes or returns. */
typedef struct TapeTensor {
    const void *tensor;     /**< the same for the same tensor, until the tape is reset */
    Shape shape;            /**< of this rank's part */
    int32_t kind, dim;      /**< its Placement */
    int32_t integers;       /**< ids, labels, a mask */
    int32_t needs_gradient; /**< a gradient flows back to it */
    /** two sums over its numbers, or those of its gradient in a backward pass, each number times a
     *  weight of its place in the whole tensor; of integers: such a sum, and one in which ids are
     *  counted in the whole table and NO_ID as -1 */
    double sum[2];
    double size; /**< the same sum over absolute values; of integers: how many are not NO_ID; -1 if
                      the numbers were not available */
    char parameter[44]; /**< its name if it is a parameter; otherwise empty */
} TapeTensor;

/** An argument of an operation that is not a tensor. */
typedef struct TapeAttribute {
    char name[16]; /**< "factor"; empty if there is none */
    double number; /**< its value */
    char text[44]; /**< if not empty, its value in place of `number` */
} TapeAttribute;

/** An operation on a tape, forward or backward, that a line of the lab called, directly or not. */
typedef struct TapeOperation {
    char name[32];     /**< "linear" */
    Label where;       /**< what the rank was doing */
    void *address;     /**< the line of the lab */
    const void *tape;  /**< which tape */
    int32_t back;      /**< the gradient of `output` is complete, and goes to the inputs */
    int32_t inputs;    /**< how many */
    TapeTensor output; /**< its result */
    TapeTensor input[MOST_INPUTS];            /**< its arguments */
    TapeAttribute attribute[MOST_ATTRIBUTES]; /**< its other arguments, without gaps */
} TapeOperation;

/** A rank's rings: entry i is at [i % RING_...]. */
typedef struct Rings {
    _Atomic int64_t number;                   /**< the posted number of the case */
    _Atomic int64_t calls;                    /**< calls made */
    _Atomic int64_t operations;               /**< operations kept, at most RING_OPERATIONS */
    Call call[RING_CALLS];                    /**< the last calls */
    TapeOperation operation[RING_OPERATIONS]; /**< the first operations */
} Rings;
