/* Lab 16, Average weights: replicas that step alone, and means of their weights every few steps. */
#include "grader/labs/averages.h"

#ifndef BALISE_DOUBLE
#include "autograd/placement.h"
#include "base/language.h"

static void run_training(Scenario *run, int which)
{
    const int rank = group_rank(run->mesh->world), replica = replica_of_rank(&run->c, rank);
    Tensor *weights = averages_first_weights(run, rank, which);
    double rows = 0;
    for (int step = averages_first_step(which); step <= AVERAGES_STEPS; step++) {
        kernel_sgd_step(tensor_count(weights), reals(weights),
                        reals(averages_gradient(run, rank, which, step)), AVERAGES_RATE,
                        averages_decay(run, replica, which, step));
        rows += averages_rows(run, replica, which, step);
        at(run, averages_label(CALL_OF, which, step));
        traffic_begin(run);
        work_begin(run);
        const bool due = average_is_due(step, run->c.every, averages_is_last(which, step));
        if (due) {
            unsigned partial;
            terms_begin(weights, &partial, OVER_DP);
            average_weights(weights, rows, run->mesh);
            terms_end(weights, average_weights, "average_weights", _("its argument"));
        }
        averages_write_call(run, which, step, due);
        averages_write_weights(run, which, step, weights);
        rows = due ? 0 : rows;
    }
}

void scenario_16(Scenario *run)
{
    for (int which = 0; which < AVERAGES_RUNS; which++)
        run_training(run, which);
    if (run->c.kind == SOME_STEPS)
        averages_write_large(run, average_is_due);
}
#else
/* ---- its record -------------------------------------------------------------------------------------------------- */

/* Sums of all weights and of the number of rows, which is a double. z->part: is an average due? */
static Allowance sent_16(int64_t n, const Sizes *z)
{
    enum { ROWS_NUMBERS = 2 };
    return z->part ? (Allowance){sent_by_all_reduce(n, z->N + ROWS_NUMBERS), 2} : (Allowance){0, 0};
}

/* Room for half of a rank's weights, but not for a copy of them, unless there is one replica. */
static double memory_16(const Case *c, const Label *pass)
{
    return 64 + (double)averages_weights(c) / (replicas_of(c) > 1 ? 2 : 1);
}

static Case case_16(const Lab *lab, Draw *d, int world, int tp, int kind)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.H = 97; /* the replicas do not divide the weights evenly */
    c.every = kind == EACH_STEP ? 1 : 4;
    c.more_B = c.idle = 0;
    c.B = 1;
    c.S = 5;
    return c;
}

static Case usual_16(const Lab *lab, Draw *d, int world, int tp)
{
    return case_16(lab, d, world, tp, SOME_STEPS);
}

static int cases_16(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    for (int kind = EACH_STEP; kind <= SOME_STEPS; kind++) {
        Case *c = &cases[count++];
        *c = case_16(lab, d, world, tp, kind);
        c->delay = kind == SOME_STEPS;
        c->exponent = world == 3 ? 20 : world == 8 ? -24 : 0;
        if (kind == EACH_STEP && world == 2)
            c->H = 8009; /* a copy of all weights is larger than what MPI takes of the stack */
        if (kind == SOME_STEPS && world == 2)
            c->every = 9; /* the evaluation comes before the first multiple of `every` */
    }
    if (tp == 2) {
        Case *c = &cases[count++];
        *c = other_sizes(case_16(lab, d, world, tp, SOME_STEPS), d);
        c->every = draw(d, 2, 3);
        c->pp = world == 8 ? 2 : 1;
    }
    return count;
}

/* The bytes of the second run up to its second average, without the average at its end. */
static double bytes_of_two_averages(int rank, const Entry *entry, const double *numbers)
{
    const bool counts = entry->kind == TRAFFIC && entry->label.of == THE_WEIGHTS &&
                        entry->label.index == 1 && entry->label.step < 8;
    return counts ? 4 * numbers[0] : 0;
}

Lab lab_16 = {
    LAB_FILES_16,
    .title = N_("Weight averaging"),
    .points = {[STEP] = 4, [LAYOUT] = 3, [ARITHMETIC] = 1, [COMMUNICATION] = 2},
    .layouts = "6x2 4x2 2x1 3x1 4x1 8x2 1x1",
    .has_replicas = true,
    .over_replicas = true,
    .sizes = SIZES_BSH | SIZE_EVERY,
    .predict =
        {.question = N_("Eight ranks with tp = 2 hold 10,000 weights each, and average them "
                        "every 4 steps. How many bytes do the ranks send in all in 8 steps, "
                        "including the sums of the numbers of rows?"),
         .unit = N_("bytes"),
         .at = {.world = 8, .tp = 2, .B = 10, .S = 10, .H = 100, .kind = SOME_STEPS, .every = 4},
         .count = bytes_of_two_averages},
    .examine = {.reasons = averages_reasons,
                .more_reasons = averages_more_reasons,
                .summand = averages_summand,
                .ending = averages_ending},
    .kinds =
        {[EACH_STEP] = {.expect = expect_averages}, [SOME_STEPS] = {.expect = expect_averages}},
    .forward = sent_16,
    .backward = sent_16,
    .memory = memory_16,
    .beyond_memory =
        N_("rank %d allocated %.0f numbers where %.0f suffice: change the weights in place, and "
           "keep no copy of them\n%s (%s)"),
    .usual = usual_16,
    .cases = cases_16,
};
#endif
