/* What of MPI a lab makes itself, and does not free. The kit's words clear up behind themselves, but for groups; what is made together with a
 * layer or a group belongs to that, and nothing in a lab frees these. What is made once and kept in a static variable is no
 * leak either, nor is one for each shape. */
#include <mpi.h>
#include <string.h>

#include "base/run.h"
#include "grader/runner/record.h"
#include "grader/runner/recorder.h"

enum { KEPT = 4096, OPERATIONS_KEPT = 4096, MANY = 4, SEVERAL = 2 };

typedef struct Object {
    const void *handle;
    void *maker;
    ObjectKind kind;
} Object;

static struct {
    Object object[KEPT];
    int count;
    struct {
        MPI_Op op;
        MPI_User_function *function;
    } own[OPERATIONS_KEPT];
    int own_count;
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
    static const char *const kinds[OBJECT_KINDS] = {
        "communicator", "datatype", "group", "reduction operation", "persistent request", "block of memory"};
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

/* ---- operations of one's own: the same where their function is ------------------------------------------------------ */

uint64_t reduction_of(MPI_Op op)
{
    const MPI_Op known[REDUCTIONS] = {
        [SUM_OF] = MPI_SUM,      [MAX_OF] = MPI_MAX,           [MIN_OF] = MPI_MIN,
        [PRODUCT_OF] = MPI_PROD, [ALL_OF] = MPI_LAND,          [ANY_OF] = MPI_LOR,
        [ONE_OF] = MPI_LXOR,     [BITS_AND] = MPI_BAND,        [BITS_OR] = MPI_BOR,
        [BITS_XOR] = MPI_BXOR,   [MAX_AND_PLACE] = MPI_MAXLOC, [MIN_AND_PLACE] = MPI_MINLOC,
    };
    for (int i = SUM_OF; i < REDUCTIONS; i++)
        if (known[i] == op)
            return (uint64_t)i;
    for (int i = 0; i < objects.own_count; i++)
        if (objects.own[i].op == op)
            return (uint64_t)(uintptr_t)objects.own[i].function;
    return NO_REDUCTION;
}

int MPI_Op_create(MPI_User_function *function, int commute, MPI_Op *op)
{
    int result = PMPI_Op_create(function, commute, op);
    int i = 0;
    while (i < objects.own_count && objects.own[i].op != *op)
        i++;
    if (i < OPERATIONS_KEPT) {
        objects.own[i].op = *op;
        objects.own[i].function = function;
        objects.own_count += i == objects.own_count;
    }
    object_made(OPERATION_OF_ONES_OWN, *op, __builtin_return_address(0));
    return result;
}

int MPI_Op_free(MPI_Op *op)
{
    object_freed(*op);
    for (int i = 0; i < objects.own_count; i++)
        if (objects.own[i].op == *op)
            objects.own[i--] = objects.own[--objects.own_count];
    return PMPI_Op_free(op);
}

/* ---- datatypes and groups ------------------------------------------------------------------------------------------- */

#define MADE(kind, handle, call)                                                                             \
    int result = call;                                                                                       \
    object_made(kind, *(handle), __builtin_return_address(0));                                               \
    return result

int MPI_Type_contiguous(int count, MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_contiguous(count, type, out));
}

int MPI_Type_vector(int count, int length, int stride, MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_vector(count, length, stride, type, out));
}

int MPI_Type_create_hvector(int count, int length, MPI_Aint stride, MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_create_hvector(count, length, stride, type, out));
}

int MPI_Type_indexed(int count, const int lengths[], const int places[], MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_indexed(count, lengths, places, type, out));
}

int MPI_Type_create_indexed_block(int count, int length, const int places[], MPI_Datatype type,
                                  MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_create_indexed_block(count, length, places, type, out));
}

int MPI_Type_create_struct(int count, const int lengths[], const MPI_Aint places[],
                           const MPI_Datatype types[], MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_create_struct(count, lengths, places, types, out));
}

int MPI_Type_create_subarray(int dims, const int sizes[], const int subsizes[], const int starts[], int order,
                             MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_create_subarray(dims, sizes, subsizes, starts, order, type, out));
}

int MPI_Type_create_resized(MPI_Datatype type, MPI_Aint bound, MPI_Aint extent, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_create_resized(type, bound, extent, out));
}

int MPI_Type_dup(MPI_Datatype type, MPI_Datatype *out)
{
    MADE(DATATYPE, out, PMPI_Type_dup(type, out));
}

int MPI_Type_free(MPI_Datatype *type)
{
    object_freed(*type);
    return PMPI_Type_free(type);
}

int MPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    MADE(GROUP, group, PMPI_Comm_group(substituted(comm), group));
}

int MPI_Group_incl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(GROUP, out, PMPI_Group_incl(group, count, ranks, out));
}

int MPI_Group_excl(MPI_Group group, int count, const int ranks[], MPI_Group *out)
{
    MADE(GROUP, out, PMPI_Group_excl(group, count, ranks, out));
}

int MPI_Group_free(MPI_Group *group)
{
    object_freed(*group);
    return PMPI_Group_free(group);
}
