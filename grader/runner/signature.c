/* What a count of a type stands for, as MPI compares it, and which reduction an operation is. */
#include <mpi.h>

#include "base/real.h"
#include "grader/runner/recorder.h"

/* MPI_INT32_T and MPI_INT are two names of one thing on this machine; MPI_BYTE is like nothing else. */
static int32_t basic_of(MPI_Datatype type, int size)
{
    const struct {
        MPI_Datatype type;
        BasicKind kind;
    } kinds[] = {
        {MPI_FLOAT, FLOATING},
        {MPI_DOUBLE, FLOATING},
        {MPI_LONG_DOUBLE, FLOATING},
        {MPI_INT, SIGNED},
        {MPI_LONG, SIGNED},
        {MPI_LONG_LONG, SIGNED},
        {MPI_SHORT, SIGNED},
        {MPI_SIGNED_CHAR, SIGNED},
        {MPI_INT8_T, SIGNED},
        {MPI_INT16_T, SIGNED},
        {MPI_INT32_T, SIGNED},
        {MPI_INT64_T, SIGNED},
        {MPI_AINT, SIGNED},
        {MPI_COUNT, SIGNED},
        {MPI_OFFSET, SIGNED},
        {MPI_UNSIGNED, UNSIGNED},
        {MPI_UNSIGNED_LONG, UNSIGNED},
        {MPI_UNSIGNED_LONG_LONG, UNSIGNED},
        {MPI_UNSIGNED_SHORT, UNSIGNED},
        {MPI_UNSIGNED_CHAR, UNSIGNED},
        {MPI_UINT8_T, UNSIGNED},
        {MPI_UINT16_T, UNSIGNED},
        {MPI_UINT32_T, UNSIGNED},
        {MPI_UINT64_T, UNSIGNED},
        {MPI_CHAR, CHARACTER},
        {MPI_WCHAR, CHARACTER},
        {MPI_C_BOOL, LOGICAL},
        {MPI_C_FLOAT_COMPLEX, COMPLEX},
        {MPI_C_DOUBLE_COMPLEX, COMPLEX},
        {MPI_FLOAT_INT, PAIR},
        {MPI_DOUBLE_INT, PAIR},
        {MPI_LONG_INT, PAIR},
        {MPI_2INT, PAIR},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return BASIC(kinds[i].kind, size);
    return BASIC(BYTES, size);
}

/* A lab makes no types of its own, and the kit makes them of its numbers alone. */
Signature signature_of(int64_t count, MPI_Datatype type)
{
    int size, integers, addresses, types, combiner;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return (Signature){0};
    PMPI_Type_size(type, &size);
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED)
        return (Signature){count, basic_of(type, size)};
    return (Signature){count * (size / (int)sizeof(real)), BASIC(FLOATING, sizeof(real))};
}

int reduction_of(MPI_Op op)
{
    const MPI_Op known[REDUCTIONS] = {
        [SUM_OF] = MPI_SUM,      [MAX_OF] = MPI_MAX,           [MIN_OF] = MPI_MIN,
        [PRODUCT_OF] = MPI_PROD, [ALL_OF] = MPI_LAND,          [ANY_OF] = MPI_LOR,
        [ONE_OF] = MPI_LXOR,     [BITS_AND] = MPI_BAND,        [BITS_OR] = MPI_BOR,
        [BITS_XOR] = MPI_BXOR,   [MAX_AND_PLACE] = MPI_MAXLOC, [MIN_AND_PLACE] = MPI_MINLOC,
    };
    for (int i = SUM_OF; i < REDUCTIONS; i++)
        if (known[i] == op)
            return i;
    return NO_REDUCTION;
}
