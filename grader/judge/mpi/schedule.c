/* Replays a step of a pipeline, slot by slot. */
#include "grader/judge/mpi/schedule.h"

#include <stdlib.h>

#include "grader/judge/mpi/matching.h"

enum { UNKNOWN = -1 };

/* What a call waits for: the halves of messages that meet it, or the other ranks of its group. */
typedef struct Meeting {
    int rank[2];      /* who has the other half of what it sends, of what it receives; or NOBODY */
    int64_t index[2]; /* of that call */
    int64_t begin, end; /* of a collective: the parts that belong together */
} Meeting;

typedef struct Replay {
    const Calls *calls;
    const Label *where;
    StepSchedule *schedule;
    Parts together;
    Meeting *meeting[MAX_RANKS]; /* of each call */
    int64_t *made[MAX_RANKS];    /* the time at which each call was made, or UNKNOWN */
    int64_t next[MAX_RANKS];     /* call */
    int next_pass[MAX_RANKS];
    int64_t time[MAX_RANKS];
    Pass since[MAX_RANKS]; /* what the rank has waited since its last pass */
    int64_t longest[MAX_RANKS];
} Replay;

static const Call *call_at(const Replay *r, int rank, int64_t index)
{
    return &r->calls->rank[rank].call[index - r->calls->rank[rank].first];
}

static void meet(Replay *r, const Part *part, int half, const Part *other)
{
    Meeting *m = &r->meeting[part->rank][part->index - r->calls->rank[part->rank].first];
    m->rank[half] = other->rank;
    m->index[half] = other->index;
}

/* In a channel the sends come first, and the first one meets the first receive. */
static void match_messages(Replay *r)
{
    Parts all = messages_of(r->calls);
    for (int64_t i = 0; i < all.count;) {
        const int64_t end = run_end(&all, i, same_channel);
        int64_t receive = i;
        while (receive < end && !all.part[receive].receives)
            receive++;
        for (int64_t send = i, first = receive; send < first && receive < end; send++, receive++) {
            meet(r, &all.part[send], 0, &all.part[receive]);
            meet(r, &all.part[receive], 1, &all.part[send]);
        }
        i = end;
    }
    free(all.part);
}

static void match_collectives(Replay *r)
{
    r->together = together_of(r->calls);
    for (int64_t i = 0; i < r->together.count;) {
        const int64_t end = run_end(&r->together, i, same_number);
        for (int64_t k = i; k < end; k++) {
            const Part *part = &r->together.part[k];
            Meeting *m = &r->meeting[part->rank][part->index - r->calls->rank[part->rank].first];
            m->begin = i;
            m->end = end;
        }
        i = end;
    }
}

/* The time of a call that another rank has made, or UNKNOWN. Those of other steps were made before this one. */
static int64_t made_at(const Replay *r, int rank, int64_t index)
{
    if (!label_equal(&call_at(r, rank, index)->where, r->where))
        return 0;
    return r->made[rank][index - r->calls->rank[rank].first];
}

static int64_t later(int64_t a, int64_t b)
{
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : a > b ? a : b;
}

/* When everything that this call exchanges has met its counterpart. */
static int64_t met_at(const Replay *r, int rank, int64_t i)
{
    const Call *call = &r->calls->rank[rank].call[i];
    const Meeting *m = &r->meeting[rank][i];
    int64_t time = r->made[rank][i] == UNKNOWN ? 0 : r->made[rank][i];
    for (int64_t k = m->begin; k < m->end; k++)
        time = later(time, made_at(r, r->together.part[k].rank, r->together.part[k].index));
    if (call->rule != MESSAGE || call->probes)
        return time;
    for (int half = 0; half < 2; half++)
        if ((half ? call->from : call->to) != NOBODY)
            time = later(time, m->rank[half] == NOBODY ? UNKNOWN
                                                       : made_at(r, m->rank[half], m->index[half]));
    return time;
}

/* When a call returns; UNKNOWN if what it waits for is not there yet. A request that a test has found complete was not waited for. */
static int64_t returns_at(const Replay *r, int rank, int64_t i)
{
    const RankCalls *mine = &r->calls->rank[rank];
    int64_t time = r->time[rank];
    if (mine->call[i].starts)
        return time;
    if (mine->call[i].rule != LOCAL)
        return later(time, met_at(r, rank, i));
    for (int64_t k = 0; k < i; k++)
        if (mine->call[k].starts && mine->call[k].waited_by == mine->first + i)
            time = later(time, met_at(r, rank, k));
    return time;
}

static void run_pass(Replay *r, int rank, Pass *pass)
{
    pass->slot = r->time[rank]++;
    pass->waited = r->since[rank].waited;
    pass->waited_in = r->since[rank].waited_in;
    r->since[rank] = (Pass){0};
    r->longest[rank] = 0;
    r->next_pass[rank]++;
    if (r->time[rank] > r->schedule->length)
        r->schedule->length = r->time[rank];
}

/* @return whether the call has returned */
static bool make_call(Replay *r, int rank, int64_t i)
{
    if (r->made[rank][i] == UNKNOWN)
        r->made[rank][i] = r->time[rank];
    const int64_t end = returns_at(r, rank, i), waited = end - r->time[rank];
    if (end == UNKNOWN)
        return false;
    if (waited > r->longest[rank]) {
        r->longest[rank] = waited;
        r->since[rank].waited_in = &r->calls->rank[rank].call[i];
    }
    r->since[rank].waited += waited;
    r->time[rank] = end;
    r->next[rank]++;
    return true;
}

/* Runs a rank as far as it comes. @return whether it has moved */
static bool advance(Replay *r, int rank)
{
    const RankCalls *mine = &r->calls->rank[rank];
    StepSchedule *s = r->schedule;
    bool moved = false;
    for (;;) {
        while (r->next[rank] < mine->count &&
               !label_equal(&mine->call[r->next[rank]].where, r->where))
            r->next[rank]++;
        const bool calls_left = r->next[rank] < mine->count;
        Pass *pass =
            r->next_pass[rank] < s->count[rank] ? &s->pass[rank][r->next_pass[rank]] : NULL;
        if (pass && (!calls_left || pass->calls <= mine->first + r->next[rank]))
            run_pass(r, rank, pass);
        else if (!calls_left || !make_call(r, rank, r->next[rank]))
            break;
        moved = true;
    }
    s->stuck[rank] = r->next[rank] < mine->count ? &mine->call[r->next[rank]] : NULL;
    return moved;
}

static void replay_begin(Replay *r)
{
    for (int rank = 0; rank < r->calls->ranks; rank++) {
        const size_t count = (size_t)r->calls->rank[rank].count;
        r->meeting[rank] = malloc((count + 1) * sizeof *r->meeting[rank]);
        r->made[rank] = malloc((count + 1) * sizeof *r->made[rank]);
        for (size_t i = 0; i < count; i++) {
            r->meeting[rank][i] = (Meeting){.rank = {NOBODY, NOBODY}};
            r->made[rank][i] = UNKNOWN;
        }
    }
    match_messages(r);
    match_collectives(r);
}

static void replay_end(Replay *r)
{
    for (int rank = 0; rank < r->calls->ranks; rank++) {
        free(r->meeting[rank]);
        free(r->made[rank]);
    }
    free(r->together.part);
}

bool schedule_replay(const Calls *calls, const Label *where, StepSchedule *schedule)
{
    Replay r = {.calls = calls, .where = where, .schedule = schedule};
    bool moved = true, complete = true;
    schedule->ranks = calls->ranks;
    schedule->length = 0;
    replay_begin(&r);
    while (moved) {
        moved = false;
        for (int rank = 0; rank < calls->ranks; rank++)
            moved = advance(&r, rank) || moved;
    }
    for (int rank = 0; rank < calls->ranks; rank++)
        complete = complete && !schedule->stuck[rank];
    replay_end(&r);
    return complete;
}
