/* What happens to gradients before the step: clipping, and the scaler for fp16. Also the learning
 * rate. */
#include <math.h>

#include "mesh/mesh.h"
#include "optim/optim.h"

/* ---- clipping ---- */

/* Gradients that are next to each other are summed in one go, because on a GPU each sum requires a
 * wait. The padding between parameters is zero. */
typedef struct Run {
    const real *begin, *end;
} Run;

static double square_sum(Run run)
{
    return run.begin ? kernel_vector_square_sum(run.end - run.begin, run.begin) : 0;
}

/* Before balise 14. */
__attribute__((weak)) double gradient_norm(double shards, double whole, const Mesh *mesh)
{
    double sum = mesh->tp_rank == 0 ? whole : 0;
    sum += shards;
    if (mesh->tp_degree > 1)
        group_sum(mesh_tp_group(mesh), &sum, 1);
    if (mesh->pp_degree > 1)
        group_sum(mesh->pp, &sum, 1);
    return sqrt(sum);
}

double model_gradient_norm(Model *model)
{
    double shards = 0, whole = 0, copies = 0, *squares = &whole;
    Run run = {NULL, NULL};
    for (const Parameter *p = model->parameters; p; p = p->next) {
        const real *gradient = reals(p->value->gradient);
        double *to = parameter_is_copy(p, model->mesh) ? &copies
                     : p->placement.kind == SHARD      ? &shards
                                                       : &whole;
        if (to != squares) {
            *squares += square_sum(run);
            run.begin = NULL;
        }
        squares = to;
        run.begin = run.begin ? run.begin : gradient;
        run.end = gradient + tensor_count(p->value);
    }
    *squares += square_sum(run);
    return gradient_norm(shards, whole, model->mesh);
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
