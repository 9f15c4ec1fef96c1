#include "optim/clip.h"

#include <math.h>

double gradient_norm(Model *model)
{
    const Mesh *mesh = model_mesh(model);
    double sum = 0;
    for (const Parameter *p = model_parameters(model); p; p = p->next)
        if (p->placement.kind == SHARD || mesh->tp_rank == 0)
            sum += kernel_vector_square_sum(tensor_count(p->value), reals(p->value->gradient));
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
