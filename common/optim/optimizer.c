/* The optimisers: one pass over the arena of weights. */
#include "optim/optim.h"

#include <stdlib.h>
#include <string.h>

static Buffer *zeros(const Model *model, int64_t bytes)
{
    Buffer *state = pool_get(model->pool, bytes, OPTIMISER);
    backend_set_bytes(state->data, 0, bytes);
    return state;
}

Optimizer *optimizer_new(Model *model, const OptimizerConfig *config)
{
    Optimizer *optimizer = calloc(1, sizeof *optimizer);
    optimizer->model = model;
    optimizer->config = *config;
    if (config->kind == ADAMW) {
        int64_t size = model->arena_size;
        optimizer->m = zeros(model, size * (int64_t)sizeof(real));
        optimizer->v = zeros(model, size * (int64_t)sizeof(real));
        if (backend_looks_for_zeros())
            optimizer->seen = zeros(model, size / ADAMW_BLOCK + 1);
    }
    return optimizer;
}

void optimizer_free(Optimizer *optimizer)
{
    buffer_release(optimizer->m);
    buffer_release(optimizer->v);
    buffer_release(optimizer->seen);
    free(optimizer);
}

static void clear_seen(const uint8_t *seen, int64_t begin, int64_t end, real *gradients)
{
    while (begin < end) {
        const int64_t block = begin / ADAMW_BLOCK, after = (block + 1) * ADAMW_BLOCK;
        const int64_t next = after < end ? after : end;
        if (seen[block])
            kernel_vector_fill(next - begin, 0, gradients + begin);
        begin = next;
    }
}

/* Most rows of a large table never have a gradient. The others are cleared here, so the next
 * gradient is added to zeros. */
static void clear_tables(Model *model, const uint8_t *seen)
{
    real *gradients = model_gradients(model);
    for (const Parameter *p = model->parameters; p; p = p->next) {
        const int64_t begin = reals(p->value->gradient) - gradients,
                      end = begin + tensor_count(p->value);
        const int64_t block = begin / ADAMW_BLOCK, blocks = end / ADAMW_BLOCK - block;
        if (memchr(seen + block, 0, (size_t)blocks)) {
            clear_seen(seen, begin, end, gradients);
            p->value->gradient_zeros = true;
        }
    }
}

static void adamw_step(const Optimizer *optimizer, double rate)
{
    Model *model = optimizer->model;
    const OptimizerConfig *config = &optimizer->config;
    AdamW adamw = {.rate = rate,
                   .beta1 = config->beta1,
                   .beta2 = config->beta2,
                   .epsilon = config->epsilon,
                   .weight_decay = config->weight_decay,
                   .step = optimizer->steps,
                   .seen = optimizer->seen ? optimizer->seen->data : NULL};
    kernel_adamw_step(model->arena_size, model_weights(model), model_gradients(model),
                      optimizer->m->data, optimizer->v->data, &adamw);
    if (adamw.seen)
        clear_tables(model, adamw.seen);
}

void optimizer_step(Optimizer *optimizer, double rate)
{
    Model *model = optimizer->model;
    model_complete_gradients(model);
    optimizer->steps++;
    if (optimizer->config.kind == SGD)
        kernel_sgd_step(model->arena_size, model_weights(model), model_gradients(model), rate,
                        optimizer->config.weight_decay);
    else
        adamw_step(optimizer, rate);
    model_weights_changed(model);
}

void optimizer_resume(Optimizer *optimizer, int64_t steps)
{
    optimizer->steps = steps;
    if (!optimizer->seen)
        return;
    const real *m = optimizer->m->data, *v = optimizer->v->data;
    uint8_t *seen = optimizer->seen->data;
    for (int64_t i = 0, size = optimizer->model->arena_size; i < size; i++)
        seen[i / ADAMW_BLOCK] |= m[i] != 0 || v[i] != 0;
}
