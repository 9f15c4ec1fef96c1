/* What a rank does in a case of labs 12 and 13, and what the judge expects of it; the batch of lab
 * 14. */
#include "grader/labs/stages.h"

#include <stdlib.h>

#include "grader/labs/work.h"

static const double rate = 0.25;

TransformerConfig stages_config(const Case *c)
{
    return (TransformerConfig){.architecture = &architecture_bert,
                               .vocabulary = c->V,
                               .hidden = c->H,
                               .layers = c->blocks,
                               .heads = c->A,
                               .classes = 2,
                               .dropout = c->p};
}

/* The tokens, mask and labels of all rows in a step, or in the evaluation; every rank has all of
 * them. */
typedef struct Rows {
    int32_t *ids, *mask, *labels; /* [B,S], [B,S], [B] */
} Rows;

static Rows rows_of_step(const Scenario *run, int step)
{
    const int64_t B = run->c.B, S = run->c.S;
    int32_t *numbers = malloc((size_t)(2 * B * S + B) * sizeof *numbers);
    const Rows rows = {numbers, numbers + B * S, numbers + 2 * B * S};
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "step %d", step);
    int64_t draws = 0;
    for (int64_t b = 0; b < B; b++) {
        int64_t tokens = 1 + random_below(run, key, draws++, S);
        rows.labels[b] = (int32_t)random_below(run, key, draws++, 2);
        for (int64_t s = 0; s < S; s++) {
            rows.ids[b * S + s] = (int32_t)random_below(run, key, draws++, run->c.V);
            rows.mask[b * S + s] = s < tokens || step == DIVERGED;
        }
    }
    return rows;
}

void stages_fill(Scenario *run, Stage *stage, int step, int replica, int replicas)
{
    const Case *c = &run->c;
    const bool training = step < STEPS;
    const int64_t mine = c->B / replicas, B = mine / stage->micros, S = c->S;
    const Rows rows = rows_of_step(run, step);
    int64_t first = replica * mine;
    for (int i = 0; i < stage->micros; i++, first += B) {
        TapeBatch batch = {.seed = c->key,
                           .step = step,
                           .count = B,
                           .samples = run->samples + first,
                           .training = training && c->training};
        Tape *tape = stage_begin(stage, i, batch);
        tape_record(tape, training);
        stage_fill(stage, i, tape_ints(tape, SHAPE(B, S), rows.ids + first * S),
                   tape_ints(tape, SHAPE(B, S), rows.mask + first * S),
                   tape_ints(tape, SHAPE(B), rows.labels + first), mine);
    }
    free(rows.ids);
}

static Thing pass_of(int step)
{
    return step < STEPS ? THE_MODEL : EVALUATION;
}

Label work_of_stages(int step)
{
    return label_of(step < STEPS ? ITSELF : FORWARD_OF, pass_of(step), 0, step);
}

/* ---- what is written ----------------------------------------------------------------------------------------- */

/* Writes part k of n of the rows of x. */
static void write_rows(Scenario *run, Check check, Label label, Tensor *x, int k, int n)
{
    double *numbers;
    const int64_t count = tensor_count(x) / n;
    Entry *entry = stream_entry(&run->stream, VALUES, check, label, count, &numbers);
    entry->shape = x->shape;
    entry->shape.size[0] /= n;
    entry->called = x->placement.kind;
    const real *rows = reals(ready(x)) + k * count;
    backend_wait();
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (double)rows[i];
}

/* Writes a tensor of the first block of a stage. The judge's one micro-batch holds the rows of all
 * of a rank's micro-batches, so each of these gets its own entry. */
static void write_of_block(Scenario *run, Check check, What what, const Stage *stage, int micro,
                           Tensor *x)
{
    const int parts = micros_of(&run->c) / stage->micros;
    Label label = label_of(what, A_BLOCK, (int)stage->part.blocks.begin,
                           (int)stage->micro[micro].tape->batch.step);
    for (int k = 0; k < parts; k++) {
        label.detail = run->c.micros ? micro + k + 1 : 0;
        write_rows(run, check, label, x, k, parts);
    }
}

/* Writes the sum of the losses, once all micro-batches on the last stage have one. */
static void write_loss(Scenario *run, const Stage *stage, int step)
{
    double *sum;
    for (int i = 0; i < stage->micros; i++)
        if (!stage->micro[i].loss)
            return;
    stream_entry(&run->stream, VALUES, FORWARD, label_of(LOSS_OF, pass_of(step), 0, step), 1, &sum)
        ->shape = SHAPE(1);
    backend_wait();
    *sum = 0;
    for (int i = 0; i < stage->micros; i++)
        *sum += (double)reals(ready(stage->micro[i].loss))[0];
}

/* Writes a stage's input, which the previous stage has computed. */
static void write_input(Scenario *run, const Stage *stage, int micro)
{
    if (!stage->part.embedding && stage->micro[micro].input)
        write_of_block(run, FORWARD, INPUT_OF, stage, micro, stage->micro[micro].input);
}

static void write_evaluation(Scenario *run, const Stage *stage)
{
    for (int i = 0; i < stage->micros; i++)
        write_input(run, stage, i);
    write_loss(run, stage, STEPS);
}

#ifndef BALISE_DOUBLE
static struct {
    int now, most;
} alive; /* micro-batches of this step that wait for their backward pass */

void stages_passes_begin(void)
{
    alive.now = alive.most = 0;
}

void stages_pass_ran(Scenario *run, int micro, int step, bool backward)
{
    double *numbers;
    alive.now += backward ? -1 : 1;
    stream_entry(
        &run->stream, PASS, SCHEDULE,
        label_of(backward ? BACKWARD_PASS_OF : FORWARD_PASS_OF, pass_of(step), micro, step),
        PASS_NUMBERS, &numbers);
    numbers[CALLS_BEFORE] = (double)calls_so_far();
    numbers[MULTIPLIED] = (double)work_so_far();
    numbers[MORE_ALIVE] = alive.now > alive.most;
    alive.most += alive.now > alive.most;
}
#endif

/* Writes the results of a step's pass as soon as it ends, so that a later failure does not spoil
 * them. */
static void write_pass(void *context, const Stage *stage, int micro, bool backward)
{
    Scenario *run = context;
    const MicroBatch *m = &stage->micro[micro];
    const int step = (int)m->tape->batch.step;
#ifndef BALISE_DOUBLE
    stages_pass_ran(run, micro, step, backward);
#endif
    if (step == STEPS)
        return;
    if (backward && !stage->part.embedding)
        write_of_block(run, INPUT_GRADIENT, INPUT_GRADIENT_OF, stage, micro, m->input->gradient);
    if (!backward) {
        write_input(run, stage, micro);
        if (m->loss)
            write_loss(run, stage, step);
    }
}

static Stage *watched_stage(Scenario *run, const TransformerConfig *config, int micros)
{
    Stage *stage = stage_new(run->model, config, micros);
    stage->watch = (StageWatch){.ran = write_pass, .context = run};
    return stage;
}

Sizes stages_sizes(const Scenario *run)
{
    const Case *c = &run->c;
    return (Sizes){.B = c->B,
                   .S = c->S,
                   .H = c->H,
                   .C = 2,
                   .N = c->blocks,
                   .vocabulary = is_split_by_rows(run, "embedding.weight"),
                   .micros = micros_of(c),
                   .tp = c->tp,
                   .stages = c->pp};
}

/* Writes what a pass has sent, multiplied and held. */
static void write_costs(Scenario *run, int step)
{
    const Sizes sizes = stages_sizes(run);
    traffic_end(run, work_of_stages(step), step < STEPS ? BACKWARD_BUDGET : FORWARD_BUDGET, &sizes);
    work_end(run, work_of_stages(step));
}

static void write_step(Scenario *run, int step)
{
    model_complete_gradients(run->model);
    write_arena(run, WEIGHT_GRADIENT, GRADIENT_OF, step);
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
    write_arena(run, STEP, VALUE_OF, step);
}

/* Runs an evaluation (a forward pass without a backward pass), two steps, and one with NaN. */
static void run_steps(Scenario *run, StagesFunction *pass)
{
    static const int steps[] = {STEPS, 0, 1, DIVERGED};
    write_parameters(run);
    for (int i = 0; i < 4; i++) {
        const int step = steps[i];
        fill_weights(run, step);
        model_clear_gradients(run->model);
        at(run, work_of_stages(step));
        pass(run, step);
        if (step < STEPS)
            write_step(run, step);
    }
}

/* ---- on a rank ----------------------------------------------------------------------------------------------- */

#ifndef BALISE_DOUBLE
static StagesFunction *of_lab;

static void pass_of_rank(Scenario *run, int step)
{
    stages_fill(run, run->stage, step, 0, 1);
    stages_passes_begin();
    traffic_begin(run);
    work_begin(run);
    of_lab(run, step);
    write_costs(run, step);
    if (step == STEPS)
        write_evaluation(run, run->stage);
}

void run_stages(Scenario *run, StagesFunction *pass)
{
    const TransformerConfig config = stages_config(&run->c);
    run->model = model_new(run->pool, run->mesh, run->c.key);
    at(run, label_of(MAKING_OF, THE_MODEL, 0, 0));
    run->stage_free = stage_free;
    run->stage = watched_stage(run, &config, micros_of(&run->c));
    model_finish(run->model);
    of_lab = pass;
    run_steps(run, pass_of_rank);
}

/* ---- in the judge -------------------------------------------------------------------------------------------- */

#else
/* The expected values come from a pipeline with as many stages as blocks. So they include what
 * crosses each boundary that a lab may choose. (Lab 14 has one stage.) The stages run one after the
 * other, each with a mesh of its own. */
static struct {
    Mesh mesh[MAX_BLOCKS];
    Stage *stage[MAX_BLOCKS];
} line;

Range stage_blocks(int blocks, const Mesh *mesh)
{
    return mesh->pp_degree > 1 ? (Range){mesh->pp_rank, mesh->pp_rank + 1} : (Range){0, blocks};
}

static Tensor *handed_over(Stage *to, const Tensor *x, bool input)
{
    Tensor *copy = tape_reals(to->micro[0].tape, x->shape, whole(), reals(x), input);
    if (input)
        to->micro[0].input = copy;
    return copy;
}

static void pass_through_line(Scenario *run, int step)
{
    const int blocks = run->c.blocks;
    for (int i = 0; i < blocks; i++)
        stages_fill(run, line.stage[i], step, 0, 1);
    work_begin(run);
    Tensor *x = stage_embed(line.stage[0], 0), *dy = NULL;
    for (int i = 0; i < blocks; i++)
        x = stage_run(line.stage[i], 0, i == 0 ? x : handed_over(line.stage[i], x, true));
    for (int i = blocks - 1; i >= 0 && step < STEPS; i--) {
        dy = i == blocks - 1 ? NULL : handed_over(line.stage[i], dy, false);
        dy = stage_run_backward(line.stage[i], 0, dy);
    }
    write_costs(run, step);
    for (int i = 0; i < blocks && step == STEPS; i++)
        write_evaluation(run, line.stage[i]);
}

void run_stages(Scenario *run, StagesFunction *pass)
{
    const TransformerConfig config = stages_config(&run->c);
    const int blocks = run->c.blocks;
    run->model = model_new(run->pool, run->mesh, run->c.key);
    for (int i = 0; i < blocks; i++) {
        line.mesh[i] = *run->mesh;
        line.mesh[i].pp_rank = i;
        line.mesh[i].pp_degree = blocks;
        run->model->mesh = &line.mesh[i];
        line.stage[i] = watched_stage(run, &config, 1);
    }
    model_finish(run->model);
    run_steps(run, pass_through_line);
    for (int i = 0; i < blocks; i++)
        stage_free(line.stage[i]);
}
#endif
