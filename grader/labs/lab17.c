/* Lab 17, Sharded optimiser: gradients reduced by parts, squares for clipping, steps on parts. */
#include "grader/labs/sharded.h"

#ifndef BALISE_DOUBLE
#include "autograd/placement.h"
#include "base/language.h"
#include "optim/optim.h"

/* How optimizer_part cuts the weights of the case, and counts that no case has. */
static void write_parts(Scenario *run)
{
    for (int cut = 0; cut < SHARDED_CUTS; cut++) {
        const int n = sharded_parts(&run->c, cut);
        const int64_t count = cut == 0 ? sharded_weights(&run->c) : sharded_counts[cut];
        double *numbers;
        stream_entry(&run->stream, VALUES, ARITHMETIC, sharded_cut_label(cut), 2 * n, &numbers)
            ->shape = SHAPE(2 * n);
        for (int k = 0; k < n; k++) {
            const Range r = optimizer_part(count, k, n);
            numbers[2 * k] = (double)r.begin;
            numbers[2 * k + 1] = (double)r.end;
        }
    }
}

static void begin_call(Scenario *run, int call, int which, int step)
{
    at(run, sharded_label(CALL_OF, call, which, step));
    traffic_begin(run);
    work_begin(run);
}

static void run_reduce(Scenario *run, Range own, int which, int step)
{
    Tensor *gradients = sharded_gradient(run, group_rank(run->mesh->world), which, step);
    begin_call(run, SHARDED_REDUCE, which, step);
    unsigned partial;
    terms_begin(gradients, &partial, OVER_DP);
    reduce_scatter_gradients(gradients, run->mesh);
    terms_end(gradients, reduce_scatter_gradients, "reduce_scatter_gradients", _("its argument"));
    sharded_write_call(run, SHARDED_REDUCE, which, step);
    double *numbers;
    Entry *entry = stream_entry(&run->stream, VALUES, GRADIENT,
                                sharded_label(VALUE_OF, SHARDED_REDUCE, which, step),
                                own.end - own.begin, &numbers);
    entry->shape = gradients->shape;
    entry->placement_kind = SHARD;
    entry->begin = own.begin;
    entry->end = own.end;
    gradients->summing = NULL; /* the recorder reports what was not waited for */
    ready(gradients);
    backend_wait();
    for (int64_t i = own.begin; i < own.end; i++)
        numbers[i - own.begin] = (double)reals(gradients)[i];
}

/* A number that a sum over the replicas changes. */
static double beside_squares(int rank, int i)
{
    return (double)(1 + rank) * (1 + i);
}

static void run_squares(Scenario *run, int which, int step)
{
    enum { SPLIT_AT = 1, WHOLE_AT = 3, ROOM = 5 };
    const int rank = group_rank(run->mesh->world);
    double room[ROOM], changed = 0; /* the numbers beside the two arguments must not change */
    for (int i = 0; i < ROOM; i++)
        room[i] = beside_squares(rank, i);
    room[SPLIT_AT] = sharded_squares(run, rank, which, step, 0);
    room[WHOLE_AT] = sharded_squares(run, rank, which, step, 1);
    begin_call(run, SHARDED_SQUARES, which, step);
    squares_over_parts(&room[SPLIT_AT], &room[WHOLE_AT], run->mesh);
    sharded_write_call(run, SHARDED_SQUARES, which, step);
    for (int i = 0; i < ROOM; i += 2)
        changed += room[i] != beside_squares(rank, i);
    sharded_write_squares(run, which, step, (double[]){room[SPLIT_AT], room[WHOLE_AT], changed});
}

/* The right mean in this replica's part; elsewhere its own gradients, as in training. */
static Tensor *gradients_of_step(Scenario *run, Range own, int which, int step)
{
    const int rank = group_rank(run->mesh->world);
    Tensor *gradients = sharded_gradient(run, rank, which, step),
           *mean = sharded_mean(run, rank, which, step);
    memcpy(reals(gradients) + own.begin, reals(mean) + own.begin,
           (size_t)(own.end - own.begin) * sizeof(real));
    return gradients;
}

static void run_training(Scenario *run, Range own, int which)
{
    const OptimizerConfig config = {.kind = run->c.kind == SHARDED_SGD ? SGD : ADAMW,
                                    .weight_decay = SHARDED_DECAY,
                                    .beta1 = SHARDED_BETA1,
                                    .beta2 = SHARDED_BETA2,
                                    .epsilon = SHARDED_EPSILON};
    Optimizer *optimizer = optimizer_of_part(run->pool, own, &config);
    Tensor *weights = sharded_first_weights(run, group_rank(run->mesh->world), which);
    for (int step = 0; step < SHARDED_STEPS; step++) {
        run_reduce(run, own, which, step);
        if (which == 0)
            run_squares(run, which, step);
        Tensor *gradients = gradients_of_step(run, own, which, step);
        optimizer_begin(optimizer, sharded_rate(step));
        begin_call(run, SHARDED_STEP, which, step);
        sharded_step(optimizer, weights, gradients, run->mesh);
        sharded_write_call(run, SHARDED_STEP, which, step);
        optimizer_end(optimizer);
        write_values(run, STEP, sharded_label(VALUE_OF, SHARDED_STEP, which, step), weights);
    }
    optimizer_free(optimizer);
}

void scenario_17(Scenario *run)
{
    write_parts(run);
    const Range own = own_optimizer_part(sharded_weights(&run->c), run->mesh);
    for (int which = 0; which < SHARDED_RUNS; which++)
        run_training(run, own, which);
}
#else
#include "base/problem.h"

/* ---- its record ------------------------------------------------------------------------------------------------- */

/* z->part: which function. */
static Allowance sent_17(int64_t n, const Sizes *z)
{
    enum { NUMBERS_OF_SQUARES = 4 }; /* a double counts as two */
    if (z->part == SHARDED_SQUARES)
        return (Allowance){sent_by_all_reduce(n, NUMBERS_OF_SQUARES), 2};
    return (Allowance){sent_by_all_gather(n, z->N), (n + 3) / 4}; /* or a call for each part */
}

/* Room for a part and for a padded copy of the gradients or the weights, but not for the gradients
 * of several replicas. */
static double memory_17(const Case *c, const Label *pass)
{
    const double weights = (double)sharded_weights(c), dp = replicas_of(c);
    return 64 + weights + weights / dp;
}

static const char *suffices_17(const Case *c, const Label *pass)
{
    return pass->index == SHARDED_REDUCE
               ? _("a reduce-scatter, which brings each part to one replica only, sends half of "
                   "what an all-reduce sends")
           : pass->index == SHARDED_SQUARES
               ? _("two sums over the replicas, mesh->dp, suffice")
               : _("an all-gather, in which each replica contributes its own part only, suffices");
}

/* Is this the slice of a lab that takes the rank in the world for the replica? */
static bool refusal_17(const Case *c, int rank, const Problem *problem, char *line, size_t size)
{
    const int dp = replicas_of(c);
    const int64_t count = sharded_weights(c);
    char wrong[200];
    snprintf(wrong, sizeof wrong,
             _("slice: begin %lld and end %lld, but 0 <= begin <= end <= %lld must hold"),
             (long long)(count * rank / dp), (long long)(count * (rank + 1) / dp),
             (long long)count);
    snprintf(line, size,
             _("rank %d uses its rank in the world as the number of its part: its part is "
               "mesh->dp_rank = %d of %d"),
             rank, replica_of_rank(c, rank), dp);
    return !strcmp(problem->what, wrong);
}

static Summand summand_17(Scenario *run, const Entry *want, int of, int on)
{
    const Label l = want->label;
    if (want->check != GRADIENT)
        return (Summand){0};
    return (Summand){sharded_gradient(run, of, l.detail, l.step),
                     first_with_pieces(&run->c, of) == first_with_pieces(&run->c, on),
                     1.0 / replicas_of(&run->c)};
}

static Case case_17(const Lab *lab, Draw *d, int world, int tp, int kind)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.B = 1;
    c.S = 5;
    c.H = 97; /* the parts are not equal */
    c.more_B = c.idle = 0;
    return c;
}

static Case usual_17(const Lab *lab, Draw *d, int world, int tp)
{
    return case_17(lab, d, world, tp, SHARDED_ADAMW);
}

static int cases_17(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    for (int kind = SHARDED_SGD; kind <= SHARDED_ADAMW; kind++) {
        Case *c = &cases[count++];
        *c = case_17(lab, d, world, tp, kind);
        c->delay = kind == SHARDED_ADAMW;
        if (kind == SHARDED_SGD)
            c->exponent = world == 3 ? 20 : world == 8 ? -24 : 0;
    }
    if (tp == 2) {
        Case *c = &cases[count++];
        *c = other_sizes(case_17(lab, d, world, tp, SHARDED_ADAMW), d);
        c->pp = world == 8 ? 2 : 1;
    }
    if (world > tp) { /* fewer weights than replicas: some parts are empty */
        Case *c = &cases[count++];
        *c = case_17(lab, d, world, tp, SHARDED_ADAMW);
        c->S = 1;
        c->H = draw(d, 1, replicas_of(c) - 1);
    }
    return count;
}

/* The bytes of a step that clips. */
static double bytes_of_step(int rank, const Entry *entry, const double *numbers)
{
    const bool counts = entry->kind == TRAFFIC && entry->label.of == OF_SHARDS &&
                        entry->label.step == 0 && entry->label.detail == 0;
    return counts ? 4 * numbers[0] : 0;
}

Lab lab_17 = {
    LAB_FILES_17,
    .title = N_("Sharded optimiser"),
    .points = {[GRADIENT] = 2, [STEP] = 3, [METRICS] = 1, [ARITHMETIC] = 1, [COMMUNICATION] = 2},
    .layouts = "6x2 4x2 2x1 5x1 4x1 8x2 1x1",
    .has_replicas = true,
    .over_replicas = true,
    .sizes = SIZES_BSH,
    .predict = {.question = N_("Four replicas with 10,000 weights each take one step with a "
                               "sharded optimiser, and clip the gradients by their norm. How many "
                               "bytes do the ranks send in all, including those for the sum of the "
                               "squares?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 1, .B = 10, .S = 10, .H = 100, .kind = SHARDED_ADAMW},
                .count = bytes_of_step},
    .examine = {.the_case = compare_sharded_parts,
                .reasons = shards_reasons,
                .more_reasons = shards_more_reasons,
                .summand = summand_17,
                .suffices = suffices_17,
                .refusal = refusal_17},
    .kinds = {[SHARDED_SGD] = {.expect = expect_sharded, .name = "SGD"},
              [SHARDED_ADAMW] = {.expect = expect_sharded, .name = "AdamW"}},
    .forward = sent_17,
    .backward = sent_17,
    .memory = memory_17,
    .beyond_memory = N_(
        "rank %d allocated %.0f numbers where %.0f suffice: it takes the numbers "
        "of several replicas there, or keeps copies of weights, gradients or optimiser state\n%s (%s)"),
    .usual = usual_17,
    .cases = cases_17,
};
#endif
