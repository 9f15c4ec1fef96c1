/* The numbers of a parameter in a checkpoint: its weights, and the optimiser's state, which may be
 * sharded over the replicas. */
#include "train/checkpoint_states.h"

#include <math.h>
#include <stdlib.h>

#include "backend/host_view.h"
#include "base/optional_labs.h"

/* The part of this rank's shard of a parameter that lies in `part` of the arena, counted from the
 * shard's first element. */
static Range numbers_in(const Trainer *t, const Parameter *p, Range part)
{
    const int64_t first = reals(p->value) - model_weights(t->model), count = tensor_count(p->value);
    const int64_t begin = part.begin - first, end = part.end - first;
    const Range in = {begin < 0 ? 0 : begin, end < count ? end : count};
    return in.begin < in.end ? in : (Range){0, 0};
}

/* The numbers of a parameter for which this rank has a state: with ZERO=1, it has AdamW's m and v
 * only for its part. */
static Range numbers_with(const Trainer *t, const Parameter *p, int state)
{
    return state == 0 ? (Range){0, tensor_count(p->value)} : numbers_in(t, p, t->optimizer->part);
}

/* The first of this rank's elements of a parameter's state. */
static real *state_of(const Trainer *t, const Parameter *p, int state)
{
    const Buffer *arena = state == 0   ? t->model->weights
                          : state == 1 ? t->optimizer->m
                                       : t->optimizer->v;
    const int64_t first = reals(p->value) - model_weights(t->model);
    return (real *)arena->data + first + numbers_with(t, p, state).begin -
           (state == 0 ? 0 : t->optimizer->part.begin);
}

bool state_is_finite(const Trainer *t, const Parameter *p, int state)
{
    const Range held = numbers_with(t, p, state);
    return isfinite(kernel_vector_square_sum(held.end - held.begin, state_of(t, p, state)));
}

static void put(SafetensorsWriter *writer, const real *memory, int64_t count)
{
    HostView view = host_view_read(memory, count);
    safetensors_put(writer, view.numbers, count);
    host_view_end(&view);
}

/* With ZERO=1, gathers the replicas' parts of a parameter's m or v, so a checkpoint has the same
   format as without ZERO. Collective over the replicas. */
static void put_parts(const Trainer *t, SafetensorsWriter *writer, const Parameter *p, int state)
{
    const int n = t->mesh.dp_degree;
    const int64_t count = tensor_count(p->value);
    const Range mine = numbers_with(t, p, state);
    Buffer *whole = pool_get(t->pool, count * (int64_t)sizeof(real), ACTIVATIONS);
    real *numbers = whole->data;
    int64_t *begin = calloc((size_t)n + 1, sizeof *begin);
    for (int k = 0; k < n; k++) {
        const Range part = numbers_in(t, p, optimizer_part(t->model->arena_size, k, n));
        begin[k + 1] = part.begin < part.end ? part.end : begin[k];
    }
    kernel_vector_copy(mine.end - mine.begin, state_of(t, p, state), numbers + mine.begin);
    comm_all_gather_parts(t->mesh.dp, numbers, begin);
    if (writer)
        put(writer, numbers, count);
    free(begin);
    buffer_release(whole);
}

void state_put(const Trainer *t, SafetensorsWriter *writer, const Parameter *p, int state)
{
    if (state > 0 && t->optimizer->is_sharded)
        put_parts(t, writer, p, state);
    else if (writer)
        put(writer, state_of(t, p, state), tensor_count(p->value));
}

bool state_read(Trainer *t, const SavedModel *saved, const Parameter *p, int state,
                const SavedParameter *found, Problem *problem)
{
    const bool divided = p->placement.kind == SHARD,
               in_parts = state > 0 && t->optimizer->is_sharded;
    const Range rows = divided ? p->held : (Range){0, p->shape.size[0]},
                mine = numbers_with(t, p, state);
    const int64_t count = tensor_count(p->value);
    Buffer *whole = in_parts ? pool_get(t->pool, count * (int64_t)sizeof(real), ACTIVATIONS) : NULL;
    real *numbers = in_parts ? whole->data : state_of(t, p, state);
    HostView view = host_view_write(numbers, count);
    const bool good = saved_model_read(saved, state, found, divided ? p->placement.dim : 0, rows,
                                       view.numbers, problem);
    host_view_store(&view);
    if (in_parts) {
        kernel_vector_copy(mine.end - mine.begin, numbers + mine.begin, state_of(t, p, state));
        buffer_release(whole);
    }
    return good;
}
