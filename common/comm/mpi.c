/* Communication through MPI, in host memory. A tensor that only kernels can access is copied
 * there. */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/host_view.h"
#include "base/run.h"
#include "comm/comm_parts.h"

#ifdef BALISE_DOUBLE
#define MPI_REAL_TYPE MPI_DOUBLE
#else
#define MPI_REAL_TYPE MPI_FLOAT
#endif

/* MPI counts are ints. Pieces of 2 MiB stay in the caches of the ranks that copy them: Open MPI
 * sums 64 MiB in half the time that pieces of 16 MiB take. */
int64_t mpi_piece = 1 << 19;

typedef struct MpiRequest {
    CommRequest request;
    HostView view;
    int64_t pieces;
    MPI_Request of_piece[];
} MpiRequest;

/* Keeps Open MPI's plugins loaded. If it has any, it unloads them in MPI_Finalize while one
 * of its threads may still call into them: under load, one run in several dozen crashed there. A
 * second reason: LeakSanitizer can match leaks.supp only while the plugins are loaded. */
int dlclose(void *handle)
{
    return 0;
}

static int piece_at(int64_t begin, int64_t count)
{
    return (int)(count - begin < mpi_piece ? count - begin : mpi_piece);
}

static void mpi_all_reduce(Group *group, ReduceOp how, const real *x, real *result, int64_t numbers)
{
    MPI_Op op = how == MAXIMUM ? MPI_MAX : MPI_SUM;
    HostView from = host_view_read(x, numbers),
             to = x == result ? from : host_view_write(result, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += mpi_piece)
        MPI_Allreduce(x == result ? MPI_IN_PLACE : (const void *)(from.numbers + i), to.numbers + i,
                      piece_at(i, numbers), MPI_REAL_TYPE, op, group->comm);
    if (x != result)
        host_view_end(&from);
    host_view_store(&to);
}

/* The datatype of a matrix [rows,columns] inside a wider one, so MPI reads and writes it in place.
 * The caller frees it. */
static MPI_Datatype columns_of(int64_t rows, int64_t columns, int64_t stride)
{
    if (rows > INT_MAX || columns > INT_MAX)
        misuse("gather along another dimension, or in parts",
               "all_gather: %lld rows of %lld numbers are more than MPI can count", (long long)rows,
               (long long)columns);
    MPI_Datatype row, block, resized;
    MPI_Type_contiguous((int)columns, MPI_REAL_TYPE, &row);
    MPI_Type_create_hvector((int)rows, 1, (MPI_Aint)(stride * (int64_t)sizeof(real)), row, &block);
    MPI_Type_create_resized(block, 0, (MPI_Aint)(columns * (int64_t)sizeof(real)), &resized);
    MPI_Type_commit(&resized);
    MPI_Type_free(&row);
    MPI_Type_free(&block);
    return resized;
}

static void mpi_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    HostView from = host_view_read(x, rows * columns),
             to = host_view_write(result, rows * columns * group->size);
    MPI_Datatype mine = columns_of(rows, columns, columns),
                 each = columns_of(rows, columns, columns * group->size);
    MPI_Allgather(from.numbers, 1, mine, to.numbers, 1, each, group->comm);
    MPI_Type_free(&mine);
    MPI_Type_free(&each);
    host_view_end(&from);
    host_view_store(&to);
}

static void mpi_all_to_all(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    const int64_t all = rows * columns * group->size;
    HostView from = host_view_read(x, all), to = host_view_write(result, all);
    MPI_Datatype each = columns_of(rows, columns, columns * group->size),
                 block = columns_of(1, rows * columns, rows * columns);
    MPI_Alltoall(from.numbers, 1, each, to.numbers, 1, block, group->comm);
    MPI_Type_free(&each);
    MPI_Type_free(&block);
    host_view_end(&from);
    host_view_store(&to);
}

/* MPI does not sum derived types, so each rank's columns are first copied together. */
static real *blocks_of(const real *x, int64_t rows, int64_t columns, int size)
{
    real *blocks = malloc((size_t)(rows * columns * size) * sizeof(real) + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < size; k++)
            memcpy(blocks + (k * rows + r) * columns, x + (r * size + k) * columns,
                   (size_t)columns * sizeof(real));
    return blocks;
}

static void mpi_reduce_scatter(Group *group, const real *x, real *result, int64_t rows,
                               int64_t columns)
{
    int64_t each = rows * columns;
    HostView whole = host_view_read(x, each * group->size), mine = host_view_write(result, each);
    bool copy = rows > 1 && group->size > 1;
    real *blocks = copy ? blocks_of(whole.numbers, rows, columns, group->size) : NULL;
    const real *from = copy ? blocks : whole.numbers;
    if (each <= mpi_piece) {
        MPI_Reduce_scatter_block(from, mine.numbers, (int)each, MPI_REAL_TYPE, MPI_SUM,
                                 group->comm);
    } else {
        for (int k = 0; k < group->size; k++)
            for (int64_t i = 0; i < each; i += mpi_piece)
                MPI_Reduce(from + k * each + i, mine.numbers + i, piece_at(i, each), MPI_REAL_TYPE,
                           MPI_SUM, k, group->comm);
    }
    free(blocks);
    host_view_end(&whole);
    host_view_store(&mine);
}

/* MPI's counts and offsets are ints. */
static void parts_must_fit(const Group *group, const int64_t *begin)
{
    if (begin[group->size] > INT_MAX)
        misuse("split the model over more ranks (TP, PP), or train without ZERO",
               "the parts have %lld numbers in all, more than MPI can count",
               (long long)begin[group->size]);
}

/* One round of an exchange, with numbers i to i + mpi_piece - 1 of each part: how many numbers each
 * rank sends and receives, and their offsets. */
typedef struct Exchange {
    int *counts, *offsets, *blocks, *block_offsets; /* [size] each: to send, then to receive */
} Exchange;

static void plan_exchange(const Exchange *e, const Group *group, const int64_t *begin, int64_t i)
{
    const int64_t mine = begin[group->rank + 1] - begin[group->rank];
    for (int k = 0; k < group->size; k++) {
        const int64_t part = begin[k + 1] - begin[k];
        e->counts[k] = i < part ? piece_at(i, part) : 0;
        e->offsets[k] = (int)(begin[k] + (i < part ? i : 0));
        e->blocks[k] = i < mine ? piece_at(i, mine) : 0;
        e->block_offsets[k] = k * e->blocks[k];
    }
}

/* Adds the ranks' blocks of `count` numbers in the order of the ranks. */
static void add_blocks(const real *blocks, int ranks, int64_t count, real *sum)
{
    memcpy(sum, blocks, (size_t)count * sizeof(real));
    for (int k = 1; k < ranks; k++)
        for (int64_t j = 0; j < count; j++)
            sum[j] += blocks[k * count + j];
}

/* Uses an all-to-all, which sends as many bytes as a reduce-scatter, because MPI's reduce-scatter
 * may add in a different order for each part. */
static void mpi_reduce_scatter_parts(Group *group, real *x, const int64_t *begin)
{
    const int n = group->size;
    parts_must_fit(group, begin);
    int64_t most = 0;
    for (int k = 0; k < n; k++)
        most = begin[k + 1] - begin[k] > most ? begin[k + 1] - begin[k] : most;
    int *plan = malloc(4 * (size_t)n * sizeof *plan);
    const Exchange e = {plan, plan + n, plan + 2 * n, plan + 3 * n};
    real *blocks = malloc((size_t)n * (size_t)piece_at(0, most) * sizeof *blocks + 1);
    HostView view = host_view_read(x, begin[n]);
    for (int64_t i = 0; i < most; i += mpi_piece) {
        plan_exchange(&e, group, begin, i);
        MPI_Alltoallv(view.numbers, e.counts, e.offsets, MPI_REAL_TYPE, blocks, e.blocks,
                      e.block_offsets, MPI_REAL_TYPE, group->comm);
        add_blocks(blocks, n, e.blocks[0], view.numbers + e.offsets[group->rank]);
    }
    free(plan);
    free(blocks);
    host_view_store(&view);
}

static void mpi_all_gather_parts(Group *group, real *x, const int64_t *begin)
{
    const int n = group->size;
    parts_must_fit(group, begin);
    int *counts = malloc(2 * (size_t)n * sizeof *counts), *offsets = counts + n;
    for (int k = 0; k < n; k++) {
        counts[k] = (int)(begin[k + 1] - begin[k]);
        offsets[k] = (int)begin[k];
    }
    HostView view = host_view_read(x, begin[n]);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_REAL_TYPE, view.numbers, counts, offsets, MPI_REAL_TYPE,
                   group->comm);
    free(counts);
    host_view_store(&view);
}

static void mpi_broadcast(Group *group, real *x, int64_t numbers, int root)
{
    HostView view = host_view_read(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += mpi_piece)
        MPI_Bcast(view.numbers + i, piece_at(i, numbers), MPI_REAL_TYPE, root, group->comm);
    host_view_store(&view);
}

static void mpi_send(Group *group, const real *x, int64_t numbers, int to)
{
    HostView view = host_view_read(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += mpi_piece)
        MPI_Send(view.numbers + i, piece_at(i, numbers), MPI_REAL_TYPE, to, 0, group->comm);
    host_view_end(&view);
}

static void mpi_receive(Group *group, real *x, int64_t numbers, int from)
{
    HostView view = host_view_write(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += mpi_piece) {
        int count, expected = piece_at(i, numbers);
        MPI_Status status;
        MPI_Recv(view.numbers + i, expected, MPI_REAL_TYPE, from, 0, group->comm, &status);
        MPI_Get_count(&status, MPI_REAL_TYPE, &count);
        if (count != expected) /* MPI allows a shorter message */
            misuse("do both ranks refer to the same part of x? Send all of its numbers, as "
                   "MPI_FLOAT",
                   "rank %d of the group sent %d numbers, expected %d", from, count, expected);
    }
    host_view_store(&view);
}

static MpiRequest *request_of(const real *x, int64_t numbers)
{
    int64_t pieces = numbers ? (numbers + mpi_piece - 1) / mpi_piece : 1;
    MpiRequest *mine = malloc(sizeof *mine + (size_t)pieces * sizeof(MPI_Request));
    *mine = (MpiRequest){.view = host_view_read(x, numbers), .pieces = pieces};
    return mine;
}

static CommRequest *mpi_all_reduce_start(Group *group, real *x, int64_t numbers)
{
    MpiRequest *mine = request_of(x, numbers);
    for (int64_t i = 0; i < mine->pieces; i++)
        MPI_Iallreduce(MPI_IN_PLACE, mine->view.numbers + i * mpi_piece,
                       piece_at(i * mpi_piece, numbers), MPI_REAL_TYPE, MPI_SUM, group->comm,
                       &mine->of_piece[i]);
    return &mine->request;
}

/* Sends synchronously, so a deadlock shows at every message size. MPI buffers small messages, and a
 * lab that relied on that would hang only with larger ones. */
static CommRequest *mpi_send_start(Group *group, const real *x, int64_t numbers, int to)
{
    MpiRequest *mine = request_of(x, numbers);
    for (int64_t i = 0; i < mine->pieces; i++)
        MPI_Issend(mine->view.numbers + i * mpi_piece, piece_at(i * mpi_piece, numbers),
                   MPI_REAL_TYPE, to, 0, group->comm, &mine->of_piece[i]);
    return &mine->request;
}

bool mpi_is_done(CommRequest *request)
{
    MpiRequest *mine = (MpiRequest *)request;
    bool done = true;
    for (int64_t i = 0; i < mine->pieces && done; i++) {
        int one;
        MPI_Test(&mine->of_piece[i], &one, MPI_STATUS_IGNORE);
        done = one;
    }
    return done;
}

static void mpi_wait(CommRequest *request)
{
    MpiRequest *mine = (MpiRequest *)request;
    for (int64_t i = 0; i < mine->pieces; i++)
        MPI_Wait(&mine->of_piece[i], MPI_STATUS_IGNORE);
    if (request->operation == SEND)
        host_view_end(&mine->view);
    else
        host_view_store(&mine->view);
    free(mine);
}

static void mpi_poke(Group *group)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group->comm, &found, MPI_STATUS_IGNORE);
}

const Transport over_mpi = {.all_reduce = mpi_all_reduce,
                            .all_gather = mpi_all_gather,
                            .reduce_scatter = mpi_reduce_scatter,
                            .all_to_all = mpi_all_to_all,
                            .reduce_scatter_parts = mpi_reduce_scatter_parts,
                            .all_gather_parts = mpi_all_gather_parts,
                            .broadcast = mpi_broadcast,
                            .send = mpi_send,
                            .receive = mpi_receive,
                            .all_reduce_start = mpi_all_reduce_start,
                            .send_start = mpi_send_start,
                            .wait = mpi_wait,
                            .poke = mpi_poke};
