/* What lies in memory while a message is under way. From its start until it is complete MPI has the buffer: what is sent must
 * not change, and what is received is not there yet. Both often go well by chance, for short messages and quiet machines. Here
 * they never do: what is received comes to the lab's buffer when the lab is told that it is complete, and until then the
 * buffer holds numbers that are none (UNDER_WAY, by which the judge knows where they were read); what is sent is looked at again
 * when it is complete. */
#include "grader/runner/flight.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/calls.h"

static Flight next; /* of the call that this rank is about to make */

/* The bytes of `count` numbers that lie side by side; 0 for a type with gaps, whose buffers are left alone. */
static size_t bytes_side_by_side(double count, MPI_Datatype type)
{
    int size;
    MPI_Aint low, extent;
    if (count <= 0 || type == MPI_DATATYPE_NULL)
        return 0;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &low, &extent);
    return low == 0 && extent == size ? (size_t)count * (size_t)size : 0;
}

const void *departs(const Call *call, const void *in, double count, MPI_Datatype type)
{
    size_t bytes = call && in != MPI_IN_PLACE ? bytes_side_by_side(count, type) : 0;
    if (bytes)
        next = (Flight){.sent = in, .sent_bytes = bytes, .sum = XXH3_64bits(in, bytes)};
    return in;
}

static void mark(void *out, size_t bytes)
{
    static const uint32_t none = UNDER_WAY;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)out)[i] = ((const unsigned char *)&none)[i % sizeof none];
}

static bool overlap(const Flight *f)
{
    const char *in = f->sent, *out = f->received;
    return in && in < out + f->bytes && out < in + f->sent_bytes;
}

static void *lands_with(const Call *call, void *out, size_t bytes, size_t marked)
{
    if (!bytes)
        return out;
    next.received = out;
    next.bytes = bytes;
    next.marked = marked;
    if (overlap(&next))
        misuse("MPI_IN_PLACE says that the result takes the place of what is sent",
               "%s: what is sent and what is received lie in the same memory", call->name);
    next.landing = malloc(bytes);
    memcpy(next.landing, out, marked);
    mark(out, marked);
    return next.landing;
}

void *lands(const Call *call, void *out, double count, MPI_Datatype type)
{
    size_t bytes = call ? bytes_side_by_side(count, type) : 0;
    return lands_with(call, out, bytes, bytes);
}

/* The room for it may be said to be longer than it is, as long as no message fills it. */
void *lands_message(const Call *call, void *out, int count, MPI_Datatype type)
{
    size_t bytes = call ? bytes_side_by_side(count, type) : 0;
    return lands_with(call, out, bytes, bytes ? bytes_side_by_side(1, type) : 0);
}

Flight flight_begun(void)
{
    Flight f = next;
    next = (Flight){0};
    return f;
}

static size_t bytes_arrived(const Flight *f, const MPI_Status *status)
{
    int count = 0;
    if (!status || f->marked == f->bytes)
        return f->marked;
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count < 0 ? 0 : (size_t)count;
}

/* What nothing was written to is as it was. */
void flight_ends(Flight *f, const Call *call, const MPI_Status *status)
{
    if (f->landing) {
        memcpy(f->received, f->landing, f->marked);
        memcpy(f->received, f->landing, bytes_arrived(f, status));
    }
    if (f->sent && XXH3_64bits(f->sent, f->sent_bytes) != f->sum)
        misuse_since(
            call ? call->address : NULL,
            "wait for it before the buffer is used again, or send from one that is used for nothing else",
            "%s: what is sent was changed before it was complete: what arrives is a matter of chance",
            call ? call->name : _("message"));
    free(f->landing);
    *f = (Flight){0};
}
