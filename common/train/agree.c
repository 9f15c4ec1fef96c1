/* What the ranks of a run compare with each other: outcomes, devices, weights, and who sits where. */
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "backend/host_view.h"
#include "base/language.h"

bool agree(Group *group, bool good, Problem *problem)
{
    enum { BYTES = sizeof *problem };
    int ranks = group_size(group), first = 0;
    double *failed = calloc((size_t)ranks, sizeof *failed), text[BYTES] = {0};
    unsigned char *bytes = (unsigned char *)problem;
    failed[group_rank(group)] = !good;
    group_sum(group, failed, ranks);
    while (first < ranks && failed[first] == 0)
        first++;
    free(failed);
    if (first == ranks)
        return true;
    for (int i = 0; group_rank(group) == first && i < BYTES; i++)
        text[i] = bytes[i];
    group_sum(group, text, BYTES); /* the others add nothing */
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)text[i];
    return false;
}

bool agree_on_device(Group *group, Problem *problem)
{
    enum { MOST = 128 };
    int ranks = group_size(group), other = 0;
    char mine[MOST] = "", (*all)[MOST] = calloc((size_t)ranks, sizeof *all);
    snprintf(mine, sizeof mine, "%s", backend_device());
    MPI_Allgather(mine, MOST, MPI_BYTE, all, MOST, MPI_BYTE, group_comm(group));
    while (other < ranks && !strcmp(all[other], all[0]))
        other++;
    if (other < ranks)
        problem_set(problem, NULL,
                    "use CUDA_VISIBLE_DEVICES to select GPUs of one type (nvidia-smi lists all): "
                    "with mixed types all wait for the slowest, and sums differ in the last digits",
                    "rank 0 computes on %s, rank %d on %s: a run takes GPUs of one type", all[0],
                    other, all[other]);
    free(all);
    return other == ranks;
}

/* ---- weights ------------------------------------------------------------------------------------------- */

enum { PIECES = 3, BITS = 21 }; /* a checksum as doubles whose sums over the ranks are exact */

/* If x is not the same on all ranks, the sum is not size times x on one of them at least. */
static bool same_over(Group *group, uint64_t checksum)
{
    double sum[PIECES], mine[PIECES];
    bool same = true;
    for (int i = 0; i < PIECES; i++)
        sum[i] = mine[i] = (double)(checksum >> (i * BITS) & ((1u << BITS) - 1));
    group_sum(group, sum, PIECES);
    for (int i = 0; i < PIECES; i++)
        same = same && sum[i] == mine[i] * group_size(group);
    return same;
}

/* Continues a checksum over the parameter's numbers. */
static uint64_t add_to(uint64_t checksum, const Parameter *p)
{
    HostView view = host_view_read(reals(p->value), tensor_count(p->value));
    checksum = XXH3_64bits_withSeed(view.numbers, (size_t)view.count * sizeof(real), checksum);
    host_view_end(&view);
    return checksum;
}

/* Is the parameter (all of them where it is NULL) the same wherever it should be? */
static bool is_equal(Model *model, const Parameter *only)
{
    const Mesh *mesh = model_mesh(model);
    uint64_t all = 0, whole_ones = 0;
    for (const Parameter *p = model_parameters(model); p; p = p->next) {
        if (only && p != only)
            continue;
        all = add_to(all, p);
        if (p->placement.kind != SHARD)
            whole_ones = add_to(whole_ones, p);
    }
    double differs = !same_over(mesh->tp ? mesh->tp : mesh->world, whole_ones);
    if (mesh->dp)
        differs += !same_over(mesh->dp, all);
    group_sum(mesh->world, &differs, 1);
    return differs == 0;
}

bool weights_are_equal(Model *model, int64_t step, Problem *problem)
{
    if (is_equal(model, NULL))
        return true;
    const Parameter *p = model_parameters(model);
    while (p->next && is_equal(model, p))
        p = p->next;
    return problem_set(
        problem, NULL,
        "was its gradient summed over all the ranks that hold it, before the step? make grade "
        "shows it",
        "after step %lld parameter %s differs between ranks that should hold the same values",
        (long long)step, p->name);
}

/* ---- who sits where ------------------------------------------------------------------------------------ */

/* One rank's place. */
typedef struct Seat {
    char node[MPI_MAX_PROCESSOR_NAME];
    int tp_rank, dp_rank;
} Seat;

static void warn(const Seat *seats, int ranks, int tp)
{
    int spread = 0;
    for (int first = 0; first + tp <= ranks; first += tp) {
        bool several = false;
        for (int r = first + 1; r < first + tp; r++)
            several = several || strcmp(seats[r].node, seats[first].node);
        spread += several;
    }
    if (spread > 0)
        fprintf(stderr,
                _("warning: %d of %d tensor-parallel groups spread over several nodes: they "
                  "communicate in every block\n  HINT: choose TP so that it divides the ranks of a "
                  "node, and fill one node before the next (mpirun --map-by core, srun "
                  "--distribution=block)\n"),
                spread, ranks / tp);
}

void map_report(const Mesh *mesh, bool show)
{
    int ranks = group_size(mesh->world), length;
    Seat mine = {.tp_rank = mesh->tp_rank, .dp_rank = mesh->dp_rank};
    Seat *seats = calloc((size_t)ranks, sizeof *seats);
    MPI_Get_processor_name(mine.node, &length);
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, seats, sizeof mine, MPI_BYTE, 0,
               group_comm(mesh->world));
    if (group_rank(mesh->world) == 0) {
        warn(seats, ranks, mesh->tp_degree);
        for (int r = 0; show && r < ranks; r++)
            printf(_("%s rank %d: node %s, tp %d, dp %d\n"), r == 0 ? _("map      ") : "         ",
                   r, seats[r].node, seats[r].tp_rank, seats[r].dp_rank);
    }
    free(seats);
}
