/* Groups: making and freeing them, their names and counters. */
#include <stdio.h>
#include <stdlib.h>

#include "base/run.h"
#include "comm/comm_parts.h"

static Group *group_over(MPI_Comm comm)
{
    Group *group = calloc(1, sizeof *group);
    group->comm = comm;
    MPI_Comm_rank(comm, &group->rank);
    MPI_Comm_size(comm, &group->size);
    return group;
}

Group *group_of(MPI_Comm comm, const char *name)
{
    MPI_Comm own;
    MPI_Comm_dup(comm, &own);
    Group *group = group_over(own);
    snprintf(group->name, sizeof group->name, "%s", name);
    transport_join(group, NULL, 0, 0);
    return group;
}

void group_free(Group *group)
{
    while (group->first_child) {
        Group *child = group->first_child;
        group->first_child = child->next_sibling;
        group_free(child);
    }
    if (group->transport->leave)
        group->transport->leave(group);
    MPI_Comm_free(&group->comm);
    free(group);
}

void group_must_exist(const Group *group, const char *function)
{
    if (!group)
        misuse(
            "lab 8 makes mesh->tp and lab 10 mesh->dp: before them, the ranks that split the model are mesh->world. In labs 12 and 13, mesh->pp is NULL if there is only one stage, but pp_rank and pp_degree are set",
            "%s: this group does not exist yet", function);
}

static Group *child_of(Group *parent, MPI_Comm comm)
{
    if (comm == MPI_COMM_NULL)
        misuse("a rank gets MPI_COMM_NULL if it is not a member of the new communicator",
               "group_adopt: this communicator is MPI_COMM_NULL");
    if (comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD)
        misuse("a group frees the communicator that it adopts: pass one that you created with "
               "MPI_Comm_dup or MPI_Comm_split",
               "group_adopt: this is a predefined communicator of MPI");
    Group *group = group_over(comm);
    group->next_sibling = parent->first_child;
    parent->first_child = group;
    return group;
}

Group *group_adopt(Group *parent, MPI_Comm comm)
{
    group_must_exist(parent, "group_adopt");
    Group *group = child_of(parent, comm);
    snprintf(group->name, sizeof group->name, "%.24s/own", parent->name);
    transport_join(group, NULL, 0, 0);
    return group;
}

Group *group_split(Group *group, int color, int key)
{
    MPI_Comm comm;
    group_must_exist(group, "group_split");
    /* even if this rank's color is invalid: the other ranks wait for it */
    MPI_Comm_split(group->comm, color < 0 ? MPI_UNDEFINED : color, key, &comm);
    if (color < 0)
        misuse("every rank belongs to a group: use a color of 0 or more",
               "group_split: the color is %d, but it must not be negative", color);
    Group *part = child_of(group, comm);
    snprintf(part->name, sizeof part->name, "%.20s/%d", group->name, color);
    transport_join(part, group, color, key);
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
    if (group->transport->is_dry && callsite())
        misuse(N_("make train runs it"),
               "group_comm: make check cannot simulate what a lab does with MPI itself");
    return group->comm;
}

bool group_is_over_mpi(const Group *group)
{
    return !group->transport->is_nccl;
}

Counter group_total(const Group *group)
{
    Counter total = {0};
    for (int i = 0; i < OPERATIONS; i++) {
        const Counter one = group_total_of(group, i);
        total.calls += one.calls;
        total.bytes += one.bytes;
        total.seconds += one.seconds;
    }
    return total;
}

Counter group_total_of(const Group *group, Operation operation)
{
    return group ? group->counter[operation] : (Counter){0};
}
