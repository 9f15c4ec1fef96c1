#include "train/agree.h"

#include <stdlib.h>

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
