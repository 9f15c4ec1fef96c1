/* All-reduces through memory that the ranks of a node share (MPI_Win_allocate_shared). Everything
 * else goes through MPI.
 *
 * An array is summed in pieces. Each rank has a ring of slots in the shared memory. It copies a
 * piece of its own numbers into its next slot, and once all ranks have done so, it adds up their
 * slots, in the order of the ranks. So each number is copied once and never sent, and every rank
 * gets the same bits. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/host_view.h"
#include "base/run.h"
#include "comm/comm_parts.h"

enum {
    PIECE = 1 << 15, /* numbers: the slots of a few ranks stay in a core's cache */
    SLOTS = 4,       /* per rank: half a megabyte of shared memory for each group */
    LINE = 64        /* bytes of a cache line */
};

typedef struct Slot {
    int64_t count; /* numbers of the whole array */
    ReduceOp how;
    real numbers[PIECE];
} Slot;

/* A rank's slots: it writes them, all ranks read them. */
typedef struct Board {
    _Alignas(LINE) _Atomic int64_t filled; /* pieces that this rank has copied into its slots */
    _Alignas(LINE) _Atomic int64_t added;  /* pieces that it has added up */
    _Alignas(LINE) Slot slot[SLOTS];
} Board;

typedef struct Sum {
    CommRequest request;
    ReduceOp how;
    HostView from, to;
    int64_t pieces, filled, added;
    struct Sum *next;
} Sum;

/* A group's shared memory, and its sums in progress, in the order in which they were started. */
typedef struct Shared {
    MPI_Win window;
    Group *group;
    Sum *first, *last, *to_fill; /* the first sum with pieces that are not in slots yet */
    struct Shared *next;
    Board *board[]; /* of each rank */
} Shared;

static Shared *all_shared; /* of every group */
static bool is_wanted;

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

static bool all_have_filled(const Shared *shared, int64_t pieces)
{
    for (int r = 0; r < shared->group->size; r++)
        if (atomic_load_explicit(&shared->board[r]->filled, memory_order_acquire) < pieces)
            return false;
    return true;
}

static bool all_have_added(const Shared *shared, int64_t pieces)
{
    for (int r = 0; r < shared->group->size; r++)
        if (atomic_load_explicit(&shared->board[r]->added, memory_order_acquire) < pieces)
            return false;
    return true;
}

static int64_t piece_length(const Sum *sum, int64_t piece)
{
    const int64_t left = sum->from.count - piece * PIECE;
    return left < PIECE ? left : PIECE;
}

/* Copies the next piece into this rank's slot, once all ranks have added up the piece before it in
 * that slot. */
static bool fill_slot(Shared *shared)
{
    Sum *sum = shared->to_fill;
    Board *mine = shared->board[shared->group->rank];
    const int64_t turn = atomic_load_explicit(&mine->filled, memory_order_relaxed);
    if (!sum || !all_have_added(shared, turn + 1 - SLOTS))
        return false;
    Slot *slot = &mine->slot[turn % SLOTS];
    slot->count = sum->from.count;
    slot->how = sum->how;
    memcpy(slot->numbers, sum->from.numbers + sum->filled * PIECE,
           (size_t)piece_length(sum, sum->filled) * sizeof(real));
    atomic_store_explicit(&mine->filled, turn + 1, memory_order_release);
    if (++sum->filled == sum->pieces)
        shared->to_fill = sum->next;
    return true;
}

static void must_match(const Sum *sum, const Slot *other, int rank)
{
    if (other->count != sum->from.count || other->how != sum->how)
        misuse(
            "does each rank call the same collectives, in the same order and with the same sizes? "
            "make grade says which lab does not, make trace LAB=n shows it",
            "all_reduce: this rank has %lld numbers, but rank %d of the group has %lld",
            (long long)sum->from.count, rank, (long long)other->count);
}

static void combine(ReduceOp how, int64_t count, const real *x, const real *y, real *result)
{
    if (how == MAXIMUM)
        for (int64_t i = 0; i < count; i++)
            result[i] = x[i] > y[i] ? x[i] : y[i];
    else
        for (int64_t i = 0; i < count; i++)
            result[i] = x[i] + y[i];
}

/* Adds up the ranks' slots of the next piece, once all ranks have filled theirs. */
static bool add_slots(Shared *shared)
{
    Sum *sum = shared->first;
    Board *mine = shared->board[shared->group->rank];
    const int64_t turn = atomic_load_explicit(&mine->added, memory_order_relaxed);
    if (!sum || !all_have_filled(shared, turn + 1))
        return false;
    const int64_t count = piece_length(sum, sum->added);
    real *result = sum->to.numbers + sum->added * PIECE;
    for (int r = 1; r < shared->group->size; r++) {
        const Slot *so_far = &shared->board[r - 1]->slot[turn % SLOTS],
                   *next = &shared->board[r]->slot[turn % SLOTS];
        must_match(sum, so_far, r - 1);
        must_match(sum, next, r);
        combine(sum->how, count, r == 1 ? so_far->numbers : result, next->numbers, result);
    }
    atomic_store_explicit(&mine->added, turn + 1, memory_order_release);
    if (++sum->added == sum->pieces)
        shared->first = sum->next;
    return true;
}

/* Does everything for which this rank need not wait. Returns whether there was anything. */
static bool advance(Shared *shared)
{
    bool moved = false, filled = true, added = true;
    while (filled || added) {
        filled = fill_slot(shared);
        added = add_slots(shared);
        moved = moved || filled || added;
    }
    return moved;
}

/* ---- sums ------------------------------------------------------------------------------------------------------ */

static Sum *sum_start(Group *group, ReduceOp how, HostView from, HostView to)
{
    Shared *shared = group->link;
    Sum *sum = calloc(1, sizeof *sum);
    *sum = (Sum){.how = how,
                 .from = from,
                 .to = to,
                 .pieces = from.count ? (from.count + PIECE - 1) / PIECE : 1};
    if (shared->first)
        shared->last->next = sum;
    else
        shared->first = sum;
    shared->last = sum;
    if (!shared->to_fill)
        shared->to_fill = sum;
    advance(shared);
    return sum;
}

/* Another rank may wait for a sum of another group, or for a message, before it joins this sum: so
 * those are advanced too. */
static void wait_for(const Group *group, const Sum *sum)
{
    while (sum->added < sum->pieces) {
        bool moved = false;
        for (Shared *shared = all_shared; shared; shared = shared->next)
            moved = advance(shared) || moved;
        if (!moved) {
            over_mpi.poke((Group *)group);
            sched_yield();
        }
    }
}

static void shared_all_reduce(Group *group, ReduceOp how, const real *x, real *result,
                              int64_t count)
{
    HostView from = host_view_read(x, count),
             to = x == result ? from : host_view_write(result, count);
    Sum *sum = sum_start(group, how, from, to);
    wait_for(group, sum);
    if (x != result)
        host_view_end(&from);
    host_view_store(&to);
    free(sum);
}

static CommRequest *shared_all_reduce_start(Group *group, real *x, int64_t count)
{
    const HostView view = host_view_read(x, count);
    return &sum_start(group, SUM, view, view)->request;
}

static void shared_wait(CommRequest *request)
{
    if (request->operation != ALL_REDUCE) {
        over_mpi.wait(request);
        return;
    }
    Sum *sum = (Sum *)request;
    wait_for(request->group, sum);
    host_view_store(&sum->to);
    free(sum);
}

static void shared_poke(Group *group)
{
    advance(group->link);
    over_mpi.poke(group);
}

/* Until the message arrives, advances the sums for which its sender may wait. */
static void shared_receive(Group *group, real *x, int64_t count, int from)
{
    for (int found = 0; !found;) {
        for (Shared *shared = all_shared; shared; shared = shared->next)
            advance(shared);
        MPI_Iprobe(from, 0, group->comm, &found, MPI_STATUS_IGNORE);
        if (!found)
            sched_yield();
    }
    over_mpi.receive(group, x, count, from);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static Transport over_shared;

static void shared_leave(Group *group)
{
    Shared *shared = group->link, **link = &all_shared;
    while (*link != shared)
        link = &(*link)->next;
    *link = shared->next;
    for (Sum *next, *sum = shared->first; sum; sum = next) { /* nobody waited for them */
        next = sum->next;
        free(sum);
    }
    MPI_Win_free(&shared->window);
    free(shared);
}

static bool is_on_one_node(const Group *group)
{
    MPI_Comm node;
    int size;
    MPI_Comm_split_type(group->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Comm_free(&node);
    return size == group->size;
}

/* The window's memory begins at a page, plus the same distance on each rank. */
static Board *board_of(MPI_Win window, int rank)
{
    MPI_Aint size;
    int unit;
    char *memory;
    MPI_Win_shared_query(window, rank, &size, &unit, &memory);
    return (Board *)(memory + (LINE - (uintptr_t)memory % LINE) % LINE);
}

bool shared_join(Group *group)
{
    if (!is_wanted || group->size == 1 || !is_on_one_node(group))
        return false;
    Shared *shared = calloc(1, sizeof *shared + (size_t)group->size * sizeof *shared->board);
    void *memory;
    MPI_Win_allocate_shared((MPI_Aint)sizeof(Board) + LINE, 1, MPI_INFO_NULL, group->comm, &memory,
                            &shared->window);
    for (int r = 0; r < group->size; r++)
        shared->board[r] = board_of(shared->window, r);
    memset(shared->board[group->rank], 0, sizeof(Board));
    MPI_Barrier(group->comm); /* the flags of all ranks are 0 */
    shared->group = group;
    shared->next = all_shared;
    all_shared = shared;
    over_shared = over_mpi;
    over_shared.all_reduce = shared_all_reduce;
    over_shared.all_reduce_start = shared_all_reduce_start;
    over_shared.receive = shared_receive;
    over_shared.wait = shared_wait;
    over_shared.poke = shared_poke;
    over_shared.leave = shared_leave;
    group->link = shared;
    group->transport = &over_shared;
    return true;
}

void comm_share_memory(bool wanted)
{
    is_wanted = wanted;
}
