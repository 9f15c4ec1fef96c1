/* Type signatures as MPI compares them, and which reduction an MPI_Op is. */
#include <mpi.h>

#include "base/real.h"
#include "grader/runner/recorder.h"

/* MPI_INT32_T and MPI_INT are two names for the same type on this machine; MPI_BYTE matches nothing
 * else. */
static int32_t basic_of(MPI_Datatype type, int size)
{
    enum { MOST = 12 }; /* of a kind */
    const MPI_Datatype types[BYTES][MOST] = {
        [FLOATING] = {MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE},
        [SIGNED] = {MPI_INT, MPI_LONG, MPI_LONG_LONG, MPI_SHORT, MPI_SIGNED_CHAR, MPI_INT8_T,
                    MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT, MPI_COUNT, MPI_OFFSET},
        [UNSIGNED] = {MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UNSIGNED_SHORT,
                      MPI_UNSIGNED_CHAR, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T},
        [CHARACTER] = {MPI_CHAR, MPI_WCHAR},
        [COMPLEX] = {MPI_C_FLOAT_COMPLEX, MPI_C_DOUBLE_COMPLEX},
        [LOGICAL] = {MPI_C_BOOL},
        [PAIR] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT}};
    for (int kind = FLOATING; kind < BYTES; kind++)
        for (int i = 0; i < MOST && types[kind][i]; i++)
            if (types[kind][i] == type)
                return BASIC(kind, size);
    return BASIC(BYTES, size);
}

/* Labs make no datatypes of their own, and the kit's are made of REAL numbers only. */
Signature signature_of(int64_t count, MPI_Datatype type)
{
    int size, integers, addresses, types, combiner;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return (Signature){0};
    if (type == MPI_2INT)
        return (Signature){2 * count, BASIC(SIGNED, sizeof(int))};
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
