/* An optimiser whose state is sharded over the replicas (ZeRO stage 1), with lab 17. */
#include "autograd/operations.h"
#include "autograd/placement.h"
#include "base/optional_labs.h"
#include "base/run.h"
#include "optim/optim.h"

/* A gap between two parts would leave weights without a step; an overlap would step them twice. */
Range own_optimizer_part(int64_t count, const Mesh *mesh)
{
    const int n = mesh->dp_degree;
    Range own = {0, 0};
    for (int64_t k = 0, end = 0; k < n; k++) {
        const Range r = optimizer_part(count, (int)k, n);
        if (r.begin != end || r.end < r.begin || r.end > count || (k == n - 1 && r.end != count))
            misuse(r.begin > count
                       ? N_("no part begins after count: where no numbers are left, a part is "
                            "empty, count to count")
                       : N_("each weight belongs to one part: part 0 begins at 0, each other part "
                            "where the one before it ends, and the last one ends at count"),
                   r.begin != end ? N_("optimizer_part(%lld, %lld, %d) returned begin %lld and end "
                                       "%lld, but the parts before it end at %lld")
                                  : N_("optimizer_part(%lld, %lld, %d) returned begin %lld and end "
                                       "%lld, but the weights end at %lld"),
                   (long long)count, (long long)k, n, (long long)r.begin, (long long)r.end,
                   (long long)(r.begin != end ? end : count));
        end = r.end;
        own = k == mesh->dp_rank ? r : own;
    }
    return own;
}

Optimizer *optimizer_new_sharded(Model *model, const OptimizerConfig *config)
{
    const Range own = own_optimizer_part(model->arena_size, model->mesh);
    Optimizer *optimizer = optimizer_of_part(model->pool, own, config);
    optimizer->model = model;
    optimizer->is_sharded = true;
    return optimizer;
}

/* An arena as a flat tensor. */
static Tensor arena(const Model *model, Buffer *buffer, Tape *tape)
{
    return (Tensor){
        .data = buffer->data, .shape = SHAPE(model->arena_size), .buffer = buffer, .tape = tape};
}

void sharded_reduce(Model *model, Tape *tape)
{
    Tensor gradients = arena(model, model->gradients, tape);
    unsigned partial;
    terms_begin(&gradients, &partial, OVER_DP);
    model_must_be_added(model, OVER_TP | OVER_PP, NULL); /* copies lie in different parts */
    reduce_scatter_gradients(&gradients, model->mesh);
    if (!partial)
        model_gradients_added(model, (Range){0, model->arena_size}, OVER_DP);
    ready(&gradients);
}

void sharded_optimizer_step(Optimizer *optimizer, double rate, Tape *tape)
{
    Model *model = optimizer->model;
    Tensor weights = arena(model, model->weights, tape),
           gradients = arena(model, model->gradients, tape);
    optimizer_begin(optimizer, rate);
    sharded_step(optimizer, &weights, &gradients, model->mesh);
    ready(&weights);
    optimizer_end(optimizer);
    model_weights_changed(model);
}
