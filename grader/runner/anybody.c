/* A receive from anybody takes what comes, in whatever order. On one machine messages nearly always come in the order in which
 * they were sent, and a lab that counts on one message of each rank goes well. Here a rank that has sent a message is asked for
 * its next one first, before those of ranks that were slower: MPI is as free to do so (MPI 4.0, 3.5: only messages of one
 * rank keep their order). */
#include <time.h>

#include "grader/runner/record.h"

enum { LOOKS = 100, BETWEEN = 20000 }; /* nanoseconds */

static int last = MPI_PROC_NULL;

int from_whom(const Call *call, MPI_Comm comm, int from, int tag)
{
    MPI_Status first;
    if (!call || from != MPI_ANY_SOURCE)
        return from;
    PMPI_Probe(MPI_ANY_SOURCE, tag, comm, &first);
    for (int i = 0, there = 0; last >= 0 && last < size_of(comm) && i < LOOKS; i++) {
        PMPI_Iprobe(last, tag, comm, &there, MPI_STATUS_IGNORE);
        if (there)
            return last;
        nanosleep(&(struct timespec){0, BETWEEN}, NULL);
    }
    return last = first.MPI_SOURCE;
}
