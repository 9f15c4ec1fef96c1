/** @file
 * The data that the judge and the runner's ranks share: a control block for the launch, and for each
 * rank a header, a stream of entries and the rings of calls.h. All of it is in one file that the
 * judge creates, sizes and maps. What a rank has written survives the rank.
 *
 * The judge posts one case at a time; the ranks run it and append what they observe. Nothing here
 * is a verdict: after the runner has ended, the judge compares the entries with its own. Nothing
 * here reveals future cases: ranks learn of a case when it is posted, and its key says nothing
 * about other keys.
 */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "balise.h"
#include "grader/calls.h"

enum { STREAM_BYTES = 48 << 20 }; /**< of a rank's stream */

/** A checksum of the sources that the judge and the runners must share. The judge and each runner
 *  contain it. */
extern const char protocol_stamp[];
/** The prefix of protocol_stamp, which makes it findable in a program's file. */
#define PROTOCOL_STAMP_HEAD "balise protocol "

/** One situation in which a lab is tested. Both sides derive every input from `key`. */
typedef struct Case {
    int32_t lab;                   /**< its number */
    int32_t kind;                  /**< of the lab's cases */
    int32_t world;                 /**< ranks that take part: the first ones of the launch */
    int32_t tp;                    /**< ranks that split a layer */
    int32_t pp;                    /**< stages of a pipeline; tp times pp divides `world` */
    int32_t blocks;                /**< of the model, split over the stages */
    int32_t micros;                /**< micro-batches of a batch; 0: it is in one piece */
    int32_t every;                 /**< steps between two averages of weights */
    int32_t steps;                 /**< of a training run that is timed; 0: the case is judged */
    uint64_t key;                  /**< of all random numbers of this case */
    int32_t B, S, H, F, V, A, out; /**< sizes, in the letters of balise.h; F the inner width */
    int32_t N;                     /**< numbers of a tensor that is not [B,S,H] */
    double p;                      /**< of dropout */
    int32_t training;              /**< dropout drops */
    int32_t integers;    /**< small integers, so that sums are exact; zeros on the last rank */
    int32_t diverged;    /**< one number of the first rank's own inputs is NaN */
    int32_t flat;        /**< x is [B,H], without S */
    int32_t exponent;    /**< inputs are between -2^exponent and 2^exponent */
    int32_t dy_exponent; /**< the gradient that enters a backward pass is scaled by 2^dy_exponent */
    int32_t reverse;     /**< backward passes in the reverse order of the forward passes */
    int32_t delay;       /**< one rank comes late to most passes */
    int32_t more_B;      /**< how many more samples a layer's second step has; may be negative */
    int32_t apart;       /**< the ranks of a tp group are not neighbours: {0 2} {1 3} */
    int32_t idle;        /**< in step 2, the last rank's weights and its part of sums are zero */
} Case;

/** What a rank is doing. */
typedef enum RankState {
    STARTING, /**< not ready for a case yet */
    IDLE,     /**< waiting for a case */
    RUNNING,  /**< computing, in a case */
    IN_MPI,   /**< in an MPI call, in a case */
    GONE,     /**< has left the launch */
} RankState;

/** What a rank reports while it runs. */
typedef struct RankHeader {
    _Atomic int32_t state;      /**< a RankState */
    _Atomic int32_t done_cases; /**< cases that this rank has left, successfully or not */
    _Atomic int64_t events;     /**< MPI calls entered and left: no change means no progress */
    _Atomic int64_t asked;      /**< number of polls by MPI for what this rank waits for */
    Label where;                /**< what the rank is doing */
    _Atomic int32_t signal;     /**< the signal that has just ended this rank, or 0 */
    void *signal_address;       /**< the line of the lab at which a signal arrived, or NULL */
    _Atomic int32_t answered;   /**< 1: SIGUSR1 has set signal_address to where the rank is */
    _Atomic int64_t used;       /**< bytes of the stream */
} RankHeader;

/** What the judge tells the ranks. */
typedef struct Control {
    _Atomic int32_t posted; /**< the number of cases posted so far; -1: leave */
    int32_t debugged;       /**< a debugger is attached */
    int32_t alone;          /**< the launch has one case only */
    Case current;           /**< the last posted case */
} Control;

/** The kinds of entries in a stream. */
typedef enum EntryKind {
    CASE,        /**< a case begins */
    VALUES,      /**< numbers that every rank holds in full, unless placement_kind is SHARD */
    PARAMETER,   /**< a parameter's full shape, placement, range and initial values */
    TRAFFIC,     /**< the elements charged to this rank, and its calls */
    NOTE,        /**< a broken placement rule: text; `check` says what it makes wrong */
    REFUSED,     /**< a function ended the case: text */
    NOT_STARTED, /**< a TODO ended the case: its lab and function */
    LEFT_OVER, /**< requests, MPI objects or memory that a lab leaves behind: their name; how many */
    FINISHED,  /**< the case is complete */
    WORK,      /**< what a layer's pass multiplied and held: see grader/labs/work.h */
    PASS,      /**< a stage has run a micro-batch, forward or backward: see labs/stages.h */
    PROGRAM,   /**< of the judge: the TapeOperations of the plain layer's pass */
    DEALT, /**< the rows that a sampler dealt: returned length, capacity, what was written; see labs/replicas.h */
} EntryKind;

/** The header of an entry. `count` doubles or, for texts, bytes follow, padded to 8 bytes. */
typedef struct Entry {
    int32_t kind, check; /**< an EntryKind; the Check that it belongs to */
    Label label;         /**< what it is about, by which the judge finds it */
    Shape shape;         /**< of the numbers; for a parameter and its gradient, the full shape */
    int32_t placement_kind, placement_dim; /**< the Placement that the rank declares */
    int32_t called;     /**< the PlacementKind on the tape: for pages only, not for verdicts */
    int64_t begin, end; /**< this rank's part along placement_dim */
    int64_t count;      /**< number of doubles or bytes that follow */
    void *address;      /**< the line of the lab that it is about, or NULL */
    void *outermost;    /**< of REFUSED: the line of the lab that has called that one, or NULL */
} Entry;

/** The start of the shared file. */
typedef struct Launch {
    Control control;            /**< written by the judge */
    RankHeader rank[MAX_RANKS]; /**< each written by its rank */
} Launch;

/** The parts of the file: the launch, the streams of all ranks, their rings. */
enum { LAUNCH_BYTES = 1 << 16 }; /**< size of the launch, a multiple of a page */
/** The size of the shared file. */
#define FILE_BYTES (LAUNCH_BYTES + MAX_RANKS * ((size_t)STREAM_BYTES + sizeof(Rings)))

/** The rings of a rank in the file that begins with this launch. */
static inline Rings *rings_of(const Launch *launch, int rank)
{
    return (Rings *)((char *)launch + LAUNCH_BYTES + (size_t)MAX_RANKS * STREAM_BYTES) + rank;
}

/** Sleeps while `*number` of the shared file is `old`, until a process calls wake() for it, but at
 *  most for this many microseconds. So a missing wake() only delays the caller. */
static inline void sleep_while(const _Atomic int32_t *number, int32_t old, long microseconds)
{
    const struct timespec longest = {0, microseconds * 1000};
    syscall(SYS_futex, number, FUTEX_WAIT, old, &longest, NULL, 0);
}

/** Wakes all processes that sleep on this number of the shared file. Call it after changing the number. */
static inline void wake(const _Atomic int32_t *number)
{
    syscall(SYS_futex, number, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
