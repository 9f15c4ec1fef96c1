/* Prints how far the results of a model in Hugging Face's format are from those in its folder
 * (comparison.h): over all ranks, the largest difference of a result, of a gradient, and of a
 * weight after a step.
 *
 * mpirun -n TP hugging-face FOLDER */
#include <mpi.h>
#include <stdio.h>

#include "comm/comm_parts.h"
#include "pretrained/tests/comparison.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    Group *world = group_of(MPI_COMM_WORLD, "world");
    Comparison result = argc == 2 ? compare_folder(argv[1], world) : (Comparison){.results = NAN};
    double mine[3] = {result.results, result.gradients, result.stepped}, all[3];
    if (!(mine[0] + mine[1] + mine[2] < INFINITY))
        problem_print(stderr, &result.problem);
    for (int i = 0; i < 3; i++)
        mine[i] = mine[i] < INFINITY ? mine[i] : INFINITY;
    MPI_Reduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (group_rank(world) == 0)
        printf("%.3g %.3g %.3g\n", all[0], all[1], all[2]);
    group_free(world);
    MPI_Finalize();
    return 0;
}
