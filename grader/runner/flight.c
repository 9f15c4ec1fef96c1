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

static void *first_byte(Piece piece)
{
    void *byte;
    memcpy(&byte, &piece.begin, sizeof byte);
    return byte;
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
    const bool is_none = !buffer || buffer == MPI_IN_PLACE; /* MPI itself refuses NULL */
    return (Piece){begin, begin + (is_none ? 0 : bytes_side_by_side(count, type))};
}

static uint64_t sum_of(const MemoryPieces *all)
{
    uint64_t sum = 0;
    for (int i = 0; i < all->count; i++)
        sum = XXH3_64bits_withSeed(first_byte(all->piece[i]), length(all->piece[i]), sum);
    return sum;
}

static size_t bytes_in(const MemoryPieces *all)
{
    size_t bytes = 0;
    for (int i = 0; i < all->count; i++)
        bytes += length(all->piece[i]);
    return bytes;
}

void departs(const Call *call, MemoryPieces sent)
{
    if (call && bytes_in(&sent))
        next = (Flight){.sent = sent, .sum = sum_of(&sent)};
}

static void mark(void *out, size_t bytes)
{
    static const uint32_t none = UNDER_WAY;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)out)[i] = ((const unsigned char *)&none)[i % sizeof none];
}

/* Where a piece of `out` lies in the landing. */
static char *landing_of(const Flight *f, Piece piece)
{
    return (char *)f->landing + (piece.begin - (uintptr_t)f->out);
}

/* The landing has the pieces at the same distances from its begin as `out`. */
void *lands(const Call *call, void *out, MemoryPieces received, size_t most)
{
    size_t bytes = 0;
    for (int i = 0; i < received.count; i++) {
        const Piece piece = received.piece[i];
        if (length(piece) && piece.begin < (uintptr_t)out)
            return out;
        if (length(piece) && piece.end - (uintptr_t)out > bytes)
            bytes = piece.end - (uintptr_t)out;
    }
    void *landing = call && bytes ? malloc(bytes) : NULL;
    if (!landing) /* or far more elements than any buffer holds */
        return out;
    next.received = received;
    next.out = out;
    next.most = most;
    next.landing = landing;
    for (int i = 0; i < received.count; i++) {
        void *piece = first_byte(received.piece[i]);
        const size_t marked = most ? most : length(received.piece[i]);
        memcpy(landing_of(&next, received.piece[i]), piece, marked);
        mark(piece, marked);
    }
    return landing;
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
    if (!status)
        return f->most;
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count < 0 ? 0 : (size_t)count;
}

/* Parts that MPI did not write keep their old contents. */
void flight_ends(Flight *f, const Call *call, const MPI_Status *status)
{
    for (int i = 0; f->landing && i < f->received.count; i++) {
        const Piece piece = f->received.piece[i];
        memcpy(first_byte(piece), landing_of(f, piece), f->most ? f->most : length(piece));
        if (f->most)
            memcpy(first_byte(piece), landing_of(f, piece), bytes_arrived(f, status));
    }
    if (f->sent.count && sum_of(&f->sent) != f->sum)
        misuse_since(
            call ? call->address : NULL,
            "wait for it before reusing the buffer, or send from a buffer that has no other use",
            call && !call->completed
                ? N_("%s: it was started and not waited for, and its send buffer has changed since")
                : N_("%s: the send buffer was changed before the send completed, so what arrives "
                     "depends on timing"),
            call ? _(call->name) : _("message"));
    free(f->landing);
    *f = (Flight){0};
}
