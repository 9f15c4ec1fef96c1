/* The affinity mask of this process. */
#include "base/cores.h"

#include <sched.h>

Cores cores_usable(void)
{
    Cores cores = {0};
    if (sched_getaffinity(0, sizeof cores, (cpu_set_t *)&cores) != 0)
        cores.words[0] = 1;
    return cores;
}

int cores_count(const Cores *cores)
{
    int count = 0;
    for (int i = 0; i < CORE_WORDS; i++)
        count += __builtin_popcountll(cores->words[i]);
    return count;
}
