/** @file
 * Collectives in memory that the ranks of a node share. Private to this folder.
 *
 * A collective goes through its array in pieces. Each rank has a ring of slots in the shared memory.
 * Of each piece, it copies into its next slot the numbers that other ranks need. Once all ranks have
 * done so, each takes what it needs out of the others' slots: terms, which it adds up in the order of
 * the ranks, or their parts. So no number is sent: each rank copies its numbers once, and the others
 * read them there. All ranks get the same bits.
 */
#pragma once

#include <stdatomic.h>

#include "backend/host_view.h"
#include "comm/comm_parts.h"

enum {
    SLOT_NUMBERS =
        1 << 15, /**< numbers per piece: the slots of a few ranks stay in a core's cache */
    SLOTS = 4,   /**< per rank and group: half a megabyte in single precision */
    LINE = 64    /**< bytes of a cache line */
};

/** A rank's numbers of a piece, and the collective that the rank calls. */
typedef struct SharedSlot {
    int64_t count;              /**< numbers of the whole array */
    Operation operation;        /**< which collective */
    ReduceOp how;               /**< of a sum */
    int64_t width;              /**< numbers in a row; 0 in an all-reduce */
    real numbers[SLOT_NUMBERS]; /**< those that other ranks need, at their offsets in the piece */
} SharedSlot;

/** A rank's slots: it writes them, all ranks read them. */
typedef struct Board {
    _Alignas(LINE) _Atomic int64_t filled; /**< pieces that this rank has copied into its slots */
    _Alignas(LINE) _Atomic int64_t taken;  /**< pieces that it has taken out of all slots */
    _Alignas(
        LINE) _Atomic int64_t by_mpi; /**< sums over MPI that it has begun: group_sum() and so on */
    _Alignas(LINE) SharedSlot slot[SLOTS]; /**< piece i is in slot i % SLOTS */
} Board;

/** A collective on an array of `count` numbers. The array has rows of `width` numbers.
 *  Columns begin[k] to begin[k + 1] - 1 of each row belong to rank k. */
typedef struct Collective {
    CommRequest request;           /**< with the operation: a sum, a gather, or a reduce-scatter,
                                    *  which may be an all-to-all */
    ReduceOp how;                  /**< of a sum */
    int64_t count;                 /**< the same on all ranks */
    int64_t width;                 /**< begin[size]; 0 for an all-reduce */
    const int64_t *begin;          /**< [size+1]; NULL for an all-reduce */
    const real *from;              /**< input */
    real *to;                      /**< result; may be `from`, unless it is packed */
    bool packed;                   /**< a gather's input, or a reduce-scatter's result, holds
                                     *   only this rank's numbers */
    int64_t pieces, filled, taken; /**< pieces: in all, copied into this rank's slots, taken */
    HostView view;                 /**< of an all-reduce that was started */
    struct Collective *next;       /**< started after this one */
} Collective;

/** A group's shared memory, and its collectives in progress. */
typedef struct Shared {
    MPI_Win window;          /**< holds the boards */
    Group *group;            /**< the group that owns this */
    Collective *first;       /**< in the order in which they were started */
    Collective *last;        /**< valid if there is a first one */
    Collective *to_fill;     /**< the first one with pieces that are not in this rank's slots yet */
    struct Shared *next;     /**< in the list of all groups */
    const SharedSlot **slot; /**< [size] each rank's slot of the piece that is being taken */
    const real **from;       /**< [size] each rank's numbers that are being added up */
    int64_t *begin;          /**< [size+1] of a collective on equal parts */
    Board *board[];          /**< of each rank */
} Shared;

/** Fills and takes all pieces for which this rank need not wait. Returns whether there were any. */
bool shared_advance(Shared *shared);

/** Ends the run if a rank will never join the collective for which this rank waits, because that
 *  rank has gone on to a sum over MPI, which waits for this rank. */
void shared_check(const Shared *shared);
