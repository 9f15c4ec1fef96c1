/* Replays a step of a pipeline or of replicas, by slots or at the pace of a cluster. */
#include "grader/judge/mpi/schedule.h"

#include <stdlib.h>

#include "grader/judge/mpi/matching.h"

enum { UNKNOWN = -1 };

/* What a call waits for: the halves of messages that meet it, or the other ranks of its group. */
typedef struct Meeting {
    int rank[2];        /* the ranks of the receive and of the send that it meets, or NOBODY */
    int64_t index[2];   /* of the call that it meets, among all calls of that rank */
    int64_t begin, end; /* of a collective: the parts that belong together */
    int64_t before;     /* likewise: where the parts of the group's previous collective begin */
} Meeting;

typedef struct Replay {
    const Calls *calls;
    const Label *where;
    StepSchedule *schedule;
    Parts together;
    Meeting *meeting[MAX_RANKS]; /* of each call */
    double *made[MAX_RANKS];     /* the time at which each call was made, or UNKNOWN */
    double *over; /* [together.count] by begin: when the collective was over, or UNKNOWN */
    int64_t next[MAX_RANKS]; /* the next call of each rank */
    int next_pass[MAX_RANKS];
    int64_t multiplied[MAX_RANKS]; /* up to now */
    double time[MAX_RANKS];
    Pass since
        [MAX_RANKS]; /* how long the rank has waited since its last pass, and when it began to work */
    double longest[MAX_RANKS];
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

/* In a channel, the sends come first. They meet the receives in order. */
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
    r->over = malloc((size_t)(r->together.count + 1) * sizeof *r->over);
    for (int64_t i = 0, before = 0; i < r->together.count;) {
        const int64_t end = run_end(&r->together, i, same_number);
        r->over[i] = UNKNOWN;
        for (int64_t k = i; k < end; k++) {
            const Part *part = &r->together.part[k];
            Meeting *m = &r->meeting[part->rank][part->index - r->calls->rank[part->rank].first];
            *m = (Meeting){{NOBODY, NOBODY}, {0, 0}, i, end, before};
        }
        before = i;
        i = end;
    }
}

/* ---- when calls are over ------------------------------------------------------------------- */

static bool is_here(const Replay *r, const Call *call)
{
    return label_equal(&call->where, r->where);
}

/* The time at which a rank made a call, or UNKNOWN. Calls of other steps came before this step. */
static double made_at(const Replay *r, int rank, int64_t index)
{
    const Call *call = call_at(r, rank, index);
    if (!is_here(r, call))
        return 0;
    if (r->schedule->pace.late && call->starts && call->number && call->waited_by >= 0)
        index = call->waited_by;
    return r->made[rank][index - r->calls->rank[rank].first];
}

static double later(double a, double b)
{
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : a > b ? a : b;
}

/* A collective begins when all of its ranks have called it and the group's previous one is over. */
static double collective_over(Replay *r, const Meeting *m)
{
    const Part *part = r->together.part;
    double *over = &r->over[m->begin], time = 0;
    if (*over != UNKNOWN)
        return *over;
    if (!r->schedule->pace.late && m->before < m->begin &&
        part[m->before].call->group == part[m->begin].call->group &&
        is_here(r, part[m->before].call))
        time = r->over[m->before];
    for (int64_t k = m->begin; k < m->end; k++)
        time = later(time, made_at(r, part[k].rank, part[k].index));
    if (time != UNKNOWN)
        *over = time + collective_takes(&r->schedule->pace, part[m->begin].call);
    return *over;
}

/* The time at which everything that this call exchanges has arrived. A message leaves when both of
 * its ranks have made their calls. */
static double over_at(Replay *r, int rank, int64_t i)
{
    const Call *call = &r->calls->rank[rank].call[i];
    const Meeting *m = &r->meeting[rank][i];
    const double made = r->made[rank][i] == UNKNOWN ? 0 : r->made[rank][i];
    double time = made;
    if (m->begin < m->end)
        return collective_over(r, m);
    if (call->rule != MESSAGE || call->probes)
        return time;
    for (int half = 0; half < 2; half++) {
        const int other = m->rank[half];
        if ((half ? call->from : call->to) == NOBODY)
            continue;
        double met = other == NOBODY ? UNKNOWN : later(made, made_at(r, other, m->index[half]));
        if (met != UNKNOWN)
            met += message_takes(&r->schedule->pace,
                                 half ? call_at(r, other, m->index[half]) : call, rank, other);
        time = later(time, met);
    }
    return time;
}

/* The time at which a call returns; UNKNOWN if what it waits for is not there yet. A request that a
 * test found complete has no wait. */
static double returns_at(Replay *r, int rank, int64_t i)
{
    const RankCalls *mine = &r->calls->rank[rank];
    double time = r->time[rank];
    if (mine->call[i].starts)
        return time;
    if (mine->call[i].rule != LOCAL)
        return later(time, over_at(r, rank, i));
    for (int64_t k = 0; k < i; k++)
        if (mine->call[k].starts && mine->call[k].waited_by == mine->first + i)
            time = later(time, over_at(r, rank, k));
    return time;
}

/* ---- the ranks ----------------------------------------------------------------------------------------------- */

static void add_span(Intervals *spans, double begin, double end)
{
    if (spans->count < MOST_INTERVALS)
        spans->span[spans->count++] = (Interval){begin, end};
}

/* Work without a pause is one span. */
static void add_work(Intervals *spans, double begin, double end)
{
    Interval *last = spans->count ? &spans->span[spans->count - 1] : NULL;
    if (last && last->end == begin)
        last->end = end;
    else
        add_span(spans, begin, end);
}

/* Lets a rank work for this many seconds or slots. */
static void work(Replay *r, int rank, double seconds)
{
    add_work(&r->schedule->work[rank], r->time[rank], r->time[rank] + seconds);
    if (r->since[rank].begin == NO_TIME)
        r->since[rank].begin = r->time[rank];
    r->time[rank] += seconds;
    r->schedule->busy[rank] += seconds;
}

/* Lets a rank do the work before a call or in a pass, up to this count of multiply-adds. */
static void work_until(Replay *r, int rank, int64_t multiplied)
{
    const double more = (double)multiplied - (double)r->multiplied[rank];
    if (more > 0 && r->schedule->pace.work > 0) {
        work(r, rank, more * r->schedule->pace.work);
        r->multiplied[rank] = multiplied;
    }
}

static const Pass nothing = {.begin = NO_TIME};

static void run_pass(Replay *r, int rank, Pass *pass)
{
    if (r->schedule->pace.work > 0)
        work_until(r, rank, pass->multiplied);
    else
        work(r, rank, 1);
    pass->begin = r->since[rank].begin == NO_TIME ? r->time[rank] : r->since[rank].begin;
    pass->end = r->time[rank];
    pass->waited = r->since[rank].waited;
    pass->waited_in = r->since[rank].waited_in;
    r->since[rank] = nothing;
    r->longest[rank] = 0;
    r->next_pass[rank]++;
}

/* @return whether the call has returned */
static bool make_call(Replay *r, int rank, int64_t i)
{
    const Call *call = &r->calls->rank[rank].call[i];
    work_until(r, rank, call->multiplied);
    if (r->made[rank][i] == UNKNOWN)
        r->made[rank][i] = r->time[rank];
    const double end = returns_at(r, rank, i), waited = end - r->time[rank];
    if (end == UNKNOWN)
        return false;
    if (waited > r->longest[rank]) {
        r->longest[rank] = waited;
        r->since[rank].waited_in = call;
        r->schedule->waited[rank] = waited;
        r->schedule->waited_in[rank] = call;
    }
    r->since[rank].waited += waited;
    r->time[rank] = end;
    r->next[rank]++;
    return true;
}

/* Runs a rank as far as it can. @return whether it has moved */
static bool advance(Replay *r, int rank)
{
    const RankCalls *mine = &r->calls->rank[rank];
    StepSchedule *s = r->schedule;
    bool moved = false;
    for (;;) {
        while (r->next[rank] < mine->count && !is_here(r, &mine->call[r->next[rank]]))
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
    s->length = r->time[rank] > s->length ? r->time[rank] : s->length;
    return moved;
}

static void replay_begin(Replay *r)
{
    for (int rank = 0; rank < r->calls->ranks; rank++) {
        const size_t count = (size_t)r->calls->rank[rank].count;
        r->since[rank] = nothing;
        r->schedule->busy[rank] = 0;
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

static void add_sums(Replay *r)
{
    const RankCalls *mine = &r->calls->rank[0];
    for (int64_t i = 0; r->meeting[0] && i < mine->count; i++) {
        const Meeting *m = &r->meeting[0][i];
        const Call *call = &mine->call[i];
        if (m->begin == m->end || !is_here(r, call) || r->over[m->begin] == UNKNOWN ||
            !are_replicas(call->members, r->schedule->pace.tp))
            continue;
        const double end = r->over[m->begin];
        add_span(&r->schedule->sums, end - collective_takes(&r->schedule->pace, call), end);
    }
}

static void replay_end(Replay *r)
{
    for (int rank = 0; rank < r->calls->ranks; rank++) {
        free(r->meeting[rank]);
        free(r->made[rank]);
    }
    free(r->together.part);
    free(r->over);
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
    add_sums(&r);
    replay_end(&r);
    return complete;
}
