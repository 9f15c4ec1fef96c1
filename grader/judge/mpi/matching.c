/* Matches the calls of several ranks. */
#include "grader/judge/mpi/matching.h"

#include <stdlib.h>

static Part *room_for_all(const Calls *calls, int halves)
{
    int64_t all = 1;
    for (int r = 0; r < calls->ranks; r++)
        all += calls->rank[r].count * halves;
    return malloc((size_t)all * sizeof(Part));
}

/* Parts are sorted by KEYS numbers. Parts with the same first numbers belong together. */
enum { KEYS = 6, NUMBER_KEYS = 2, CHANNEL_KEYS = 4 };

static void number_key(const Part *p, int64_t key[KEYS])
{
    memcpy(key, (int64_t[KEYS]){(int64_t)p->call->group, p->call->number, p->rank},
           KEYS * sizeof *key);
}

static void channel_key(const Part *p, int64_t key[KEYS])
{
    const Call *c = p->call;
    const int64_t sender = p->receives ? c->from : p->rank,
                  receiver = p->receives ? p->rank : c->to,
                  tag = p->receives ? c->from_tag : c->to_tag;
    memcpy(key, (int64_t[KEYS]){(int64_t)c->group, receiver, sender, tag, p->receives, p->index},
           KEYS * sizeof *key);
}

/* Compares two parts by the first `count` numbers of their keys: 0 if equal. */
static int order_by(void key_of(const Part *, int64_t *), const Part *a, const Part *b, int count)
{
    int64_t x[KEYS], y[KEYS];
    key_of(a, x);
    key_of(b, y);
    for (int i = 0; i < count; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    return order_by(number_key, a, b, KEYS);
}

static int by_channel(const void *a, const void *b)
{
    return order_by(channel_key, a, b, KEYS);
}

bool same_number(const Part *a, const Part *b)
{
    return order_by(number_key, a, b, NUMBER_KEYS) == 0;
}

bool same_channel(const Part *a, const Part *b)
{
    return order_by(channel_key, a, b, CHANNEL_KEYS) == 0;
}

/* ---- collectives ---------------------------------------------------------------------------------------------------- */

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

const Part *with_number(const Parts *all, const Part *mine, int64_t *count)
{
    int64_t first = 0, end = all->count;
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        if (order_by(number_key, &all->part[middle], mine, NUMBER_KEYS) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    *count = first < all->count && same_number(mine, &all->part[first])
                 ? run_end(all, first, same_number) - first
                 : 0;
    return &all->part[first];
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
    if (a->rank == b->rank) /* only the rank itself must know what it sends to itself */
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
