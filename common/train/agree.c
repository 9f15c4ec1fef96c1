/* The ranks of a run compare outcomes, devices, weights and nodes. */
#include "train/trainer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "backend/host_view.h"
#include "base/language.h"

bool agree(Group *group, bool good, Problem *problem)
{
    int ranks = group_size(group), first = good ? ranks : group_rank(group);
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, group_comm(group));
    if (first < ranks)
        MPI_Bcast(problem, sizeof *problem, MPI_BYTE, first, group_comm(group));
    return first == ranks;
}

bool agree_on_device(Group *group, Problem *problem)
{
    char mine[128], first[sizeof mine];
    snprintf(mine, sizeof mine, "%s", backend_device());
    memcpy(first, mine, sizeof mine);
    MPI_Bcast(first, sizeof first, MPI_BYTE, 0, group_comm(group));
    bool same =
        !strcmp(mine, first) ||
        problem_set(
            problem, NULL,
            "use CUDA_VISIBLE_DEVICES to select GPUs of one type (nvidia-smi lists all): "
            "with mixed types, all ranks wait for the slowest, and sums differ in the last digits",
            "rank 0 computes on %s, rank %d on %s: all ranks of a run must use GPUs of one type",
            first, group_rank(group), mine);
    return agree(group, same, problem);
}

/* ---- weights ------------------------------------------------------------------------------------------- */

bool is_same_over(Group *group, uint64_t x)
{
    uint64_t least[] = {x, ~x}; /* the minimum of complements gives the maximum */
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_UINT64_T, MPI_MIN, group_comm(group));
    return least[0] == ~least[1];
}

/* Continues a checksum over a parameter's numbers. */
static uint64_t add_to(uint64_t checksum, const Parameter *p)
{
    HostView view = host_view_read(reals(p->value), tensor_count(p->value));
    checksum = XXH3_64bits_withSeed(view.numbers, (size_t)view.count * sizeof(real), checksum);
    host_view_end(&view);
    return checksum;
}

/* Are the parameters from `first` up to, but not including, `end` (NULL: through the last one) the
 * same on all ranks of this stage that hold them? */
static bool are_equal(Model *model, const Parameter *first, const Parameter *end)
{
    const Mesh *mesh = model->mesh;
    uint64_t all = 0, whole_ones = 0;
    for (const Parameter *p = first; p != end; p = p->next) {
        all = add_to(all, p);
        if (p->placement.kind != SHARD)
            whole_ones = add_to(whole_ones, p);
    }
    bool same = is_same_over(mesh_tp_group(mesh), whole_ones);
    return (!mesh->dp || is_same_over(mesh->dp, all)) && same;
}

bool weights_are_equal(Model *model, int64_t step, Problem *problem)
{
    const Parameter *p = model->parameters;
    bool same = are_equal(model, p, NULL), alike[] = {same, true};
    MPI_Allreduce(MPI_IN_PLACE, alike, 1, MPI_C_BOOL, MPI_LAND, group_comm(model->mesh->world));
    while (!same && p->next && are_equal(model, p, p->next))
        p = p->next;
    if (!same)
        problem_set(
            problem, NULL,
            "was its gradient summed over all the ranks that hold it, before the step? make grade "
            "shows it",
            "after step %lld parameter %s differs between ranks that should hold the same values",
            (long long)step, p->name);
    return alike[0] || agree(model->mesh->world, same, problem);
}

/* ---- where ranks run ----------------------------------------------------------------------------------- */

/* The node of one rank, and its place in the mesh. */
typedef struct Seat {
    char node[MPI_MAX_PROCESSOR_NAME];
    int tp_rank, dp_rank, pp_rank;
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
                _("warning: tensor-parallel groups on several nodes: %d of %d; such groups "
                  "communicate in every block\n  HINT: choose TP so that it divides the ranks of "
                  "a node, and fill one node before the next (mpirun --map-by core, srun "
                  "--distribution=block)\n"),
                spread, ranks / tp);
}

void map_report(const Mesh *mesh, bool show)
{
    int ranks = group_size(mesh->world), length;
    Seat mine = {.tp_rank = mesh->tp_rank, .dp_rank = mesh->dp_rank, .pp_rank = mesh->pp_rank};
    Seat *seats = calloc((size_t)ranks, sizeof *seats);
    MPI_Get_processor_name(mine.node, &length);
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, seats, sizeof mine, MPI_BYTE, 0,
               group_comm(mesh->world));
    if (group_rank(mesh->world) == 0) {
        warn(seats, ranks, mesh->tp_degree);
        for (int r = 0; show && r < ranks; r++)
            printf(_("%s rank %d: node %s, tp %d, dp %d, pp %d\n"),
                   r == 0 ? _("map      ") : "         ", r, seats[r].node, seats[r].tp_rank,
                   seats[r].dp_rank, seats[r].pp_rank);
    }
    free(seats);
}
