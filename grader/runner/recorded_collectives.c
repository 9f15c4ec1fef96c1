/* MPI's collectives, blocking and nonblocking, recorded and charged with what they send. */
#include <stdint.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/runner/recorder.h"
#include "tensor/pool.h"

/* What a rank contributes to a collective, or receives from it. */
typedef struct Side {
    const void *buffer;
    int count; /* per part */
    MPI_Datatype type;
    bool each; /* one part for each rank of the communicator, instead of a single one */
    const int *counts, *displs; /* for parts of different sizes; NULL: all equal, contiguous */
} Side;

/* Who has data for whom. */
typedef enum Flow { AMONG_ALL, TO_ROOT, FROM_ROOT, BY_RANK } Flow;

typedef struct Collective {
    const char *name;
    Rule rule;
    Side in, out;
    Flow flow;
    MPI_Op op;
    int root;
} Collective;

static int64_t count_of_part(const Side *side, int i)
{
    return side->counts ? side->counts[i] : side->count;
}

static void reduces(Call *call, const Collective *c, MPI_Comm comm)
{
    call->reduction = reduction_of(c->op);
    call->of_tensor = pool_has_lent(c->in.buffer == MPI_IN_PLACE ? c->out.buffer : c->in.buffer);
    for (int i = 0, parts = c->in.counts ? size_of(comm) : 1; i < parts; i++)
        call->sent[i] = signature_of(count_of_part(&c->in, i), c->in.type);
}

/* Does this rank have a part for rank i or, if data flow the other way, get one from it? The root's
 * own part stays where it is. */
static bool has_part(bool root_gets, int root, int mine, int i)
{
    return root_gets ? mine != root && i == root : mine == root;
}

/* What a rank sends to every other rank, and expects from it (MPI 3.1, chapter 5). Arguments
 * significant only at the root are checked only there. With MPI_IN_PLACE, the receive arguments
 * describe what is sent. */
static void exchanges(Call *call, const Collective *c, MPI_Comm comm)
{
    const int mine = rank_in(comm);
    const bool all = c->flow == AMONG_ALL;
    const Side *sent = all && c->in.buffer == MPI_IN_PLACE ? &c->out : &c->in;
    for (int i = 0, n = size_of(comm); i < n; i++) {
        const int other = launch_rank(comm, i);
        if (all || has_part(c->flow == TO_ROOT, c->root, mine, i))
            call->sent[other] =
                signature_of(count_of_part(sent, c->in.each ? i : mine), sent->type);
        if (all || has_part(c->flow == FROM_ROOT, c->root, mine, i))
            call->received[other] = signature_of(count_of_part(&c->out, i), c->out.type);
    }
}

static Call *call_of_collective(const Collective *c, MPI_Comm comm)
{
    Call *call = call_of(c->name, comm, c->rule);
    if (!call)
        return NULL;
    if (c->flow == TO_ROOT || c->flow == FROM_ROOT)
        call->root = launch_rank(comm, c->root);
    if (c->rule == REDUCTION)
        reduces(call, c, comm);
    else
        exchanges(call, c, comm);
    return call;
}

/* The number of elements in a buffer whose parts follow each other. */
static double extent_of(const Side *side, MPI_Comm comm)
{
    double end = 0;
    if (!side->counts)
        return (double)side->count * (side->each ? size_of(comm) : 1);
    for (int i = 0, n = size_of(comm); i < n; i++)
        end += side->counts[i];
    return end;
}

/* Does this rank send from its send buffer? */
static bool sends_own(const Collective *c, MPI_Comm comm)
{
    return c->in.buffer != MPI_IN_PLACE && (c->flow != FROM_ROOT || rank_in(comm) == c->root);
}

/* Does this rank receive into its receive buffer? */
static bool receives_own(const Collective *c, MPI_Comm comm)
{
    return c->out.buffer != MPI_IN_PLACE && (c->flow != TO_ROOT || rank_in(comm) == c->root);
}

/* The receive buffer. A reduction in place receives where it sends. */
static Side side_received(const Collective *c)
{
    Side side = c->in.buffer == MPI_IN_PLACE && c->rule == REDUCTION ? c->in : c->out;
    side.buffer = c->out.buffer;
    return side;
}

/* A buffer's memory: all of it, or its parts if they may lie apart. */
static MemoryPieces pieces_of(const Side *side, MPI_Comm comm)
{
    const bool apart = side->counts && side->displs;
    MemoryPieces all = {apart ? size_of(comm) : 1, {{0}}};
    for (int i = 0; i < all.count; i++) {
        const int64_t before = apart ? side->displs[i] : 0;
        const uintptr_t offset = (uintptr_t)(before * (int64_t)bytes_side_by_side(1, side->type));
        all.piece[i] =
            piece_of(side->buffer, apart ? side->counts[i] : extent_of(side, comm), side->type);
        all.piece[i].begin += offset;
        all.piece[i].end += offset;
    }
    return all;
}

/* What this rank sends from its own buffer, and what it receives. */
static MemoryPieces pieces_sent(const Call *call, const Collective *c, MPI_Comm comm)
{
    return call && sends_own(c, comm) ? pieces_of(&c->in, comm) : (MemoryPieces){0};
}

static MemoryPieces pieces_received(const Call *call, const Collective *c, MPI_Comm comm)
{
    const Side received = side_received(c);
    return call && receives_own(c, comm) ? pieces_of(&received, comm) : (MemoryPieces){0};
}

/* The buffers of a collective must not overlap (MPI 3.1, 5.1). What lies between parts is not part
 * of a buffer. */
static void refuse_overlap(const Call *call, const Collective *c, MPI_Comm comm)
{
    const MemoryPieces in = pieces_sent(call, c, comm), out = pieces_received(call, c, comm);
    for (int i = 0; i < in.count; i++)
        for (int k = 0; k < out.count; k++)
            if (pieces_overlap(in.piece[i], out.piece[k]))
                misuse("pass MPI_IN_PLACE if the result is to replace what is sent",
                       "%s: the send buffer and the receive buffer overlap", _(call->name));
    for (int i = 0; i < in.count; i++)
        refuse_in_flight(call, in.piece[i], false);
    for (int k = 0; k < out.count; k++)
        refuse_in_flight(call, out.piece[k], true);
}

/* Marks the collective as in progress. Returns the buffer that replaces `out`. */
static void *sets_out(const Call *call, const Collective *c, MPI_Comm comm, void *out)
{
    departs(call, pieces_sent(call, c, comm));
    return lands(call, out, pieces_received(call, c, comm), 0);
}

/* This rank's share of what an all-reduce of `count` elements sends. */
static double all_reduce_share(MPI_Comm comm, double count)
{
    double n = size_of(comm);
    return 2 * (n - 1) * count / n;
}

/* The share of a gather of `whole_count` elements. */
static double gather_share(MPI_Comm comm, double whole_count)
{
    double n = size_of(comm);
    return (n - 1) * whole_count / n;
}

/* The share if each rank has `count` elements for every other rank. */
static double share_of_each(MPI_Comm comm, double count)
{
    return (size_of(comm) - 1) * count;
}

/* What describes a rank's own part of a gather, which it sends, or of a scatter, which it receives.
 * With MPI_IN_PLACE at the root, MPI ignores `own`; the part is one of those in `all`. */
static const Side *own_part(const Side *own, const Side *all)
{
    return own->buffer == MPI_IN_PLACE ? all : own;
}

/* This rank's share of a gather or a scatter with this part. What the root has itself stays there. */
static double part_share(MPI_Comm comm, const Side *part, int root)
{
    return rank_in(comm) == root ? 0 : (double)count_of_part(part, rank_in(comm));
}

static double sum_of(MPI_Comm comm, const int counts[])
{
    double sum = 0;
    for (int i = 0, n = size_of(comm); i < n; i++)
        sum += counts[i];
    return sum;
}

/* clang-format off */
#define ONE_PART(b, n, t)  {.buffer = b, .count = n, .type = t}
#define EACH_PART(b, n, t) {.buffer = b, .count = n, .type = t, .each = true}
#define PARTS(b, n, d, t)  {.buffer = b, .type = t, .each = true, .counts = n, .displs = d}
/* clang-format on */

#define REDUCED   const void *in, void *out, int count, MPI_Datatype type, MPI_Op op
#define IN        const void *in, int count, MPI_Datatype type
#define IN_PARTS  const void *in, const int counts[], const int displs[], MPI_Datatype type
#define OUT       void *out, int out_count, MPI_Datatype out_type
#define OUT_PARTS void *out, const int counts[], const int displs[], MPI_Datatype out_type

#define UNPACKED(...) __VA_ARGS__

/* A group of one rank exchanges nothing. */
static void charge_collective(double elements, MPI_Datatype type, MPI_Comm comm)
{
    if (size_of(comm) > 1)
        charge(true, elements, type);
}

/* MPI_<name> and MPI_<started>, with `parameters` before the communicator. `share` of `type` is
 * what this rank is charged; the rest describes the collective. By MPI's rules (MPI 3.1, 5.1), a
 * collective with a root or by rank order may return on some ranks before others have called it. Here
 * it waits for them, so that a lab that relies on an early return hangs every time. */
#define COLLECTIVE(name, started, parameters, arguments, share, type, ...)                         \
    int MPI_##name(UNPACKED parameters, MPI_Comm comm)                                             \
    {                                                                                              \
        comm = substituted(comm);                                                                  \
        const Collective c = {__VA_ARGS__};                                                        \
        Call *call = call_of_collective(&c, comm);                                                 \
        refuse_overlap(call, &c, comm);                                                            \
        enter(call);                                                                               \
        charge_collective(share, type, comm);                                                      \
        if (c.flow != AMONG_ALL)                                                                   \
            PMPI_Barrier(comm);                                                                    \
        return leave(PMPI_##name(UNPACKED arguments, comm));                                       \
    }                                                                                              \
                                                                                                   \
    int MPI_##started(UNPACKED parameters, MPI_Comm comm, MPI_Request *request)                    \
    {                                                                                              \
        comm = substituted(comm);                                                                  \
        const Collective c = {__VA_ARGS__};                                                        \
        Call *call = begins(call_of_collective(&c, comm));                                         \
        refuse_overlap(call, &c, comm);                                                            \
        out = sets_out(call, &c, comm, out);                                                       \
        enter(call);                                                                               \
        charge_collective(share, type, comm);                                                      \
        int result = PMPI_##started(UNPACKED arguments, comm, request);                            \
        return leave(request_started(call, result, comm, *request));                               \
    }

COLLECTIVE(Allreduce, Iallreduce, (REDUCED), (in, out, count, type, op),
           all_reduce_share(comm, count), type, "all_reduce", REDUCTION, ONE_PART(in, count, type),
           ONE_PART(out, count, type), .flow = AMONG_ALL, .op = op)

COLLECTIVE(Reduce, Ireduce, (REDUCED, int root), (in, out, count, type, op, root),
           gather_share(comm, count), type, "reduce", REDUCTION, ONE_PART(in, count, type),
           ONE_PART(out, count, type), .flow = TO_ROOT, .op = op, .root = root)

COLLECTIVE(Scan, Iscan, (REDUCED), (in, out, count, type, op), gather_share(comm, count), type,
           "scan", REDUCTION, ONE_PART(in, count, type), ONE_PART(out, count, type),
           .flow = BY_RANK, .op = op)

COLLECTIVE(Exscan, Iexscan, (REDUCED), (in, out, count, type, op), gather_share(comm, count), type,
           N_("exclusive scan"), REDUCTION, ONE_PART(in, count, type),
           ONE_PART(out, rank_in(comm) == 0 ? 0 : count, type), .flow = BY_RANK, .op = op)

COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (REDUCED), (in, out, count, type, op),
           share_of_each(comm, count), type, "reduce_scatter", REDUCTION,
           EACH_PART(in, count, type), ONE_PART(out, count, type), .flow = AMONG_ALL, .op = op)

COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op),
           (in, out, counts, type, op), gather_share(comm, sum_of(comm, counts)), type,
           N_("reduce_scatter of parts"), REDUCTION, PARTS(in, counts, NULL, type),
           ONE_PART(out, counts[rank_in(comm)], type), .flow = AMONG_ALL, .op = op)

/* The root sends its buffer; the others receive into theirs. */
COLLECTIVE(Bcast, Ibcast, (void *out, int count, MPI_Datatype type, int root),
           (out, count, type, root), gather_share(comm, count), type, "broadcast", EXCHANGE,
           ONE_PART(out, count, type), ONE_PART(out, rank_in(comm) == root ? 0 : count, type),
           .flow = FROM_ROOT, .root = root)

COLLECTIVE(Allgather, Iallgather, (IN, OUT), (in, count, type, out, out_count, out_type),
           share_of_each(comm, out_count), out_type, "all_gather", EXCHANGE,
           ONE_PART(in, count, type), EACH_PART(out, out_count, out_type), .flow = AMONG_ALL)

COLLECTIVE(Allgatherv, Iallgatherv, (IN, OUT_PARTS),
           (in, count, type, out, counts, displs, out_type),
           gather_share(comm, sum_of(comm, counts)), out_type, N_("all_gather of parts"), EXCHANGE,
           ONE_PART(in, count, type), PARTS(out, counts, displs, out_type), .flow = AMONG_ALL)

COLLECTIVE(Gather, Igather, (IN, OUT, int root), (in, count, type, out, out_count, out_type, root),
           part_share(comm, own_part(&c.in, &c.out), root), own_part(&c.in, &c.out)->type, "gather",
           EXCHANGE, ONE_PART(in, count, type), EACH_PART(out, out_count, out_type),
           .flow = TO_ROOT, .root = root)

COLLECTIVE(Gatherv, Igatherv, (IN, OUT_PARTS, int root),
           (in, count, type, out, counts, displs, out_type, root),
           part_share(comm, own_part(&c.in, &c.out), root), own_part(&c.in, &c.out)->type,
           N_("gather of parts"), EXCHANGE, ONE_PART(in, count, type),
           PARTS(out, counts, displs, out_type), .flow = TO_ROOT, .root = root)

COLLECTIVE(Scatter, Iscatter, (IN, OUT, int root),
           (in, count, type, out, out_count, out_type, root),
           part_share(comm, own_part(&c.out, &c.in), root), own_part(&c.out, &c.in)->type,
           "scatter", EXCHANGE, EACH_PART(in, count, type), ONE_PART(out, out_count, out_type),
           .flow = FROM_ROOT, .root = root)

COLLECTIVE(Scatterv, Iscatterv, (IN_PARTS, OUT, int root),
           (in, counts, displs, type, out, out_count, out_type, root),
           part_share(comm, own_part(&c.out, &c.in), root), own_part(&c.out, &c.in)->type,
           N_("scatter of parts"), EXCHANGE, PARTS(in, counts, displs, type),
           ONE_PART(out, out_count, out_type), .flow = FROM_ROOT, .root = root)

COLLECTIVE(Alltoall, Ialltoall, (IN, OUT), (in, count, type, out, out_count, out_type),
           share_of_each(comm, out_count), out_type, "all_to_all", EXCHANGE,
           EACH_PART(in, count, type), EACH_PART(out, out_count, out_type), .flow = AMONG_ALL)

COLLECTIVE(Alltoallv, Ialltoallv,
           (IN_PARTS, void *out, const int out_counts[], const int out_displs[],
            MPI_Datatype out_type),
           (in, counts, displs, type, out, out_counts, out_displs, out_type),
           sum_of(comm, in == MPI_IN_PLACE ? out_counts : counts) -
               (in == MPI_IN_PLACE ? out_counts : counts)[rank_in(comm)],
           in == MPI_IN_PLACE ? out_type : type, N_("all_to_all of parts"), EXCHANGE,
           PARTS(in, counts, displs, type), PARTS(out, out_counts, out_displs, out_type),
           .flow = AMONG_ALL)

int MPI_Barrier(MPI_Comm comm)
{
    comm = substituted(comm);
    enter(call_of("barrier", comm, TOGETHER));
    charge_collective(0, MPI_DATATYPE_NULL, comm);
    return leave(PMPI_Barrier(comm));
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    comm = substituted(comm);
    Call *call = begins(call_of("barrier", comm, TOGETHER));
    enter(call);
    charge_collective(0, MPI_DATATYPE_NULL, comm);
    int result = PMPI_Ibarrier(comm, request);
    return leave(request_started(call, result, comm, *request));
}
