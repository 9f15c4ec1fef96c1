/** @file
 * Makes up the calls and passes of a pipeline's stages, for tests of the schedule's clock.
 */
#pragma once

#include "grader/judge/mpi/schedule.h"
#include "grader/tests/made_up_calls.h"

enum { TAG = 0, COUNT = 6, MOST_MICROS = 6 };
static const Label step = {.of = THE_MODEL, .step = 0};
static StepSchedule schedule;
static int stages;    /* of the pipeline: p */
static bool blocking; /* do sends block? */

static inline void up(void)
{
    begin();
    schedule = (StepSchedule){0};
    stages = 2;
    blocking = false;
}

static inline Call *here(Call *call)
{
    call->where = step;
    return call;
}

/* A pass multiplies once. */
static inline void ran(int rank, int micro, bool backward)
{
    const int before = schedule.count[rank]++;
    schedule.pass[rank][before] = (Pass){.micro = micro,
                                         .backward = backward,
                                         .calls = calls->rank[rank].count,
                                         .multiplied = before + 1};
}

static inline void sends(int rank, int to)
{
    here(a_send(rank, to, TAG, COUNT))->starts = !blocking;
}

/* forward_step() and backward_step() of lab 12. */
static inline void forward(int rank, int micro)
{
    if (rank > 0)
        here(a_receive(rank, rank - 1, TAG, COUNT));
    ran(rank, micro, false);
    if (rank < stages - 1)
        sends(rank, rank + 1);
}

static inline void backward(int rank, int micro)
{
    if (rank < stages - 1)
        here(a_receive(rank, rank + 1, TAG, COUNT));
    ran(rank, micro, true);
    if (rank > 0)
        sends(rank, rank - 1);
}

/* Waits for everything that the rank has started. */
static inline void finishes(int rank)
{
    RankCalls *mine = &calls->rank[rank];
    for (int64_t i = 0; i < mine->count; i++)
        if (mine->call[i].starts) {
            mine->call[i].waited_by = mine->count;
            mine->call[i].completed = 1;
        }
    here(new_call(rank, "wait", LOCAL));
}

static inline void gpipe(int micros)
{
    for (int rank = 0; rank < stages; rank++) {
        for (int i = 0; i < micros; i++)
            forward(rank, i);
        for (int i = 0; i < micros; i++)
            backward(rank, i);
        finishes(rank);
    }
}

static inline void one_f_one_b(int micros)
{
    for (int rank = 0; rank < stages; rank++) {
        const int most = stages - 1 - rank, ahead = micros < most ? micros : most;
        for (int i = 0; i < ahead; i++)
            forward(rank, i);
        for (int i = 0; i < micros; i++) {
            if (i + ahead < micros)
                forward(rank, i + ahead);
            backward(rank, i);
        }
        finishes(rank);
    }
}

static inline bool replayed(void)
{
    return schedule_replay(calls, &step, &schedule);
}

/* The slots that GPipe and 1F1B take. */
static inline int64_t overlapped(int p, int m)
{
    return 2 * (m + p - 1);
}
