/* Lab 17: the inputs of its functions, and what the judge expects of them. */
#include "grader/labs/sharded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t sharded_weights(const Case *c)
{
    return (int64_t)c->B * c->S * c->H;
}

static Tensor *input(Scenario *run, const char *what, int rank, int which, int step)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "%s, run %d, step %d", what, which, step);
    return random_input(run, key, rank, SHAPE(sharded_weights(&run->c)), false);
}

enum { RUN_WITH_ZEROS = SHARDED_RUNS - 1 }; /* the one that does not clip */

/* Zeros in the part of the last replica. If its weights and its gradients are zero, nothing changes
 * there, and this replica still takes part in the gather. */
static Tensor *zeros_in_last_part(const Case *c, Tensor *x, int which)
{
    const int64_t n = replicas_of(c), count = tensor_count(x);
    for (int64_t i = count * (n - 1) / n - 1; which == RUN_WITH_ZEROS && n > 1 && i < count; i++)
        reals(x)[i < 0 ? 0 : i] = 0;
    return x;
}

/* Zeros in one step of that run. Weight decay and AdamW's moments still move the
 * weights, and a replica whose gradients are zero still takes part in the sums. */
static Tensor *zeros_in_a_step(Tensor *x, int which, int step)
{
    enum { STEP_OF_ZEROS = 1 };
    if (which == RUN_WITH_ZEROS && step == STEP_OF_ZEROS)
        memset(reals(x), 0, (size_t)tensor_count(x) * sizeof(real));
    return x;
}

/* In the last step of the run that clips, in which the squares are NaN, too, each replica has a NaN and
 * an infinity in the part of the next one. */
static void nan_in_a_step(const Scenario *run, Tensor *x, int replica, int which, int step)
{
    const int64_t n = replicas_of(&run->c), count = tensor_count(x);
    const int64_t at = (2 * ((replica + 1) % n) + 1) * count / (2 * n);
    if (which == 0 && step == SHARDED_STEPS - 1) {
        reals(x)[(at + 1) % count] = (real)INFINITY;
        reals(x)[at] = (real)NAN;
    }
}

Tensor *sharded_gradient(Scenario *run, int rank, int which, int step)
{
    Tensor *gradient = input(run, "gradients", rank, which, step);
    nan_in_a_step(run, gradient, replica_of_rank(&run->c, rank), which, step);
    const bool is_last = rank >= run->c.world - run->c.tp;
    return is_last && replicas_of(&run->c) > 1 ? zeros_in_a_step(gradient, which, step) : gradient;
}

Tensor *sharded_mean(Scenario *run, int rank, int which, int step)
{
    Tensor *mean = input(run, "mean", first_with_pieces(&run->c, rank), which, step);
    for (int i = 0; i < replicas_of(&run->c); i++)
        nan_in_a_step(run, mean, i, which, step);
    if (step == 0)
        zeros_in_last_part(&run->c, mean, which);
    return zeros_in_a_step(mean, which, step);
}

/* Weights away from zero, or zero in a part that begins with a step of zeros. The steps bring none
 * near zero, where it would lose digits by cancellation. The tolerance follows the largest weight of
 * a part, which may have just one. */
Tensor *sharded_first_weights(Scenario *run, int rank, int which)
{
    Tensor *weights = input(run, "weights", first_with_pieces(&run->c, rank), which, 0);
    const double away = ldexp(2, run->c.exponent);
    for (int64_t i = 0; i < tensor_count(weights); i++) {
        const double w = (double)reals(weights)[i];
        reals(weights)[i] = (real)(float)(w < 0 ? w - away : w + away);
    }
    return zeros_in_last_part(&run->c, weights, which);
}

double sharded_squares(const Scenario *run, int rank, int which, int step, int whole)
{
    enum { RANGE = 100000, STEP_WITHOUT = 1 };
    const int64_t index = (int64_t)(which * SHARDED_STEPS + step) * MAX_RANKS + rank;
    const Members dp = group_members(&run->c, DP, rank);
    const int place = place_in(dp, rank), most = whole ? 0 : dp.count - 1, away = abs(place - most);
    if (step == SHARDED_STEPS - 1 && place == most)
        return (run->c.key + (uint64_t)whole) % 2 ? (double)NAN : (double)INFINITY;
    if (step == STEP_WITHOUT && place == dp.count - 1)
        return 0; /* an empty part, or gradients of zero: this replica still takes part in the sums */
    return RANGE * (double)(dp.count - away) +
           (double)(1 + random_below(run, whole ? "whole" : "shards", index, 7 * RANGE)) / 7;
}

void sharded_write_call(Scenario *run, int call, int which, int step)
{
    const Label label = sharded_label(CALL_OF, call, which, step);
    traffic_end(run, label, FORWARD_BUDGET, &(Sizes){.N = sharded_weights(&run->c), .part = call});
    work_end(run, label);
}

void sharded_write_squares(Scenario *run, int which, int step,
                           const double squares[SHARDED_NUMBERS])
{
    double *numbers;
    stream_entry(&run->stream, VALUES, METRICS,
                 sharded_label(VALUE_OF, SHARDED_SQUARES, which, step), SHARDED_NUMBERS, &numbers)
        ->shape = SHAPE(SHARDED_NUMBERS);
    memcpy(numbers, squares, SHARDED_NUMBERS * sizeof *numbers);
}

#ifdef BALISE_DOUBLE
#include "backend/reference/arithmetic.h"

/* ---- in the judge: what a rank must have ---------------------------------------------------------------------- */

typedef struct Training {
    Scenario *run;
    int which, rank;
    Tensor *weights, *m, *v;
} Training;

static Tensor *reduced(const Training *t, int step)
{
    const Members with = group_members(&t->run->c, DP, t->rank);
    const Order order = reference_order(with.count); /* replicas may add in any order */
    Tensor *sum = NULL;
    for (int64_t n = 0, i = order.first; n < with.count; n++, i = order_next(order, i)) {
        const int other = with.first + (int)i * with.stride;
        Tensor *term = sharded_gradient(t->run, other, t->which, step);
        kernel_vector_scale(tensor_count(term), 1.0 / with.count, reals(term));
        sum = sum ? add(sum, term) : term;
    }
    return sum;
}

static void expect_squares(const Training *t, int step)
{
    const Members with = group_members(&t->run->c, DP, t->rank);
    double sums[SHARDED_NUMBERS] = {0};
    for (int i = 0; i < with.count; i++)
        for (int whole = 0; whole < 2; whole++)
            sums[whole] +=
                sharded_squares(t->run, with.first + i * with.stride, t->which, step, whole);
    sharded_write_call(t->run, SHARDED_SQUARES, t->which, step);
    sharded_write_squares(t->run, t->which, step, sums);
}

void sharded_make_step(const Scenario *run, int step, Tensor *w, const Tensor *g, Tensor *m,
                       Tensor *v)
{
    const AdamW adamw = {.rate = sharded_rate(step),
                         .beta1 = SHARDED_BETA1,
                         .beta2 = SHARDED_BETA2,
                         .epsilon = SHARDED_EPSILON,
                         .weight_decay = SHARDED_DECAY,
                         .step = step + 1};
    if (run->c.kind == SHARDED_SGD)
        kernel_sgd_step(tensor_count(w), reals(w), reals(g), adamw.rate, SHARDED_DECAY);
    else
        kernel_adamw_step(tensor_count(w), reals(w), reals(g), reals(m), reals(v), &adamw);
}

Tensor *sharded_zeros(Scenario *run)
{
    Tensor *x = input(run, "state", 0, 0, 0);
    kernel_vector_fill(tensor_count(x), 0, reals(x));
    return x;
}

static void expect_training(Training *t)
{
    Scenario *run = t->run;
    t->weights = sharded_first_weights(run, t->rank, t->which);
    t->m = sharded_zeros(run);
    t->v = sharded_zeros(run);
    for (int step = 0; step < SHARDED_STEPS; step++) {
        sharded_write_call(run, SHARDED_REDUCE, t->which, step);
        write_values(run, GRADIENT, sharded_label(VALUE_OF, SHARDED_REDUCE, t->which, step),
                     reduced(t, step));
        if (t->which == 0)
            expect_squares(t, step);
        sharded_make_step(run, step, t->weights, sharded_mean(run, t->rank, t->which, step), t->m,
                          t->v);
        sharded_write_call(run, SHARDED_STEP, t->which, step);
        write_values(run, STEP, sharded_label(VALUE_OF, SHARDED_STEP, t->which, step), t->weights);
    }
}

void expect_sharded(const Case *c, int rank, Stream stream)
{
    Scenario run = scenario_alone(c, stream);
    for (int which = 0; which < SHARDED_RUNS; which++)
        expect_training(&(Training){.run = &run, .which = which, .rank = rank});
    scenario_close(&run);
}
#endif
