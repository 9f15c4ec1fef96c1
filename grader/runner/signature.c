/* What a count of a type stands for: its sequence of basic types, as MPI compares them. */
#include <mpi.h>
#include <stdlib.h>

#include "grader/runner/record.h"

static const uint64_t base = 0x9e3779b97f4a7c15;

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    return (x ^ x >> 33) | 1;
}

static uint64_t power(int64_t n)
{
    uint64_t result = 1, square = base;
    for (; n > 0; n /= 2, square *= square)
        if (n & 1)
            result *= square;
    return result;
}

static Signature joined(Signature a, Signature b)
{
    if (a.count == 0 || b.count == 0)
        return a.count == 0 ? b : a;
    return (Signature){a.count + b.count, a.hash * power(b.count) + b.hash,
                       a.basic == b.basic ? a.basic : MIXED};
}

static Signature repeated(Signature s, int64_t times)
{
    Signature result = {0};
    for (; times > 0; times /= 2, s = joined(s, s))
        if (times & 1)
            result = joined(result, s);
    return result;
}

/* MPI_INT32_T and MPI_INT are two names of one thing on this machine; MPI_BYTE is like nothing else. */
static int32_t basic_of(MPI_Datatype type)
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
    int size = 0;
    PMPI_Type_size(type, &size);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return BASIC(kinds[i].kind, size);
    return BASIC(BYTES, size);
}

static Signature of_type(MPI_Datatype type);

static int64_t product(const int numbers[], int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= numbers[i];
    return all;
}

static int64_t sum(const int numbers[], int count)
{
    int64_t all = 0;
    for (int i = 0; i < count; i++)
        all += numbers[i];
    return all;
}

static Signature of_parts(MPI_Datatype type, int combiner, const int numbers[], const MPI_Datatype types[])
{
    Signature first = of_type(types[0]), all = {0};
    int size = 0, size_of_first = 0;
    switch (combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return first;
    case MPI_COMBINER_CONTIGUOUS:
        return repeated(first, numbers[0]);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return repeated(first, (int64_t)numbers[0] * numbers[1]);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
        return repeated(first, sum(numbers + 1, numbers[0]));
    case MPI_COMBINER_SUBARRAY:
        return repeated(first, product(numbers + 1 + numbers[0], numbers[0]));
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < numbers[0]; i++)
            all = joined(all, repeated(of_type(types[i]), numbers[1 + i]));
        return all;
    default: /* a part of a distributed array: as many of the first as fit */
        PMPI_Type_size(type, &size);
        PMPI_Type_size(types[0], &size_of_first);
        return repeated(first, size_of_first ? size / size_of_first : 0);
    }
}

static bool is_basic(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

static Signature of_type(MPI_Datatype type)
{
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    if (combiner == MPI_COMBINER_NAMED || types == 0) {
        int32_t basic = basic_of(type);
        return (Signature){1, mixed((uint64_t)basic), basic};
    }
    int *numbers = calloc((size_t)integers + 1, sizeof *numbers);
    MPI_Aint *places = calloc((size_t)addresses + 1, sizeof *places);
    MPI_Datatype *parts = calloc((size_t)types + 1, sizeof *parts);
    PMPI_Type_get_contents(type, integers, addresses, types, numbers, places, parts);
    Signature result = of_parts(type, combiner, numbers, parts);
    for (int i = 0; i < types; i++)
        if (!is_basic(parts[i]))
            PMPI_Type_free(&parts[i]);
    free(numbers);
    free(places);
    free(parts);
    return result;
}

Signature signature_of(int64_t count, MPI_Datatype type)
{
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return (Signature){0};
    return repeated(of_type(type), count);
}
