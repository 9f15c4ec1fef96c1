#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/run.h"

enum { PADDING = 16 };

/* A layer, a name or a builder: what is made with the builder and freed with the model. */
typedef struct Piece {
    struct Piece *next;
    _Alignas(16) char bytes[];
} Piece;

struct Model {
    Pool *pool;
    const Mesh *mesh;
    uint64_t seed;
    Piece *pieces;
    Parameter *first, **last;
    Builder *root;
    Buffer *weights, *gradients;
    int64_t arena;
};

/* What stands behind the Builder of balise.h. */
typedef struct NamedBuilder {
    Builder builder; /* first, so that a Builder * is a NamedBuilder * */
    Model *model;
    const char *path;
    Initial initial;
} NamedBuilder;

static void *piece(Model *model, size_t bytes)
{
    Piece *p = calloc(1, sizeof *p + bytes);
    p->next = model->pieces;
    model->pieces = p;
    return p->bytes;
}

static NamedBuilder *named(Builder *b)
{
    return (NamedBuilder *)b;
}

static Builder *new_builder(Model *model, const char *path, Initial initial)
{
    NamedBuilder *b = piece(model, sizeof *b);
    *b = (NamedBuilder){{model->mesh}, model, path, initial};
    return &b->builder;
}

Model *model_new(Pool *pool, const Mesh *mesh, uint64_t seed)
{
    Model *model = calloc(1, sizeof *model);
    model->pool = pool;
    model->mesh = mesh;
    model->seed = seed;
    model->last = &model->first;
    model->root = new_builder(model, "", LINEAR_WEIGHT);
    return model;
}

void model_free(Model *model)
{
    buffer_release(model->weights);
    buffer_release(model->gradients);
    while (model->pieces) {
        Piece *p = model->pieces;
        model->pieces = p->next;
        free(p);
    }
    free(model);
}

Builder *model_builder(Model *model)
{
    return model->root;
}

void *new_layer(Builder *b, int64_t bytes)
{
    return piece(named(b)->model, (size_t)bytes);
}

static const char *joined(const NamedBuilder *b, const char *name)
{
    size_t length = strlen(b->path) + strlen(name) + 2;
    char *path = piece(b->model, length);
    snprintf(path, length, "%s%s%s", b->path, b->path[0] ? "." : "", name);
    return path;
}

Builder *within(Builder *b, const char *name)
{
    return new_builder(named(b)->model, joined(named(b), name), named(b)->initial);
}

Builder *for_embedding(Builder *b)
{
    return new_builder(named(b)->model, named(b)->path, EMBEDDING_WEIGHT);
}

const char *builder_path(Builder *b)
{
    return named(b)->path;
}

Placement undecided(int balise)
{
    return (Placement){UNDECIDED, balise};
}

static void check_parameter(const Model *model, const char *name, Shape shape, Placement placement)
{
    char text[64];
    if (placement.kind == UNDECIDED)
        run_todo(placement.dim, name, callsite());
    if (model->weights)
        misuse("make it in the ..._new function", "parameter %s: the model is in use already", name);
    if (placement.kind != WHOLE && placement.kind != SHARD)
        misuse("a parameter is whole() or shard(dim)", "parameter %s: this placement is not for parameters",
               name);
    for (int i = 0; i < shape.rank; i++)
        if (shape.size[i] < 1)
            misuse("give the shape of the undivided parameter", "parameter %s: its shape is %s", name,
                   shape_text(shape, text));
    for (const Parameter *p = model->first; p; p = p->next)
        if (!strcmp(p->name, name))
            misuse("use within(b, \"...\") for each of several layers", "there are two parameters named %s",
                   name);
}

Tensor *parameter_with(Builder *b, const char *name, Shape shape, Placement placement, Initial initial)
{
    Model *model = named(b)->model;
    name = joined(named(b), name);
    check_parameter(model, name, shape, placement);
    Parameter *p = piece(model, sizeof *p);
    *p = (Parameter){.name = name, .shape = shape, .placement = placement, .initial = initial};
    p->value = piece(model, sizeof *p->value);
    *p->value = (Tensor){.shape = shape, .parameter = p, .needs_gradient = true};
    if (placement.kind == SHARD) {
        int dim = p->placement.dim = shape_dim("parameter", shape, placement.dim);
        p->held = chunk(shape.size[dim], model->mesh->tp_rank, model->mesh->tp_degree);
        p->value->shape.size[dim] = p->held.end - p->held.begin;
    }
    p->value->placement = model->mesh->tp_degree > 1 ? p->placement : whole();
    *model->last = p;
    model->last = &p->next;
    return p->value;
}

Tensor *parameter(Builder *b, const char *name, Shape shape, Placement placement)
{
    return parameter_with(b, name, shape, placement, named(b)->initial);
}

int shard_begin(const Tensor *x)
{
    if (!x->parameter)
        misuse("pass the layer's weight itself", "shard_begin takes a parameter");
    return x->parameter->placement.kind == SHARD ? (int)x->parameter->held.begin : 0;
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

static double initial_value(void *seed, const Parameter *p, int64_t index)
{
    PhiloxKey key = philox_key(*(uint64_t *)seed, p->name, 0);
    double bound = 1 / sqrt((double)shape_last(p->shape));
    switch (p->initial) {
    case LINEAR_WEIGHT:
        return bound * (2 * philox_uniform_at(key, (uint64_t)index) - 1);
    case EMBEDDING_WEIGHT:
        return 0.02 * philox_normal_at(key, (uint64_t)index);
    case ONES:
        return 1;
    case ZEROS:
        break;
    }
    return 0;
}

void model_fill(Model *model, double (*value)(void *, const Parameter *, int64_t), void *context)
{
    for (Parameter *p = model->first; p; p = p->next) {
        int64_t count = tensor_count(p->value);
#pragma omp parallel for schedule(static) if (count > 10000)
        for (int64_t i = 0; i < count; i++)
            reals(p->value)[i] = (real)value(context, p, parameter_global_index(p, i));
    }
}

static Buffer *arena_of(Model *model, Category category)
{
    Buffer *arena = pool_get(model->pool, model->arena * (int64_t)sizeof(real), category);
    kernel_vector_fill(model->arena, 0, arena->data);
    return arena;
}

static Tensor *gradient_of(Model *model, const Parameter *p, int64_t offset)
{
    Tensor *gradient = piece(model, sizeof *gradient);
    *gradient =
        (Tensor){.shape = p->value->shape, .placement = p->value->placement, .buffer = model->gradients};
    gradient->data = (real *)model->gradients->data + offset;
    return gradient;
}

void model_finish(Model *model)
{
    for (Parameter *p = model->first; p; p = p->next)
        model->arena += padded(p);
    model->weights = arena_of(model, WEIGHTS);
    model->gradients = arena_of(model, GRADIENTS);
    int64_t offset = 0;
    for (Parameter *p = model->first; p; p = p->next) {
        p->value->buffer = model->weights;
        p->value->data = (real *)model->weights->data + offset;
        p->value->gradient = gradient_of(model, p, offset);
        offset += padded(p);
    }
    model_fill(model, initial_value, &model->seed);
}

void model_use_tape(Model *model, Tape *tape)
{
    for (Parameter *p = model->first; p; p = p->next)
        p->value->tape = p->value->gradient->tape = tape;
}

Parameter *model_parameters(Model *model)
{
    return model->first;
}

Parameter *model_parameter(Model *model, const char *name)
{
    for (Parameter *p = model->first; p; p = p->next)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

int64_t model_held(const Model *model)
{
    int64_t count = 0;
    for (const Parameter *p = model->first; p; p = p->next)
        count += tensor_count(p->value);
    return count;
}

int64_t model_full(const Model *model)
{
    int64_t count = 0;
    for (const Parameter *p = model->first; p; p = p->next)
        count += shape_count(p->shape);
    return count;
}

void model_clear_gradients(Model *model)
{
    for (Parameter *p = model->first; p; p = p->next)
        p->value->gradient_set = false;
}

void model_complete_gradients(Model *model)
{
    for (Parameter *p = model->first; p; p = p->next)
        if (!p->value->gradient_set)
            kernel_vector_fill(tensor_count(p->value), 0, reals(p->value->gradient));
}

int64_t model_arena_size(const Model *model)
{
    return model->arena;
}

real *model_weights(Model *model)
{
    return model->weights->data;
}

real *model_gradients(Model *model)
{
    return model->gradients->data;
}

Pool *model_pool(const Model *model)
{
    return model->pool;
}

const Mesh *model_mesh(const Model *model)
{
    return model->mesh;
}
