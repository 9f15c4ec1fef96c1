#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/host_view.h"
#include "base/run.h"
#include "comm/comm.h"

#ifdef BALISE_DOUBLE
#define MPI_REAL_TYPE MPI_DOUBLE
#else
#define MPI_REAL_TYPE MPI_FLOAT
#endif

/* MPI counts are ints; and in pieces of 2 MiB, which stay in the caches of the ranks that copy them, Open MPI sums 64 MiB in half
 * the time that it takes in pieces of 16 MiB. */
enum { PIECE = 1 << 19 };

struct Group {
    MPI_Comm comm;
    int rank, size;
    char name[32];
    Counter counter[OPERATIONS];
    Group *first_child, *next_sibling;
};

struct CommRequest {
    Group *group;
    HostView view;
    int64_t pieces;
    MPI_Request request[];
};

Group *group_of(MPI_Comm comm, const char *name)
{
    Group *group = calloc(1, sizeof *group);
    MPI_Comm_dup(comm, &group->comm);
    MPI_Comm_rank(group->comm, &group->rank);
    MPI_Comm_size(group->comm, &group->size);
    group_rename(group, name);
    return group;
}

void group_free(Group *group)
{
    while (group->first_child) {
        Group *child = group->first_child;
        group->first_child = child->next_sibling;
        group_free(child);
    }
    MPI_Comm_free(&group->comm);
    free(group);
}

void group_must_exist(const Group *group, const char *word)
{
    if (!group)
        misuse(
            "balise 8 makes mesh->tp and balise 10 mesh->dp; until then the ranks that split the model are "
            "mesh->world",
            "%s: this group does not exist yet", word);
}

Group *group_adopt(Group *parent, MPI_Comm comm)
{
    group_must_exist(parent, "group_adopt");
    if (comm == MPI_COMM_NULL)
        misuse("a rank gets MPI_COMM_NULL where it is none of the ranks that the communicator is made of",
               "group_adopt: this communicator is MPI_COMM_NULL");
    if (comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD)
        misuse("the group frees what it adopts: give it one that you have made, by MPI_Comm_dup or "
               "MPI_Comm_split",
               "group_adopt: this communicator is MPI's own");
    Group *group = calloc(1, sizeof *group);
    group->comm = comm;
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_size(comm, &group->size);
    snprintf(group->name, sizeof group->name, "%.24s/own", parent->name);
    group->next_sibling = parent->first_child;
    parent->first_child = group;
    return group;
}

Group *group_split(Group *group, int color, int key)
{
    MPI_Comm comm;
    group_must_exist(group, "group_split");
    MPI_Comm_split(group->comm, color, key, &comm);
    Group *part = group_adopt(group, comm);
    snprintf(part->name, sizeof part->name, "%.24s/%d", group->name, color);
    return part;
}

int group_rank(const Group *group)
{
    group_must_exist(group, "group_rank");
    return group->rank;
}

int group_size(const Group *group)
{
    group_must_exist(group, "group_size");
    return group->size;
}

MPI_Comm group_comm(const Group *group)
{
    group_must_exist(group, "group_comm");
    return group->comm;
}

const char *group_name(const Group *group)
{
    return group->name;
}

void group_rename(Group *group, const char *name)
{
    snprintf(group->name, sizeof group->name, "%s", name);
}

Counter group_counter(const Group *group, Operation operation)
{
    return group->counter[operation];
}

Counter group_total(const Group *group)
{
    Counter total = {0};
    for (int i = 0; i < OPERATIONS; i++) {
        total.calls += group->counter[i].calls;
        total.bytes += group->counter[i].bytes;
        total.seconds += group->counter[i].seconds;
    }
    return total;
}

void group_reset_counters(Group *group)
{
    memset(group->counter, 0, sizeof group->counter);
}

static void count(Group *group, Operation operation, int64_t numbers, double begin)
{
    Counter *counter = &group->counter[operation];
    counter->calls++;
    counter->bytes += numbers * (int64_t)sizeof(real);
    counter->seconds += MPI_Wtime() - begin;
}

/* This rank's share of the 2(n-1)N numbers that an all-reduce of N costs its group of n: the shares add up to
 * it. */
static int64_t share_of_sum(const Group *group, int64_t numbers)
{
    int64_t all = 2 * (group->size - 1) * numbers;
    return all * (group->rank + 1) / group->size - all * group->rank / group->size;
}

static int piece_at(int64_t begin, int64_t count)
{
    return (int)(count - begin < PIECE ? count - begin : PIECE);
}

void comm_all_reduce(Group *group, const real *x, real *result, int64_t numbers)
{
    double begin = MPI_Wtime();
    HostView from = host_view_read(x, numbers), to = x == result ? from : host_view_write(result, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += PIECE)
        MPI_Allreduce(x == result ? MPI_IN_PLACE : (const void *)(from.numbers + i), to.numbers + i,
                      piece_at(i, numbers), MPI_REAL_TYPE, MPI_SUM, group->comm);
    if (x != result)
        host_view_end(&from);
    host_view_store(&to);
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
}

void comm_any(Group *group, uint8_t *bits, int64_t bytes)
{
    double begin = MPI_Wtime();
    for (int64_t i = 0; i < bytes || i == 0; i += PIECE)
        MPI_Allreduce(MPI_IN_PLACE, bits + i, piece_at(i, bytes), MPI_BYTE, MPI_BOR, group->comm);
    const int64_t numbers = (bytes + (int64_t)sizeof(real) - 1) / (int64_t)sizeof(real);
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
}

/* A matrix of `rows` rows of `columns` numbers in a wider one: MPI reads and writes it in place, whatever its
 * size. */
static MPI_Datatype columns_of(int64_t rows, int64_t columns, int64_t stride)
{
    if (rows > INT_MAX || columns > INT_MAX)
        misuse("gather along another dimension, or in parts",
               "all_gather: %lld rows of %lld numbers are more than MPI counts", (long long)rows,
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

void comm_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    double begin = MPI_Wtime();
    HostView from = host_view_read(x, rows * columns),
             to = host_view_write(result, rows * columns * group->size);
    MPI_Datatype mine = columns_of(rows, columns, columns),
                 each = columns_of(rows, columns, columns * group->size);
    MPI_Allgather(from.numbers, 1, mine, to.numbers, 1, each, group->comm);
    MPI_Type_free(&mine);
    MPI_Type_free(&each);
    host_view_end(&from);
    host_view_store(&to);
    count(group, ALL_GATHER, (group->size - 1) * rows * columns, begin);
}

/* MPI sums no derived type: the columns of each rank are brought together first. */
static real *blocks_of(const real *x, int64_t rows, int64_t columns, int size)
{
    real *blocks = malloc((size_t)(rows * columns * size) * sizeof(real) + 1);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < size; k++)
            memcpy(blocks + (k * rows + r) * columns, x + (r * size + k) * columns,
                   (size_t)columns * sizeof(real));
    return blocks;
}

void comm_reduce_scatter(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    double begin = MPI_Wtime();
    int64_t each = rows * columns;
    HostView whole = host_view_read(x, each * group->size), mine = host_view_write(result, each);
    bool copy = rows > 1 && group->size > 1;
    real *blocks = copy ? blocks_of(whole.numbers, rows, columns, group->size) : NULL;
    const real *from = copy ? blocks : whole.numbers;
    if (each <= PIECE) {
        MPI_Reduce_scatter_block(from, mine.numbers, (int)each, MPI_REAL_TYPE, MPI_SUM, group->comm);
    } else {
        for (int k = 0; k < group->size; k++)
            for (int64_t i = 0; i < each; i += PIECE)
                MPI_Reduce(from + k * each + i, mine.numbers + i, piece_at(i, each), MPI_REAL_TYPE, MPI_SUM,
                           k, group->comm);
    }
    free(blocks);
    host_view_end(&whole);
    host_view_store(&mine);
    count(group, REDUCE_SCATTER, (group->size - 1) * each, begin);
}

void comm_broadcast(Group *group, real *x, int64_t numbers, int root)
{
    double begin = MPI_Wtime();
    HostView view = host_view_read(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += PIECE)
        MPI_Bcast(view.numbers + i, piece_at(i, numbers), MPI_REAL_TYPE, root, group->comm);
    host_view_store(&view);
    count(group, BROADCAST, group->rank == root ? (group->size - 1) * numbers : 0, begin);
}

void comm_send(Group *group, const real *x, int64_t numbers, int to)
{
    double begin = MPI_Wtime();
    HostView view = host_view_read(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += PIECE)
        MPI_Send(view.numbers + i, piece_at(i, numbers), MPI_REAL_TYPE, to, 0, group->comm);
    host_view_end(&view);
    count(group, SEND, numbers, begin);
}

void comm_receive(Group *group, real *x, int64_t numbers, int from)
{
    double begin = MPI_Wtime();
    HostView view = host_view_write(x, numbers);
    for (int64_t i = 0; i < numbers || i == 0; i += PIECE)
        MPI_Recv(view.numbers + i, piece_at(i, numbers), MPI_REAL_TYPE, from, 0, group->comm,
                 MPI_STATUS_IGNORE);
    host_view_store(&view);
    count(group, RECEIVE, 0, begin);
}

void comm_barrier(Group *group)
{
    double begin = MPI_Wtime();
    MPI_Barrier(group->comm);
    count(group, BARRIER, 0, begin);
}

CommRequest *comm_all_reduce_start(Group *group, real *x, int64_t numbers)
{
    double begin = MPI_Wtime();
    int64_t pieces = numbers ? (numbers + PIECE - 1) / PIECE : 1;
    CommRequest *request = malloc(sizeof *request + (size_t)pieces * sizeof(MPI_Request));
    *request = (CommRequest){.group = group, .view = host_view_read(x, numbers), .pieces = pieces};
    for (int64_t i = 0; i < pieces; i++)
        MPI_Iallreduce(MPI_IN_PLACE, request->view.numbers + i * PIECE, piece_at(i * PIECE, numbers),
                       MPI_REAL_TYPE, MPI_SUM, group->comm, &request->request[i]);
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
    return request;
}

void comm_wait(CommRequest *request)
{
    double begin = MPI_Wtime();
    for (int64_t i = 0; i < request->pieces; i++)
        MPI_Wait(&request->request[i], MPI_STATUS_IGNORE);
    host_view_store(&request->view);
    request->group->counter[ALL_REDUCE].seconds += MPI_Wtime() - begin;
    free(request);
}

void comm_poke(Group *group)
{
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, group->comm, &found, MPI_STATUS_IGNORE);
}

void group_sum(Group *group, double *values, int numbers)
{
    group_must_exist(group, "group_sum");
    double begin = MPI_Wtime();
    MPI_Allreduce(MPI_IN_PLACE, values, numbers, MPI_DOUBLE, MPI_SUM, group->comm);
    count(group, ALL_REDUCE, share_of_sum(group, numbers) * (int64_t)(sizeof(double) / sizeof(real)), begin);
}
