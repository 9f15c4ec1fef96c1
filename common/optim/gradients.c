/* What comes before a step: the gradient scaler for fp16, clipping, and the learning rate. */
#include <math.h>

#include "base/optional_labs.h"
#include "mesh/mesh.h"
#include "optim/optim.h"

/* ---- clipping ---- */

/* Adjacent gradients. One call sums their squares, because the host waits for each sum on a GPU.
 * The padding between parameters is zero. */
typedef struct Run {
    const real *begin, *end;
} Run;

static double square_sum(Run run)
{
    return run.begin ? kernel_vector_square_sum(run.end - run.begin, run.begin) : 0;
}

/* The norm before lab 14. */
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

/* Sums of squares of gradients: of parameters that are split, of those that every tp rank holds
   whole, and of copies of tied ones, which count on another stage. */
typedef struct Squares {
    double shards, whole, copies;
} Squares;

/* The sums over the gradients in `part` of the arena. */
static Squares squares_in(Model *model, Range part)
{
    Squares sums = {0, 0, 0};
    double *squares = &sums.whole;
    const real *gradients = model_gradients(model), *begin = gradients + part.begin,
               *end = gradients + part.end;
    Run run = {NULL, NULL};
    for (const Parameter *p = model->parameters; p; p = p->next) {
        const real *first = reals(p->value->gradient), *behind = first + tensor_count(p->value);
        first = first > begin ? first : begin;
        behind = behind < end ? behind : end;
        if (first >= behind)
            continue;
        double *to = parameter_is_copy(p, model->mesh) ? &sums.copies
                     : p->placement.kind == SHARD      ? &sums.shards
                                                       : &sums.whole;
        if (to != squares) {
            *squares += square_sum(run);
            run.begin = NULL;
        }
        squares = to;
        run.begin = run.begin ? run.begin : first;
        run.end = behind;
    }
    *squares += square_sum(run);
    return sums;
}

double model_gradient_norm(Model *model)
{
    const Squares all = squares_in(model, (Range){0, model->arena_size});
    return gradient_norm(all.shards, all.whole, model->mesh);
}

/* On different tp ranks, the replicas' parts may begin at different offsets, so their sums may
   round differently. The norms of tp ranks could then differ in the last bit, and so could the
   weights that every tp rank holds whole. Therefore all ranks take the norm of rank 0. */
double sharded_gradient_norm(const Optimizer *optimizer)
{
    const Mesh *mesh = optimizer->model->mesh;
    Squares sums = squares_in(optimizer->model, optimizer->part);
    squares_over_parts(&sums.shards, &sums.whole, mesh);
    double norm = gradient_norm(sums.shards, sums.whole, mesh);
    norm = group_rank(mesh->world) == 0 ? norm : 0;
    group_sum(mesh->world, &norm, 1);
    return norm;
}

static void scale_gradients(const Optimizer *optimizer, double factor)
{
    const Range part = optimizer->part;
    kernel_vector_scale(part.end - part.begin, factor,
                        model_gradients(optimizer->model) + part.begin);
}

void clip_gradients(const Optimizer *optimizer, double norm, double most)
{
    double factor = most / (norm + 1e-6);
    if (factor < 1)
        scale_gradients(optimizer, factor);
}

/* ---- the scaler ---- */

/* A sum of squares in double precision is finite if all numbers are: the square of a float does not
 * overflow. */
static bool are_finite(const Optimizer *optimizer)
{
    Model *model = optimizer->model;
    const Range part = optimizer->part;
    double others = !isfinite(
        kernel_vector_square_sum(part.end - part.begin, model_gradients(model) + part.begin));
    group_sum(model->mesh->world, &others, 1);
    return others == 0;
}

bool scaler_unscale(GradScaler *scaler, const Optimizer *optimizer)
{
    if (!are_finite(optimizer)) {
        scaler->scale = scaler->scale > 1 ? scaler->scale / 2 : 1;
        scaler->good = 0;
        scaler->left_out++;
        return false;
    }
    scale_gradients(optimizer, 1 / scaler->scale);
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
