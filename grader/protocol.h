/** @file
 * What the judge and the ranks of the runner share: for the launch a control block, for each rank a header
 * and a stream of entries. All of it lies in one file that the judge makes, sizes and maps; what a rank has
 * written survives its death.
 *
 * The judge posts one case at a time; the ranks play it and append what they saw. Nothing here is a verdict:
 * entries are numbers that the judge compares with its own after the runner has ended.
 */
#ifndef BALISE_GRADER_PROTOCOL_H
#define BALISE_GRADER_PROTOCOL_H

#include <stdatomic.h>
#include <stdint.h>

#include "balise.h"

enum { MAX_RANKS = 8, NAME_SIZE = 64, STREAM_BYTES = 48 << 20 };

/** One situation in which a lab is tried. Both sides derive every input from `key`. */
typedef struct Case {
    int32_t lab;
    int32_t kind;  /**< which play of the lab */
    int32_t world; /**< ranks that take part: the first ones of the launch */
    int32_t tp;
    uint64_t key;
    int32_t B, S, H, F, V, A, out; /**< sizes, in the letters of balise.h; F the inner width */
    double p;                      /**< of dropout */
    int32_t training;
    int32_t integers; /**< small integers, so that sums are exact */
    int32_t reverse;  /**< backward passes in the order of the forward passes reversed */
    int32_t delay;    /**< one rank comes late to each pass */
} Case;

typedef enum RankState { STARTING, IDLE, PLAYING, IN_MPI, GONE } RankState;

/** A call of MPI, as the recorder sees it. */
typedef struct Call {
    char name[24];
    uint64_t members; /**< bit r: rank r of the launch */
    int64_t number;   /**< which collective of this communicator, from 1; 0 for others */
    int64_t count;    /**< elements */
    int32_t type_size, peer;
    void *address; /**< callsite in the student's file, or NULL */
} Call;

typedef struct RankHeader {
    _Atomic int32_t state;
    _Atomic int32_t done_cases; /**< cases that this rank has left, well or not */
    _Atomic int64_t events;     /**< MPI calls entered and left: no change means no progress */
    int32_t pid;
    char where[NAME_SIZE]; /**< "forward of the first layer": what the play is at */
    Call call;             /**< the last call entered */
    _Atomic int32_t
        signal; /**< what has just ended this rank, or 0; and the line of the lab that it came in */
    void *signal_address;
    _Atomic int64_t used; /**< bytes of the stream */
} RankHeader;

typedef struct Control {
    _Atomic int32_t posted; /**< how many cases have been posted; -1: leave */
    Case current;
} Control;

typedef enum EntryKind {
    CASE,      /**< a case begins */
    VALUES,    /**< numbers that every rank holds alike unless `dim` says that this is a shard */
    PARAMETER, /**< a parameter's full shape, placement and range; its initial numbers */
    TRAFFIC,   /**< numbers: elements that this rank is charged with, calls */
    NOTE,      /**< a placement rule that was broken: text */
    REFUSED,   /**< a word ended the case: text */
    NOT_STARTED,
    LEFT_OVER, /**< requests that were started and not waited for */
    FINISHED,  /**< the case came to its end */
    DEALT,     /**< the rows that a sampler dealt: the returned length, then what was written to `mine` */
} EntryKind;

/** A header in a stream; `count` doubles or, for texts, bytes follow, padded to 8 bytes. */
typedef struct Entry {
    int32_t kind, check; /**< which check it belongs to */
    char name[NAME_SIZE];
    Shape shape; /**< of the numbers; for a parameter and its gradient that of the undivided one */
    int32_t placement_kind, placement_dim;
    int64_t begin, end; /**< the part along placement_dim that is held */
    int64_t count;
    void *address;
} Entry;

typedef struct Launch {
    Control control;
    RankHeader rank[MAX_RANKS];
} Launch;

enum { LAUNCH_BYTES = 1 << 16 };

#endif
