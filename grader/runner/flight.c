/* Memory in flight: received data are withheld until an operation is complete; sent data are
 * compared then. */
#include "grader/runner/flight.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/language.h"
#include "base/run.h"

static Flight next; /* of the call that this rank is about to make */

static size_t length(Piece piece)
{
    return piece.end - piece.begin;
}

size_t bytes_side_by_side(double count, MPI_Datatype type)
{
    int size, numbers, combiner;
    MPI_Aint low, extent;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_envelope(type, &numbers, &numbers, &numbers, &combiner);
    /* MPI's own types of two numbers may have a gap that belongs to them. */
    const bool whole = extent == size || combiner == MPI_COMBINER_NAMED;
    return low == 0 && whole ? (size_t)count * (size_t)extent : 0;
}

Piece piece_of(const void *buffer, double count, MPI_Datatype type)
{
    const uintptr_t begin = (uintptr_t)buffer;
    return (Piece){begin, begin + (buffer == MPI_IN_PLACE ? 0 : bytes_side_by_side(count, type))};
}

void departs(const Call *call, const void *in, double count, MPI_Datatype type)
{
    const Piece sent = piece_of(in, count, type);
    if (call && length(sent))
        next = (Flight){.sent = sent, .in = in, .sum = XXH3_64bits(in, length(sent))};
}

static void mark(void *out, size_t bytes)
{
    static const uint32_t none = UNDER_WAY;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)out)[i] = ((const unsigned char *)&none)[i % sizeof none];
}

/* A receive may declare more elements than its buffer holds, as long as no message fills them. So
 * for a message, only the first element is marked. */
void *lands(const Call *call, void *out, double count, MPI_Datatype type, bool is_message)
{
    const Piece received = piece_of(out, count, type);
    const size_t bytes = length(received);
    if (!call || !bytes)
        return out;
    next.received = received;
    next.out = out;
    next.marked = is_message ? bytes_side_by_side(1, type) : bytes;
    next.landing = malloc(bytes);
    if (!next.landing) { /* far more elements than any buffer holds */
        next = (Flight){0};
        return out;
    }
    memcpy(next.landing, out, next.marked);
    mark(out, next.marked);
    return next.landing;
}

Flight flight_of_call(void)
{
    const Flight flight = next;
    next = (Flight){0};
    return flight;
}

static size_t bytes_arrived(const Flight *f, const MPI_Status *status)
{
    int count = 0;
    if (!status || f->marked == length(f->received))
        return f->marked;
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count < 0 ? 0 : (size_t)count;
}

/* Parts that MPI did not write keep their old contents. */
void flight_ends(Flight *f, const Call *call, const MPI_Status *status)
{
    if (f->landing) {
        memcpy(f->out, f->landing, f->marked);
        memcpy(f->out, f->landing, bytes_arrived(f, status));
    }
    if (f->in && XXH3_64bits(f->in, length(f->sent)) != f->sum)
        misuse_since(
            call ? call->address : NULL,
            "wait for it before reusing the buffer, or send from a buffer that has no other use",
            call && !call->completed
                ? N_("%s: it was started and not waited for, and its send buffer has changed since")
                : N_("%s: the send buffer was changed before the send completed, so what arrives "
                     "depends on timing"),
            call ? call->name : _("message"));
    free(f->landing);
    *f = (Flight){0};
}
