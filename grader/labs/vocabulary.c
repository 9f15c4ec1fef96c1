/* Lab 21's random inputs, and tensors that are split by columns. */
#include "grader/labs/vocabulary.h"

#include <math.h>

#include "grader/labs/groups.h"

/* This rank's columns of x [B,S,V]; all columns if there is one rank. */
static Tensor *own_columns(const Scenario *run, Tensor *x)
{
    const int ranks = run->mesh->tp_degree;
    const int64_t V = shape_last(x->shape), rows = tensor_count(x) / V;
    const Range held = chunk(V, run->mesh->tp_rank, ranks);
    const int64_t width = held.end - held.begin;
    Tensor *part = tape_host_tensor(run->tape, REAL, shape_with(x->shape, 2, width),
                                    ranks > 1 ? shard(2) : whole());
    for (int64_t i = 0; i < rows * width; i++)
        reals(part)[i] = reals(x)[i / width * V + held.begin + i % width];
    part->undivided = V;
    part->needs_gradient = x->needs_gradient;
    return part;
}

/* The judge has no world, and computes the first replica. */
static bool is_first_replica(const Scenario *run)
{
    const Group *world = run->mesh->world;
    return !world || tp_group(&run->c, group_rank(world)).first == 0;
}

Tensor *random_logits(Scenario *run, const char *key, int which, Shape shape)
{
    Tensor *x = random_input(run, key, -1, shape, true);
    const double large = ldexp(1, LARGE_LOGITS), unit = ldexp(1, -8),
                 less = 2 * large * (which > 0) + 4 * large * !is_first_replica(run);
    /* In this unit, float holds every number up to 8 times `large` exactly. */
    for (int64_t i = 0; run->c.exponent == LARGE_LOGITS && i < tensor_count(x); i++)
        reals(x)[i] = (real)(rint(reals(x)[i] / unit) * unit - less);
    return own_columns(run, x);
}

Tensor *random_targets(Scenario *run, const char *key, int V)
{
    const Case *c = &run->c;
    Tensor *targets = tape_host_tensor(run->tape, INT32, SHAPE(c->B, c->S), whole());
    const int64_t count = tensor_count(targets);
    for (int64_t i = 0; i < count; i++) {
        Range held = chunk(V, (int)(i % c->tp), c->tp);
        if (held.begin == held.end)
            held = (Range){0, V};
        const bool none = i % 4 == 2 || (c->B > 1 && i < c->S);
        const int64_t id = held.begin + random_below(run, key, i, held.end - held.begin);
        ints(targets)[i] = none ? NO_ID : (int32_t)id;
    }
    ints(targets)[count - 1] = V - 1;
    return targets;
}

Tensor *random_gradient(Scenario *run, const char *key, const Tensor *y, Shape whole_shape)
{
    Tensor *dy = random_input(run, key, -1, whole_shape, false);
    const double unit = ldexp(1, run->c.dy_exponent - run->c.exponent);
    for (int64_t i = 0, count = tensor_count(dy); i < count; i++)
        reals(dy)[i] *= (real)unit;
    return tensor_count(y) < tensor_count(dy) ? own_columns(run, dy) : dy;
}

void write_columns(Scenario *run, Check check, Label label, Tensor *x, int V)
{
    Entry *entry = (Entry *)(run->stream.base + atomic_load(run->stream.used));
    write_values(run, check, label, x);
    const Range held = chunk(V, run->mesh->tp_rank, run->mesh->tp_degree);
    if (!x || x->shape.rank != 3 || shape_last(x->shape) != held.end - held.begin)
        return;
    entry->shape = shape_with(x->shape, 2, V);
    entry->placement_kind = SHARD;
    entry->placement_dim = 2;
    entry->begin = held.begin;
    entry->end = held.end;
}
