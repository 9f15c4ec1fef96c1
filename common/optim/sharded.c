/* An optimiser whose state is sharded over the replicas (ZeRO stage 1), with lab 17. */
#include <stdlib.h>

#include "autograd/operations.h"
#include "base/run.h"
#include "comm/comm.h"
#include "mesh/mesh.h"
#include "optim/optim.h"

/* The parts before lab 17: all have the same size, except that the last ones may be smaller or
 * empty. */
__attribute__((weak)) Range optimizer_part(int64_t count, int k, int n)
{
    const int64_t each = (count + n - 1) / n, begin = k * each, end = begin + each;
    return (Range){begin < count ? begin : count, end < count ? end : count};
}

typedef void Exchange(Group *group, real *x, const int64_t *begin);

/* Calls `exchange` on x, split into the parts of optimizer_part(), if the group has several
 * replicas. */
static void over_replicas(const Mesh *mesh, Tensor *x, Exchange *exchange)
{
    const int n = mesh->dp_degree;
    if (n == 1)
        return;
    int64_t *begin = malloc(((size_t)n + 1) * sizeof *begin);
    begin[n] = tensor_count(x);
    for (int k = 0; k < n; k++)
        begin[k] = optimizer_part(begin[n], k, n).begin;
    exchange(mesh->dp, reals(x), begin);
    free(begin);
}

/* This replica's part of a flat tensor. */
static Tensor *part_of_replica(Tensor *x, const Mesh *mesh)
{
    const Range r = optimizer_part(tensor_count(x), mesh->dp_rank, mesh->dp_degree);
    return slice(x, r.begin, r.end);
}

/* Until lab 17, these functions stand in for the student's. */
__attribute__((weak)) void reduce_scatter_gradients(Tensor *gradients, const Mesh *mesh)
{
    const Tensor *own = part_of_replica(gradients, mesh);
    over_replicas(mesh, gradients, comm_reduce_scatter_parts);
    kernel_vector_scale(tensor_count(own), 1.0 / mesh->dp_degree, reals(own));
}

__attribute__((weak)) void squares_over_parts(double *shards, double *whole, const Mesh *mesh)
{
    double both[] = {*shards, *whole};
    if (mesh->dp_degree > 1)
        group_sum(mesh->dp, both, 2);
    *shards = both[0];
    *whole = both[1];
}

__attribute__((weak)) void sharded_step(Optimizer *optimizer, Tensor *weights, Tensor *gradients,
                                        const Mesh *mesh)
{
    Tensor *w = part_of_replica(weights, mesh), *g = part_of_replica(gradients, mesh);
    optimizer_update(optimizer, w, g);
    over_replicas(mesh, weights, comm_all_gather_parts);
}

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
    reduce_scatter_gradients(&gradients, model->mesh);
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
