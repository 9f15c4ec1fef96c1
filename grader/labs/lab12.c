/* Lab 12, Stages: which blocks a stage runs, and a batch that goes through all stages, forward and backward. */
#include "grader/labs/lab.h"
#include "model/stage.h"

static const double rate = 0.25;

static BertConfig config_of(const Case *c)
{
    return (BertConfig){.vocabulary = c->V,
                        .hidden = c->H,
                        .layers = c->blocks,
                        .heads = c->A,
                        .classes = 2,
                        .dropout = c->p};
}

/* The batch of a step, or of the evaluation; every rank has all of it. */
static void fill_stage(Scenario *run, Stage *stage, int step)
{
    const Case *c = &run->c;
    const bool training = step < STEPS;
    TapeBatch batch = {c->key, step, c->B, run->samples, training && c->training};
    Tape *tape = stage_begin(stage, 0, batch);
    tape_record(tape, training);
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "step %d", step);
    Tensor *ids = tape_host_tensor(tape, INT32, SHAPE(c->B, c->S), whole());
    Tensor *mask = tape_host_tensor(tape, INT32, SHAPE(c->B, c->S), whole());
    Tensor *labels = tape_host_tensor(tape, INT32, SHAPE(c->B), whole());
    int64_t draws = 0;
    for (int64_t b = 0; b < c->B; b++) {
        int64_t tokens = 1 + random_below(run, key, draws++, c->S);
        ints(labels)[b] = (int32_t)random_below(run, key, draws++, 2);
        for (int64_t s = 0; s < c->S; s++) {
            ints(ids)[b * c->S + s] = (int32_t)random_below(run, key, draws++, c->V);
            ints(mask)[b * c->S + s] = s < tokens;
        }
    }
    stage_fill(stage, 0, ids, mask, labels, c->B);
}

static Thing pass_of(int step)
{
    return step < STEPS ? THE_MODEL : EVALUATION;
}

static Label work_of(int step)
{
    return label_of(step < STEPS ? ITSELF : FORWARD_OF, pass_of(step), 0, step);
}

/* What a stage was given, which the stage before has computed; on the last stage the loss. */
static void write_forward(Scenario *run, const Stage *stage, int step)
{
    const MicroBatch *m = &stage->micro[0];
    if (!stage->part.embedding && m->input)
        write_values(run, FORWARD, label_of(INPUT_OF, A_BLOCK, (int)stage->part.blocks.begin, step),
                     m->input);
    if (m->loss)
        write_values(run, FORWARD, label_of(LOSS_OF, pass_of(step), 0, step), m->loss);
}

/* In a step as soon as it is there: what goes wrong later says nothing against it. */
static void write_pass(void *context, const Stage *stage, int micro, bool backward)
{
    Scenario *run = context;
    const MicroBatch *m = &stage->micro[micro];
    const int step = (int)m->tape->batch.step, first = (int)stage->part.blocks.begin;
    if (step < STEPS && !backward)
        write_forward(run, stage, step);
    else if (step < STEPS && !stage->part.embedding)
        write_values(run, INPUT_GRADIENT, label_of(INPUT_GRADIENT_OF, A_BLOCK, first, step),
                     m->input->gradient);
}

static Stage *watched_stage(Scenario *run, const BertConfig *config)
{
    Stage *stage = stage_new(run->model, config, 1);
    stage->watch = (StageWatch){.ran = write_pass, .context = run};
    return stage;
}

/* What a pass has sent, multiplied and held. */
static void write_costs(Scenario *run, int step)
{
    const Case *c = &run->c;
    const Sizes sizes = {.B = c->B, .S = c->S, .H = c->H, .C = 2, .N = c->blocks, .part = c->tp};
    traffic_end(run, work_of(step), step < STEPS ? BACKWARD_BUDGET : FORWARD_BUDGET, &sizes);
    work_end(run, work_of(step));
}

static void write_step(Scenario *run, int step)
{
    model_complete_gradients(run->model);
    write_arena(run, WEIGHT_GRADIENT, GRADIENT_OF, step);
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
    write_arena(run, STEP, VALUE_OF, step);
}

/* An evaluation, which is a forward pass that no backward pass follows; then two steps. */
static void run_steps(Scenario *run, void (*pass)(Scenario *run, int step))
{
    static const int steps[] = {STEPS, 0, 1};
    write_parameters(run);
    for (int i = 0; i < 3; i++) {
        const int step = steps[i];
        fill_weights(run, step);
        model_clear_gradients(run->model);
        at(run, work_of(step));
        pass(run, step);
        if (step < STEPS)
            write_step(run, step);
    }
}

#ifndef BALISE_DOUBLE
static void pass_of_rank(Scenario *run, int step)
{
    fill_stage(run, run->stage, step);
    traffic_begin(run);
    work_begin(run);
    if (step < STEPS)
        pipeline_step(run->stage, run->mesh);
    else
        forward_step(run->stage, 0, run->mesh);
    write_costs(run, step);
    if (step == STEPS)
        write_forward(run, run->stage, step);
}

void scenario_12(Scenario *run)
{
    const BertConfig config = config_of(&run->c);
    run->model = model_new(run->pool, run->mesh, run->c.key);
    at(run, label_of(MAKING_OF, THE_MODEL, 0, 0));
    run->stage_free = stage_free;
    run->stage = watched_stage(run, &config);
    model_finish(run->model);
    run_steps(run, pass_of_rank);
}
#else
/* What must come out is what a pipeline of as many stages as blocks gives: of each boundary that a lab may choose, what
 * crosses it. Its stages run one after the other, each with a mesh of its own. */
static struct {
    Mesh mesh[MAX_BLOCKS];
    Stage *stage[MAX_BLOCKS];
} line;

Range stage_blocks(int blocks, const Mesh *mesh)
{
    return (Range){mesh->pp_rank, mesh->pp_rank + 1};
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
        fill_stage(run, line.stage[i], step);
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
        write_forward(run, line.stage[i], step);
}

void scenario_12(Scenario *run)
{
    const BertConfig config = config_of(&run->c);
    const int blocks = run->c.blocks;
    run->model = model_new(run->pool, run->mesh, run->c.key);
    for (int i = 0; i < blocks; i++) {
        line.mesh[i] = *run->mesh;
        line.mesh[i].pp_rank = i;
        line.mesh[i].pp_degree = blocks;
        run->model->mesh = &line.mesh[i];
        line.stage[i] = watched_stage(run, &config);
    }
    model_finish(run->model);
    run_steps(run, pass_through_line);
    for (int i = 0; i < blocks; i++)
        stage_free(line.stage[i]);
}

/* ---- its record ------------------------------------------------------------------------------------------ */

/* N numbers go from each stage to the next, on each of the tp pipelines. What the ranks of a stage exchange in its blocks is that of
 * labs 3 to 7: `sums` all-reduces a block and those of the embedding and the classifier. */
static Allowance sent_12(int64_t n, const Sizes *z, int64_t times, int64_t sums, int64_t ends)
{
    const int64_t tp = z->part, N = z->B * z->S * z->H;
    const int64_t within = sums * z->N * sent_by_all_reduce(tp, N) + ends;
    return (Allowance){times * (n - 1) * N + within / tp, tp > 1 ? sums * z->N + 3 : 0};
}

static Allowance sent_forward_12(int64_t n, const Sizes *z)
{
    return sent_12(n, z, 1, 2,
                   sent_by_all_reduce(z->part, z->B * z->S * z->H) +
                       sent_by_all_reduce(z->part, z->B * z->C));
}

static Allowance sent_in_step_12(int64_t n, const Sizes *z)
{
    return sent_12(n, z, 2, 4,
                   sent_by_all_reduce(z->part, z->B * z->S * z->H) +
                       sent_by_all_reduce(z->part, z->B * (z->C + z->H)));
}

/* The layouts have no replicas: what does not split a layer is a stage. */
static Case stages(Case c, int world, int tp)
{
    c.world = world;
    c.tp = tp;
    c.pp = world / tp;
    c.more_B = c.idle = 0;
    c.integers = c.exponent = c.dy_exponent = 0;
    return c;
}

/* Five blocks divide evenly over one stage only. */
static Case usual_12(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = stages(usual_case(lab, d, tp), world, tp);
    c.blocks = 5;
    c.H = 16;
    c.A = 4;
    c.V = draw(d, 12, 29);
    return c;
}

static int cases_12(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    cases[0] = usual_12(lab, d, world, tp);
    Case c = usual_12(lab, d, world, tp);
    c.B = draw(d, 3, 4);
    c.S = 5 + 2 * draw(d, 0, 1);
    c.A = 2 * tp;
    c.H = c.A * draw(d, 3, 5);
    c.blocks = c.pp * (c.pp < 3 ? draw(d, 1, 2) : 1);
    c.training = 0;
    c.delay = 1;
    cases[1] = c;
    return 2;
}

static const char *misfit_12(const Case *c)
{
    return c->H % c->A || c->A % c->tp ? _("tp must divide A, and A must divide H")
           : c->H % c->tp              ? _("tp must divide H")
           : c->blocks < c->pp         ? _("each stage needs a block")
                                       : NULL;
}

static double bytes_of_step(int rank, const Entry *entry, const double *numbers)
{
    const Label step = work_of(0);
    return entry->kind == TRAFFIC && label_equal(&entry->label, &step) ? 4 * numbers[0] : 0;
}

Lab lab_12 = {
    LAB_FILES_12,
    .title = N_("Stages of a pipeline"),
    .points = {[FORWARD] = 2,
               [INPUT_GRADIENT] = 1,
               [WEIGHT_GRADIENT] = 2,
               [STEP] = 1,
               [SHARDING] = 2,
               [ARITHMETIC] = 1,
               [COMMUNICATION] = 1},
    .layouts = "1x1 2x1 3x1 4x1 4x2",
    .has_replicas = true,
    .over_stages = true,
    .sizes = SIZES_BSH | SIZE_A | SIZE_P | SIZE_BLOCKS,
    .starts_working = true,
    .cuts = {{"embedding.weight", CUT_0 | CUT_1},
             {"attention.query", CUT_0},
             {"attention.key", CUT_0},
             {"attention.value", CUT_0},
             {"attention.output", CUT_1},
             {"up.weight", CUT_0},
             {"down.weight", CUT_1}},
    .predict = {.question =
                    N_("Three stages run a model of five blocks with H = 24 on two texts of 16 "
                       "tokens. How many bytes do the ranks send in all, forward and backward?"),
                .unit = N_("bytes"),
                .at = {.world = 3, .tp = 1, .pp = 3, .B = 2, .S = 16, .H = 24, .blocks = 5},
                .count = bytes_of_step},
    .kinds = {{.scenario = scenario_12}},
    .forward = sent_forward_12,
    .backward = sent_in_step_12,
    .usual = usual_12,
    .cases = cases_12,
    .misfit = misfit_12,
};
#endif
