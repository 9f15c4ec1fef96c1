/* Counts and measures communication; the group's transport does the work. */
#include <stdlib.h>

#include "backend/backend.h"
#include "base/run.h"
#include "comm/comm_parts.h"

static void count(Group *group, Operation operation, int64_t numbers, double begin)
{
    Counter *counter = &group->counter[operation];
    counter->calls++;
    counter->bytes += numbers * (int64_t)sizeof(real);
    counter->seconds += MPI_Wtime() - begin;
}

/* An all-reduce of N elements sends 2(n-1)N over a group of n. Returns this rank's share; the
 * shares add up to exactly that number. */
static int64_t share_of_sum(const Group *group, int64_t numbers)
{
    int64_t all = 2 * (group->size - 1) * numbers;
    return all * (group->rank + 1) / group->size - all * group->rank / group->size;
}

/* A group of one rank needs no communication. It does not call its transport, because MPI would
 * copy a GPU's numbers through the host. */
static bool is_alone(const Group *group)
{
    return group->size == 1;
}

static void copy_alone(const real *x, real *result, int64_t numbers)
{
    if (x != result)
        kernel_vector_copy(numbers, x, result);
}

static void reduce_all(Group *group, ReduceOp how, const real *x, real *result, int64_t numbers)
{
    double begin = MPI_Wtime();
    if (is_alone(group))
        copy_alone(x, result, numbers);
    else
        group->transport->all_reduce(group, how, x, result, numbers);
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
}

void comm_all_reduce(Group *group, const real *x, real *result, int64_t numbers)
{
    reduce_all(group, SUM, x, result, numbers);
}

void comm_all_max(Group *group, const real *x, real *result, int64_t numbers)
{
    reduce_all(group, MAXIMUM, x, result, numbers);
}

/* Each rank has, or gets, a block of rows * columns numbers. */
static void exchange_blocks(Group *group, Operation operation, const real *x, real *result,
                            int64_t rows, int64_t columns)
{
    double begin = MPI_Wtime();
    if (is_alone(group))
        copy_alone(x, result, rows * columns);
    else
        (operation == ALL_GATHER ? group->transport->all_gather : group->transport->reduce_scatter)(
            group, x, result, rows, columns);
    count(group, operation, (group->size - 1) * rows * columns, begin);
}

void comm_all_gather(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    exchange_blocks(group, ALL_GATHER, x, result, rows, columns);
}

void comm_reduce_scatter(Group *group, const real *x, real *result, int64_t rows, int64_t columns)
{
    exchange_blocks(group, REDUCE_SCATTER, x, result, rows, columns);
}

/* ---- numbers in 16 bits: each pair travels as one real ---- */

static void exchange_terms(Group *group, const uint16_t *x, uint16_t *result, int64_t rows,
                           int64_t columns, uint16_t *room)
{
    group->transport->all_to_all(group, (const real *)x, (real *)room, rows, columns / HALVES);
    kernel_add_halves(group->size, rows * columns, room, result);
}

void comm_reduce_scatter_halves(Group *group, const uint16_t *x, uint16_t *result, int64_t rows,
                                int64_t columns, uint16_t *room)
{
    double begin = MPI_Wtime();
    exchange_terms(group, x, result, rows, columns, room);
    count(group, REDUCE_SCATTER, (group->size - 1) * rows * columns / HALVES, begin);
}

void comm_all_reduce_halves(Group *group, const uint16_t *x, uint16_t *result, int64_t numbers,
                            uint16_t *room)
{
    double begin = MPI_Wtime();
    const int64_t each = numbers / group->size;
    exchange_terms(group, x, room, 1, each, room);
    group->transport->all_gather(group, (const real *)room, (real *)result, 1, each / HALVES);
    count(group, ALL_REDUCE, share_of_sum(group, numbers / HALVES), begin);
}

void comm_reduce_scatter_parts(Group *group, real *x, const int64_t *begin)
{
    const int64_t mine = begin[group->rank + 1] - begin[group->rank];
    double start = MPI_Wtime();
    if (!is_alone(group))
        group->transport->reduce_scatter_parts(group, x, begin);
    count(group, REDUCE_SCATTER, begin[group->size] - mine, start);
}

void comm_all_gather_parts(Group *group, real *x, const int64_t *begin)
{
    const int64_t mine = begin[group->rank + 1] - begin[group->rank];
    double start = MPI_Wtime();
    if (!is_alone(group))
        group->transport->all_gather_parts(group, x, begin);
    count(group, ALL_GATHER, (group->size - 1) * mine, start);
}

void comm_broadcast(Group *group, real *x, int64_t numbers, int root)
{
    double begin = MPI_Wtime();
    if (!is_alone(group))
        group->transport->broadcast(group, x, numbers, root);
    count(group, BROADCAST, group->rank == root ? (group->size - 1) * numbers : 0, begin);
}

void comm_send(Group *group, const real *x, int64_t numbers, int to)
{
    double begin = MPI_Wtime();
    group->transport->send(group, x, numbers, to);
    count(group, SEND, numbers, begin);
}

void comm_receive(Group *group, real *x, int64_t numbers, int from)
{
    double begin = MPI_Wtime();
    group->transport->receive(group, x, numbers, from);
    count(group, RECEIVE, 0, begin);
}

CommRequest *comm_all_reduce_start(Group *group, real *x, int64_t numbers)
{
    double begin = MPI_Wtime();
    CommRequest *request = is_alone(group) ? calloc(1, sizeof *request)
                                           : group->transport->all_reduce_start(group, x, numbers);
    request->group = group;
    request->operation = ALL_REDUCE;
    group->under_way++;
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
    return request;
}

CommRequest *comm_send_start(Group *group, const real *x, int64_t numbers, int to)
{
    double begin = MPI_Wtime();
    CommRequest *request = group->transport->send_start(group, x, numbers, to);
    request->group = group;
    request->operation = SEND;
    group->under_way++;
    count(group, SEND, numbers, begin);
    return request;
}

void comm_wait(CommRequest *request)
{
    Counter *counter = &request->group->counter[request->operation];
    double begin = MPI_Wtime();
    request->group->under_way--;
    if (is_alone(request->group))
        free(request);
    else
        request->group->transport->wait(request);
    counter->seconds += MPI_Wtime() - begin;
}

bool comm_poke(Group *group)
{
    if (is_alone(group) || group->under_way == 0)
        return false;
    group->transport->poke(group);
    return true;
}

/* ---- host memory: through MPI, with any transport ---- */

void comm_any(Group *group, uint8_t *bits, int64_t bytes)
{
    double begin = MPI_Wtime();
    shared_sums_by_mpi(group);
    const int64_t most = 1 << 20; /* MPI counts are ints */
    for (int64_t i = 0; i < bytes || i == 0; i += most)
        MPI_Allreduce(MPI_IN_PLACE, bits + i, (int)(bytes - i < most ? bytes - i : most), MPI_BYTE,
                      MPI_BOR, group->comm);
    const int64_t numbers = (bytes + (int64_t)sizeof(real) - 1) / (int64_t)sizeof(real);
    count(group, ALL_REDUCE, share_of_sum(group, numbers), begin);
}

void group_sum(Group *group, double *values, int numbers)
{
    group_must_exist(group, "group_sum");
    must_exist("group_sum", values);
    if (numbers < 0)
        misuse("count the numbers that `values` has", "group_sum: it cannot add %d numbers",
               numbers);
    double begin = MPI_Wtime();
    shared_sums_by_mpi(group);
    MPI_Allreduce(MPI_IN_PLACE, values, numbers, MPI_DOUBLE, MPI_SUM, group->comm);
    count(group, ALL_REDUCE,
          share_of_sum(group, numbers) * (int64_t)(sizeof(double) / sizeof(real)), begin);
}
