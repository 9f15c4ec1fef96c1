/* Lab 13: do ranks of one stage wait in passes of different directions, or stages for each other? */
#include "grader/judge/diagnose/trial.h"
#include "grader/labs/groups.h"
#include "grader/labs/stages.h"

enum { FORWARD_ONE, BACKWARD_ONE, UNKNOWN_ONE }; /* the direction of a pass */

/* How many passes in this direction a rank has completed in the case. */
static int completed(const Trial *t, int rank, bool backward)
{
    int count = 0;
    for (const Entry *entry = NULL; (entry = next_entry(t->outcome->wrote[rank], entry));)
        count += entry->kind == PASS &&
                 entry->label.what == (backward ? BACKWARD_PASS_OF : FORWARD_PASS_OF);
    return count;
}

/* The direction of the pass in which a rank waits. A pass begins with a message from the stage
 * before or after, except forward on the first stage and backward on the last. */
static int direction_of(const Trial *t, int rank)
{
    const Calls *calls = t->outcome->calls;
    const RankCalls *mine = &calls->rank[rank];
    const Call *in = call_of_rank(calls, rank);
    const int stage = stage_of_rank(t->c, rank);
    int received[2] = {0, 0};
    if (!in || mine->first > 0)
        return UNKNOWN_ONE;
    if (in->rule == MESSAGE)
        return in->from < 0 ? UNKNOWN_ONE : in->from < rank ? FORWARD_ONE : BACKWARD_ONE;
    for (int64_t i = 0; i < mine->count; i++)
        if (mine->call[i].rule == MESSAGE && mine->call[i].from >= 0)
            received[mine->call[i].from > rank]++;
    const bool forward = stage > 0 && received[0] > completed(t, rank, false),
               backward = stage < t->c->pp - 1 && received[1] > completed(t, rank, true);
    return forward                 ? FORWARD_ONE
           : backward              ? BACKWARD_ONE
           : stage == 0            ? FORWARD_ONE
           : stage == t->c->pp - 1 ? BACKWARD_ONE
                                   : UNKNOWN_ONE;
}

/* Appends a line if ranks of a tp group wait forever in opposite passes. */
static void append_other_passes(const Trial *t, char *text, size_t size)
{
    const int tp = t->c->tp;
    for (int rank = 0; rank < t->c->world; rank++) {
        const int first = rank / tp * tp, is[2] = {direction_of(t, first), direction_of(t, rank)};
        bool same = is[0] != UNKNOWN_ONE && is[1] != UNKNOWN_ONE;
        for (int backward = 0; backward < 2; backward++)
            same = same && completed(t, first, backward) == completed(t, rank, backward);
        if (!same || is[0] == is[1])
            continue;
        append(
            text, size,
            _("ranks %d and %d are both in stage %d, but rank %d runs a micro-batch forward where "
              "rank %d runs one backward: the ranks of a stage share each pass, so the order of "
              "the passes must depend on pp_rank and pp_degree, not on tp_rank\n"),
            first, rank, stage_of_rank(t->c, rank), is[0] == FORWARD_ONE ? first : rank,
            is[0] == FORWARD_ONE ? rank : first);
        return;
    }
}

/* Appends a sentence if two stages wait for each other. */
static void append_crossing_waits(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    for (int rank = 0; rank < calls->ranks; rank++) {
        const bool sends = ring_of_waits(calls, rank, waits_to_send_to) == 2;
        if (!sends && ring_of_waits(calls, rank, waits_to_receive_from) != 2)
            continue;
        const int other = (sends ? waits_to_send_to : waits_to_receive_from)(calls, rank);
        const Call *in = call_of_rank(calls, rank);
        if (!sends && !label_equal(&in->where, &call_of_rank(calls, other)->where))
            continue;
        append(text, size,
               !sends ? _("the receives cross: rank %d waits to receive from rank %d, which waits "
                          "to receive from rank %d. Has stage_send started a send to both? If so, "
                          "compare the order in which their stages run forward and backward\n")
               : in->rule == LOCAL
                   ? _("the sends cross: rank %d sends to rank %d, which sends to rank %d, "
                       "and each receives only after its own send has been received. Wait for "
                       "the sends only at the end of the step (stage_sends_finish), not after each "
                       "of them\n")
                   : _("the sends cross: rank %d sends to rank %d, which sends to rank %d, "
                       "and each receives only after its own send has been received. A send "
                       "that is only started (stage_send_start) does not wait\n"),
               rank, other, rank);
        return;
    }
}

void micro_batches_ending(const Trial *t, char *text, size_t size)
{
    const size_t used = strlen(text);
    stages_ending(t, text, size);
    if (t->outcome->ending != HUNG || !t->outcome->calls)
        return;
    if (strlen(text) == used) /* no stage has ended without what another one waits for */
        append_crossing_waits(t, text, size);
    if (!has_refused(t))
        append_other_passes(t, text, size);
}
