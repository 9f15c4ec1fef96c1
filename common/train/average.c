/* AVERAGE=h: each replica steps with its own gradients, and every h steps lab 16 averages the
 * weights. */
#include "base/run.h"
#include "train/profile.h"
#include "train/trainer.h"

/* A program without lab 16 uses these two functions instead. */
__attribute__((weak)) bool average_is_due(int64_t step, int64_t every, bool last)
{
    return last || step / every > (step - 1) / every;
}

__attribute__((weak)) void average_weights(Tensor *weights, double rows, const Mesh *mesh)
{
    const int64_t count = tensor_count(weights);
    double of_all = rows;
    group_sum(mesh->dp, &of_all, 1);
    kernel_vector_scale(count, rows / of_all, reals(weights));
    comm_all_reduce(mesh->dp, reals(weights), reals(weights), count);
}

void trainer_stepped_alone(Trainer *t, double targets)
{
    t->apart = t->mesh.dp_degree > 1;
    t->rows_apart += targets;
}

double trainer_average(Trainer *t, int64_t step, bool last)
{
    const double begin = MPI_Wtime();
    Model *model = t->model;
    if (!t->apart)
        return 0;
    if (average_is_due(step, t->config->average, last)) {
        Tensor weights = {.data = model_weights(model),
                          .shape = SHAPE(model->arena_size),
                          .buffer = model->weights,
                          .tape = t->last_tape};
        backend_range("average of weights");
        average_weights(&weights, t->rows_apart, &t->mesh);
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
