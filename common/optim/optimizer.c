/* The optimisers: one pass over the arena of weights, or over a part of it. */
#include "optim/optim.h"

#include <stdlib.h>
#include <string.h>

#include "autograd/operations.h"
#include "base/run.h"

static Buffer *zeros(Pool *pool, int64_t bytes)
{
    Buffer *state = pool_get(pool, bytes, OPTIMISER);
    backend_set_bytes(state->data, 0, bytes);
    return state;
}

Optimizer *optimizer_of_part(Pool *pool, Range part, const OptimizerConfig *config)
{
    Optimizer *optimizer = calloc(1, sizeof *optimizer);
    const int64_t bytes = (part.end - part.begin) * (int64_t)sizeof(real);
    optimizer->part = part;
    optimizer->config = *config;
    if (config->kind == ADAMW) {
        optimizer->m = zeros(pool, bytes);
        optimizer->v = zeros(pool, bytes);
    }
    return optimizer;
}

Optimizer *optimizer_new(Model *model, const OptimizerConfig *config)
{
    const int64_t size = model->arena_size;
    Optimizer *optimizer = optimizer_of_part(model->pool, (Range){0, size}, config);
    optimizer->model = model;
    if (config->kind == ADAMW && backend_looks_for_zeros())
        optimizer->seen = zeros(model->pool, size / ADAMW_BLOCK + 1);
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

/* Clears the gradient of each table in which some rows have never had a gradient, so the next
 * gradient is added to zeros. Only the rows that have had one need clearing. */
static void clear_tables(Model *model, const uint8_t *seen)
{
    real *gradients = model_gradients(model);
    for (Parameter *p = model->parameters; p; p = p->next) {
        const int64_t begin = reals(p->value->gradient) - gradients,
                      end = begin + tensor_count(p->value);
        const int64_t block = begin / ADAMW_BLOCK, blocks = end / ADAMW_BLOCK - block;
        if (memchr(seen + block, 0, (size_t)blocks)) {
            clear_seen(seen, begin, end, gradients);
            p->gradient_zeros = true;
        }
    }
}

/* Takes one step on the optimiser's part of the weights. */
static void step(const Optimizer *optimizer, real *weights, const real *gradients)
{
    const OptimizerConfig *config = &optimizer->config;
    const int64_t count = optimizer->part.end - optimizer->part.begin;
    const AdamW adamw = {.rate = optimizer->rate,
                         .beta1 = config->beta1,
                         .beta2 = config->beta2,
                         .epsilon = config->epsilon,
                         .weight_decay = config->weight_decay,
                         .step = optimizer->steps,
                         .seen = optimizer->seen ? optimizer->seen->data : NULL};
    if (config->kind == SGD)
        kernel_sgd_step(count, weights, gradients, optimizer->rate, config->weight_decay);
    else
        kernel_adamw_step(count, weights, gradients, optimizer->m->data, optimizer->v->data,
                          &adamw);
}

void optimizer_begin(Optimizer *optimizer, double rate)
{
    optimizer->steps++;
    optimizer->rate = rate;
    optimizer->is_due = true;
}

void optimizer_step(Optimizer *optimizer, double rate)
{
    Model *model = optimizer->model;
    model_complete_gradients(model);
    optimizer_begin(optimizer, rate);
    step(optimizer, model_weights(model), model_gradients(model));
    optimizer->is_due = false;
    if (optimizer->seen)
        clear_tables(model, optimizer->seen->data);
    model_weights_changed(model);
}

void optimizer_update(Optimizer *optimizer, Tensor *weights, Tensor *gradients)
{
    must_exist("optimizer_update", optimizer);
    const int64_t count = optimizer->part.end - optimizer->part.begin;
    must_not_be_ids("optimizer_update", weights);
    must_not_be_ids("optimizer_update", gradients);
    if (tensor_count(weights) != count || tensor_count(gradients) != count)
        misuse("the optimiser has the state of this replica's part only: part mesh->dp_rank of "
               "mesh->dp_degree, as optimizer_part returns it",
               "optimizer_update: the weights are %s and the gradients %s, but this replica's part "
               "has %lld numbers",
               SHAPE_TEXT(weights->shape), SHAPE_TEXT(gradients->shape), (long long)count);
    if (!optimizer->is_due)
        misuse("one call takes the step for the whole part",
               "optimizer_update: called twice in a step");
    begin_change(weights);
    step(optimizer, reals(weights), reals(ready(gradients)));
    optimizer->is_due = false;
}

void optimizer_end(const Optimizer *optimizer)
{
    const bool is_empty = optimizer->part.end == optimizer->part.begin; /* nothing to step */
    if (optimizer->is_due && !is_empty)
        misuse("it takes the step: call it with this replica's own part",
               "sharded_step has not called optimizer_update");
}

void optimizer_resume(Optimizer *optimizer, int64_t steps)
{
    optimizer->steps = steps;
    if (!optimizer->seen)
        return;
    const real *m = optimizer->m->data, *v = optimizer->v->data;
    uint8_t *seen = optimizer->seen->data;
    for (int64_t i = optimizer->part.begin; i < optimizer->part.end; i++)
        seen[i / ADAMW_BLOCK] |= m[i] != 0 || v[i] != 0;
}
