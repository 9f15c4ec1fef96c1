#include "train/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"

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
        fprintf(
            stderr,
            _("warning: %d of %d tensor-parallel groups spread over several nodes: they talk in every block\n"
              "  HINT: choose TP so that it divides the ranks of a node, and fill one node before the next "
              "(mpirun --map-by "
              "core, srun --distribution=block)\n"),
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
