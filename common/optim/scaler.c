#include "optim/scaler.h"

#include <math.h>

GradScaler scaler_new(void)
{
    return (GradScaler){.scale = SCALE_AT_FIRST};
}

/* A sum of squares in double precision is finite if all are: a float's square does not overflow it. */
static bool are_finite(Model *model)
{
    double others =
        !isfinite(kernel_vector_square_sum(model_arena_size(model), model_gradients(model)));
    group_sum(model_mesh(model)->world, &others, 1);
    return others == 0;
}

bool scaler_unscale(GradScaler *scaler, Model *model)
{
    if (!are_finite(model)) {
        scaler->scale = scaler->scale > 1 ? scaler->scale / 2 : 1;
        scaler->good = 0;
        scaler->left_out++;
        return false;
    }
    kernel_vector_scale(model_arena_size(model), 1 / scaler->scale, model_gradients(model));
    if (++scaler->good == STEPS_BEFORE_GROWTH) {
        scaler->scale *= 2;
        scaler->good = 0;
    }
    return true;
}
