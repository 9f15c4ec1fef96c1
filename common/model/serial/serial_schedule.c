/* One micro-batch after the other through all stages: for the slots of lab 13 before it. */
#include "balise.h"

void one_f_one_b_step(Stage *stage, const Mesh *mesh)
{
    for (int i = 0; i < stage_micros(stage); i++) {
        forward_step(stage, i, mesh);
        backward_step(stage, i, mesh);
    }
}

void gpipe_step(Stage *stage, const Mesh *mesh)
{
    one_f_one_b_step(stage, mesh);
}
