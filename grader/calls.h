/** @file
 * The flight recorder's record: what a rank has called of MPI in the case being run, and what it held under the name of
 * whole, in two rings in shared memory. The runner writes them, the judge reads them; what is in them could have been
 * written by a lab too, so the judge copies and bounds everything.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "grader/label.h"

enum {
    MAX_RANKS = 8,      /**< of a launch */
    RING_CALLS = 4096,  /**< calls that a rank's ring keeps */
    RING_VALUES = 4096, /**< values that it keeps */
};

/** What a count of a type stands for (MPI 3.1, 3.3.1: two sides of an exchange match by this, whatever their types are
 *  called). */
typedef struct Signature {
    int64_t count; /**< basic elements */
    int32_t basic; /**< what they are: a BasicKind and a size in bytes */
} Signature;

/** The kinds of basic types that are told apart. */
typedef enum BasicKind {
    FLOATING = 1, /**< float, double */
    SIGNED,       /**< integers */
    UNSIGNED,     /**< integers */
    CHARACTER,    /**< char, as text */
    COMPLEX,      /**< of two floating numbers */
    LOGICAL,      /**< bool */
    PAIR,         /**< a number and its place, as for MPI_MAXLOC */
    BYTES,        /**< MPI_BYTE, and what is none of the others */
} BasicKind;
enum {
    BASIC_SIZE = 256, /**< sizes are below this */
};
/** A kind and a size in bytes, as one number. */
#define BASIC(kind, size) ((int32_t)((kind)*BASIC_SIZE + (size)))

/** What the ranks of a group must agree on in a call. */
typedef enum Rule {
    LOCAL,     /**< nothing: the end of a request */
    TOGETHER,  /**< every rank of the group makes it; its arguments may differ */
    REDUCTION, /**< `sent`, the operation and the root are the same on every rank */
    EXCHANGE, /**< what i sends to j is what j expects of i, and the root is the same on every rank */
    MESSAGE, /**< to one rank, from one rank or both: see `to` and `from` */
} Rule;

/** Operations of MPI_Reduce and its kin. */
typedef enum Reduction {
    NO_REDUCTION,  /**< of a call that reduces nothing */
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
    REDUCTIONS,    /**< how many there are */
} Reduction;

enum {
    NOBODY = -1,  /**< no rank */
    ANYBODY = -2, /**< MPI_ANY_SOURCE */
    ANY_TAG = -2, /**< MPI_ANY_TAG */
};

/** What a buffer holds while MPI is to fill it: a number that is none, in single and in double precision. */
enum { UNDER_WAY = 0x7ffda5a5 };

/** The communicator of all ranks of the case, by the name of MPI_COMM_WORLD. */
enum { THE_WORLD = 1 };

/** A call of MPI. Ranks are those of the launch. */
typedef struct Call {
    char name[40];    /**< "all_reduce", "wait" */
    Label where;      /**< what the rank was at */
    int32_t rule;     /**< a Rule */
    uint64_t group;   /**< the communicator: one number on all of its ranks, and on no others */
    uint64_t members; /**< bit r: rank r */
    int64_t number;   /**< which call of the whole group this is, from 1; 0 for LOCAL and MESSAGE */
    uint64_t made;    /**< the communicator that it made, or 0 */
    int64_t time;     /**< nanoseconds; one clock for all ranks */
    int64_t ended;    /**< on that clock: when it returned */
    int32_t reduction; /**< a Reduction */
    int32_t root;      /**< a rank, or NOBODY where the call has none */
    /** of a MESSAGE; NOBODY where there is none. from_tag: of create_group, too */
    int32_t to, to_tag, from, from_tag;
    Signature sent[MAX_RANKS];     /**< for each rank; of a MESSAGE and most REDUCTIONs one */
    Signature received[MAX_RANKS]; /**< what is expected of each rank, likewise */
    int32_t starts; /**< a request: it returns at once, and somebody waits for it later */
    int32_t probes; /**< waits for a message and leaves it there */
    int32_t ready;  /**< sends, and its receive must be there before it */
    int32_t some;   /**< a wait that one request ends; of several */
    int32_t returned, completed; /**< the rank has left the call; what it began is complete */
    int64_t waited_by; /**< of a request: the index of the call that waits for it now, or -1 */
    void *address;     /**< callsite in the student's file, or NULL */
} Call;

/** A tensor that every rank of a tp group should hold alike. */
typedef struct Value {
    char operation[32]; /**< "linear": what has returned it */
    void *address;      /**< the line of the lab that called it, or NULL */
    int64_t count;      /**< numbers of the tensor */
    int32_t gradient;   /**< of what `operation` returned, and not that itself */
    double sum, size;   /**< weighted, of numbers and of absolute ones: rounding is seen as such */
} Value;

/** A rank's rings: entry i is at [i % RING_...]. */
typedef struct Rings {
    _Atomic int64_t number;        /**< of the case that it is about, as posted */
    _Atomic int64_t calls, values; /**< how many there have been in it */
    Call call[RING_CALLS];         /**< the last calls */
    Value value[RING_VALUES];      /**< the first values */
} Rings;
