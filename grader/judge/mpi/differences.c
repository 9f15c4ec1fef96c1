/* The first call on which ranks disagree. */
#include <math.h>
#include <stdlib.h>

#include "base/language.h"
#include "grader/judge/mpi/matching.h"
#include "grader/labs/groups.h"
#include "grader/labs/labels.h"

typedef struct Search {
    const Calls *calls;
    bool ended, places, lines;
    Difference first, alone; /* the first of all; the first message without a counterpart */
    int64_t time, time_alone;
} Search;

static void keep_earlier(Difference *kept, int64_t *kept_time, Difference found, int64_t time)
{
    if (kept->kind != NO_DIFFERENCE && time >= *kept_time)
        return;
    *kept = found;
    *kept_time = time;
}

static void found(Search *s, DifferenceKind kind, const Part *a, const Part *b, int rank)
{
    int64_t time = b && b->call->time < a->call->time ? b->call->time : a->call->time;
    Difference found = {kind, {a->rank, b ? b->rank : rank}, {a->call, b ? b->call : NULL}};
    keep_earlier(&s->first, &s->time, found, time);
    if (kind == NEVER_RECEIVED || kind == NEVER_SENT)
        keep_earlier(&s->alone, &s->time_alone, found, time);
}

/* ---- calls of a group ----------------------------------------------------------------------------------------------- */

static DifferenceKind difference_of(const Search *s, const Part *a, const Part *b)
{
    DifferenceKind kind = misfit(a, b);
    if (kind == NO_DIFFERENCE && s->places && !label_equal(&a->call->where, &b->call->where))
        return OTHER_PLACE;
    if (kind == NO_DIFFERENCE && s->lines && a->call->address != b->call->address)
        return OTHER_LINE;
    return kind;
}

/* The index of the part with which most parts agree. */
static int64_t usual_one(const Search *s, const Parts *all, int64_t begin, int64_t end)
{
    int64_t best = begin, most = -1;
    for (int64_t i = begin; i < end; i++) {
        int64_t agree = 0;
        for (int64_t k = begin; k < end; k++)
            agree += difference_of(s, &all->part[i], &all->part[k]) == NO_DIFFERENCE;
        if (agree > most) {
            most = agree;
            best = i;
        }
    }
    return best;
}

static void look_at_call(Search *s, const Parts *all, int64_t begin, int64_t end)
{
    const Part *usual = &all->part[usual_one(s, all, begin, end)];
    uint64_t here = 0;
    for (int64_t i = begin; i < end; i++) {
        here |= (uint64_t)1 << all->part[i].rank;
        DifferenceKind kind = difference_of(s, usual, &all->part[i]);
        if (kind != NO_DIFFERENCE)
            found(s, kind, usual, &all->part[i], 0);
    }
    uint64_t missing = usual->call->members & ~here;
    if (!s->ended || !missing || has_lost(s->calls, missing))
        return;
    for (int r = 0; r < s->calls->ranks; r++)
        if (missing >> r & 1)
            found(s, NEVER_CALLED, usual, NULL, r);
}

static void look_at_groups(Search *s)
{
    Parts all = together_of(s->calls);
    for (int64_t i = 0; i < all.count;) {
        int64_t end = run_end(&all, i, same_number);
        look_at_call(s, &all, i, end);
        i = end;
    }
    free(all.part);
}

/* ---- messages ------------------------------------------------------------------------------------------------------- */

static bool takes_from_anybody(const Parts *all, const Part *sent)
{
    for (int64_t i = 0; i < all->count; i++)
        if (is_loose(&all->part[i]) && all->part[i].rank == sent->call->to &&
            all->part[i].call->group == sent->call->group)
            return true;
    return false;
}

static void look_at_channel(Search *s, const Parts *all, int64_t begin, int64_t end)
{
    int64_t receives = begin;
    while (receives < end && !all->part[receives].receives)
        receives++;
    int64_t sent = receives - begin, received = end - receives,
            both = sent < received ? sent : received;
    const Part *one = &all->part[begin], *other = &all->part[receives];
    uint64_t ranks = (uint64_t)1 << one->rank;
    ranks |= (uint64_t)1 << (one->receives ? one->call->from : one->call->to);
    if (has_lost(s->calls, ranks))
        return;
    for (int64_t k = 0; k < both; k++) {
        DifferenceKind kind = misfit_of_message(&one[k].call->sent[0], &other[k].call->received[0]);
        if (kind == NO_DIFFERENCE && one[k].call->ready && other[k].call->time > one[k].call->time)
            kind = NOT_YET_RECEIVED;
        if (kind != NO_DIFFERENCE)
            found(s, kind, &one[k], &other[k], 0);
    }
    if (s->ended && sent > received && !takes_from_anybody(all, &one[both]))
        found(s, NEVER_RECEIVED, &one[both], NULL, one[both].call->to);
    if (s->ended && received > sent)
        found(s, NEVER_SENT, &other[both], NULL, other[both].call->from);
}

static void look_at_messages(Search *s)
{
    Parts all = messages_of(s->calls);
    for (int64_t i = 0; i < all.count;) {
        int64_t end = run_end(&all, i, same_channel);
        if (!is_loose(&all.part[i]))
            look_at_channel(s, &all, i, end);
        i = end;
    }
    free(all.part);
}

static bool waits_for(const Calls *calls, int rank, const Call *call)
{
    return !call->returned ||
           is_waited_for(call, calls->rank[rank].first + calls->rank[rank].count - 1);
}

static Difference search(Search s)
{
    if (!s.calls)
        return (Difference){0};
    look_at_groups(&s);
    look_at_messages(&s);
    /* A rank that waits for a message makes no other call, so the message is the cause. */
    bool waits = s.first.kind == NEVER_CALLED && s.alone.kind != NO_DIFFERENCE &&
                 s.alone.rank[0] == s.first.rank[1] &&
                 waits_for(s.calls, s.alone.rank[0], s.alone.call[0]);
    return waits ? s.alone : s.first;
}

Difference first_error(const Calls *calls, bool ended)
{
    return search((Search){.calls = calls, .ended = ended});
}

Difference first_difference(const Calls *calls, bool ended, bool lines)
{
    return search((Search){.calls = calls, .ended = ended, .places = true, .lines = lines});
}

/* ---- values of a tp group ---------------------------------------------------------------------------------------- */

/* What rounding explains, relative to the sum of all absolute values. */
static const double alike = 1e-5;

static bool same_place(const TapeOperation *a, const TapeOperation *b)
{
    return !strcmp(a->name, b->name) && a->address == b->address && a->back == b->back;
}

/* Should this result, or its gradient, be the same on every rank? The gradient of a partial sum
 * should, the gradient of a copy should not. */
static bool is_called_whole(const TapeOperation *o)
{
    return (o->output.kind == WHOLE || o->output.kind == (o->back ? PARTIAL : COPIED)) &&
           !o->output.integers && o->output.size >= 0;
}

static bool same_numbers(const TapeTensor *a, const TapeTensor *b)
{
    if (isnan(a->sum[0]) && isnan(b->sum[0]))
        return true;
    return fabs(a->sum[0] - b->sum[0]) <= alike * fmax(a->size, b->size);
}

/* The index of the first operation whose result, or its gradient, two ranks hold differently, or
 * -1. Stops where they do different things. */
static int64_t first_other(const RankCalls *a, const RankCalls *b, bool only_results)
{
    for (int64_t i = 0; i < a->operations_count && i < b->operations_count; i++) {
        const TapeOperation *x = &a->operation[i], *y = &b->operation[i];
        if (!same_place(x, y))
            return -1;
        if (is_called_whole(x) && is_called_whole(y) && !(only_results && x->back) &&
            !same_numbers(&x->output, &y->output))
            return i;
    }
    return -1;
}

bool replicas_diverge(const Calls *calls, const Case *c, bool only_results, char *text, size_t size)
{
    for (int rank = 0; rank < calls->ranks; rank++) {
        int first = tp_group(c, rank).first;
        int64_t i = first_other(&calls->rank[first], &calls->rank[rank], only_results);
        if (i < 0)
            continue;
        const TapeOperation *o = &calls->rank[first].operation[i];
        const char *line = line_of(o->address);
        snprintf(text, size,
                 o->back ? _("ranks %d and %d hold different gradients of a tensor "
                             "declared whole, from %s on (the result of %s)")
                         : _("ranks %d and %d hold different values of a tensor "
                             "declared whole, from %s on (the result of %s)"),
                 first, rank, line[0] ? line : _("an operation of the lab"), o->name);
        return true;
    }
    return false;
}

/* ---- as text -------------------------------------------------------------------------------------------------------- */

static void append_place(char *text, size_t size, const Call *call)
{
    char words[LABEL_SIZE];
    if (call->where.of != NOTHING)
        append(text, size, _(", in %s"), label_text(&call->where, words));
}

/* Appends the call that the other rank is in, or its last call in this group. */
static void append_last(const Calls *calls, const Difference *d, char *text, size_t size)
{
    char other[400];
    const RankCalls *mine = &calls->rank[d->rank[1]];
    const Call *in = call_of_rank(calls, d->rank[1]), *last = NULL;
    for (int64_t i = 0; i < mine->count && d->call[0]->number; i++)
        if (mine->call[i].group == d->call[0]->group && mine->call[i].number)
            last = &mine->call[i];
    if (in) {
        append(text, size, "%s", _(" and "));
        append_waiting(calls, d->rank[1], text, size);
    } else if (last) {
        call_text(calls, last, d->call[0], other, sizeof other);
        append(text, size, _("; its last was %s"), other);
    }
}

static const char *lesson(DifferenceKind kind)
{
    static const char *const lessons[] = {
        [OTHER_OPERATION] = N_("all ranks of a group must make the same calls in the same order"),
        [OTHER_ROOT] = N_("the root must be the same on every rank"),
        [OTHER_REDUCTION] = N_("the operation must be the same on every rank"),
        [OTHER_TYPE] = N_("the types do not match: the bytes of one type are read as the other"),
        [OTHER_COUNT] = N_("the counts do not match"),
        [NEVER_CALLED] = N_("all ranks of a group must call its collectives"),
        [NEVER_RECEIVED] = N_("each send needs its receive"),
        [NEVER_SENT] = N_("each receive needs its send"),
        [NOT_YET_RECEIVED] = N_("a ready send may start only after its receive has been posted"),
        [OTHER_PLACE] = N_("the calls were matched in the wrong order"),
        [OTHER_LINE] = N_("were these calls meant to match?"),
    };
    return _(lessons[kind]);
}

static int64_t messages_with_tag(const RankCalls *of, bool sends, const Call *like, int peer,
                                 int tag)
{
    int64_t count = 0;
    for (int64_t i = 0; i < of->count; i++) {
        const Call *call = &of->call[i];
        count += call->rule == MESSAGE && call->group == like->group &&
                 (sends ? call->to == peer && call->to_tag == tag
                        : call->from == peer && call->from_tag == tag);
    }
    return count;
}

/* A message that the other rank has sent to the receiver, and that has another tag. */
static const Call *sent_with_another_tag(const Calls *calls, const Difference *d)
{
    const RankCalls *mine = &calls->rank[d->rank[0]], *others = &calls->rank[d->rank[1]];
    const Call *receive = d->call[0];
    for (int64_t i = 0; d->kind == NEVER_SENT && i < others->count; i++) {
        const Call *send = &others->call[i];
        if (send->rule == MESSAGE && send->group == receive->group && send->to == d->rank[0] &&
            send->to_tag != receive->from_tag &&
            messages_with_tag(others, true, send, d->rank[0], send->to_tag) >
                messages_with_tag(mine, false, send, d->rank[1], send->to_tag))
            return send;
    }
    return NULL;
}

/* If the other rank is in the other half of this message, or has sent it, with another tag or in
 * another communicator, appends both tags, or says so. */
static bool append_tags(const Calls *calls, const Difference *d, char *text, size_t size)
{
    const Call *in = call_of_rank(calls, d->rank[1]), *sent = sent_with_another_tag(calls, d);
    const bool sends = d->kind == NEVER_RECEIVED;
    if (!sent && (!in || in->rule != MESSAGE || (!sends && d->kind != NEVER_SENT) ||
                  (sends ? in->from : in->to) != d->rank[0]))
        return false;
    const Call *send = sent ? sent : sends ? d->call[0] : in, *receive = sends ? in : d->call[0];
    if (send->group != receive->group) {
        append(text, size, "%s",
               _(": the send and the receive are in different communicators, so they never meet"));
        return true;
    }
    if (receive->from_tag < 0 || receive->from_tag == send->to_tag)
        return false;
    append(text, size, _(": the send has tag %d, the receive tag %d"), send->to_tag,
           receive->from_tag);
    return true;
}

bool difference_text(const Calls *calls, const Difference *d, char *text, size_t size)
{
    if (d->kind == NO_DIFFERENCE)
        return false;
    char one[400], other[400];
    const bool place =
        d->call[1] &&
        (d->kind == OTHER_PLACE || d->kind == OTHER_OPERATION ||
         (d->kind == OTHER_COUNT && !label_equal(&d->call[0]->where, &d->call[1]->where)));
    call_text(calls, d->call[0], NULL, one, sizeof one);
    snprintf(text, size,
             call_of_rank(calls, d->rank[0]) == d->call[0] ? _("rank %d is in %s")
                                                           : _("rank %d calls %s"),
             d->rank[0], one);
    if (place)
        append_place(text, size, d->call[0]);
    if (d->call[1]) {
        call_text(calls, d->call[1], d->call[0], other, sizeof other);
        append(text, size,
               d->kind == OTHER_OPERATION ? _("; rank %d went on to %s")
                                          : _("; rank %d calls %s instead"),
               d->rank[1], other);
        if (place)
            append_place(text, size, d->call[1]);
    } else {
        append(text, size,
               d->kind == NEVER_CALLED     ? _("; rank %d never makes this call")
               : d->kind == NEVER_RECEIVED ? _("; rank %d never receives it")
                                           : _("; rank %d never sends it"),
               d->rank[1]);
        append_last(calls, d, text, size);
    }
    if (append_tags(calls, d, text, size))
        return true;
    append(text, size, ": ");
    if (!append_form(calls, d, text, size))
        append(text, size, "%s",
               d->kind == NEVER_RECEIVED && waits_to_send_to(calls, d->rank[1]) != NOBODY
                   ? _("that rank waits for its own send first")
                   : lesson(d->kind));
    return true;
}
