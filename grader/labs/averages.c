/* Lab 16, weight averaging: what replicas that step alone train on, and how the judge
 * simulates them. */
#include "grader/labs/averages.h"

#include <math.h>
#include <stdio.h>

enum { EVALUATED = 7 };

/* Some answer is wrong if the lab truncates `step` or `every` to 32 bits, or rounds it to a
 * float. */
const LargeStep averages_large[AVERAGES_LARGE] = {
    {3000000000, 1000000, false},                   /* due; negative as an int */
    {3000000001, 1000000, false},                   /* as a float, the one before */
    {((int64_t)1 << 32) + 1000000, 1000000, false}, /* as an int, equal to `every` */
    {5000000000, 1000000, false},                   /* due; as an int, 705032704 */
    {5000000000, 5000000000, false},                /* due */
    {705032704, 5000000000, false},                 /* as ints, both are the same */
    {1, 4, true},                                   /* a run of one step */
    {101, 2, true},
    {101, 2, false},
    {102, 2, false},
};

/* The model is also evaluated once before the end of the first run. */
bool averages_is_last(int which, int step)
{
    return step == AVERAGES_STEPS || (which == 0 && step == EVALUATED);
}

int64_t averages_weights(const Case *c)
{
    return (int64_t)c->B * c->S * c->H;
}

/* ---- what a replica trains on in a step -------------------------------------------------------------------------- */

static int64_t index_of(int replica, int which, int step)
{
    return ((int64_t)which * (AVERAGES_STEPS + 1) + step) * MAX_RANKS + replica;
}

/* With three replicas or more, one has no rows in the later runs, and the last of four none in the
 * first one. Two replicas have more rows in the later runs than an int can hold. */
double averages_rows(const Scenario *run, int replica, int which, int step)
{
    const int dp = replicas_of(&run->c);
    if (which > 0 ? dp > 2 && replica == (int)(run->c.key % (uint64_t)dp) : dp == 4 && replica == 3)
        return 0;
    const int64_t rows =
        1 + 2 * replica + random_below(run, "rows", index_of(replica, which, step), 3);
    return (double)rows * (which > 0 && dp == 2 ? 0x1p32 : 1);
}

double averages_decay(const Scenario *run, int replica, int which, int step)
{
    return (double)random_below(run, "decay", index_of(replica, which, step), 8) / 4;
}

Tensor *averages_gradient(Scenario *run, int rank, int which, int step)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "gradient of step %d, run %d", step, which);
    Tensor *gradient = random_input(run, key, rank, SHAPE(averages_weights(&run->c)), false);
    if (run->c.kind == SOME_STEPS && which == AVERAGES_RUNS - 1 && step == AVERAGES_STEPS) {
        const int64_t replica = replica_of_rank(&run->c, rank), dp = replicas_of(&run->c);
        /* so the last mean has a NaN and an infinity of each replica */
        reals(gradient)[replica % tensor_count(gradient)] = (real)NAN;
        reals(gradient)[(dp + replica) % tensor_count(gradient)] = (real)INFINITY;
    }
    return gradient;
}

Tensor *averages_first_weights(Scenario *run, int rank, int which)
{
    char key[KEY_SIZE];
    snprintf(key, sizeof key, "weights of run %d", which);
    return random_input(run, key, first_with_pieces(&run->c, rank),
                        SHAPE(averages_weights(&run->c)), false);
}

/* ---- what is written after a step -------------------------------------------------------------------------------- */

Label averages_label(What what, int which, int step)
{
    return label_of(what, THE_WEIGHTS, which, step - 1);
}

Label averages_large_label(void)
{
    return label_named("average_is_due");
}

void averages_write_large(Scenario *run, DueFunction *is_due)
{
    double answer[AVERAGES_LARGE], *numbers;
    at(run, averages_large_label());
    for (int i = 0; i < AVERAGES_LARGE; i++)
        answer[i] = is_due(averages_large[i].step, averages_large[i].every, averages_large[i].last);
    is_due(AVERAGES_STEPS, run->c.every,
           true); /* a lab's own counter restarts, as after each run */
    stream_entry(&run->stream, VALUES, STEP, averages_large_label(), AVERAGES_LARGE, &numbers)
        ->shape = SHAPE(AVERAGES_LARGE);
    memcpy(numbers, answer, sizeof answer);
}

void averages_write_call(Scenario *run, int which, int step, bool due)
{
    const Label call = averages_label(CALL_OF, which, step);
    traffic_end(run, call, FORWARD_BUDGET, &(Sizes){.N = averages_weights(&run->c), .part = due});
    work_end(run, call);
}

void averages_write_weights(Scenario *run, int which, int step, Tensor *weights)
{
    const Check check = run->c.kind == EACH_STEP ? LAYOUT : STEP;
    write_values(run, check, averages_label(VALUE_OF, which, step), weights);
}

#ifdef BALISE_DOUBLE
#include "backend/reference/arithmetic.h"

/* ---- in the judge: the weights of all ranks ----------------------------------------------------------------------- */

typedef struct Training {
    Scenario *run;
    int which;
    Tensor *weights[MAX_RANKS]; /* by rank of the world */
    double rows[MAX_RANKS];     /* since the last average */
} Training;

/* The share of a rank's replica in the mean. */
static double share_of(const Training *t, int rank)
{
    const Members with = group_members(&t->run->c, DP, rank);
    double all = 0;
    for (int i = 0; i < with.count; i++)
        all += t->rows[with.first + i * with.stride];
    return t->rows[rank] / all;
}

/* The sum of the tensors x (indexed by rank of the world), each times its share. */
static Tensor *mean(const Training *t, Tensor *const x[MAX_RANKS], int rank)
{
    const Members with = group_members(&t->run->c, DP, rank);
    const Order order = reference_order(with.count); /* replicas may add in any order */
    Tensor *sum = NULL;
    for (int64_t n = 0, i = order.first; n < with.count; n++, i = order_next(order, i)) {
        const int other = with.first + (int)i * with.stride;
        Tensor *term = tape_host_tensor(t->run->tape, REAL, x[other]->shape, x[other]->placement);
        kernel_vector_copy(tensor_count(term), reals(x[other]), reals(term));
        kernel_vector_scale(tensor_count(term), share_of(t, other), reals(term));
        sum = sum ? add(sum, term) : term;
    }
    return sum;
}

static void average(Training *t)
{
    Tensor *means[MAX_RANKS] = {NULL};
    for (int rank = 0; rank < t->run->c.world; rank++)
        means[rank] = mean(t, t->weights, rank);
    memcpy(t->weights, means, sizeof means);
    memset(t->rows, 0, sizeof t->rows);
}

/* Each replica's own step. */
static void step_alone(Training *t, int step)
{
    const Case *c = &t->run->c;
    for (int rank = 0; rank < MAX_RANKS && t->weights[rank]; rank++) {
        Tensor *w = t->weights[rank];
        kernel_sgd_step(tensor_count(w), reals(w),
                        reals(averages_gradient(t->run, rank, t->which, step)), AVERAGES_RATE,
                        averages_decay(t->run, replica_of_rank(c, rank), t->which, step));
        t->rows[rank] += averages_rows(t->run, replica_of_rank(c, rank), t->which, step);
    }
}

/* A step on the batch of all replicas; its gradient is the mean of the replicas' gradients. */
static void step_together(Training *t, int step, int rank)
{
    const Case *c = &t->run->c;
    const Members with = group_members(c, DP, rank);
    Tensor *gradients[MAX_RANKS], *w = t->weights[rank];
    double decay = 0;
    for (int other = 0; other < c->world; other++) {
        gradients[other] = averages_gradient(t->run, other, t->which, step);
        t->rows[other] = averages_rows(t->run, replica_of_rank(c, other), t->which, step);
    }
    for (int i = 0; i < with.count; i++) {
        const int other = with.first + i * with.stride;
        decay +=
            share_of(t, other) * averages_decay(t->run, replica_of_rank(c, other), t->which, step);
    }
    kernel_sgd_step(tensor_count(w), reals(w), reals(mean(t, gradients, rank)), AVERAGES_RATE,
                    decay);
}

static bool is_due(int64_t step, int64_t every, bool last)
{
    return step % every == 0 || last;
}

static void begin_training(Training *t)
{
    for (int rank = 0; rank < t->run->c.world; rank++)
        t->weights[rank] = averages_first_weights(t->run, rank, t->which);
}

static bool is_due_in(const Training *t, int step)
{
    return is_due(step, t->run->c.every, averages_is_last(t->which, step));
}

static void expect_training(Training *t, int rank)
{
    Scenario *run = t->run;
    const bool plain = run->c.kind == EACH_STEP;
    begin_training(t);
    for (int step = averages_first_step(t->which); step <= AVERAGES_STEPS; step++) {
        const bool due = is_due_in(t, step);
        if (plain)
            step_together(t, step, rank);
        else
            step_alone(t, step);
        if (due && !plain)
            average(t);
        averages_write_call(run, t->which, step, due);
        averages_write_weights(run, t->which, step, t->weights[rank]);
    }
}

/* The weights before the mean that this entry has. */
Summand averages_summand(Scenario *run, const Entry *want, int of, int on)
{
    Training t = {.run = run, .which = want->label.index};
    const int last = want->label.step + 1;
    if (want->label.of != THE_WEIGHTS || !is_due_in(&t, last))
        return (Summand){0};
    begin_training(&t);
    for (int step = averages_first_step(t.which); step <= last; step++) {
        if (step > averages_first_step(t.which) && is_due_in(&t, step - 1))
            average(&t);
        step_alone(&t, step);
    }
    return (Summand){t.weights[of],
                     first_with_pieces(&run->c, of) == first_with_pieces(&run->c, on),
                     share_of(&t, of)};
}

void expect_averages(const Case *c, int rank, Stream stream)
{
    Scenario run = scenario_alone(c, stream);
    for (int which = 0; which < AVERAGES_RUNS; which++)
        expect_training(&(Training){.run = &run, .which = which}, rank);
    if (c->kind == SOME_STEPS)
        averages_write_large(&run, is_due);
    scenario_close(&run);
}
#endif
