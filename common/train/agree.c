#include "train/agree.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

bool agree(Group *group, bool good, Problem *problem)
{
    enum { BYTES = sizeof *problem };
    int ranks = group_size(group), first = 0;
    double *failed = calloc((size_t)ranks, sizeof *failed), text[BYTES] = {0};
    unsigned char *bytes = (unsigned char *)problem;
    failed[group_rank(group)] = !good;
    group_sum(group, failed, ranks);
    while (first < ranks && failed[first] == 0)
        first++;
    free(failed);
    if (first == ranks)
        return true;
    for (int i = 0; group_rank(group) == first && i < BYTES; i++)
        text[i] = bytes[i];
    group_sum(group, text, BYTES); /* the others add nothing */
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)text[i];
    return false;
}

bool agree_on_device(Group *group, Problem *problem)
{
    enum { MOST = 128 };
    int ranks = group_size(group), other = 0;
    char mine[MOST] = "", (*all)[MOST] = calloc((size_t)ranks, sizeof *all);
    snprintf(mine, sizeof mine, "%s", backend_device());
    MPI_Allgather(mine, MOST, MPI_BYTE, all, MOST, MPI_BYTE, group_comm(group));
    while (other < ranks && !strcmp(all[other], all[0]))
        other++;
    if (other < ranks)
        problem_set(
            problem, NULL,
            "CUDA_VISIBLE_DEVICES names the GPUs of one type, nvidia-smi shows all; ranks of other "
            "types would wait for the slowest, and their sums differ in the last digits",
            "rank 0 computes on %s, rank %d on %s: a run takes GPUs of one type", all[0], other,
            all[other]);
    free(all);
    return other == ranks;
}
