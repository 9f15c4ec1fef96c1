/** @file
 * What the judge and the ranks of the runner share: for the launch a control block, for each rank a header
 * and a stream of entries. All of it lies in one file that the judge makes, sizes and maps; what a rank has
 * written survives its death.
 *
 * The judge posts one case at a time; the ranks run it and append what they saw. Nothing here is a verdict:
 * entries are numbers that the judge compares with its own after the runner has ended. Of the cases to come nothing is here:
 * the ranks find out about a case when it is posted, and its key says nothing of other keys.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "balise.h"
#include "grader/calls.h"

enum { STREAM_BYTES = 48 << 20 }; /**< of a rank's stream of entries */

/** Stands in the judge and in each runner: a checksum of what both must have been built of. */
extern const char protocol_stamp[];
/** What protocol_stamp begins with, so that it is found in a program's file. */
#define PROTOCOL_STAMP_HEAD "balise protocol "

/** One situation in which a lab is tried. Both sides derive every input from `key`. */
typedef struct Case {
    int32_t lab;                   /**< its number */
    int32_t kind;                  /**< of the lab's cases */
    int32_t world;                 /**< ranks that take part: the first ones of the launch */
    int32_t tp;                    /**< ranks that split a layer */
    int32_t pp;                    /**< stages of a pipeline; tp times pp divides `world` */
    int32_t blocks;                /**< of the model that the stages share */
    uint64_t key;                  /**< of all that is drawn for this case */
    int32_t B, S, H, F, V, A, out; /**< sizes, in the letters of balise.h; F the inner width */
    double p;                      /**< of dropout */
    int32_t training;              /**< dropout drops */
    int32_t integers;    /**< small ones, so that sums are exact; the last rank's are zeros */
    int32_t flat;        /**< x is [B,H], without S */
    int32_t exponent;    /**< inputs are between -2^exponent and 2^exponent */
    int32_t dy_exponent; /**< what comes into a backward pass, times 2^dy_exponent */
    int32_t reverse;     /**< backward passes in the order of the forward passes reversed */
    int32_t delay;       /**< one rank comes late to each pass */
    int32_t more_B;      /**< samples that a layer's second step has more than the first, or -1 */
    int32_t apart;       /**< the ranks of a tp group are not neighbours: {0 2} {1 3} */
    int32_t idle; /**< in the second step weights of the last rank and its part of sums are 0 */
} Case;

/** What a rank is at. */
typedef enum RankState {
    STARTING, /**< it is not ready for a case yet */
    IDLE,     /**< it waits for a case */
    RUNNING,  /**< it computes, in a case */
    IN_MPI,   /**< within a call of MPI, in a case */
    GONE,     /**< it has left the launch */
} RankState;

/** What a rank says of itself while it runs. */
typedef struct RankHeader {
    _Atomic int32_t state;      /**< a RankState */
    _Atomic int32_t done_cases; /**< cases that this rank has left, well or not */
    _Atomic int64_t events;     /**< MPI calls entered and left: no change means no progress */
    _Atomic int64_t asked;      /**< how often MPI has looked for what this rank waits for */
    Label where;                /**< what the rank is at */
    _Atomic int32_t signal;     /**< what has just ended this rank, or 0 */
    void *signal_address;       /**< the line of the lab that it came in, or NULL */
    _Atomic int32_t answered;   /**< SIGUSR1: the line that it found this rank at is there */
    _Atomic int64_t used;       /**< bytes of the stream */
} RankHeader;

/** What the judge tells the ranks. */
typedef struct Control {
    _Atomic int32_t posted; /**< cases so far, each when all had left the one before; -1: leave */
    int32_t debugged;       /**< somebody looks on with a debugger */
    Case current;           /**< the case that was posted last */
} Control;

/** What an entry of a stream is about. */
typedef enum EntryKind {
    CASE,        /**< a case begins */
    VALUES,      /**< numbers that every rank holds alike unless `dim` says that this is a shard */
    PARAMETER,   /**< a parameter's full shape, placement and range; its initial numbers */
    TRAFFIC,     /**< numbers: elements that this rank is charged with, calls */
    NOTE,        /**< a placement rule that was broken: text */
    REFUSED,     /**< a function ended the case: text */
    NOT_STARTED, /**< a TODO ended the case: its balise and function */
    LEFT_OVER, /**< what of MPI was made on a line, more than once, and not given back: its name; how many */
    FINISHED, /**< the case came to its end */
    WORK,     /**< what a pass of a layer has multiplied and held: see grader/labs/work.h */
    DEALT, /**< the rows that a sampler dealt: the returned length, the room, what was written; see labs/replicas.h */
} EntryKind;

/** A header in a stream; `count` doubles or, for texts, bytes follow, padded to 8 bytes. */
typedef struct Entry {
    int32_t kind, check; /**< an EntryKind; the Check that it belongs to */
    Label label;         /**< what it is about: the judge finds it by that */
    Shape shape; /**< of the numbers; for a parameter and its gradient that of the undivided one */
    int32_t placement_kind, placement_dim; /**< what the rank says that it is: a Placement */
    int32_t called;     /**< by the tape, a PlacementKind: for pictures, never a verdict */
    int64_t begin, end; /**< the part along placement_dim that is held */
    int64_t count;      /**< of the doubles or bytes that follow */
    void *address;      /**< the line of the lab that it is about, or NULL */
} Entry;

/** The beginning of the shared file. */
typedef struct Launch {
    Control control;            /**< written by the judge */
    RankHeader rank[MAX_RANKS]; /**< written by the ranks, each its own */
} Launch;

/** In the file: the launch, the streams of all ranks, their rings. */
enum { LAUNCH_BYTES = 1 << 16 }; /**< room for the launch, a multiple of a page */
/** How large the shared file is. */
#define FILE_BYTES (LAUNCH_BYTES + MAX_RANKS * ((size_t)STREAM_BYTES + sizeof(Rings)))

/** Where the rings of a rank lie in the file that begins with this launch. */
static inline Rings *rings_of(const Launch *launch, int rank)
{
    return (Rings *)((char *)launch + LAUNCH_BYTES + (size_t)MAX_RANKS * STREAM_BYTES) + rank;
}
