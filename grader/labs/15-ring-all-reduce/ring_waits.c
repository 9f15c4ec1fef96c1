/* Lab 15: does each rank of a ring wait for the next one? */
#include "grader/labs/15-ring-all-reduce/ring_checks.h"

/* Has this rank started a send in the pass in which it waits? */
static bool has_sent_here(const Calls *calls, int rank)
{
    const Call *in = call_of_rank(calls, rank);
    for (int64_t i = 0; i < calls->rank[rank].count; i++)
        if (calls->rank[rank].call[i].to >= 0 &&
            label_equal(&calls->rank[rank].call[i].where, &in->where))
            return true;
    return false;
}

/* Does each rank wait to receive from the rank to which its last send in this call goes? */
static bool receive_from_receiver(const Calls *calls)
{
    for (int rank = 0; rank < calls->ranks; rank++) {
        const Call *in = call_of_rank(calls, rank), *sent = NULL;
        for (int64_t i = 0; in && i < calls->rank[rank].count; i++)
            if (calls->rank[rank].call[i].to >= 0 &&
                label_equal(&calls->rank[rank].call[i].where, &in->where))
                sent = &calls->rank[rank].call[i];
        if (!sent || sent->completed || sent->to != waits_to_receive_from(calls, rank))
            return false;
    }
    return true;
}

void ring_ending(const Trial *t, char *text, size_t size)
{
    const Calls *calls = t->outcome->calls;
    for (int part = 0; part < RING_PARTS; part++)
        for (int call = 0; call < RING_CALLS_OF_PART; call++)
            if (tell_too_few(t, part, call, text, size)) {
                append(text, size, "\n");
                return;
            }
    if (t->outcome->ending != HUNG || !calls)
        return;
    for (int rank = 0; rank < calls->ranks; rank++) {
        const int sends = ring_of_waits(calls, rank, waits_to_send_to),
                  receives = ring_of_waits(calls, rank, waits_to_receive_from);
        if (!sends && receives > 2 && receive_from_receiver(calls)) {
            append(
                text, size,
                _("each rank sends to one neighbour and waits to receive from the same one, which "
                  "sends to the next: receive from the other neighbour\n"));
            return;
        }
        if (!sends && (!receives || has_sent_here(calls, rank)))
            continue;
        append(text, size,
               !sends ? _("the receives go around the ring: each of %d ranks waits to receive "
                          "before it sends. Start the send (group_send_start) before the "
                          "receive\n")
               : call_of_rank(calls, rank)->rule == LOCAL
                   ? _("the sends go around the ring: each of %d ranks waits until the next one "
                       "receives, and none receives before its own send completes. Wait for the "
                       "send (pending_wait) after the receive\n")
                   : _("the sends go around the ring: each of %d ranks waits until the next one "
                       "receives, and none receives before its own send completes. A send that is "
                       "only started (group_send_start) does not wait\n"),
               sends ? sends : receives);
        return;
    }
}
