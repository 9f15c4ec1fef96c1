/* Labs 2 to 7 and 20: two layers, two forward passes before two backward passes, a step of SGD, and all
 * of it again. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "grader/labs/scenario.h"

const char *const layer_names[LAYERS] = {"first", "second"};
static const double rate = 0.25;

typedef struct Pass {
    Tensor *u, *x, *mask, *y, *other; /* x = gelu(u), and other = x + u reads x too */
    Tensor *dy, *dother;
} Pass;

/* The width of a layer's input. With fewer than three ranks, both layers have the same width. */
static int width_of(const Case *c, const LayerScenario *layer, int which)
{
    return which == 1 && c->tp > 2 ? c->H + layer->wider : c->H;
}

static Sizes sizes_of(const Scenario *run, const LayerScenario *layer, int which)
{
    Sizes sizes = {.B = run->c.B, .S = run->c.S, .H = width_of(&run->c, layer, which)};
    if (layer->sizes)
        layer->sizes(run, which, &sizes);
    return sizes;
}

int inner_of(const Case *c, int which)
{
    return which ? 2 * c->F : c->F;
}

int out_of(const Case *c, int which)
{
    return which ? c->out + c->tp : c->out;
}

void inner_and_out(const Scenario *run, int which, Sizes *sizes)
{
    sizes->F = inner_of(&run->c, which);
    sizes->OUT = out_of(&run->c, which);
}

int table_rows_of(const Case *c, int which)
{
    return which == 1 && c->tp > 2 ? c->V + c->tp + 1 : c->V;
}

/* The key of an input. Evaluations are numbered after the steps. */
static void key_of(char key[KEY_SIZE], const char *what, int which, int step)
{
    bool trains = step < STEPS;
    snprintf(key, KEY_SIZE, "%s of the %s layer, %s %d", what, layer_names[which],
             trains ? "step" : "evaluation", 1 + (trains ? step : step - STEPS));
}

static Label labelled(What what, int which, int step)
{
    return label_of(what, A_LAYER, which, step);
}

/* The first evaluation has the inputs of the first step, but it has different weights, and runs the
 * second layer first. */
static Tensor *inputs(Scenario *run, const LayerScenario *layer, Pass *pass, int which, int step)
{
    const Case *c = &run->c;
    int width = width_of(c, layer, which);
    char key[KEY_SIZE];
    *pass = (Pass){0};
    step = step == STEPS ? 0 : step;
    key_of(key, "mask", which, step);
    if (layer->takes_mask)
        pass->mask = random_mask(run, key);
    key_of(key, "x", which, step);
    if (layer->takes_ids) { /* in cases of integers, all ids are in the first rank's part */
        int rows = table_rows_of(c, which);
        return pass->x = random_ids(run, key, c->integers && rows > c->tp ? rows / c->tp : rows);
    }
    pass->u = random_input(run, key, -1,
                           c->flat ? SHAPE(c->B * c->S, width) : SHAPE(c->B, c->S, width), true);
    pass->x = gelu(pass->u);
    return pass->x;
}

/* The weights at the beginning of this step. */
static real *filled;

static void remember_weights(Scenario *run)
{
    size_t bytes = (size_t)run->model->arena_size * sizeof *filled;
    filled = realloc(filled, bytes + 1);
    backend_read(filled, model_weights(run->model), (int64_t)bytes);
}

static bool weights_have_changed(Scenario *run)
{
    backend_wait();
    return memcmp(filled, model_weights(run->model),
                  (size_t)run->model->arena_size * sizeof *filled) != 0;
}

static void forward(Scenario *run, const LayerScenario *layer, const void *made, Pass *pass,
                    int which, int step)
{
    inputs(run, layer, pass, which, step);
    run->pass = labelled(FORWARD_PASS_OF, which, step);
    at(run, run->pass);
    Sizes sizes = sizes_of(run, layer, which);
    traffic_begin(run);
    work_begin(run);
    pass->y = layer->forward(made, layer->takes_ids ? pass->x : into_layer(run, pass->x),
                             pass->mask, run->mesh);
    traffic_end(run, labelled(FORWARD_OF, which, step), FORWARD_BUDGET, &sizes);
    work_end(run, labelled(FORWARD_OF, which, step));
    if (!pass->y)
        misuse("return a tensor", "the layer's forward function returned NULL");
    must_be_whole(run, _("the layer"), pass->y);
    if (weights_have_changed(run))
        misplaced("only the optimiser changes weights, between steps: compute with a copy, "
                  "tensor_copy(weight)",
                  which == 0 ? N_("the forward pass of the first layer has changed its weights")
                             : N_("the forward pass of the second layer has changed its weights"));
    if (pass->u)
        pass->other = add(pass->x, pass->u);
}

static void write_forward(Scenario *run, const Pass *pass, int which, int step)
{
    write_values(run, FORWARD, labelled(INPUT_OF, which, step), pass->x);
    if (pass->mask)
        write_values(run, FORWARD, labelled(MASK_OF, which, step), pass->mask);
    write_values(run, FORWARD, labelled(OUTPUT_OF, which, step), pass->y);
    if (pass->other)
        write_values(run, FORWARD, labelled(OTHER_READER_OF, which, step), pass->other);
}

/* A gradient may be very small or very large, because a loss may be scaled, or be a mean over
 * thousands of samples. */
static Tensor *random_gradient(Scenario *run, const char *key, Shape shape)
{
    Tensor *dy = random_input(run, key, -1, shape, false);
    for (int64_t i = 0, count = tensor_count(dy); i < count; i++)
        reals(dy)[i] *= (real)ldexp(1, run->c.dy_exponent);
    return dy;
}

static void backward(Scenario *run, const LayerScenario *layer, Pass *pass, int which, int step)
{
    char key[KEY_SIZE];
    at(run, labelled(BACKWARD_PASS_OF, which, step));
    Sizes sizes = sizes_of(run, layer, which);
    key_of(key, "dy", which, step);
    Tensor *dy = random_gradient(run, key, pass->y->shape);
    if (pass->other) {
        key_of(key, "dother", which, step);
        gradient_add(pass->other, random_gradient(run, key, pass->other->shape));
    }
    traffic_begin(run);
    work_begin(run);
    tape_backward(run->tape, pass->y, dy);
    traffic_end(run, labelled(BACKWARD_OF, which, step), BACKWARD_BUDGET, &sizes);
    work_end(run, labelled(BACKWARD_OF, which, step));
    if (pass->u)
        write_values(run, INPUT_GRADIENT, labelled(INPUT_GRADIENT_OF, which, step),
                     pass->u->gradient);
}

typedef struct Weights {
    uint64_t seed;
    int step;
    int idle_of;           /* the number of ranks if the last one holds zeros; otherwise 0 */
    const double *uniform; /* for the parameter being filled */
} Weights;

static Weights weights_of_step(const Case *c, int step)
{
    return (Weights){
        .seed = c->key, .step = step, .idle_of = c->idle && step > 0 && c->tp > 1 ? c->tp : 0};
}

static void begin_weights(void *context, const Parameter *p)
{
    Weights *weights = context;
    PhiloxKey key = philox_key(weights->seed, p->name, 77 + (uint64_t)weights->step);
    weights->uniform = drawn(weights->seed, key, shape_count(p->shape));
}

/* Does the last rank hold this number, for a split by rows or by columns? */
static bool is_of_last_rank(const Parameter *p, int ranks, int64_t index)
{
    int64_t rows = p->shape.size[0], columns = p->shape.size[1];
    return index / columns >= chunk(rows, ranks - 1, ranks).begin ||
           index % columns >= chunk(columns, ranks - 1, ranks).begin;
}

/* Weights differ from initial values, so that a norm's scale and shift matter. Each step has its
 * own weights, so that an error in one step does not appear as a wrong forward pass in the next. */
static double any_weight(void *context, const Parameter *p, int64_t index)
{
    const Weights *weights = context;
    if (p->shape.rank == 2 && weights->idle_of && is_of_last_rank(p, weights->idle_of, index))
        return 0;
    if (weights->step == DIVERGED && index == 0)
        return NAN;
    if (weights->step == 1 &&
        p->initial == ZEROS) /* a bias begins like this, and gets a gradient */
        return 0;
    double u = 2 * weights->uniform[index] - 1;
    return (double)(float)(p->shape.rank == 1 ? (p->initial == ONES ? 1 : 0) + 0.5 * u : u / 2);
}

void fill_weights(Scenario *run, int step)
{
    Weights weights = weights_of_step(&run->c, step);
    model_fill(run->model, begin_weights, any_weight, &weights);
}

double weight_in_step(const Case *c, const Parameter *p, int step, int64_t index)
{
    Weights weights = weights_of_step(c, step);
    begin_weights(&weights, p);
    return any_weight(&weights, p, index);
}

static void begin_evaluation(Scenario *run)
{
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key,
                                      .step = STEPS,
                                      .count = run->c.B,
                                      .samples = run->samples,
                                      .training = false});
    tape_record(run->tape, false);
}

/* What happens between two epochs: forward passes without backward passes, several of a layer in a
 * row, without dropout. The first pass is a batch of its own, so the x of the next pass has the
 * same address. */
static void evaluate(Scenario *run, const LayerScenario *layer, void *const made[LAYERS])
{
    enum { MOST = 4 };
    int passes = 2 + (int)(run->c.key % (MOST - 1));
    Pass pass[LAYERS][MOST];
    begin_evaluation(run);
    for (int i = LAYERS - 1; i >= 0; i--)
        for (int k = 0; k < passes; k++) {
            forward(run, layer, made[i], &pass[i][k], i, STEPS + k);
            if (i < LAYERS - 1 || k > 0)
                continue;
            write_forward(run, &pass[i][k], i, STEPS + k);
            begin_evaluation(run);
        }
    for (int i = 0; i < LAYERS; i++)
        for (int k = i == LAYERS - 1; k < passes; k++)
            write_forward(run, &pass[i][k], i, STEPS + k);
}

static void one_step(Scenario *run, const LayerScenario *layer, void *const made[LAYERS], int step)
{
    Pass pass[LAYERS];
    fill_weights(run, step);
    remember_weights(run);
    model_use_tape(run->model, run->tape);
    if (step > 0) {
        evaluate(run, layer, made);
        run->c.B += run->c.more_B;
    }
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key,
                                      .step = step,
                                      .count = run->c.B,
                                      .samples = run->samples,
                                      .training = run->c.training != 0});
    model_clear_gradients(run->model);
    for (int i = 0; i < LAYERS; i++)
        forward(run, layer, made[i], &pass[i], i, step);
    for (int i = 0; i < LAYERS; i++)
        write_forward(run, &pass[i], i, step);
    for (int i = 0; i < LAYERS; i++) {
        int which = run->c.reverse ? LAYERS - 1 - i : i;
        backward(run, layer, &pass[which], which, step);
    }
    model_complete_gradients(run->model);
    write_arena(run, WEIGHT_GRADIENT, GRADIENT_OF, step);
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
    write_arena(run, STEP, VALUE_OF, step);
}

void run_layers(Scenario *run, const LayerScenario *layer)
{
    void *made[LAYERS];
    run->model = model_new(run->pool, run->mesh, run->c.key);
    for (int i = 0; i < LAYERS; i++) {
        at(run, labelled(MAKING_OF, i, NO_STEP));
        made[i] = layer->make(within(run->model->builder, layer_names[i]), &run->c, i,
                              width_of(&run->c, layer, i));
    }
    model_finish(run->model);
    write_parameters(run);
    for (int step = 0; step < STEPS; step++)
        one_step(run, layer, made, step);
    one_step(run, layer, made, DIVERGED);
}
