/* Communicators: identifies them across ranks, and wraps the calls that create and free them.
 * Creating a few is setup, which is free; more are charged (see traffic_end() in main.c). */
#include <xxhash.h>

#include "base/run.h"
#include "grader/runner/recorder.h"

enum { KEPT = 8192 }; /* a lab that never frees them makes many */

static struct {
    CommName comms[KEPT];
    int count, missing;
    uint64_t number; /* of the case */
} names;

/* A communicator is identified by its parent, by the number of the call that made it, and by its
 * members. These are the same on all of its ranks. */
static uint64_t identity(uint64_t parent, uint64_t number, uint64_t members)
{
    const uint64_t made_of[] = {parent, number, members};
    return XXH3_64bits(made_of, sizeof made_of) | 1;
}

/* Describes `comm` with the ranks of `group`. */
static CommName name_of(MPI_Comm comm, MPI_Group group)
{
    CommName name = {.comm = comm};
    MPI_Group all;
    int ranks[MAX_RANKS], world[MAX_RANKS];
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(group, &name.size);
    if (name.size > MAX_RANKS)
        name.size = MAX_RANKS;
    for (int i = 0; i < name.size; i++)
        ranks[i] = i;
    PMPI_Group_translate_ranks(group, name.size, ranks, all, world);
    for (int i = 0; i < name.size; i++) {
        name.order[i] = world[i];
        name.members |= (uint64_t)1 << world[i];
    }
    PMPI_Group_free(&all);
    return name;
}

static void forget(MPI_Comm comm)
{
    for (int i = 0; i < names.count; i++)
        if (names.comms[i].comm == comm)
            names.comms[i--] = names.comms[--names.count];
}

static CommName *keep(CommName name)
{
    if (names.count == KEPT)
        names.count = 0;
    names.comms[names.count] = name;
    return &names.comms[names.count++];
}

static CommName *remember(MPI_Comm comm, uint64_t parent, uint64_t number)
{
    MPI_Group group;
    forget(comm); /* MPI may reuse a handle */
    PMPI_Comm_group(comm, &group);
    CommName name = name_of(comm, group);
    PMPI_Group_free(&group);
    name.id = identity(parent, number, name.members);
    name.of_case = names.number;
    return keep(name);
}

/* The ranks of `group`, which together create a communicator from `parent` and have none yet. */
static CommName *members_of(MPI_Comm parent, MPI_Group group, int tag)
{
    CommName name = name_of(MPI_COMM_NULL, group);
    name.id = identity(~named(parent)->id, (uint64_t)tag, name.members);
    for (int i = 0; i < names.count; i++)
        if (names.comms[i].id == name.id)
            return &names.comms[i];
    return keep(name);
}

CommName *named(MPI_Comm comm)
{
    for (int i = 0; i < names.count; i++)
        if (names.comms[i].comm == comm)
            return &names.comms[i];
    return remember(comm, names.number, 0);
}

bool is_of_earlier_case(MPI_Comm comm)
{
    const CommName *name = named(comm);
    return comm != MPI_COMM_SELF && !name->own && name->of_case != names.number;
}

void names_begin(MPI_Comm world, int number)
{
    names.number = (uint64_t)number;
    names.missing = MPI_PROC_NULL;
    for (int i = 0; i < names.count; i++)
        names.comms[i].collectives = 0;
    remember(world, names.number, 0)->id = THE_WORLD;
}

int launch_rank(MPI_Comm comm, int rank)
{
    const CommName *name = named(comm);
    if (rank >= 0 && rank < name->size)
        return name->order[rank];
    if (rank != MPI_PROC_NULL)
        names.missing = rank;
    return NOBODY;
}

int missing_rank(void)
{
    return names.missing;
}

/* ---- the calls ------------------------------------------------------------------------------------------------------ */

/* Leaves `call`, which created *out if it succeeded. */
static int made(Call *call, const MPI_Comm *out, const void *maker, int result)
{
    charge_communicator();
    if (call && result == MPI_SUCCESS && *out != MPI_COMM_NULL) {
        CommName *name = remember(*out, call->group ^ names.number << 32, (uint64_t)call->number);
        name->own = is_called_by_lab(maker);
        call->made = name->id;
        object_made(COMMUNICATOR, *out, maker);
    }
    return leave(result);
}

#define SET_UP(name, call)                                                                         \
    comm = substituted(comm);                                                                      \
    Call *this = call_of(name, comm, TOGETHER);                                                    \
    enter(this);                                                                                   \
    return made(this, out, __builtin_return_address(0), call)

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *out)
{
    SET_UP("split", PMPI_Comm_split(comm, color, key, out));
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *out)
{
    SET_UP("dup", PMPI_Comm_dup(comm, out));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *out)
{
    SET_UP("create", PMPI_Comm_create(comm, group, out));
}

/* Only the ranks of `group` call it together; on other ranks, it does nothing. */
int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *out)
{
    int rank;
    comm = substituted(comm);
    PMPI_Group_rank(group, &rank);
    Call *this = call_of("create_group", MPI_COMM_NULL, rank == MPI_UNDEFINED ? LOCAL : TOGETHER);
    if (this && this->rule == TOGETHER) {
        CommName *name = members_of(comm, group, tag);
        this->group = name->id;
        this->members = name->members;
        this->number = ++name->collectives;
        this->from_tag = tag;
    }
    enter(this);
    return made(this, out, __builtin_return_address(0),
                PMPI_Comm_create_group(comm, group, tag, out));
}

/* If a lab freed the communicator of a group, every later call on the group would end the
 * program. */
static void must_be_own(MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL && comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF &&
        !named(comm)->own)
        misuse("a group frees its own communicator; free only those that you created and kept",
               "MPI_Comm_free: this communicator belongs to a group");
}

int MPI_Comm_free(MPI_Comm *comm)
{
    if (recorder_active() && is_called_by_lab(__builtin_return_address(0)))
        must_be_own(*comm);
    Call *call = call_of("free", *comm, LOCAL);
    enter(call);
    forget(*comm);
    object_freed(COMMUNICATOR, *comm);
    return leave(PMPI_Comm_free(comm));
}

/* group_adopt() calls this for a communicator, which then belongs to a group. */
int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    if (recorder_active() && !is_called_by_lab(__builtin_return_address(0)) &&
        comm != MPI_COMM_WORLD && comm != MPI_COMM_SELF)
        named(comm)->own = false;
    return PMPI_Comm_rank(substituted(comm), rank);
}

int MPI_Comm_compare(MPI_Comm a, MPI_Comm b, int *result)
{
    return PMPI_Comm_compare(substituted(a), substituted(b), result);
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    return PMPI_Comm_size(substituted(comm), size);
}
