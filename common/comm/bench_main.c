/* build/bench-collectives, under mpirun: measures the kit's collectives by size. Rank 0 prints a
 * line for each: its name, the bytes that each rank contributes, and the microseconds of several
 * samples. Each sample is the mean of many calls, on the slowest rank. The argument is the largest
 * size in bytes. Not a test: it compares nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "base/clock.h"
#include "comm/comm.h"

enum { SAMPLES = 9, LARGEST = 1 << 26 };

static void gather(Group *group, const real *x, real *result, int64_t count)
{
    comm_all_gather(group, x, result, 1, count);
}

static void reduce_scatter(Group *group, const real *x, real *result, int64_t count)
{
    comm_reduce_scatter(group, x, result, 1, count / group_size(group));
}

static void measure(Group *group, const char *name,
                    void (*collective)(Group *, const real *, real *, int64_t), const real *x,
                    real *result, int64_t bytes)
{
    int64_t count = bytes / (int64_t)sizeof *x, calls = 1 + (1 << 22) / bytes;
    calls = calls > 200 ? 200 : calls;
    if (group_rank(group) == 0)
        printf("%s %lld", name, (long long)bytes);
    for (int sample = -1; sample < SAMPLES; sample++) { /* the first call touches the memory */
        backend_wait();
        MPI_Barrier(group_comm(group));
        double begin = clock_now();
        for (int64_t i = 0; i < calls; i++)
            collective(group, x, result, count);
        backend_wait();
        double each = (clock_now() - begin) / (double)calls, slowest;
        MPI_Reduce(&each, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, group_comm(group));
        if (sample >= 0 && group_rank(group) == 0)
            printf(" %.2f", 1e6 * slowest);
    }
    if (group_rank(group) == 0)
        puts("");
}

int main(int argc, char **argv)
{
    backend_start(argv);
    MPI_Init(&argc, &argv);
    comm_share_memory(true);
    Group *world = group_of(MPI_COMM_WORLD, "world");
    const int64_t largest = argc > 1 ? atol(argv[1]) : LARGEST;
    real *x = backend_memory(largest, DEVICE_MEMORY),
         *result = backend_memory(largest * group_size(world), DEVICE_MEMORY);
    if (!x || !result)
        exit(1);
    backend_set_bytes(x, 0, largest);
    for (int64_t bytes = 1 << 12; bytes <= largest; bytes *= 8) {
        measure(world, "all_reduce", comm_all_reduce, x, result, bytes);
        measure(world, "all_gather", gather, x, result, bytes);
        measure(world, "reduce_scatter", reduce_scatter, x, result, bytes);
    }
    backend_memory_free(x, DEVICE_MEMORY);
    backend_memory_free(result, DEVICE_MEMORY);
    group_free(world);
    MPI_Finalize();
    return 0;
}
