#include "optim/clip.h"

#include <math.h>

/* Of parameters that lie side by side: on a GPU each sum is waited for. What lies between two of them is zeros. */
typedef struct Run {
    const real *begin, *end;
} Run;

static double square_sum(Run run)
{
    return run.begin ? kernel_vector_square_sum(run.end - run.begin, run.begin) : 0;
}

double gradient_norm(Model *model)
{
    const Mesh *mesh = model_mesh(model);
    double sum = 0;
    Run run = {NULL, NULL};
    for (const Parameter *p = model_parameters(model); p; p = p->next) {
        const real *gradient = reals(p->value->gradient);
        if (p->placement.kind == SHARD || mesh->tp_rank == 0) {
            run.begin = run.begin ? run.begin : gradient;
            run.end = gradient + tensor_count(p->value);
        } else { /* counted by rank 0 alone */
            sum += square_sum(run);
            run = (Run){NULL, NULL};
        }
    }
    sum += square_sum(run);
    if (mesh->tp_degree > 1)
        group_sum(mesh->tp ? mesh->tp : mesh->world, &sum, 1);
    return sqrt(sum);
}

void clip_gradients(Model *model, double norm, double most)
{
    double factor = most / (norm + 1e-6);
    if (factor < 1)
        kernel_vector_scale(model_arena_size(model), factor, model_gradients(model));
}
