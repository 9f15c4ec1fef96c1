/* All groups use MPI, or memory that their ranks share. */
#include "comm/comm_parts.h"

void transport_join(Group *group, Group *parent, int color, int key)
{
    if (!shared_join(group))
        group->transport = &over_mpi;
}
