/* A transport through memory that the ranks of a node share (MPI_Win_allocate_shared). Messages and
 * broadcasts go through MPI. */
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/shared.h"

static Shared *all_shared; /* of every group */
static bool is_wanted;

/* ---- collectives ----------------------------------------------------------------------------------------------- */

static bool advance_all(void)
{
    bool moved = false;
    for (Shared *shared = all_shared; shared; shared = shared->next)
        moved = shared_advance(shared) || moved;
    return moved;
}

static void start(Group *group, Collective *c)
{
    Shared *shared = group->link;
    c->pieces = c->count ? (c->count + SLOT_NUMBERS - 1) / SLOT_NUMBERS : 1;
    if (shared->first)
        shared->last->next = c;
    else
        shared->first = c;
    shared->last = c;
    if (!shared->to_fill)
        shared->to_fill = c;
    shared_advance(shared);
}

/* Before another rank joins this collective, it may wait for another group's collective or for a
 * message. So this rank advances those too. */
static void finish(Group *group, const Collective *c)
{
    while (c->taken < c->pieces)
        if (!advance_all()) {
            shared_check(group->link);
            over_mpi.poke(group);
            sched_yield();
        }
}

static void run(Group *group, Collective c)
{
    start(group, &c);
    finish(group, &c);
}

static void shared_all_reduce(Group *group, ReduceOp how, const real *x, real *result,
                              int64_t count)
{
    HostView from = host_view_read(x, count),
             to = x == result ? from : host_view_write(result, count);
    run(group, (Collective){.request.operation = ALL_REDUCE,
                            .how = how,
                            .count = count,
                            .from = from.numbers,
                            .to = to.numbers});
    if (x != result)
        host_view_end(&from);
    host_view_store(&to);
}

static CommRequest *shared_all_reduce_start(Group *group, real *x, int64_t count)
{
    Collective *c = malloc(sizeof *c);
    const HostView view = host_view_read(x, count);
    *c = (Collective){.request.operation = ALL_REDUCE,
                      .how = SUM,
                      .count = count,
                      .from = view.numbers,
                      .to = view.numbers,
                      .view = view};
    start(group, c);
    return &c->request;
}

static void shared_wait(CommRequest *request)
{
    if (request->operation != ALL_REDUCE) {
        while (!mpi_is_done(request)) {
            advance_all();
            sched_yield();
        }
        over_mpi.wait(request);
        return;
    }
    Collective *c = (Collective *)request;
    finish(request->group, c);
    host_view_store(&c->view);
    free(c);
}

/* Blocks side by side: each row has the same number of columns from each rank. */
static void exchange_blocks(Group *group, Operation operation, ReduceOp how, const real *x,
                            real *result, int64_t rows, int64_t columns)
{
    const int n = group->size;
    const int64_t each = rows * columns;
    const bool gathers = operation == ALL_GATHER;
    HostView from = host_view_read(x, gathers ? each : n * each),
             to = host_view_write(result, gathers || how == APART ? n * each : each);
    Shared *shared = group->link;
    for (int k = 0; k <= n; k++)
        shared->begin[k] = k * columns;
    run(group, (Collective){.request.operation = operation,
                            .how = how,
                            .count = n * each,
                            .width = n * columns,
                            .begin = shared->begin,
                            .from = from.numbers,
                            .to = to.numbers,
                            .packed = true});
    host_view_end(&from);
    host_view_store(&to);
}

static void shared_all_gather(Group *group, const real *x, real *result, int64_t rows,
                              int64_t columns)
{
    exchange_blocks(group, ALL_GATHER, SUM, x, result, rows, columns);
}

static void shared_reduce_scatter(Group *group, const real *x, real *result, int64_t rows,
                                  int64_t columns)
{
    exchange_blocks(group, REDUCE_SCATTER, SUM, x, result, rows, columns);
}

static void shared_all_to_all(Group *group, const real *x, real *result, int64_t rows,
                              int64_t columns)
{
    exchange_blocks(group, REDUCE_SCATTER, APART, x, result, rows, columns);
}

/* Parts one after the other, in place: the array is a single row. */
static void exchange_parts(Group *group, Operation operation, real *x, const int64_t *begin)
{
    const int64_t count = begin[group->size];
    HostView view = host_view_read(x, count);
    run(group, (Collective){.request.operation = operation,
                            .how = SUM,
                            .count = count,
                            .width = count,
                            .begin = begin,
                            .from = view.numbers,
                            .to = view.numbers});
    host_view_store(&view);
}

static void shared_reduce_scatter_parts(Group *group, real *x, const int64_t *begin)
{
    exchange_parts(group, REDUCE_SCATTER, x, begin);
}

static void shared_all_gather_parts(Group *group, real *x, const int64_t *begin)
{
    exchange_parts(group, ALL_GATHER, x, begin);
}

static void shared_poke(Group *group)
{
    shared_advance(group->link);
    over_mpi.poke(group);
}

/* Until the message arrives, advances the collectives for which its sender may wait. */
static void shared_receive(Group *group, real *x, int64_t count, int from)
{
    for (int found = 0; !found;) {
        advance_all();
        MPI_Iprobe(from, 0, group->comm, &found, MPI_STATUS_IGNORE);
        if (!found)
            sched_yield();
    }
    over_mpi.receive(group, x, count, from);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static void shared_leave(Group *group)
{
    Shared *shared = group->link, **place = &all_shared;
    while (*place != shared)
        place = &(*place)->next;
    *place = shared->next;
    MPI_Win_free(&shared->window);
    free(shared->slot);
    free(shared->from);
    free(shared->begin);
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

/* A rank's memory has the same offset in a page in every process, so all processes round up to the
 * same Board. */
static Board *board_of(MPI_Win window, int rank)
{
    MPI_Aint size;
    int unit;
    char *memory;
    MPI_Win_shared_query(window, rank, &size, &unit, &memory);
    return (void *)(memory + (LINE - (uintptr_t)memory % LINE) % LINE);
}

void shared_sums_by_mpi(Group *group)
{
    if (group->transport->leave != shared_leave)
        return;
    Shared *shared = group->link;
    atomic_fetch_add_explicit(&shared->board[group->rank]->by_mpi, 1, memory_order_release);
}

bool shared_join(Group *group)
{
    static Transport over_shared;
    if (!is_wanted || group->size == 1 || !is_on_one_node(group))
        return false;
    over_shared = over_mpi;
    over_shared.all_reduce = shared_all_reduce;
    over_shared.all_gather = shared_all_gather;
    over_shared.reduce_scatter = shared_reduce_scatter;
    over_shared.all_to_all = shared_all_to_all;
    over_shared.reduce_scatter_parts = shared_reduce_scatter_parts;
    over_shared.all_gather_parts = shared_all_gather_parts;
    over_shared.receive = shared_receive;
    over_shared.all_reduce_start = shared_all_reduce_start;
    over_shared.wait = shared_wait;
    over_shared.poke = shared_poke;
    over_shared.leave = shared_leave;
    group->transport = &over_shared;
    const size_t size = (size_t)group->size;
    Shared *shared = calloc(1, sizeof *shared + size * sizeof *shared->board);
    shared->slot = malloc(size * sizeof *shared->slot);
    shared->from = malloc(size * sizeof *shared->from);
    shared->begin = malloc((size + 1) * sizeof *shared->begin);
    void *memory;
    MPI_Win_allocate_shared((MPI_Aint)sizeof(Board) + LINE, 1, MPI_INFO_NULL, group->comm, &memory,
                            &shared->window);
    for (int r = 0; r < group->size; r++)
        shared->board[r] = board_of(shared->window, r);
    memset(shared->board[group->rank], 0, sizeof(Board)); /* gets the memory here, not in a step */
    MPI_Barrier(group->comm);                             /* the counters of all ranks are 0 */
    shared->group = group;
    shared->next = all_shared;
    all_shared = shared;
    group->link = shared;
    return true;
}

void comm_share_memory(bool wanted)
{
    is_wanted = wanted;
}
