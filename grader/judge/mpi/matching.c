#include "grader/judge/mpi/matching.h"

#include <stdlib.h>

static Part *room_for_all(const Calls *calls, int halves)
{
    int64_t all = 1;
    for (int r = 0; r < calls->ranks; r++)
        all += calls->rank[r].count * halves;
    return malloc((size_t)all * sizeof(Part));
}

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_unsigned(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* ---- collectives ---------------------------------------------------------------------------------------------------- */

static int by_number(const void *left, const void *right)
{
    const Part *a = left, *b = right;
    int order = compare_unsigned(a->call->group, b->call->group);
    if (order == 0)
        order = compare(a->call->number, b->call->number);
    return order ? order : a->rank - b->rank;
}

bool same_number(const Part *a, const Part *b)
{
    return a->call->group == b->call->group && a->call->number == b->call->number;
}

Parts together_of(const Calls *calls)
{
    Parts all = {room_for_all(calls, 1), 0};
    for (int r = 0; r < calls->ranks; r++)
        for (int64_t i = 0; i < calls->rank[r].count; i++) {
            const Call *call = &calls->rank[r].call[i];
            if (call->number)
                all.part[all.count++] = (Part){call, r, calls->rank[r].first + i, false};
        }
    qsort(all.part, (size_t)all.count, sizeof *all.part, by_number);
    return all;
}

int64_t run_end(const Parts *parts, int64_t i, bool (*same)(const Part *, const Part *))
{
    int64_t end = i + 1;
    while (end < parts->count && same(&parts->part[i], &parts->part[end]))
        end++;
    return end;
}

bool has_lost(const Calls *calls, uint64_t members)
{
    for (int r = 0; r < calls->ranks; r++)
        if ((members >> r & 1) && calls->rank[r].first > 0)
            return true;
    return false;
}

static DifferenceKind other_signature(const Signature *a, const Signature *b)
{
    if (a->count && b->count && a->basic != b->basic)
        return OTHER_TYPE;
    return a->count != b->count ? OTHER_COUNT : NO_DIFFERENCE;
}

static DifferenceKind misfit_of_reduction(const Call *a, const Call *b)
{
    DifferenceKind kind = NO_DIFFERENCE;
    for (int r = 0; r < MAX_RANKS && kind == NO_DIFFERENCE; r++)
        kind = other_signature(&a->sent[r], &b->sent[r]);
    return kind == NO_DIFFERENCE && a->reduction != b->reduction ? OTHER_REDUCTION : kind;
}

DifferenceKind misfit(const Part *a, const Part *b)
{
    const Call *x = a->call, *y = b->call;
    DifferenceKind kind = NO_DIFFERENCE;
    if (a->rank == b->rank) /* what a rank sends to itself it alone has to know */
        return NO_DIFFERENCE;
    if (strcmp(x->name, y->name) != 0 || x->starts != y->starts ||
        (x->rule == TOGETHER && x->from_tag != y->from_tag))
        return OTHER_OPERATION;
    if (x->root != y->root)
        return OTHER_ROOT;
    if (x->rule == REDUCTION)
        return misfit_of_reduction(x, y);
    if (x->rule == EXCHANGE) {
        kind = other_signature(&x->sent[b->rank], &y->received[a->rank]);
        if (kind == NO_DIFFERENCE)
            kind = other_signature(&y->sent[a->rank], &x->received[b->rank]);
    }
    return kind;
}

/* ---- messages ------------------------------------------------------------------------------------------------------- */

static int sender(const Part *p)
{
    return p->receives ? p->call->from : p->rank;
}

static int receiver(const Part *p)
{
    return p->receives ? p->rank : p->call->to;
}

static int tag(const Part *p)
{
    return p->receives ? p->call->from_tag : p->call->to_tag;
}

static int by_channel(const void *left, const void *right)
{
    const Part *a = left, *b = right;
    int order = compare_unsigned(a->call->group, b->call->group);
    if (order == 0)
        order = receiver(a) - receiver(b);
    if (order == 0)
        order = sender(a) - sender(b);
    if (order == 0)
        order = compare(tag(a), tag(b));
    if (order == 0)
        order = a->receives - b->receives;
    return order ? order : compare(a->index, b->index);
}

bool same_channel(const Part *a, const Part *b)
{
    return a->call->group == b->call->group && receiver(a) == receiver(b) &&
           sender(a) == sender(b) && tag(a) == tag(b);
}

bool is_loose(const Part *part)
{
    return part->receives && (part->call->from == ANYBODY || part->call->from_tag == ANY_TAG);
}

Parts messages_of(const Calls *calls)
{
    Parts all = {room_for_all(calls, 2), 0};
    for (int r = 0; r < calls->ranks; r++)
        for (int64_t i = 0; i < calls->rank[r].count; i++) {
            const Call *call = &calls->rank[r].call[i];
            int64_t index = calls->rank[r].first + i;
            if (call->rule != MESSAGE || call->probes)
                continue;
            if (call->to >= 0)
                all.part[all.count++] = (Part){call, r, index, false};
            if (call->from != NOBODY)
                all.part[all.count++] = (Part){call, r, index, true};
        }
    qsort(all.part, (size_t)all.count, sizeof *all.part, by_channel);
    return all;
}

DifferenceKind misfit_of_message(const Signature *sent, const Signature *received)
{
    if (sent->count > received->count)
        return OTHER_COUNT;
    return sent->count && sent->basic != received->basic ? OTHER_TYPE : NO_DIFFERENCE;
}
