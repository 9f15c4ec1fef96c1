/* The three ways in which replicas keep one model: they sum gradients in buckets (DDP), each updates
 * a part of the weights (ZERO=1), or their weights are averaged every few steps (AVERAGE=h). */
#include <math.h>

#include "autograd/placement.h"
#include "base/language.h"
#include "base/optional_labs.h"
#include "base/run.h"
#include "train/profile.h"
#include "train/trainer.h"

/* The gradients that one replica's ranks hold copies or terms of. */
static void sum_within_replica(const Trainer *t)
{
    sum_norms_over_tp(t->model, t->last_tape);
    model_sum_tied(t->model);
}

static void whole_step(Optimizer *optimizer, double rate, Tape *tape)
{
    (void)tape;
    optimizer_step(optimizer, rate);
}

static double whole_norm(const Optimizer *optimizer)
{
    return model_gradient_norm(optimizer->model);
}

/* ---- gradients are summed in buckets, during the last backward pass ------------------------------------- */

static void bucketed_begin(Trainer *t, int pass)
{
    bucket_set_begin(t->buckets, t->last_tape, pass, t->config->micro);
}

static double bucketed_gradients(Trainer *t)
{
    backend_range("reduction over replicas");
    const double seconds = bucket_set_finish(t->buckets, t->last_tape);
    backend_range_end();
    span_end(REDUCTION_EXPOSED, true);
    sum_within_replica(t);
    return seconds;
}

/* ---- ZERO=1: each replica updates a part of the weights -------------------------------------------------- */

/* One reduce-scatter of all gradients, with all rows of tables, follows the backward pass and does
 * not overlap it. Before it, no gradient is a partial sum over stages or tp any more, because the two
 * copies of a tied parameter are in different parts of their stages' arenas, and a norm may be in
 * different parts on two tp ranks. The replicas' terms are then added in the same order in each part,
 * so all copies of a weight stay the same. */
static double sharded_gradients(Trainer *t)
{
    backend_range("reduction over replicas");
    const double begin = MPI_Wtime();
    model_complete_gradients(t->model);
    sum_within_replica(t);
    sharded_reduce(t->model, t->last_tape);
    const double seconds = MPI_Wtime() - begin;
    backend_range_end();
    span_end(REDUCTION_EXPOSED, true);
    return seconds;
}

/* ---- AVERAGE=h: each replica steps alone, and every h steps lab 16 averages the weights ------------------ */

static double own_gradients(Trainer *t)
{
    model_complete_gradients(t->model);
    model_gradients_added(t->model, (Range){0, t->model->arena_size}, OVER_DP);
    sum_within_replica(t);
    return 0;
}

static double averaged_finish(Trainer *t, int64_t step, double targets, bool last)
{
    const double begin = MPI_Wtime();
    Model *model = t->model;
    t->apart |= targets > 0 && t->mesh.dp_degree > 1;
    t->rows_apart += targets;
    if (!t->apart)
        return 0;
    if (average_is_due(step, t->config->average, last)) {
        unsigned partial; /* each replica's weights are a term of the average */
        Tensor weights = {.data = model_weights(model),
                          .shape = SHAPE(model->arena_size),
                          .buffer = model->weights,
                          .tape = t->last_tape};
        backend_range("average of weights");
        terms_begin(&weights, &partial, OVER_DP);
        average_weights(&weights, t->rows_apart, &t->mesh);
        terms_end(&weights, average_weights, "average_weights", _("the average of the weights"));
        ready(&weights);
        backend_range_end();
        model_weights_changed(model);
        t->apart = false;
        t->rows_apart = 0;
    } else if (last)
        misuse(N_("make grade LAB=16 checks average_is_due"),
               "average_is_due says that no average is due after step %lld, but `last` is set: the "
               "replicas do not have the same weights",
               (long long)step);
    span_end(N_("average of weights"), true);
    return MPI_Wtime() - begin;
}

const Replicas *replicas_as_set(const TrainConfig *config)
{
    static const Replicas bucketed = {.optimizer = optimizer_new,
                                      .begin = bucketed_begin,
                                      .gradients = bucketed_gradients,
                                      .adds = "buckets_finish",
                                      .norm = whole_norm,
                                      .step = whole_step},
                          sharded = {.optimizer = optimizer_new_sharded,
                                     .gradients = sharded_gradients,
                                     .adds = "reduce_scatter_gradients",
                                     .norm = sharded_gradient_norm,
                                     .step = sharded_optimizer_step},
                          averaged = {.optimizer = optimizer_new,
                                      .gradients = own_gradients,
                                      .norm = whole_norm,
                                      .step = whole_step,
                                      .finish = averaged_finish};
    return config->average ? &averaged : config->zero ? &sharded : &bucketed;
}
