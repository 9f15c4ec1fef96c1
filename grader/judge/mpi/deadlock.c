/* If all ranks wait: can one of them still progress? */
#include <stdlib.h>

#include "grader/judge/mpi/matching.h"

typedef struct Look {
    const Calls *calls;
    Parts together, messages;
    bool is_clear; /* there are few enough messages to look for the counterpart of each */
} Look;

/* A lab's case has a few dozen messages. The search of counterparts takes the cube of their
 * number. */
static Look look_at(const Calls *calls)
{
    enum { MOST_MESSAGES = 300 };
    const Parts messages = messages_of(calls);
    return (Look){calls, together_of(calls), messages, messages.count <= MOST_MESSAGES};
}

/* Did MPI reject this call? Then its rank entered it, and left the case without returning. */
static bool was_refused(const Look *look, const Part *part)
{
    return look->calls->rank[part->rank].left && !part->call->returned;
}

/* The ranks that have entered this call of their group. Sets *fits to whether their arguments
 * agree. */
static uint64_t ranks_in(const Look *look, const Part *mine, bool *fits)
{
    uint64_t in = 0;
    int64_t count;
    const Part *others = with_number(&look->together, mine, &count);
    *fits = true;
    for (int64_t i = 0; i < count; i++) {
        const Part *other = &others[i];
        if (was_refused(look, other))
            continue;
        in |= (uint64_t)1 << other->rank;
        *fits = *fits && misfit(mine, other) == NO_DIFFERENCE;
    }
    return in;
}

/* The outlook without the `missing` ranks. If numbers flow one way only, a rank may finish before
 * others have arrived. */
static Outlook outlook_without(const Part *mine, uint64_t missing)
{
    const Call *call = mine->call;
    if (call->root < 0)
        return strstr(call->name, "scan") ? SOME : NONE_LEFT;
    bool is_root = call->root == mine->rank, sends = false;
    for (int r = 0; r < MAX_RANKS; r++)
        sends = sends || call->sent[r].count > 0;
    bool from_root = call->rule == EXCHANGE && is_root == sends;
    if (from_root)
        return missing >> call->root & 1 ? NONE_LEFT : SOME;
    return is_root ? NONE_LEFT : SOME;
}

/* Does this call move no numbers? Then MPI may return from it at once. */
static bool moves_nothing(const Call *call)
{
    int64_t count = 0;
    for (int r = 0; r < MAX_RANKS; r++)
        count += call->sent[r].count + call->received[r].count;
    return call->rule != TOGETHER && count == 0;
}

/* Has a rank started this call and left the case before the call was complete? Such a rank no
 * longer progresses MPI. */
static bool was_abandoned(const Look *look, const Part *mine)
{
    int64_t count;
    const Part *others = with_number(&look->together, mine, &count);
    for (int64_t i = 0; i < count; i++)
        if (look->calls->rank[others[i].rank].left && others[i].call->starts &&
            !others[i].call->completed)
            return true;
    return false;
}

static Outlook outlook_together(const Look *look, const Part *mine)
{
    bool fits;
    uint64_t missing = mine->call->members & ~ranks_in(look, mine, &fits);
    if (!fits)
        return UNLIKELY;
    if (missing && moves_nothing(mine->call))
        return SOME;
    if (!missing)
        return was_abandoned(look, mine) ? SOME : ALL_THERE;
    return has_lost(look->calls, missing) ? SOME : outlook_without(mine, missing);
}

/* Could one of these parts be the receive of the other's message? Wildcards match any rank or
 * tag. */
static bool could_meet(const Part *mine, const Part *other)
{
    const Part *sent = mine->receives ? other : mine, *received = mine->receives ? mine : other;
    return sent->receives != received->receives && sent->call->group == received->call->group &&
           sent->call->to == received->rank &&
           (received->call->from == ANYBODY || received->call->from == sent->rank) &&
           (received->call->from_tag == ANY_TAG || received->call->from_tag == sent->call->to_tag);
}

/* Did this part come before mine on the same rank, and could it take (or has it taken) a
 * counterpart of mine? */
static bool comes_before(const Look *look, const Part *part, const Part *mine)
{
    if (part->receives != mine->receives || part->rank != mine->rank ||
        part->index >= mine->index || part->call->group != mine->call->group)
        return false;
    if (!mine->receives)
        return part->call->to == mine->call->to && part->call->to_tag == mine->call->to_tag;
    for (int64_t i = 0; i < look->messages.count; i++)
        if (could_meet(mine, &look->messages.part[i]) && could_meet(part, &look->messages.part[i]))
            return true;
    return false;
}

/* Has the rank at the other end left the case? Then it no longer progresses MPI: it receives
 * nothing, and never sends the rest of a large message that it has started. */
static bool other_end_is_lost(const Look *look, const Part *mine)
{
    if (!mine->receives)
        return !call_of_rank(look->calls, mine->call->to);
    for (int64_t i = 0; i < look->messages.count; i++) {
        const Part *part = &look->messages.part[i];
        if (could_meet(mine, part) && look->calls->rank[part->rank].left && part->call->starts &&
            !part->call->completed)
            return true;
    }
    return false;
}

/* Is there a counterpart for this half, besides those taken by earlier halves? */
static Outlook outlook_of_message(const Look *look, const Part *mine)
{
    if (!look->is_clear)
        return SOME;
    int64_t others = 0, earlier = 0;
    for (int64_t i = 0; i < look->messages.count; i++) {
        const Part *part = &look->messages.part[i];
        others += part->receives != mine->receives && could_meet(mine, part);
        earlier += comes_before(look, part, mine);
    }
    uint64_t ranks = (uint64_t)1 << mine->rank;
    int other = mine->receives ? mine->call->from : mine->call->to;
    ranks |= other >= 0 ? (uint64_t)1 << other : ~(uint64_t)0;
    if (others > earlier)
        return other_end_is_lost(look, mine) ? SOME : ALL_THERE;
    const bool may_be_buffered = mine->call->starts && !mine->call->synchronous;
    if (!mine->receives && may_be_buffered)
        return SOME;
    bool loose = false; /* a wildcard receive, whose message is unknown */
    for (int64_t i = 0; i < look->messages.count; i++)
        loose = loose ||
                (is_loose(&look->messages.part[i]) && could_meet(mine, &look->messages.part[i]));
    return loose || has_lost(look->calls, ranks) ? SOME : NONE_LEFT;
}

static Outlook outlook_of_call(const Look *look, const Call *call, int rank, int64_t index)
{
    if (call->number)
        return outlook_together(look, &(Part){call, rank, index, false});
    Outlook send =
        call->to >= 0 ? outlook_of_message(look, &(Part){call, rank, index, false}) : ALL_THERE;
    Outlook receive = call->from != NOBODY
                          ? outlook_of_message(look, &(Part){call, rank, index, true})
                          : ALL_THERE;
    return send < receive ? send : receive;
}

/* The worst outlook of all requests that this call waits for. If any one of them ends the wait, the
 * best outlook. */
static Outlook outlook_of_wait(const Look *look, const Call *wait, int rank)
{
    const RankCalls *mine = &look->calls->rank[rank];
    int64_t index = mine->first + mine->count - 1;
    Outlook worst = ALL_THERE, best = NONE_LEFT;
    bool any = false;
    for (int64_t i = 0; i < mine->count; i++) {
        const Call *call = &mine->call[i];
        if (!is_waited_for(call, index))
            continue;
        Outlook outlook = outlook_of_call(look, call, rank, mine->first + i);
        worst = outlook < worst ? outlook : worst;
        best = outlook > best ? outlook : best;
        any = true;
    }
    return !any ? SOME : wait->some ? best : worst;
}

/* The ranks that have not done their part of a call. */
static uint64_t lacked_in_call(const Look *look, const Call *call, int rank, int64_t index)
{
    const Part send = {call, rank, index, false}, receive = {call, rank, index, true};
    uint64_t lacked = 0;
    bool fits;
    if (call->number)
        return call->members & ~ranks_in(look, &send, &fits);
    if (!look->is_clear)
        return 0;
    if (call->to >= 0 && outlook_of_message(look, &send) != ALL_THERE)
        lacked |= (uint64_t)1 << call->to;
    if (call->from != NOBODY && outlook_of_message(look, &receive) != ALL_THERE)
        lacked |=
            call->from >= 0 ? (uint64_t)1 << call->from : call->members & ~((uint64_t)1 << rank);
    return lacked;
}

uint64_t ranks_lacked(const Calls *calls, int rank)
{
    const RankCalls *mine = &calls->rank[rank];
    const Call *in = call_of_rank(calls, rank);
    const int64_t last = mine->first + mine->count - 1;
    if (!in)
        return 0;
    Look look = look_at(calls);
    uint64_t lacked = in->rule == LOCAL ? 0 : lacked_in_call(&look, in, rank, last);
    for (int64_t i = 0; i < mine->count; i++)
        if (is_waited_for(&mine->call[i], last))
            lacked |= lacked_in_call(&look, &mine->call[i], rank, mine->first + i);
    free(look.together.part);
    free(look.messages.part);
    return lacked;
}

Outlook outlook_of(const Calls *calls)
{
    Look look = look_at(calls);
    Outlook outlook = NONE_LEFT;
    for (int r = 0; r < calls->ranks; r++) {
        const Call *call = call_of_rank(calls, r);
        if (!call)
            continue;
        Outlook mine =
            call->rule == LOCAL
                ? outlook_of_wait(&look, call, r)
                : outlook_of_call(&look, call, r, calls->rank[r].first + calls->rank[r].count - 1);
        if (call->polls && mine < SOME)
            mine = SOME;
        outlook = mine > outlook ? mine : outlook;
    }
    free(look.together.part);
    free(look.messages.part);
    return outlook;
}
