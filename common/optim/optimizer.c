#include "optim/optimizer.h"

#include <stdlib.h>

struct Optimizer {
    Model *model;
    OptimizerConfig config;
    Buffer *m, *v; /* the decaying means of g and of its square (AdamW) */
    int64_t steps;
};

static Buffer *zeros(const Model *model)
{
    int64_t size = model_arena_size(model);
    Buffer *state = pool_get(model_pool(model), size * (int64_t)sizeof(real), OPTIMISER);
    kernel_vector_fill(size, 0, state->data);
    return state;
}

Optimizer *optimizer_new(Model *model, const OptimizerConfig *config)
{
    Optimizer *optimizer = calloc(1, sizeof *optimizer);
    optimizer->model = model;
    optimizer->config = *config;
    if (config->kind == ADAMW) {
        optimizer->m = zeros(model);
        optimizer->v = zeros(model);
    }
    return optimizer;
}

void optimizer_free(Optimizer *optimizer)
{
    buffer_release(optimizer->m);
    buffer_release(optimizer->v);
    free(optimizer);
}

void optimizer_step(Optimizer *optimizer, double rate)
{
    Model *model = optimizer->model;
    const OptimizerConfig *config = &optimizer->config;
    int64_t size = model_arena_size(model);
    model_complete_gradients(model);
    optimizer->steps++;
    if (config->kind == SGD) {
        kernel_sgd_step(size, model_weights(model), model_gradients(model), rate, config->weight_decay);
        return;
    }
    AdamW adamw = {.rate = rate,
                   .beta1 = config->beta1,
                   .beta2 = config->beta2,
                   .epsilon = config->epsilon,
                   .weight_decay = config->weight_decay,
                   .step = optimizer->steps};
    kernel_adamw_step(size, model_weights(model), model_gradients(model), optimizer->m->data,
                      optimizer->v->data, &adamw);
}

OptimizerState optimizer_state(Optimizer *optimizer)
{
    bool adamw = optimizer->m != NULL;
    return (OptimizerState){.m = adamw ? optimizer->m->data : NULL,
                            .v = adamw ? optimizer->v->data : NULL,
                            .steps = &optimizer->steps};
}
