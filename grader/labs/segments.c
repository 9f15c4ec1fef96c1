/* What a rank does in a case of lab 19: a chain of segments, without recomputation and with it. */
#include "grader/labs/segments.h"

#include <math.h>
#include <stdio.h>

static const double rate = 0.25;

/* ---- a block, split over the ranks as in labs 4 and 6 ---------------------------------------------------------- */

typedef struct Layers {
    LayerNorm *norm[2];
    Tensor *query, *key, *value, *output; /* [H,H] each */
    Tensor *up, *down;                    /* [F,H], [H,F]; NULL if the segment is attention alone */
    Dropout *dropout[2];
    int heads; /* on this rank */
    float factor;
} Layers;

static const Layers *layers_new(Builder *b, const Case *c)
{
    Layers *layers = NEW(b, Layers);
    layers->norm[0] = layer_norm_new(within(b, "norm1"), c->H);
    layers->query = parameter(b, "query", SHAPE(c->H, c->H), shard(0));
    layers->key = parameter(b, "key", SHAPE(c->H, c->H), shard(0));
    layers->value = parameter(b, "value", SHAPE(c->H, c->H), shard(0));
    layers->output = parameter(b, "output", SHAPE(c->H, c->H), shard(1));
    layers->dropout[0] = dropout_new(within(b, "dropout1"), (float)c->p);
    layers->heads = c->A / b->mesh->tp_degree;
    layers->factor = 1 / sqrtf((float)c->H / (float)c->A);
    if (c->kind == SEGMENT_ATTENTION)
        return layers;
    layers->norm[1] = layer_norm_new(within(b, "norm2"), c->H);
    layers->up = parameter(b, "up", SHAPE(c->F, c->H), shard(0));
    layers->down = parameter(b, "down", SHAPE(c->H, c->F), shard(1));
    layers->dropout[1] = dropout_new(within(b, "dropout2"), (float)c->p);
    return layers;
}

static Tensor *attend(const Layers *layers, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    x = duplication(x, mesh);
    Tensor *q = linear(x, layers->query), *k = linear(x, layers->key),
           *v = linear(x, layers->value);
    Tensor *y = attention(q, k, v, mask, layers->heads, layers->factor);
    return dropout(layers->dropout[0], all_reduce(linear(y, layers->output), mesh));
}

static Tensor *feed(const Layers *layers, Tensor *x, const Mesh *mesh)
{
    Tensor *inner = gelu(linear(duplication(x, mesh), layers->up));
    return all_reduce(linear(dropout(layers->dropout[1], inner), layers->down), mesh);
}

static Tensor *block(const Layers *layers, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    x = add(x, attend(layers, layer_norm(layers->norm[0], x), mask, mesh));
    return add(x, feed(layers, layer_norm(layers->norm[1], x), mesh));
}

/* Its operations are the kit's, not the lab's. */
static Tensor *run_of_kit(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Layers *layers = layer;
    not_of_lab(true);
    Tensor *y = (layers->up ? block : attend)(layers, x, mask, mesh);
    not_of_lab(false);
    return y;
}

/* ---- a pass ---------------------------------------------------------------------------------------------------- */

typedef struct Chain {
    Scenario *run;
    const Layers *layers[MAX_BLOCKS];
    int blocks; /* how many there are */
    Segment segment[MAX_BLOCKS];
    Tensor *x, *y;
    int step;
    bool recomputes; /* by the lab */
} Chain;

static void begin_step(Chain *chain, int step, bool recomputes)
{
    Scenario *run = chain->run;
    const Case *c = &run->c;
    char key[KEY_SIZE];
    chain->step = step;
    chain->recomputes = recomputes;
    begin_pass(run, step);
    snprintf(key, sizeof key, "x, step %d", step);
    chain->x = random_input(run, key, -1, SHAPE(c->B, c->S, c->H), true);
    snprintf(key, sizeof key, "mask, step %d", step);
    Tensor *mask = random_mask(run, key);
    for (int i = 0; i < chain->blocks; i++)
        chain->segment[i] = (Segment){run_of_kit, chain->layers[i], mask};
}

/* Each call of a pass has a number of its own, which selects the masks of its dropouts. One is 0; the
 * others need all bits of an int64_t, and every other one is negative. */
static int64_t draw_of(const Chain *chain, int call)
{
    const int64_t draw = (INT64_C(1) << 62) + (int64_t)(chain->run->c.key % 7) + 2 * call;
    return call == 1 ? 0 : call % 2 ? -draw : draw;
}

static Tensor *call_segment(const Chain *chain, int block, int call, Tensor *x)
{
    const Scenario *run = chain->run;
    const Segment *segment = &chain->segment[block];
    const bool alone = run->c.kind == SEGMENT_ATTENTION;
    Tensor *given = alone ? layer_norm(chain->layers[block]->norm[0], x) : x;
    Tensor *y = (chain->recomputes ? recompute : segment_run)(segment, given, draw_of(chain, call),
                                                              run->mesh);
    return alone ? add(x, y) : y;
}

static void call_and_write(Chain *chain, int block, int call)
{
    Scenario *run = chain->run;
    const TapeMark mark = tape_mark(run->tape);
    if (chain->recomputes)
        at(run, segment_label(FORWARD_PASS_OF, call, chain->step));
    chain->y = call_segment(chain, block, call, chain->y);
    tape_release_since(run->tape, mark, chain->y);
    Label label = segment_label(OUTPUT_OF, call, chain->step);
    label.detail = !chain->recomputes;
    write_values(run, FORWARD, label, chain->y);
}

static void forward(Chain *chain)
{
    chain->y = chain->x;
    for (int round = 0; round < segment_rounds(&chain->run->c); round++)
        for (int block = 0; block < chain->blocks; block++)
            call_and_write(chain, block, round * chain->blocks + block);
}

static Tensor *gradient_of_result(const Chain *chain)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "dy, step %d", chain->step);
    Tensor *dy = random_input(chain->run, key, -1, chain->y->shape, false);
    for (int64_t i = 0, count = tensor_count(dy); i < count; i++)
        reals(dy)[i] *= (real)ldexp(1, chain->run->c.dy_exponent);
    return dy;
}

static void write_gradients(const Chain *chain)
{
    Scenario *run = chain->run;
    Label label = segment_label(INPUT_GRADIENT_OF, 0, chain->step);
    label.detail = !chain->recomputes;
    write_values(run, INPUT_GRADIENT, label, chain->x->gradient);
    model_complete_gradients(run->model);
    write_arena_as(run, WEIGHT_GRADIENT, GRADIENT_OF, chain->step, label.detail);
}

static void measure_begin(Scenario *run)
{
    traffic_begin(run);
    work_begin(run);
}

static void measure_end(const Chain *chain, What what)
{
    Scenario *run = chain->run;
    const Case *c = &run->c;
    const Label label = segment_label(what, ALL_CALLS, chain->step);
    const Sizes sizes = {.B = c->B, .S = c->S, .H = c->H, .N = segment_calls(c), .part = c->kind};
    traffic_end(run, label, what == FORWARD_OF ? FORWARD_BUDGET : BACKWARD_BUDGET, &sizes);
    work_end(run, label);
}

/* ---- the scenario ---------------------------------------------------------------------------------------------- */

static void step_without(Chain *chain, int step)
{
    begin_step(chain, step, false);
    forward(chain);
    tape_backward(chain->run->tape, chain->y, gradient_of_result(chain));
    write_gradients(chain);
}

static void step_of_lab(Chain *chain, int step)
{
    Scenario *run = chain->run;
    begin_step(chain, step, true);
    measure_begin(run);
    forward(chain);
    measure_end(chain, FORWARD_OF);
    at(run, segment_label(BACKWARD_PASS_OF, ALL_CALLS, step));
    Tensor *dy = gradient_of_result(chain);
    measure_begin(run);
    tape_backward(run->tape, chain->y, dy);
    measure_end(chain, BACKWARD_OF);
    write_gradients(chain);
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
}

/* Forward passes alone, without dropout. */
static void evaluate(Chain *chain)
{
    begin_step(chain, STEPS, true);
    measure_begin(chain->run);
    forward(chain);
    measure_end(chain, FORWARD_OF);
}

/* The chain with the layers of all blocks, in a model of their own. */
static Chain chain_new(Scenario *run)
{
    Chain chain = {.run = run, .blocks = run->c.blocks};
    char name[KEY_SIZE];
    run->model = model_new(run->pool, run->mesh, run->c.key);
    for (int i = 0; i < chain.blocks; i++) {
        snprintf(name, sizeof name, "blocks.%d", i);
        chain.layers[i] = layers_new(within(run->model->builder, name), &run->c);
    }
    model_finish(run->model);
    model_use_tape(run->model, run->tape);
    return chain;
}

void run_segments(Scenario *run)
{
    Chain chain = chain_new(run);
    for (int step = 0; step < STEPS; step++) {
        fill_weights(run, step);
        if (step > 0)
            evaluate(&chain);
        step_without(&chain, step);
        step_of_lab(&chain, step);
    }
    fill_weights(run, DIVERGED);
    step_without(&chain, DIVERGED);
    step_of_lab(&chain, DIVERGED);
}
