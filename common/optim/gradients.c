/* What happens to gradients before the step: clipping, and the scaler for fp16. Also the learning
 * rate. */
#include <math.h>

#include "mesh/mesh.h"
#include "optim/optim.h"

/* ---- clipping ---- */

/* Sums over adjacent parameters together, because on a GPU each sum requires a wait. The padding
 * between them is zero. */
typedef struct Run {
    const real *begin, *end;
} Run;

static double square_sum(Run run)
{
    return run.begin ? kernel_vector_square_sum(run.end - run.begin, run.begin) : 0;
}

double gradient_norm(Model *model)
{
    const Mesh *mesh = model->mesh;
    double sum = 0;
    Run run = {NULL, NULL};
    for (const Parameter *p = model->parameters; p; p = p->next) {
        const real *gradient = reals(p->value->gradient);
        if (p->placement.kind == SHARD || mesh->tp_rank == 0) {
            run.begin = run.begin ? run.begin : gradient;
            run.end = gradient + tensor_count(p->value);
        } else { /* only rank 0 counts it */
            sum += square_sum(run);
            run = (Run){NULL, NULL};
        }
    }
    sum += square_sum(run);
    if (mesh->tp_degree > 1)
        group_sum(mesh_tp_group(mesh), &sum, 1);
    if (mesh->pp_degree > 1)
        group_sum(mesh->pp, &sum, 1);
    return sqrt(sum);
}

void clip_gradients(Model *model, double norm, double most)
{
    double factor = most / (norm + 1e-6);
    if (factor < 1)
        kernel_vector_scale(model->arena_size, factor, model_gradients(model));
}

/* ---- the scaler ---- */

/* A sum of squares in double precision is finite if all numbers are: the square of a float does not
 * overflow. */
static bool are_finite(Model *model)
{
    double others = !isfinite(kernel_vector_square_sum(model->arena_size, model_gradients(model)));
    group_sum(model->mesh->world, &others, 1);
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
    kernel_vector_scale(model->arena_size, 1 / scaler->scale, model_gradients(model));
    if (++scaler->good == STEPS_BEFORE_GROWTH) {
        scaler->scale *= 2;
        scaler->good = 0;
    }
    return true;
}

/* ---- the rate ---- */

double schedule_rate(const Schedule *schedule, int64_t step)
{
    if (step < schedule->warmup)
        return schedule->rate * (double)(step + 1) / (double)schedule->warmup;
    if (!schedule->decay)
        return schedule->rate;
    if (step >= schedule->decay)
        return 0;
    return schedule->rate * (double)(schedule->decay - step) /
           (double)(schedule->decay - schedule->warmup);
}
