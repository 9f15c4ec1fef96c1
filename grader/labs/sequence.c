/* What a rank does in a case of lab 18: passes of blocks, or of the pairs alone, on its
 * positions. */
#include "grader/labs/sequence.h"

#include <math.h>
#include <stdio.h>

#include "autograd/placement.h"
#include "base/language.h"
#include "base/run.h"
#include "grader/labs/groups.h"
#include "grader/labs/work.h"
#include "model/sequence_block.h"

#ifdef BALISE_DOUBLE
#include "backend/reference/arithmetic.h"
#endif

static const double rate = 0.25;

typedef struct Chain {
    Scenario *run;
    const SequenceBlock *block[MAX_BLOCKS];
    int blocks; /* how many there are */
    Tensor *x, *y, *mask;
    int step; /* STEPS: the evaluation */
} Chain;

/* ---- this rank's positions ------------------------------------------------------------------------------------- */

static Range own_positions(const Scenario *run)
{
    const int64_t each = run->c.S / run->mesh->tp_degree, begin = run->mesh->tp_rank * each;
    return (Range){begin, begin + each};
}

/* This rank's positions of a tensor [B,S,H] that every rank draws in full. */
static Tensor *random_positions(Scenario *run, const char *key, int exponent, bool needs_gradient)
{
    const Case *c = &run->c;
    const Range own = own_positions(run);
    const int64_t width = (own.end - own.begin) * c->H;
    const bool is_split = run->mesh->tp_degree > 1;
    Tensor *all = random_input(run, key, -1, SHAPE(c->B, c->S, c->H), needs_gradient);
    Tensor *x = tape_host_tensor(run->tape, REAL, SHAPE(c->B, own.end - own.begin, c->H),
                                 is_split ? shard(1) : whole());
    for (int64_t b = 0; b < c->B; b++)
        for (int64_t i = 0; i < width; i++)
            reals(x)[b * width + i] =
                (real)ldexp(reals(all)[(b * c->S + own.begin) * c->H + i], exponent);
    memset(reals(all), 0, (size_t)tensor_count(all) * sizeof(real)); /* the lab could find it */
    x->needs_gradient = needs_gradient;
    return x;
}

static void write_positions(Scenario *run, Check check, Label label, Tensor *x)
{
    write_shard(run, check, label, x, 1, own_positions(run), run->c.S);
}

/* Ends the case if y does not hold exactly this rank's positions, because the scenario could not
 * continue. */
static void must_be_own_positions(const Scenario *run, const char *function, const Tensor *y)
{
    const Case *c = &run->c;
    const Shape own = SHAPE(c->B, c->S / run->mesh->tp_degree, c->H);
    if (!y)
        misuse("return a tensor", "%s returned NULL", function);
    if (!shape_equal(y->shape, own))
        misuse("each rank keeps its own positions of the sum: reduce_scatter_sequence",
               "%s returned %s, expected %s, the positions of this rank", function, TENSOR_TEXT(y),
               SHAPE_TEXT(own));
    if (run->mesh->tp_degree > 1 && y->placement.kind != UNKNOWN &&
        (y->placement.kind != SHARD || y->placement.dim != 1))
        misplaced("return the sum as a shard of the positions",
                  "%s returned %s; it should be a shard of the positions", function,
                  TENSOR_TEXT(y));
}

static void must_be_all_positions(const Scenario *run, const Tensor *y)
{
    const Shape all = SHAPE(run->c.B, run->c.S, run->c.H);
    if (!shape_equal(y->shape, all))
        misuse("the positions of all ranks come one after the other, along dimension 1",
               "gather_sequence returned %s, expected %s, all positions", TENSOR_TEXT(y),
               SHAPE_TEXT(all));
}

/* ---- passes ---------------------------------------------------------------------------------------------------- */

static void begin_step(Chain *chain, int step)
{
    Scenario *run = chain->run;
    char key[KEY_SIZE];
    chain->step = step;
    begin_pass(run, step);
    snprintf(key, sizeof key, "x, step %d", step);
    chain->x = random_positions(run, key, 0, true);
    snprintf(key, sizeof key, "mask, step %d", step);
    chain->mask = random_mask(run, key);
}

/* How many times a pass gathers and reduce-scatters; a block does so twice. */
static int64_t pairs_of(const Case *c)
{
    return c->kind == SEQUENCE_BLOCKS ? 2 * c->blocks : c->blocks;
}

static void measure_end(const Chain *chain, What what, int index, Budget budget, int64_t pairs)
{
    Scenario *run = chain->run;
    const Case *c = &run->c;
    const Sizes sizes = {.B = c->B, .S = c->S, .H = c->H, .N = pairs, .part = index};
    traffic_end(run, sequence_label(what, index, chain->step), budget, &sizes);
}

/* One of the pairs, around two products that each rank does with its part of the inner width. */
static Tensor *call_pairs(const Chain *chain, int call, Tensor *x)
{
    Scenario *run = chain->run;
    const int gather = CALL_PARTS * call + GATHER_SEQUENCE,
              scatter_sum = CALL_PARTS * call + REDUCE_SCATTER_SEQUENCE;
    at(run, sequence_label(FORWARD_PASS_OF, gather, chain->step));
    traffic_begin(run);
    Tensor *all = gather_sequence(x, run->mesh);
    measure_end(chain, FORWARD_OF, gather, FORWARD_BUDGET, 1);
    must_be_all_positions(run, all);
    write_values(run, FORWARD, sequence_label(OUTPUT_OF, gather, chain->step), all);
    Tensor *term = feed_forward_partial(chain->block[call]->feed_forward, all);
    at(run, sequence_label(FORWARD_PASS_OF, scatter_sum, chain->step));
    traffic_begin(run);
    Tensor *y = reduce_scatter_sequence(term, run->mesh);
    measure_end(chain, FORWARD_OF, scatter_sum, FORWARD_BUDGET, 1);
    must_be_own_positions(run, "reduce_scatter_sequence", y);
    write_positions(run, FORWARD, sequence_label(OUTPUT_OF, scatter_sum, chain->step), y);
    return add(x, y); /* x must not have changed */
}

static Tensor *call_block(const Chain *chain, int call, Tensor *x)
{
    Scenario *run = chain->run;
    at(run, sequence_label(FORWARD_PASS_OF, FIRST_BLOCK + call, chain->step));
    Tensor *y = sequence_block_forward(chain->block[call], x, chain->mask, run->mesh);
    must_be_own_positions(run, "sequence_block_forward", y);
    return y;
}

/* The label of a call's result: a block's output or, for the pairs, the sum of x and their
 * result. */
static Label sum_label(const Chain *chain, int call)
{
    return chain->run->c.kind == SEQUENCE_BLOCKS
               ? sequence_label(OUTPUT_OF, FIRST_BLOCK + call, chain->step)
               : sequence_label(OTHER_READER_OF, CALL_PARTS * call + GATHER_SEQUENCE, chain->step);
}

static void forward(Chain *chain)
{
    Scenario *run = chain->run;
    const bool is_of_blocks = run->c.kind == SEQUENCE_BLOCKS;
    Tensor *x = chain->x, *y[MAX_BLOCKS] = {NULL};
    if (is_of_blocks)
        traffic_begin(run);
    work_begin(run);
    for (int call = 0; call < chain->blocks; call++) {
        const TapeMark mark = tape_mark(run->tape);
        x = y[call] = (is_of_blocks ? call_block : call_pairs)(chain, call, x);
        tape_release_since(run->tape, mark, x);
    }
    if (is_of_blocks)
        measure_end(chain, FORWARD_OF, ALL_POSITIONS, FORWARD_BUDGET, pairs_of(&run->c));
    work_end(run, sequence_label(FORWARD_OF, ALL_POSITIONS, chain->step));
    for (int call = 0; call < chain->blocks; call++)
        write_positions(run, FORWARD, sum_label(chain, call), y[call]);
    chain->y = x;
}

static void backward(const Chain *chain)
{
    Scenario *run = chain->run;
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "dy, step %d", chain->step);
    at(run, sequence_label(BACKWARD_PASS_OF, ALL_POSITIONS, chain->step));
    Tensor *dy = random_positions(run, key, run->c.dy_exponent, false);
    traffic_begin(run);
    work_begin(run);
    tape_backward(run->tape, chain->y, dy);
    measure_end(chain, BACKWARD_OF, ALL_POSITIONS, BACKWARD_BUDGET, pairs_of(&run->c));
    work_end(run, sequence_label(BACKWARD_OF, ALL_POSITIONS, chain->step));
    model_complete_gradients(run->model);
    write_positions(run, INPUT_GRADIENT,
                    sequence_label(INPUT_GRADIENT_OF, ALL_POSITIONS, chain->step),
                    chain->x->gradient);
    write_split_gradients(run, WEIGHT_GRADIENT, chain->step);
}

/* ---- the norms ------------------------------------------------------------------------------------------------- */

/* Copies the gradients of all whole parameters into `all` or, with `back`, from `all` into the
 * arena. Returns their count; with NULL for `all`, copies nothing. */
static int64_t copy_norms(const Scenario *run, Tensor *all, bool back)
{
    int64_t at = 0;
    for (const Parameter *p = run->model->parameters; p; p = p->next) {
        const int64_t count = tensor_count(p->value);
        if (p->placement.kind == SHARD)
            continue;
        if (all && back)
            kernel_vector_copy(count, reals(all) + at, reals(p->value->gradient));
        else if (all)
            kernel_vector_copy(count, reals(p->value->gradient), reals(all) + at);
        at += count;
    }
    return at;
}

/* What rank k of a tp group contributes to a sum of its own. In a case with drawn sizes, these are zeros
 * on the last rank; in a delayed one, a NaN and an infinity on each of the others. */
static Tensor *terms_of(const Chain *chain, int k, int64_t count)
{
    Scenario *run = chain->run;
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "terms, step %d", chain->step);
    Tensor *terms = random_input(run, key, k, SHAPE(count), false);
    if (run->c.dy_exponent && k > 0 && k == run->c.tp - 1)
        memset(reals(terms), 0, (size_t)count * sizeof(real));
    else if (run->c.delay) { /* what diverges on one rank does so on all */
        reals(terms)[k] = (real)NAN;
        reals(terms)[run->c.tp + k] = (real)INFINITY;
    }
    return terms;
}

#ifdef BALISE_DOUBLE
static Tensor *terms_to_sum(const Chain *chain, int64_t count)
{
    const Order order = reference_order(chain->run->c.tp);
    int64_t k = order.first;
    Tensor *sum = terms_of(chain, (int)k, count);
    for (int64_t n = 1; n < chain->run->c.tp; n++) {
        k = order_next(order, k);
        sum = add(sum, terms_of(chain, (int)k, count));
    }
    return sum;
}

Summand sequence_summand(Scenario *run, const Entry *want, int of, int on)
{
    const Chain chain = {.run = run, .step = want->label.step};
    const Members group = tp_group(&run->c, on);
    if (want->label.of != A_SEQUENCE || want->label.index != NORM_GRADIENTS)
        return (Summand){0};
    const bool added = tp_group(&run->c, of).first == group.first;
    Tensor *terms = terms_of(&chain, added ? place_in(group, of) : 0, want->count);
    if (!added)
        kernel_vector_fill(want->count, 0, reals(terms));
    return (Summand){.numbers = terms, .added = added, .weight = 1};
}
#else
static Tensor *terms_to_sum(const Chain *chain, int64_t count)
{
    return terms_of(chain, chain->run->mesh->tp_rank, count);
}
#endif

/* Sums the norms' gradients, and terms that it returns. */
static Tensor *sum_norms(const Chain *chain)
{
    Scenario *run = chain->run;
    const int64_t count = copy_norms(run, NULL, false);
    Tensor *all = tape_tensor(run->tape, REAL, SHAPE(count), (Placement){UNKNOWN, 0}),
           *terms = terms_to_sum(chain, count);
    copy_norms(run, all, false);
    at(run, sequence_label(ITSELF, NORM_GRADIENTS, chain->step));
    const Sizes sizes = {.N = 2 * count, .part = NORM_GRADIENTS};
    traffic_begin(run);
    unsigned partial;
    sum_norm_gradients(all, run->mesh);
    terms_begin(terms, &partial, OVER_TP);
    sum_norm_gradients(terms, run->mesh);
    terms_end(terms, sum_norm_gradients, "sum_norm_gradients", _("its argument"));
    traffic_end(run, sequence_label(BACKWARD_OF, NORM_GRADIENTS, chain->step), BACKWARD_BUDGET,
                &sizes);
    copy_norms(run, ready(all), true);
    return terms;
}

/* ---- the scenario ---------------------------------------------------------------------------------------------- */

static void one_step(Chain *chain, int step)
{
    Scenario *run = chain->run;
    begin_step(chain, step);
    forward(chain);
    backward(chain);
    if (run->c.kind == SEQUENCE_PAIRS)
        return;
    Tensor *terms = sum_norms(chain);
    write_values(run, STEP, sequence_label(OUTPUT_OF, NORM_GRADIENTS, step), ready(terms));
    kernel_sgd_step(run->model->arena_size, model_weights(run->model), model_gradients(run->model),
                    rate, 0);
    write_arena(run, STEP, VALUE_OF, step);
}

/* The chain with all of its blocks, in a model of their own. */
static Chain chain_new(Scenario *run)
{
    const Case *c = &run->c;
    Chain chain = {.run = run, .blocks = c->blocks};
    char name[KEY_SIZE];
    run->model = model_new(run->pool, run->mesh, c->key);
    for (int i = 0; i < chain.blocks; i++) {
        snprintf(name, sizeof name, "blocks.%d", i);
        chain.block[i] = sequence_block_new(within(run->model->builder, name), c->H, c->A, c->F,
                                            (SequenceDropout){.residual = c->p, .inner = c->p / 2});
    }
    model_finish(run->model);
    model_use_tape(run->model, run->tape);
    return chain;
}

void run_sequence(Scenario *run)
{
    Chain chain = chain_new(run);
    for (int step = 0; step < STEPS; step++) {
        fill_weights(run, step);
        if (step > 0) {
            begin_step(&chain, STEPS);
            forward(&chain);
        }
        one_step(&chain, step);
    }
    fill_weights(run, DIVERGED);
    one_step(&chain, DIVERGED);
}
