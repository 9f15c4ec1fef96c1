/* What a lab creates itself and does not free: MPI objects and memory. The kit's functions free
 * theirs, except groups. An object made together with a layer or a group belongs to it, and labs do
 * not free layers and groups. An object that is made once and kept in a static variable is not a
 * leak, nor is one per shape, nor a buffer that grows. */
#include "base/language.h"
#include "base/run.h"
#include "grader/runner/recorder.h"

enum { MOST_OBJECTS = 4096, MANY = 3, SEVERAL = 2 };

typedef struct Object {
    const void *handle;
    void *maker;
    ObjectKind kind;
} Object;

static struct {
    Object object[MOST_OBJECTS];
    int count;
} objects;

void objects_begin(void)
{
    objects.count = 0;
}

void object_made(ObjectKind kind, const void *handle, const void *maker)
{
    if (!recorder_active() || recorder_place().what == MAKING_OF)
        return;
    if (kind == BLOCK_OF_MEMORY && !recorder_repeats())
        return; /* a cache, or a buffer that grows */
    void *line = callsite();
    bool own = line == maker || kind == COMMUNICATOR; /* group_split() frees nothing */
    if (line && own && objects.count < MOST_OBJECTS)
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

/* The number of objects from one line that makes them a leak. What a layer needs may depend on its
 * data (how many ids are in a shard), so one buffer may also grow in a repeated pass. */
static int64_t fewest(ObjectKind kind)
{
    if (kind != BLOCK_OF_MEMORY)
        return MANY;
    return recorder_place().of == A_LAYER ? SEVERAL : 1;
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
        if (count >= fewest(first->kind))
            tell(kinds[first->kind], count, first->maker);
    }
}

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
