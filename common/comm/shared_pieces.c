/* Collectives in shared memory, piece by piece. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "comm/shared.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share the counters");

/* ---- a rank's numbers in the array ----------------------------------------------------------------------------- */

typedef struct Stretch {
    int64_t at, count;
} Stretch;

/* The first stretch of rank k's numbers that begins at `at` or after it; empty if there is none
 * before `end`. */
static Stretch stretch_of(const Collective *c, int k, int64_t at, int64_t end)
{
    const int64_t width = c->width, first = c->begin[k], last = c->begin[k + 1];
    if (at >= end || first == last)
        return (Stretch){end, 0};
    int64_t row = at / width, column = at % width;
    if (column >= last) {
        row++;
        column = 0;
    }
    column = column < first ? first : column;
    at = row * width + column;
    const int64_t count = last - column < end - at ? last - column : end - at;
    return at < end ? (Stretch){at, count} : (Stretch){end, 0};
}

/* The index in this rank's own array, if that is packed, of number `at` of the whole array;
 * otherwise `at`. */
static int64_t packed_index(const Collective *c, const Group *group, int64_t at)
{
    const int64_t first = c->begin[group->rank], mine = c->begin[group->rank + 1] - first;
    return c->packed ? at / c->width * mine + at % c->width - first : at;
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

static int64_t end_of_piece(const Collective *c, int64_t piece)
{
    const int64_t end = (piece + 1) * SLOT_NUMBERS;
    return end < c->count ? end : c->count;
}

static void copy(const real *from, int64_t count, real *to)
{
    memcpy(to, from, (size_t)count * sizeof(real));
}

static void fill_piece(const Collective *c, const Group *group, SharedSlot *slot)
{
    const int64_t begin = c->filled * SLOT_NUMBERS, end = end_of_piece(c, c->filled);
    slot->count = c->count;
    slot->operation = c->request.operation;
    slot->how = c->how;
    slot->width = c->width;
    if (c->request.operation == ALL_REDUCE) {
        copy(c->from + begin, end - begin, slot->numbers);
        return;
    }
    /* The other ranks need this rank's part of a gather, and its terms of their parts of a sum. */
    const bool gathers = c->request.operation == ALL_GATHER;
    for (int k = 0; k < group->size; k++) {
        if (gathers != (k == group->rank))
            continue;
        Stretch s = stretch_of(c, k, begin, end);
        for (; s.count > 0; s = stretch_of(c, k, s.at + s.count, end))
            copy(c->from + (gathers ? packed_index(c, group, s.at) : s.at), s.count,
                 slot->numbers + (s.at - begin));
    }
}

static void combine(ReduceOp how, int64_t count, const real *x, const real *y, real *result)
{
    if (how == MAXIMUM)
        for (int64_t i = 0; i < count; i++)
            result[i] = x[i] > y[i] || x[i] != x[i] ? x[i] : y[i]; /* NaN stays */
    else
        for (int64_t i = 0; i < count; i++)
            result[i] = x[i] + y[i];
}

/* Combines the ranks' numbers in the order of the ranks. `result` may be one rank's numbers: it gets
 * a block when all terms of the block have been read. */
static void reduce(ReduceOp how, const real *const *from, int size, int64_t count, real *result)
{
    enum { BLOCK = 1 << 11 }; /* stays in the cache */
    real block[BLOCK];
    for (int64_t at = 0; at < count; at += BLOCK) {
        const int64_t n = count - at < BLOCK ? count - at : BLOCK;
        for (int r = 1; r < size; r++)
            combine(how, n, r == 1 ? from[0] + at : block, from[r] + at,
                    r + 1 < size ? block : result + at);
    }
}

/* Combines `count` numbers from `at` on, in a piece that begins at `begin`: this rank's from its
 * array, the others' from their slots. An all-to-all's result has a block for each rank. */
static void reduce_at(const Collective *c, const Shared *shared, int64_t at, int64_t begin,
                      int64_t count, real *result)
{
    const int size = shared->group->size;
    for (int r = 0; r < size; r++)
        shared->from[r] = shared->slot[r]->numbers + (at - begin);
    shared->from[shared->group->rank] = c->from + at;
    for (int r = 0; c->how == APART && r < size; r++)
        copy(shared->from[r], count, result + r * (c->count / size));
    if (c->how != APART)
        reduce(c->how, shared->from, size, count, result);
}

static void take_piece(const Collective *c, const Shared *shared)
{
    const int64_t begin = c->taken * SLOT_NUMBERS, end = end_of_piece(c, c->taken);
    const Group *group = shared->group;
    const int n = group->size, me = group->rank;
    if (c->request.operation == ALL_REDUCE) {
        reduce_at(c, shared, begin, begin, end - begin, c->to + begin);
        return;
    }
    const bool gathers = c->request.operation == ALL_GATHER;
    for (int k = 0; k < n; k++) {
        if (gathers ? k == me && !c->packed : k != me)
            continue; /* already in its place, or another rank's part of the sum */
        Stretch s = stretch_of(c, k, begin, end);
        for (; s.count > 0; s = stretch_of(c, k, s.at + s.count, end))
            if (gathers)
                copy(shared->slot[k]->numbers + (s.at - begin), s.count, c->to + s.at);
            else
                reduce_at(c, shared, s.at, begin, s.count, c->to + packed_index(c, group, s.at));
    }
}

enum { COLLECTIVE_SIZE = 128 }; /* bytes of a collective's description */

/* "all-gather of 32 numbers in rows of 8" */
static void describe(Operation operation, ReduceOp how, int64_t count, int64_t width,
                     char text[COLLECTIVE_SIZE])
{
    const char *const name = operation == ALL_GATHER       ? "all-gather"
                             : how == APART                ? "all-to-all"
                             : operation == REDUCE_SCATTER ? "reduce-scatter"
                             : how == MAXIMUM              ? "all-reduce (maximum)"
                                                           : "all-reduce (sum)";
    if (width)
        snprintf(text, COLLECTIVE_SIZE, _("%s of %lld numbers in rows of %lld"), name,
                 (long long)count, (long long)width);
    else
        snprintf(text, COLLECTIVE_SIZE, _("%s of %lld numbers"), name, (long long)count);
}

static void must_match(const Collective *c, const SharedSlot *other, const Group *group, int rank)
{
    if (other->count == c->count && other->operation == c->request.operation &&
        other->how == c->how && other->width == c->width)
        return;
    char mine[COLLECTIVE_SIZE], theirs[COLLECTIVE_SIZE];
    describe(c->request.operation, c->how, c->count, c->width, mine);
    describe(other->operation, other->how, other->count, other->width, theirs);
    misuse(HINT_SAME_COLLECTIVES, "this rank calls %s, but rank %d of its group %s calls %s", mine,
           rank, group->name, theirs);
}

static bool all_have(const Shared *shared, size_t counter, int64_t pieces)
{
    for (int r = 0; r < shared->group->size; r++) {
        _Atomic int64_t *done = (void *)((char *)shared->board[r] + counter);
        if (atomic_load_explicit(done, memory_order_acquire) < pieces)
            return false;
    }
    return true;
}

/* Fills this rank's next slot, if all ranks have taken the piece that is still in it. */
static bool fill_next(Shared *shared)
{
    Collective *c = shared->to_fill;
    Board *mine = shared->board[shared->group->rank];
    const int64_t turn = atomic_load_explicit(&mine->filled, memory_order_relaxed);
    if (!c || !all_have(shared, offsetof(Board, taken), turn + 1 - SLOTS))
        return false;
    fill_piece(c, shared->group, &mine->slot[turn % SLOTS]);
    atomic_store_explicit(&mine->filled, turn + 1, memory_order_release);
    if (++c->filled == c->pieces)
        shared->to_fill = c->next;
    return true;
}

/* Takes the next piece, if all ranks have filled their slots. */
static bool take_next(Shared *shared)
{
    Collective *c = shared->first;
    Board *mine = shared->board[shared->group->rank];
    const int64_t turn = atomic_load_explicit(&mine->taken, memory_order_relaxed);
    if (!c || !all_have(shared, offsetof(Board, filled), turn + 1))
        return false;
    const int size = shared->group->size;
    for (int r = 0; r < size; r++) {
        shared->slot[r] = &shared->board[r]->slot[turn % SLOTS];
        must_match(c, shared->slot[r], shared->group, r);
    }
    take_piece(c, shared);
    atomic_store_explicit(&mine->taken, turn + 1, memory_order_release);
    if (++c->taken == c->pieces)
        shared->first = c->next;
    return true;
}

void shared_check(const Shared *shared)
{
    const Board *mine = shared->board[shared->group->rank];
    const int64_t turn = atomic_load_explicit(&mine->taken, memory_order_relaxed),
                  sums = atomic_load_explicit(&mine->by_mpi, memory_order_relaxed);
    for (int r = 0; shared->first && r < shared->group->size; r++) {
        const Board *other = shared->board[r];
        if (atomic_load_explicit(&other->by_mpi, memory_order_acquire) > sums &&
            atomic_load_explicit(&other->filled, memory_order_acquire) <= turn)
            misuse(HINT_SAME_COLLECTIVES,
                   "this rank waits in a collective of %lld numbers, but rank %d of the group has "
                   "left out a collective",
                   (long long)shared->first->count, r);
    }
}

bool shared_advance(Shared *shared)
{
    bool moved = false, filled = true, taken = true;
    while (filled || taken) {
        filled = fill_next(shared);
        taken = take_next(shared);
        moved = moved || filled || taken;
    }
    return moved;
}
