/* Explains a failed check by how the case ended. */
#include "grader/judge/diagnose/trial.h"
#include "grader/labs/groups.h"

int ring_of_waits(const Calls *calls, int first, int waits_for(const Calls *, int))
{
    int rank = first, length = 0;
    do {
        rank = waits_for(calls, rank);
        length++;
    } while (rank >= 0 && rank != first && length < calls->ranks);
    return rank == first ? length : 0;
}

const char *why_cut_short(const LabResult *result)
{
    return result->cut_short == LOOPED     ? _("a rank computes forever in an earlier one")
           : result->cut_short == HUNG     ? _("ranks wait forever in earlier ones")
           : result->cut_short == COMPLETE ? _("every check has failed in earlier ones")
                                           : _("the lab did not end in time");
}

/* Writes "0, 1 and 3". */
static void list_ranks(uint64_t ranks, char *text, size_t size)
{
    text[0] = '\0';
    for (int rank = 0; rank < MAX_RANKS; rank++)
        if (ranks >> rank & 1) {
            const bool first = !text[0], last = ranks >> rank == 1;
            append(text, size, "%s%d", first ? "" : last ? _(" and ") : ", ", rank);
        }
}

/* Does every chain of ranks that wait for each other end with ranks that have left the case? */
static bool chains_end(const uint64_t lacks[], int ranks, uint64_t left)
{
    uint64_t before;
    do {
        before = left;
        for (int rank = 0; rank < ranks; rank++)
            left |= lacks[rank] & ~left ? 0 : (uint64_t)1 << rank;
    } while (left != before);
    return left + 1 == (uint64_t)1 << ranks;
}

/* Writes who waits for whom, if all wait for ranks that have left the case, directly or in a chain.
 * @return false if ranks wait for each other */
static bool wait_for_those_who_left(const Calls *calls, char *text, size_t size)
{
    uint64_t lacks[MAX_RANKS] = {0}, waiting = 0, lacked = 0, left = 0;
    char those[64], who_left[64];
    for (int rank = 0; calls && rank < calls->ranks; rank++) {
        const uint64_t one = (uint64_t)1 << rank;
        lacks[rank] = calls->rank[rank].left ? 0 : ranks_lacked(calls, rank);
        if (!calls->rank[rank].left && !lacks[rank])
            return false;
        *(lacks[rank] ? &waiting : &left) |= one;
        lacked |= lacks[rank];
    }
    if (!lacked || !chains_end(lacks, calls->ranks, left))
        return false;
    const bool in_chain = lacked & waiting;
    lacked &= left;
    list_ranks(waiting, those, sizeof those);
    list_ranks(lacked, who_left, sizeof who_left);
    const bool one_left = !(lacked & (lacked - 1));
    snprintf(text, size,
             in_chain ? one_left
                            ? _("ranks %s wait forever for rank %s, which has left the case, or "
                                "for a rank that waits for it")
                            : _("ranks %s wait forever for ranks %s, which have left the case, or "
                                "for a rank that waits for them")
             : waiting & (waiting - 1)
                 ? one_left ? _("ranks %s wait forever for rank %s, which has left the case")
                            : _("ranks %s wait forever for ranks %s, which have left the case")
             : one_left ? _("rank %s waits forever for rank %s, which has left the case")
                        : _("rank %s waits forever for ranks %s, which have left the case"),
             those, who_left);
    return true;
}

/* Writes how the case ended. */
static void how_it_ended(const Trial *t, char *text, size_t size)
{
    static const char *const endings[] = {[COMPLETE] = N_("the case did not run to completion"),
                                          [CRASHED] = N_("the program crashed"),
                                          [HUNG] = N_("the ranks wait for each other forever"),
                                          [LOOPED] = N_("a rank computes forever"),
                                          [OVERDUE] = N_("the lab did not end in time"),
                                          [STOPPED] = N_("the program was stopped"),
                                          [NOT_RUN] = N_("the case was not run, since %s")};
    const Ending ending = t->outcome->ending;
    if (ending != HUNG || !wait_for_those_who_left(t->outcome->calls, text, size))
        snprintf(text, size, _(endings[ending]), why_cut_short(t->result));
}

/* Appends a line if a rank waits in a collective for a rank that waits for its message. */
static void append_crossed(const Calls *calls, char *text, size_t size)
{
    char one[300];
    for (int rank = 0; calls && rank < calls->ranks; rank++) {
        const Call *in = call_of_rank(calls, rank);
        const uint64_t lacks = in && in->number ? ranks_lacked(calls, rank) : 0;
        for (int other = 0; other < calls->ranks; other++) {
            if (!(lacks >> other & 1) || waits_to_receive_from(calls, other) != rank)
                continue;
            call_text(calls, in, NULL, one, sizeof one);
            append(
                text, size,
                _("rank %d waits in the %s until rank %d calls it, but rank %d first waits for a "
                  "message from rank %d\n"),
                rank, one, other, other, rank);
            return;
        }
    }
}

void ending_text(const Trial *t, char *text, size_t size)
{
    const char *const diagnosis = t->outcome->diagnosis, *difference = strchrnul(diagnosis, '\n');
    char waits[64], ending[300], cause[900], refusal[1400];
    how_it_ended(t, ending, sizeof ending);
    snprintf(waits, sizeof waits, _("waits in %s"), "split");
    text[0] = '\0';
    if (tell_call_beyond_group(t, text, size))
        append(text, size, "\n");
    if (t->result->lab->examine.ending)
        t->result->lab->examine.ending(t, text, size);
    const bool left_out = append_left_out(t, text, size); /* then it is the first difference */
    if (refusal_text(t->c, t->outcome, refusal, sizeof refusal)) {
        append_cause_of_refusal(t, text, size);
        if (miscut_parameter(t, cause, sizeof cause) ||
            misdeclared_parameter(t, cause, sizeof cause))
            append(text, size, "%s\n", cause);
        append(text, size, "%s", refusal);
        if (!left_out)
            append_mismatch(t, text, size);
    } else if (t->result->lab->has_replicas && strstr(diagnosis, waits)) {
        append(text, size,
               _("some ranks did not join the creation of the groups, which is collective; %s: %s"),
               ending, diagnosis);
    } else {
        if (t->outcome->ending == HUNG && open_request_text(t, cause, sizeof cause))
            append(text, size, "%s\n", cause);
        if (t->outcome->ending == HUNG)
            append_crossed(t->outcome->calls, text, size);
        /* before the list of who waits where */
        if (*difference && !left_out)
            append(text, size, "%s\n", difference + 1);
        append(text, size, "%s%s%.*s", ending, difference > diagnosis ? _(": ") : "",
               (int)(difference - diagnosis), diagnosis);
    }
}
