/* Lab 12: stages of a pipeline, one batch at a time. */
#include "balise.h"

static bool is_first(const Mesh *mesh)
{
    return mesh->pp_rank == 0;
}

static bool is_last(const Mesh *mesh)
{
    return mesh->pp_rank == mesh->pp_degree - 1;
}

Range stage_blocks(int blocks, const Mesh *mesh)
{
    int p = mesh->pp_degree, k = mesh->pp_rank;
    return (Range){blocks * k / p, blocks * (k + 1) / p};
}

void forward_step(Stage *stage, int micro, const Mesh *mesh)
{
    Tensor *x = is_first(mesh) ? stage_embed(stage, micro)
                               : stage_receive(stage, micro, mesh->pp_rank - 1);
    Tensor *y = stage_run(stage, micro, x);
    if (!is_last(mesh))
        stage_send(stage, y, mesh->pp_rank + 1);
}

void backward_step(Stage *stage, int micro, const Mesh *mesh)
{
    Tensor *dy = is_last(mesh) ? NULL : stage_receive_gradient(stage, micro, mesh->pp_rank + 1);
    Tensor *dx = stage_run_backward(stage, micro, dy);
    if (!is_first(mesh))
        stage_send(stage, dx, mesh->pp_rank - 1);
}

void pipeline_step(Stage *stage, const Mesh *mesh)
{
    forward_step(stage, 0, mesh);
    backward_step(stage, 0, mesh);
}
