/* Lab 21, Language model: the embedding, the tied head and the loss, with the vocabulary split over
 * the ranks. */
#include "grader/labs/vocabulary.h"

#include <stdio.h>

static const double rate = 0.25;

/* The tables of one of the two models of a case; both are the same table if the head is tied. */
typedef struct Tables {
    Tensor *embedding, *head;
    int V;
} Tables;

/* What passes between the functions in a step. */
typedef struct Pass {
    Tensor *ids, *targets, *y; /* y: the embedding's result */
    Tensor *u, *x, *scores;    /* x [B,S,H] goes into the head; scores: the student's logits */
    Tensor *given;             /* the logits that go into the loss */
    Tensor *loss;
} Pass;

static Label labelled(What what, int function, int which, int step)
{
    Label label = label_of(what, OF_VOCABULARY, function, step);
    label.detail = which;
    return label;
}

static const char *key_of(char key[KEY_SIZE], const char *what, int which, int step)
{
    snprintf(key, KEY_SIZE, "%.16s of the %s model, step %d", what, layer_names[which], step + 1);
    return key;
}

static Sizes sizes_of(const Case *c, int function)
{
    return (Sizes){.B = c->B, .S = c->S, .H = c->H, .part = function};
}

static void begin(Scenario *run, Label at_what)
{
    at(run, at_what);
    traffic_begin(run);
    work_begin(run);
}

static void end(Scenario *run, Label label, Budget budget)
{
    const Sizes sizes = sizes_of(&run->c, label.index);
    traffic_end(run, label, budget, &sizes);
    work_end(run, label);
}

static void must_be(const Scenario *run, const Tensor *y, int function, Shape shape)
{
    if (!y)
        misuse("return a tensor", "%s returned NULL", vocabulary_functions[function]);
    if (!shape_equal(y->shape, shape))
        misuse("balise.h says what it returns", "%s returned %s, and not %s",
               vocabulary_functions[function], TENSOR_TEXT(y), SHAPE_TEXT(shape));
    must_be_whole(run, vocabulary_functions[function], y);
}

/* ---- a step -------------------------------------------------------------------------------------------------- */

static void forward(Scenario *run, const Tables *t, Pass *p, int which, int step)
{
    const Case *c = &run->c;
    char key[KEY_SIZE];
    const Shape hidden = SHAPE(c->B, c->S, c->H);
    p->ids = random_ids(run, key_of(key, "ids", which, step), t->V);
    p->targets = random_targets(run, key_of(key, "targets", which, step), t->V);
    begin(run, labelled(FORWARD_PASS_OF, EMBEDDING, which, step));
    p->y = vocabulary_embedding(t->embedding, p->ids, run->mesh);
    end(run, labelled(FORWARD_OF, EMBEDDING, which, step), FORWARD_BUDGET);
    must_be(run, p->y, EMBEDDING, hidden);
    p->u = random_input(run, key_of(key, "x", which, step), -1, hidden, true);
    p->x = c->kind == TIED ? add(p->y, p->u) : gelu(p->u);
    begin(run, labelled(FORWARD_PASS_OF, LOGITS, which, step));
    p->scores = vocabulary_logits(t->head, p->x, run->mesh);
    end(run, labelled(FORWARD_OF, LOGITS, which, step), FORWARD_BUDGET);
    p->given = p->scores;
    if (c->kind == EACH_ALONE)
        p->given =
            random_logits(run, key_of(key, "logits", which, step), which, SHAPE(c->B, c->S, t->V));
    begin(run, labelled(FORWARD_PASS_OF, LOSS, which, step));
    p->loss = vocabulary_parallel_cross_entropy(p->given, p->targets, run->mesh);
    end(run, labelled(FORWARD_OF, LOSS, which, step), FORWARD_BUDGET);
    must_be(run, p->loss, LOSS, SHAPE(1));
}

static void write_forward(Scenario *run, const Tables *t, const Pass *p, int which, int step)
{
    write_values(run, FORWARD, labelled(INPUT_OF, EMBEDDING, which, step), p->ids);
    write_values(run, FORWARD, labelled(OUTPUT_OF, EMBEDDING, which, step), p->y);
    write_columns(run, FORWARD, labelled(OUTPUT_OF, LOGITS, which, step), p->scores, t->V);
    if (run->c.kind == EACH_ALONE) {
        write_values(run, FORWARD, labelled(INPUT_OF, LOGITS, which, step), p->x);
        if (run->c.exponent != LARGE_LOGITS) /* large ones differ between replicas */
            write_columns(run, FORWARD, labelled(INPUT_OF, LOSS, which, step), p->given, t->V);
    }
    write_values(run, FORWARD, labelled(OUTPUT_OF, LOSS, which, step), p->loss);
}

static void backward_of(Scenario *run, int function, int which, int step, Tensor *y, Shape whole_y)
{
    static const char *const names[] = {"dy", "dscores", "dloss", "dloss"};
    char key[KEY_SIZE];
    Tensor *dy = random_gradient(run, key_of(key, names[function], which, step), y, whole_y);
    begin(run, labelled(BACKWARD_PASS_OF, function, which, step));
    tape_backward(run->tape, y, dy);
    end(run, labelled(BACKWARD_OF, function, which, step), BACKWARD_BUDGET);
}

/* In a tied model, one backward pass from the loss; otherwise, one for each function. */
static void backward(Scenario *run, const Tables *t, const Pass *p, int which, int step)
{
    const Case *c = &run->c;
    if (c->kind == TIED) {
        backward_of(run, ALL_FUNCTIONS, which, step, p->loss, SHAPE(1));
    } else {
        backward_of(run, EMBEDDING, which, step, p->y, SHAPE(c->B, c->S, c->H));
        backward_of(run, LOGITS, which, step, p->scores, SHAPE(c->B, c->S, t->V));
        backward_of(run, LOSS, which, step, p->loss, SHAPE(1));
        write_columns(run, INPUT_GRADIENT, labelled(INPUT_GRADIENT_OF, LOSS, which, step),
                      p->given->gradient, t->V);
    }
    write_values(run, INPUT_GRADIENT, labelled(INPUT_GRADIENT_OF, LOGITS, which, step),
                 p->u->gradient);
}

static void one_step(Scenario *run, const Tables *tables, int step)
{
    Pass pass[LAYERS];
    fill_weights(run, step);
    model_use_tape(run->model, run->tape);
    tape_reset(run->tape, (TapeBatch){.seed = run->c.key,
                                      .step = step,
                                      .count = run->c.B,
                                      .samples = run->samples,
                                      .training = true});
    model_clear_gradients(run->model);
    for (int i = 0; i < LAYERS; i++)
        forward(run, &tables[i], &pass[i], i, step);
    for (int i = 0; i < LAYERS; i++)
        write_forward(run, &tables[i], &pass[i], i, step);
    for (int i = 0; i < LAYERS; i++) {
        const int which = run->c.reverse ? LAYERS - 1 - i : i;
        backward(run, &tables[which], &pass[which], which, step);
    }
    model_complete_gradients(run->model);
    write_arena(run, WEIGHT_GRADIENT, GRADIENT_OF, step);
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
    write_arena(run, STEP, VALUE_OF, step);
}

static Tensor *table_new(Builder *b, int V, int H)
{
    Tensor *table = parameter(for_embedding(b), "weight", SHAPE(V, H), shard(0));
    table->parameter->may_be_uneven = true;
    return table;
}

void scenario_21(Scenario *run)
{
    const Case *c = &run->c;
    Tables tables[LAYERS];
    run->model = model_new(run->pool, run->mesh, c->key);
    for (int i = 0; i < LAYERS; i++) {
        Builder *b = within(run->model->builder, layer_names[i]);
        tables[i].V = table_rows_of(c, i);
        tables[i].head = tables[i].embedding = table_new(b, tables[i].V, c->H);
        if (c->kind == EACH_ALONE)
            tables[i].head = table_new(within(b, "head"), tables[i].V, c->H);
    }
    model_finish(run->model);
    write_parameters(run);
    for (int step = 0; step < STEPS; step++)
        one_step(run, tables, step);
    one_step(run, tables, DIVERGED);
}

#ifdef BALISE_DOUBLE
/* g sums the rows that were looked up; the loss needs three numbers for each position. */
static Allowance sent_forward_21(int64_t n, const Sizes *z)
{
    const int64_t rows = z->B * z->S;
    return z->part == EMBEDDING ? (Allowance){sent_by_all_reduce(n, rows * z->H), 1}
           : z->part == LOSS    ? (Allowance){sent_by_all_reduce(n, 3 * rows), 3}
                                : (Allowance){0, 0};
}

/* f sums the gradient of the head's input. */
static Allowance sent_backward_21(int64_t n, const Sizes *z)
{
    const bool has_head = z->part == LOGITS || z->part == ALL_FUNCTIONS;
    return has_head ? (Allowance){sent_by_all_reduce(n, z->B * z->S * z->H), 1} : (Allowance){0, 0};
}

/* Room for a rank's columns of the logits twice in each pass: for a copy, whose memory the lab may
 * keep. On three ranks or more, whole rows need more. */
static double memory_21(const Case *c, const Label *pass)
{
    const double rows = (double)c->B * c->S, hidden = rows * c->H,
                 columns = (double)chunk(table_rows_of(c, pass->detail), 0, c->tp).end,
                 forward_pass = 256 + 24 * rows + 2 * rows * columns;
    return pass->what == BACKWARD_OF ? forward_pass + 8 * hidden + columns * ((double)c->H + rows)
           : pass->index == LOSS     ? forward_pass
                                     : forward_pass + 8 * hidden;
}

static Case case_21(const Lab *lab, Draw *d, int world, int tp, int kind, bool drawn_sizes)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.more_B = c.idle = 0;
    c.p = 0;
    c.H = 12;
    c.S = 9; /* with B = 2, seven targets: not a multiple of the number of ranks or samples */
    c.V = tp * 150; /* logits take most of the memory of the loss */
    if (!drawn_sizes)
        return c;
    c = other_sizes(c, d);
    c.H = 9 + 2 * draw(d, 0, 3);
    c.V = tp * draw(d, 120, 160) + (tp > 1); /* parts of different sizes */
    c.exponent = LARGE_LOGITS;
    c.delay = 1;
    c.apart = world > tp && tp > 1;
    return c;
}

static Case usual_21(const Lab *lab, Draw *d, int world, int tp)
{
    return case_21(lab, d, world, tp, EACH_ALONE, false);
}

static int cases_21(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    for (int kind = EACH_ALONE; kind <= TIED; kind++)
        for (int drawn_sizes = 0; drawn_sizes <= 1; drawn_sizes++)
            cases[count++] = case_21(lab, d, world, tp, kind, drawn_sizes);
    if (world == 4) { /* one token; with tp = 4, the ranks hold 3, 3, 3 and 0 rows of the table */
        Case c = case_21(lab, d, world, tp, TIED, false);
        c.B = c.S = 1;
        c.V = 9;
        cases[count++] = c;
    }
    return count;
}

static double bytes_of_loss(int rank, const Entry *entry, const double *numbers)
{
    const Label passes[] = {labelled(FORWARD_OF, LOSS, 0, 0), labelled(BACKWARD_OF, LOSS, 0, 0)};
    const bool counts = entry->kind == TRAFFIC && (label_equal(&entry->label, &passes[0]) ||
                                                   label_equal(&entry->label, &passes[1]));
    return counts ? 4 * numbers[0] : 0;
}

Lab lab_21 = {
    LAB_FILES_21,
    .title = N_("Language model"),
    .points = {[FORWARD] = 3,
               [INPUT_GRADIENT] = 2,
               [WEIGHT_GRADIENT] = 1,
               [STEP] = 1,
               [ARITHMETIC] = 1,
               [COMMUNICATION] = 2},
    .layouts = "2x2 4x2 6x3 4x4 1x1",
    .has_replicas = true,
    .takes_maxima = true,
    .sizes = SIZES_BSH | SIZE_V,
    .cuts = {{"weight", CUT_0}},
    .predict = {.question = N_("Four ranks compute the loss of 64 tokens (B·S), with V = 1,000 and "
                               "H = 24. How many bytes do the ranks send in all, forward and "
                               "backward?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .B = 4, .S = 16, .H = 24, .V = 1000},
                .count = bytes_of_loss},
    .examine = {.reasons = vocabulary_reasons, .ending = vocabulary_ending},
    .kinds = {[EACH_ALONE] = {.scenario = scenario_21}, [TIED] = {.scenario = scenario_21}},
    .forward = sent_forward_21,
    .backward = sent_backward_21,
    .memory = memory_21,
    .beyond_memory =
        N_("rank %d allocated %.0f numbers where %.0f suffice: it has whole rows of logits or "
           "the whole table there, or keeps more than this pass needs\n%s (%s)"),
    .usual = usual_21,
    .cases = cases_21,
    .misfit = all_sizes_fit,
};
#endif
