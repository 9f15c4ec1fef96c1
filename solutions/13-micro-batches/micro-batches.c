/* Lab 13: several micro-batches under way in a pipeline. */
#include "balise.h"

void stage_send(Stage *stage, Tensor *x, int to)
{
    stage_send_start(stage, x, to);
}

void gpipe_step(Stage *stage, const Mesh *mesh)
{
    int micros = stage_micros(stage);
    for (int i = 0; i < micros; i++)
        forward_step(stage, i, mesh);
    for (int i = 0; i < micros; i++)
        backward_step(stage, i, mesh);
    stage_sends_finish(stage);
}

void one_f_one_b_step(Stage *stage, const Mesh *mesh)
{
    int micros = stage_micros(stage), ahead = mesh->pp_degree - 1 - mesh->pp_rank;
    for (int i = 0; i < ahead && i < micros; i++)
        forward_step(stage, i, mesh);
    for (int i = 0; i < micros; i++) {
        if (i + ahead < micros)
            forward_step(stage, i + ahead, mesh);
        backward_step(stage, i, mesh);
    }
    stage_sends_finish(stage);
}
