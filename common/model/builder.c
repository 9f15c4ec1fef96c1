/* The builder: names, layers and parameters while a model is made. */
#include <string.h>

#include "base/run.h"
#include "model/model.h"
#include "model/names.h"

/* Every Builder of balise.h is the first member of such a record. */
typedef struct NamedBuilder {
    Builder builder; /* must be first: a Builder * points to a NamedBuilder */
    Model *model;
    const char *path;
    Initial initial;
} NamedBuilder;

static NamedBuilder *named(Builder *b)
{
    return (NamedBuilder *)b;
}

Builder *model_new_builder(Model *model, const char *path, Initial initial)
{
    NamedBuilder *b = model_piece(model, sizeof *b);
    *b = (NamedBuilder){{model->mesh}, model, path, initial};
    return &b->builder;
}

/* Ends the run if the model is already in use. Layers and parameters live as long as the model, so
 * those made in a forward pass would accumulate. */
static void must_be_making(const Model *model, const char *what, const char *name)
{
    if (model->weights)
        misuse("make it in the ..._new function", "%s%s: the model is already in use", what, name);
}

void *new_layer(Builder *b, int64_t bytes)
{
    enum { MOST = 256 << 20 };
    must_be_making(named(b)->model, "new_layer", "");
    if (bytes < 0 || bytes > MOST)
        misuse("NEW(b, Type) passes the size of the type; parameter() creates a layer's parameters",
               "new_layer: a layer cannot have %lld bytes", (long long)bytes);
    return model_piece(named(b)->model, (size_t)bytes);
}

static const char *joined(const NamedBuilder *b, const char *name)
{
    size_t length = strlen(b->path) + strlen(name) + 2;
    char *path = model_piece(b->model, length);
    snprintf(path, length, "%s%s%s", b->path, b->path[0] ? "." : "", name);
    return path;
}

Builder *within(Builder *b, const char *name)
{
    must_be_making(named(b)->model, "within ", name);
    return model_new_builder(named(b)->model, joined(named(b), name), named(b)->initial);
}

Builder *for_embedding(Builder *b)
{
    return model_new_builder(named(b)->model, named(b)->path, EMBEDDING_WEIGHT);
}

const char *builder_path(Builder *b)
{
    return named(b)->path;
}

Placement undecided(int balise)
{
    return (Placement){UNDECIDED, balise};
}

static void check_parameter(Model *model, const char *name, Shape shape, Placement placement)
{
    if (placement.kind == UNDECIDED)
        run_todo(placement.dim, name, callsite());
    must_be_making(model, "parameter ", name);
    if (placement.kind != WHOLE && placement.kind != SHARD)
        misuse("a parameter is whole() or shard(dim)",
               "parameter %s: a parameter cannot have this placement", name);
    for (int i = 0; i < shape.rank; i++)
        if (shape.size[i] < 1)
            misuse("give the full shape of the parameter", "parameter %s: its shape is %s", name,
                   SHAPE_TEXT(shape));
    if (!names_add(&model->names, name))
        misuse("give each layer a name of its own with within(b, \"...\")",
               "there are two parameters named %s", name);
}

Tensor *parameter_with(Builder *b, const char *name, Shape shape, Placement placement,
                       Initial initial)
{
    Model *model = named(b)->model;
    name = joined(named(b), name);
    check_parameter(model, name, shape, placement);
    Parameter *p = model_piece(model, sizeof *p);
    *p = (Parameter){.name = name,
                     .shape = shape,
                     .placement = placement,
                     .initial = initial,
                     .deviation = 0.02,
                     .twin = -1};
    p->value = model_piece(model, sizeof *p->value);
    *p->value = (Tensor){.shape = shape, .parameter = p, .needs_gradient = true};
    if (placement.kind == SHARD) {
        int dim = p->placement.dim = shape_dim("parameter", shape, placement.dim);
        p->held = chunk(shape.size[dim], model->mesh->tp_rank, model->mesh->tp_degree);
        p->value->shape.size[dim] = p->held.end - p->held.begin;
        p->value->undivided = shape.size[dim];
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

Tensor *zero_parameter(Builder *b, const char *name, Shape shape, Placement placement)
{
    return parameter_with(b, name, shape, placement, ZEROS);
}

int shard_begin(const Tensor *x)
{
    must_exist("shard_begin", x);
    if (!x->parameter)
        misuse("pass the layer's weight itself", "shard_begin takes a parameter");
    return x->parameter->placement.kind == SHARD ? (int)x->parameter->held.begin : 0;
}

Tensor *model_state(Builder *b, Shape shape)
{
    must_be_making(named(b)->model, "model_state", "");
    Model *model = named(b)->model;
    State *state = model_piece(model, sizeof *state);
    *state = (State){{.shape = shape, .kept = true}, model->states};
    model->states = state;
    return &state->tensor;
}
