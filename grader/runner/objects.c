/* What of MPI a lab makes itself, and does not free. The kit's words clear up behind themselves, but for groups; what is made together with a
 * layer or a group belongs to that, and nothing in a lab frees these. What is made once and kept in a static variable is no
 * leak either, nor is one for each shape. */
#include <mpi.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/runner/recorder.h"

enum { KEPT = 4096, MANY = 4, SEVERAL = 2 };

typedef struct Object {
    const void *handle;
    void *maker;
    ObjectKind kind;
} Object;

static struct {
    Object object[KEPT];
    int count;
} objects;

void objects_begin(void)
{
    objects.count = 0;
}

void object_made(ObjectKind kind, const void *handle, const void *maker)
{
    void *line = recorder_active() && recorder_place().what != MAKING_OF ? callsite() : NULL;
    if (kind == BLOCK_OF_MEMORY && line &&
        !(recorder_place().step == 1 &&
          (recorder_place().of == A_LAYER ||
           recorder_place().of == THE_MODEL))) /* the first step may fill what is kept */
        return;
    bool own = line == maker || kind == COMMUNICATOR; /* group_split() clears nothing up */
    if (line && own && objects.count < KEPT)
        objects.object[objects.count++] = (Object){handle, line, kind};
}

void object_freed(const void *handle)
{
    for (int i = objects.count - 1; i >= 0; i--)
        if (objects.object[i].handle == handle) {
            objects.object[i] = objects.object[--objects.count];
            return;
        }
}

void recorder_left_behind(void (*tell)(const char *what, int64_t count, void *address))
{
    static const char *const kinds[OBJECT_KINDS] = {N_("communicator"), N_("group"),
                                                    "block of memory"};
    for (int i = 0; i < objects.count; i++) {
        const Object *first = &objects.object[i];
        int64_t count = 1;
        for (int k = objects.count - 1; k > i; k--)
            if (objects.object[k].maker == first->maker) {
                objects.object[k] = objects.object[--objects.count];
                count++;
            }
        if (count >= (first->kind == BLOCK_OF_MEMORY ? SEVERAL : MANY))
            tell(kinds[first->kind], count, first->maker);
    }
}

/* ---- groups --------------------------------------------------------------------------------------------------------- */

#define MADE(group, call)                                                                          \
    int result = call;                                                                             \
    object_made(GROUP, *(group), __builtin_return_address(0));                                     \
    return result

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    MADE(group, PMPI_Comm_group(substituted(comm), group));
}

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(out, PMPI_Group_incl(group, count, ranks, out));
}

int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(out, PMPI_Group_excl(group, count, ranks, out));
}

int MPI_Group_free(MPI_Group *group)
{
    object_freed(*group);
    return PMPI_Group_free(group);
}
