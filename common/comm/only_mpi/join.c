/* All groups go through MPI. */
#include "comm/parts.h"

void transport_join(Group *group, Group *parent, int color, int key)
{
    (void)parent, (void)color, (void)key;
    group->transport = &over_mpi;
}
