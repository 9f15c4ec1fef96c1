/* A model's arenas, and the initial values in them. */
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/placement.h"
#include "backend/host_view.h"
#include "base/language.h"
#include "model/names.h"

enum { PADDING = 16 };

/* Memory for a layer, a name or a builder, freed with the model. */
typedef struct Piece {
    struct Piece *next;        /* of the same model, or NULL */
    _Alignas(16) char bytes[]; /* the requested bytes, zeroed */
} Piece;

void *model_piece(Model *model, size_t bytes)
{
    Piece *p = calloc(1, sizeof *p + bytes);
    p->next = model->pieces;
    model->pieces = p;
    return p->bytes;
}

Model *model_new(Pool *pool, const Mesh *mesh, uint64_t seed)
{
    Model *model = calloc(1, sizeof *model);
    model->pool = pool;
    model->mesh = mesh;
    model->seed = seed;
    model->last = &model->parameters;
    model->builder = model_new_builder(model, "", LINEAR_WEIGHT);
    return model;
}

void model_free(Model *model)
{
    if (model->rounded)
        memory_holds_rounded(-model->rounded->bytes);
    buffer_release(model->rounded);
    buffer_release(model->weights);
    buffer_release(model->gradients);
    for (State *s = model->states; s; s = s->next)
        buffer_release(s->tensor.buffer);
    names_free(model->names);
    while (model->pieces) {
        Piece *p = model->pieces;
        model->pieces = p->next;
        free(p);
    }
    free(model);
}

bool parameter_is_copy(const Parameter *p, const Mesh *mesh)
{
    return p->twin >= 0 && p->twin < mesh->pp_rank;
}

static int64_t padded(const Parameter *p)
{
    return (tensor_count(p->value) + PADDING - 1) / PADDING * PADDING;
}

int64_t parameter_global_index(const Parameter *p, int64_t local)
{
    if (p->placement.kind != SHARD)
        return local;
    int64_t inner = 1, dim = p->placement.dim, held = p->held.end - p->held.begin;
    for (int i = (int)dim + 1; i < p->shape.rank; i++)
        inner *= p->shape.size[i];
    int64_t rest = local % inner, at = local / inner % held, outer = local / inner / held;
    return (outer * p->shape.size[dim] + p->held.begin + at) * inner + rest;
}

/* One call of the generator gives four neighbouring numbers. */
static void draw_uniform(const Parameter *p, PhiloxKey key, double bound, real *values)
{
    int64_t count = tensor_count(p->value);
#pragma omp parallel if (count > 10000)
    {
        uint64_t known = UINT64_MAX;
        Philox4 four = {{0}};
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++) {
            uint64_t index = (uint64_t)parameter_global_index(p, i);
            if (index / 4 != known) {
                known = index / 4;
                four = philox(key, (uint32_t)known, (uint32_t)(known >> 32), 0, 0);
            }
            values[i] = (real)(bound * (2 * philox_uniform(four.word[index % 4]) - 1));
        }
    }
}

static void draw_normal(const Parameter *p, PhiloxKey key, double deviation, real *values)
{
    int64_t count = tensor_count(p->value);
#pragma omp parallel for schedule(static) if (count > 10000)
    for (int64_t i = 0; i < count; i++)
        values[i] =
            (real)(deviation * philox_normal_at(key, (uint64_t)parameter_global_index(p, i)));
}

static void draw_initial(const Parameter *p, uint64_t seed)
{
    if (p->initial == ZEROS || backend_only_counts())
        return; /* the arena starts as zeros */
    PhiloxKey key = philox_key(seed, p->name, 0);
    int64_t count = tensor_count(p->value);
    HostView view = host_view_write(reals(p->value), count);
    if (p->initial == LINEAR_WEIGHT)
        draw_uniform(p, key, 1 / sqrt((double)shape_last(p->shape)), view.numbers);
    else if (p->initial == EMBEDDING_WEIGHT)
        draw_normal(p, key, p->deviation, view.numbers);
    else
        for (int64_t i = 0; i < count; i++)
            view.numbers[i] = 1;
    host_view_store(&view);
}

void model_fill(Model *model, void (*begin)(void *, const Parameter *),
                double (*value)(void *, const Parameter *, int64_t), void *context)
{
    for (Parameter *p = model->parameters; p; p = p->next) {
        if (begin)
            begin(context, p);
        int64_t count = tensor_count(p->value);
        HostView view = host_view_write(reals(p->value), count);
#pragma omp parallel for schedule(static) if (count > 10000)
        for (int64_t i = 0; i < count; i++)
            view.numbers[i] = (real)value(context, p, parameter_global_index(p, i));
        host_view_store(&view);
    }
}

static Buffer *arena_of(Model *model, Category category)
{
    Buffer *arena = pool_get(model->pool, model->arena_size * (int64_t)sizeof(real), category);
    kernel_vector_fill(model->arena_size, 0, arena->data);
    return arena;
}

static Tensor *gradient_of(Model *model, const Parameter *p, int64_t offset)
{
    Tensor *gradient = model_piece(model, sizeof *gradient);
    *gradient = (Tensor){
        .shape = p->value->shape, .placement = p->value->placement, .buffer = model->gradients};
    gradient->data = (real *)model->gradients->data + offset;
    return gradient;
}

void model_finish(Model *model)
{
    for (Parameter *p = model->parameters; p; p = p->next)
        model->arena_size += padded(p);
    model->weights = arena_of(model, WEIGHTS);
    model->gradients = arena_of(model, GRADIENTS);
    int64_t offset = 0;
    for (Parameter *p = model->parameters; p; p = p->next) {
        p->value->buffer = model->weights;
        p->value->data = (real *)model->weights->data + offset;
        p->value->gradient = gradient_of(model, p, offset);
        offset += padded(p);
    }
    for (const Parameter *p = model->parameters; p; p = p->next)
        draw_initial(p, model->seed);
    for (State *s = model->states; s; s = s->next) {
        const int64_t count = tensor_count(&s->tensor);
        s->tensor.buffer = pool_get(model->pool, count * (int64_t)sizeof(real), ACTIVATIONS);
        s->tensor.data = s->tensor.buffer->data;
        kernel_vector_fill(count, 0, s->tensor.data);
    }
}

void model_keep_rounded(Model *model)
{
    model->rounded = pool_get(model->pool, model->arena_size * (int64_t)sizeof(uint16_t), WEIGHTS);
    memory_holds_rounded(model->rounded->bytes);
    for (Parameter *p = model->parameters; p; p = p->next) {
        const int64_t offset = reals(p->value) - model_weights(model);
        Tensor *copy = p->value->rounded = model_piece(model, sizeof *copy);
        *copy = (Tensor){.dtype = HALF,
                         .shape = p->value->shape,
                         .placement = p->value->placement,
                         .buffer = model->rounded,
                         .data = (uint16_t *)model->rounded->data + offset};
        p->rounded_is_old = true;
    }
}

void model_weights_changed(Model *model)
{
    for (Parameter *p = model->parameters; p; p = p->next)
        p->rounded_is_old = true;
}

void model_use_tape(Model *model, Tape *tape)
{
    for (Parameter *p = model->parameters; p; p = p->next)
        p->value->tape = p->value->gradient->tape = tape;
}

Parameter *model_parameter(Model *model, const char *name)
{
    for (Parameter *p = model->parameters; p; p = p->next)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

int64_t model_held(const Model *model)
{
    int64_t count = 0;
    for (const Parameter *p = model->parameters; p; p = p->next)
        count += tensor_count(p->value);
    return count;
}

int64_t model_full(const Model *model)
{
    int64_t count = 0;
    for (const Parameter *p = model->parameters; p; p = p->next)
        count += parameter_is_copy(p, model->mesh) ? 0 : shape_count(p->shape);
    return count;
}

void model_clear_gradients(Model *model)
{
    for (Parameter *p = model->parameters; p; p = p->next) {
        p->gradient_set = false;
        p->partial = (model->mesh->dp_degree > 1 ? OVER_DP : 0) | (p->twin >= 0 ? OVER_PP : 0);
    }
}

void model_gradients_added(Model *model, Range part, Axis axis)
{
    for (Parameter *p = model->parameters; p; p = p->next) {
        const int64_t at = reals(p->value->gradient) - model_gradients(model);
        if (part.begin <= at && at < part.end)
            p->partial &= ~(unsigned)axis;
    }
}

void model_must_be_added(const Model *model, unsigned axes, const char *over_dp)
{
    const Parameter *p = model->parameters;
    while (p && !(p->partial & axes))
        p = p->next;
    if (!p)
        return;
    const unsigned partial = p->partial & axes;
    char what[240];
    snprintf(what, sizeof what, _("the gradient of %.200s"), p->name);
    must_be_added(partial, HARMS_GRADIENTS, NULL,
                  partial & OVER_DP   ? over_dp
                  : partial & OVER_TP ? "sum_norm_gradients"
                                      : "model_sum_tied",
                  what);
}

void model_complete_gradients(Model *model)
{
    for (Parameter *p = model->parameters; p; p = p->next)
        if (!p->gradient_set)
            kernel_vector_fill(tensor_count(p->value), 0, reals(p->value->gradient));
}

real *model_weights(Model *model)
{
    return model->weights->data;
}

real *model_gradients(Model *model)
{
    return model->gradients->data;
}
