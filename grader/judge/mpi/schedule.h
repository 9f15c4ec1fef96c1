/** @file
 * The schedule of a step on a simulated clock. Without a pace, a pass of a stage takes one slot,
 * and messages and everything else take no time. So the length of a step and the idle slots of each
 * stage follow from the record alone, on any machine and under any load. With a pace, the replay
 * counts seconds: multiplications, messages and collectives take the time that they take on a
 * cluster.
 */
#pragma once

#include "grader/judge/mpi/recorded.h"

enum {
    MOST_PASSES = 32,     /**< of a rank in a step */
    MOST_INTERVALS = 128, /**< of work or of sums that are kept */
    NO_TIME = -1,         /**< of a pass that the replay does not reach */
};

enum {
    NEAR,  /**< the link between ranks on one node */
    FAR,   /**< the link between ranks on different nodes */
    LINKS, /**< how many there are */
};

/** How long each kind of work takes, in seconds. All zero: the clock counts slots. */
typedef struct Pace {
    double work;           /**< a multiply-add */
    double latency[LINKS]; /**< a message without data */
    double byte[LINKS];    /**< a byte of a message */
    int node;              /**< ranks per node */
    int tp;                /**< ranks that split a layer; other ranks of a group are replicas */
    double over_replicas;  /**< a factor for the bytes that replicas sum */
    bool late;             /**< a nonblocking collective begins only when it is waited for */
} Pace;

/** The seconds of a message from rank to rank. */
double message_takes(const Pace *pace, const Call *send, int from, int to);
/** The seconds of a collective, once all of its ranks have called it. A sum takes the time of a
 *  ring or of a tree, whichever is faster, as in common/bench/pace.py. Other collectives take the
 *  time of a ring. */
double collective_takes(const Pace *pace, const Call *call);
/** Are these at least two ranks that all hold the same shard, if `tp` ranks split a layer? */
bool are_replicas(uint64_t members, int tp);

/** A pass of a stage: a micro-batch, forward or backward. */
typedef struct Pass {
    int micro;             /**< from 0 */
    bool backward;         /**< otherwise forward */
    int64_t calls;         /**< how many calls its rank had made when it ended */
    int64_t multiplied;    /**< its multiply-adds, and those before it in the step */
    double begin, end;     /**< in slots or seconds since the step began */
    double waited;         /**< for how long its rank was idle just before it */
    const Call *waited_in; /**< the call in which it waited longest, or NULL */
} Pass;

/** A span of time. */
typedef struct Interval {
    double begin; /**< in slots or seconds */
    double end;   /**< likewise; at least `begin` */
} Interval;

/** Spans, in order; any beyond MOST_INTERVALS are left out. */
typedef struct Intervals {
    int count;                     /**< how many there are */
    Interval span[MOST_INTERVALS]; /**< the first `count` */
} Intervals;

/** All passes of a step. */
typedef struct StepSchedule {
    Pace pace;                         /**< of the replay */
    int ranks;                         /**< of the case */
    int count[MAX_RANKS];              /**< of each rank's passes */
    Pass pass[MAX_RANKS][MOST_PASSES]; /**< in their order */
    double busy[MAX_RANKS];            /**< how long each rank works */
    Intervals work[MAX_RANKS];         /**< when each rank works */
    Intervals sums;                    /**< when rank 0's sums over replicas are under way */
    double length;                     /**< of the step: until everything has ended */
    double waited[MAX_RANKS];          /**< without passes: the longest wait of each rank */
    const Call *waited_in[MAX_RANKS];  /**< without passes: the call in which it waits, or NULL */
    const Call *stuck
        [MAX_RANKS]; /**< the call in which a rank would wait forever if MPI buffered no message, or NULL */
} StepSchedule;

/** Replays the calls that the ranks made in the step or function `where`. The caller fills in
 *  schedule->pace, `count` and, for each pass, micro, backward, calls and multiplied. This function
 *  sets the rest.
 *  @return false if some rank is stuck */
bool schedule_replay(const Calls *calls, const Label *where, StepSchedule *schedule);

/** How long a rank is idle in the step. */
static inline double idle_time(const StepSchedule *s, int rank)
{
    return s->length - s->busy[rank];
}
