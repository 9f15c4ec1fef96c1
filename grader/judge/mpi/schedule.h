/** @file
 * The schedule of a pipeline by a clock of its own: a pass of a stage takes one slot, messages and everything else take no time.
 * So the length of a step and the idle slots of each stage follow from the record alone, on any machine and under any load.
 */
#pragma once

#include "grader/judge/mpi/recorded.h"

enum {
    MOST_PASSES = 32, /**< of a rank in a step */
    NO_SLOT = -1,     /**< of a pass that the clock does not come to */
};

/** A pass of a stage: a micro-batch, forward or backward. */
typedef struct Pass {
    int micro;             /**< from 0 */
    bool backward;         /**< or forward */
    int64_t calls;         /**< how many calls its rank had made when it ended */
    int64_t slot;          /**< in which it runs, from 0 */
    int64_t waited;        /**< slots for which its rank was idle just before it */
    const Call *waited_in; /**< the call in which it waited longest, or NULL */
} Pass;

/** All passes of a step. */
typedef struct StepSchedule {
    int ranks;                         /**< of the case */
    int count[MAX_RANKS];              /**< of each rank's passes */
    Pass pass[MAX_RANKS][MOST_PASSES]; /**< in their order */
    int64_t length;                    /**< slots until the last pass has ended */
    const Call *stuck
        [MAX_RANKS]; /**< the call in which a rank would wait for ever if no message were buffered, or NULL */
} StepSchedule;

/** Replays the calls that the ranks made in one place, `where`, with the passes, of which micro, backward and calls are given. Sets
 *  the rest. @return false if some rank is stuck */
bool schedule_replay(const Calls *calls, const Label *where, StepSchedule *schedule);

/** The slots in which a rank has nothing to do until the step ends. */
static inline int64_t idle_slots(const StepSchedule *s, int rank)
{
    return s->length - s->count[rank];
}
