/* Lab 14, The grid in three dimensions: its groups, and what a step sums over each. */
#include "grader/labs/grid.h"
#include "grader/labs/groups.h"
#include "grader/labs/replicas.h"
#include "grader/labs/stages.h"

#include <math.h>

static void write_three(Scenario *run, Label label, const Metrics *m)
{
    double *sums;
    stream_entry(&run->stream, VALUES, METRICS, label, 3, &sums)->shape = SHAPE(3);
    sums[0] = m->loss_sum;
    sums[1] = m->correct;
    sums[2] = m->count;
}

/* ---- on a rank ----------------------------------------------------------------------------------------------- */

#ifndef BALISE_DOUBLE
#include "base/run.h"

/* Ends a case of sums or steps if the groups that it needs are wrong. */
static void groups_must_be_right(const Scenario *run)
{
    const Mesh *mesh = run->mesh;
    const int rank = group_rank(mesh->world);
    Group *const groups[AXES] = {mesh->tp, mesh->dp, mesh->pp};
    const int places[AXES] = {mesh->tp_rank, mesh->dp_rank, mesh->pp_rank},
              degrees[AXES] = {mesh->tp_degree, mesh->dp_degree, mesh->pp_degree};
    for (int i = 0; i < AXES; i++) {
        const Members m = group_members(&run->c, i, rank);
        const int place = place_in(m, rank);
        if (!groups[i] || group_size(groups[i]) != m.count || group_rank(groups[i]) != place ||
            places[i] != place || degrees[i] != m.count)
            misuse("the check 'groups' says what is wrong; correct the groups first",
                   "mesh->%s, its rank or its degree does not match the grid", group_names[i]);
    }
}

static void run_sums(Scenario *run, int rank)
{
    const bool last = stage_of_rank(&run->c, rank) == run->c.pp - 1;
    for (int time = 0; time < SUMS_TIMES; time++) {
        const Label of_metrics = label_of(CALL_OF, METRICS_OF_STAGES, 0, time),
                    of_norm = label_of(CALL_OF, THE_NORM, 0, time);
        Metrics metrics =
            last ? replica_metrics(run, replica_of_rank(&run->c, rank), time) : (Metrics){0};
        at(run, of_metrics);
        traffic_begin(run);
        metrics_over_stages(&metrics, run->mesh);
        traffic_end(run, of_metrics, FORWARD_BUDGET, &(Sizes){0});
        at(run, of_norm);
        traffic_begin(run);
        const double norm =
            gradient_norm(grid_shards(run, rank, time), grid_whole(run, rank, time), run->mesh);
        traffic_end(run, of_norm, FORWARD_BUDGET, &(Sizes){0});
        write_three(run, label_of(OUTPUT_OF, METRICS_OF_STAGES, 0, time), &metrics);
        grid_write_number(run, METRICS, label_of(OUTPUT_OF, THE_NORM, 0, time), norm);
    }
}

#else
/* ---- in the judge -------------------------------------------------------------------------------------------- */

static void expect_sums(Scenario *run, int rank)
{
    const Case *c = &run->c;
    for (int time = 0; time < SUMS_TIMES; time++) {
        const Metrics metrics = replica_metrics(run, replica_of_rank(c, rank), time);
        double squares = 0;
        for (int other = 0; other < c->world; other++)
            if (replica_of_rank(c, other) == 0)
                squares += grid_shards(run, other, time) +
                           (other % c->tp == 0 ? grid_whole(run, other, time) : 0);
        const Sizes of_metrics = {.part = METRICS_OF_STAGES, .tp = c->tp, .stages = c->pp},
                    of_norm = {.part = THE_NORM, .tp = c->tp, .stages = c->pp};
        traffic_end(run, label_of(CALL_OF, METRICS_OF_STAGES, 0, time), FORWARD_BUDGET,
                    &of_metrics);
        traffic_end(run, label_of(CALL_OF, THE_NORM, 0, time), FORWARD_BUDGET, &of_norm);
        write_three(run, label_of(OUTPUT_OF, METRICS_OF_STAGES, 0, time), &metrics);
        grid_write_number(run, METRICS, label_of(OUTPUT_OF, THE_NORM, 0, time), sqrt(squares));
    }
}

static void expect_grid(const Case *c, int rank, Stream stream)
{
    Scenario run = {.c = *c, .stream = stream};
    for (int i = 0; c->kind == THREE_GROUPS && i < AXES; i++)
        write_expected_group(&run.stream, c, i, rank);
    if (c->kind == SUMS)
        expect_sums(&run, rank);
}

#endif

#ifndef BALISE_DOUBLE
void scenario_14(Scenario *run)
{
    if (run->c.kind == THREE_GROUPS) {
        for (int i = 0; i < AXES; i++)
            write_group(run, i);
        return;
    }
    groups_must_be_right(run);
    if (run->c.kind == SUMS)
        run_sums(run, group_rank(run->mesh->world));
    else
        grid_run_steps(run);
}
#else
void scenario_14(Scenario *run)
{
    grid_run_steps(run);
    stage_free(run->stage);
}

/* ---- its record ---------------------------------------------------------------------------------------------- */

/* The sums of each function, for the n = dp * pp ranks that hold the same part of each layer. A
 * double counts as two numbers. */
static Allowance sent_by_sum(int64_t n, const Sizes *z)
{
    enum { METRICS_NUMBERS = 6, NORM_NUMBERS = 2 };
    const int64_t tp = z->tp, pp = z->stages, dp = n / pp;
    const int64_t over_tp = dp * pp * sent_by_all_reduce(tp, NORM_NUMBERS);
    if (z->part == METRICS_OF_STAGES)
        return (Allowance){dp * sent_by_all_reduce(pp, METRICS_NUMBERS), 3};
    return (Allowance){dp * sent_by_all_reduce(pp, NORM_NUMBERS) + (over_tp + tp - 1) / tp, 2};
}

/* A step: lab 13 on all replicas, one sum of the gradients, the sums of both functions, and the three
 * sums of the metrics over the replicas. */
static Allowance sent_in_step(int64_t n, const Sizes *z)
{
    const int64_t tp = z->tp, pp = z->stages, dp = n / pp;
    Sizes of_metrics = *z;
    of_metrics.part = METRICS_OF_STAGES;
    const Allowance stages = stages_sent_in_step(pp, z), norm = sent_by_sum(n, z),
                    metrics = sent_by_sum(n, &of_metrics);
    const int64_t gradients = sent_by_all_reduce(dp, z->held);
    return (Allowance){stages.numbers + (gradients + tp - 1) / tp + norm.numbers + metrics.numbers +
                           pp * sent_by_all_reduce(dp, 6),
                       stages.calls + norm.calls + metrics.calls + 4 * z->N + 10};
}

static const char *suffices_14(const Case *c, const Label *pass)
{
    return pass->of == METRICS_OF_STAGES ? _("one sum of three doubles over mesh->pp suffices")
           : pass->of == THE_NORM        ? _("one sum over mesh->tp and one over mesh->pp suffice")
           : replicas_of(c) > 1
               ? _("one sum of the gradients over the replicas in each step suffices")
               : NULL;
}

/* With pp == 1 on four ranks, there is one micro-batch: its backward pass is the first and the
 * last. */
static Case case_14(const Lab *lab, Draw *d, int world, int tp, int pp, int kind)
{
    Case c = stages_usual(lab, d, world, tp);
    c.kind = kind;
    c.pp = pp;
    c.A = tp < 3 ? 4 : tp;
    c.H = 4 * c.A;
    c.delay = draw(d, 0, 1);
    if (kind == WHOLE_STEPS) {
        c.micros = pp == 1 && world == 4 ? 1 : world == 4 ? draw(d, 5, 7) : draw(d, 2, 4);
        c.B = replicas_of(&c) * c.micros * draw(d, 1, 2);
    } else
        c.B = c.S = c.H = c.blocks = 0;
    return c;
}

/* With tp == pp == 1, sums need no case of their own, because the whole steps include them. For
 * mistakes that need more than three ranks in a tp or dp group, cases of groups suffice. */
static bool is_a_case(int kind, int world, int tp, int pp)
{
    enum { MOST_STAGES = 4 };
    if (world == 8 && tp != 2)
        return kind == THREE_GROUPS || (kind == SUMS && tp == 4);
    return kind == SUMS ? tp * pp > 1 : kind != WHOLE_STEPS || pp <= MOST_STAGES;
}

/* The case with one stage comes last, because cases with several stages tell mistakes apart
 * better. */
static int cases_14(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    const int most = world / tp;
    for (int kind = THREE_GROUPS; kind <= WHOLE_STEPS; kind++)
        for (int i = 1; i <= most; i++) {
            const int pp = i % most + 1;
            if (most % pp == 0 && is_a_case(kind, world, tp, pp))
                cases[count++] = case_14(lab, d, world, tp, pp, kind);
        }
    return count;
}

static Case usual_14(const Lab *lab, Draw *d, int world, int tp)
{
    return case_14(lab, d, world, tp, world / tp, WHOLE_STEPS);
}

Lab lab_14 = {
    LAB_FILES_14,
    .title = N_("The grid in three dimensions"),
    .points = {[GROUPS] = 4, [METRICS] = 2, [GRADIENT] = 2, [LAYOUT] = 2, [COMMUNICATION] = 2},
    .layouts = "6x1 8x2 4x1 6x2 6x3 2x1 1x1 8x1 8x4",
    .has_replicas = true,
    .over_stages = true,
    .sizes = SIZES_BSH | SIZE_BLOCKS | SIZE_MICROS,
    .cuts = STAGES_CUTS,
    .at_once = {"bucket_filled", "bucket_ready", "buckets_finish", false},
    .predict = {.question =
                    N_("In a world of eight ranks with tp = 2 and pp = 2, each rank contributes "
                       "its world rank to an all-reduce on mesh->dp. What does rank 5 get?"),
                .at = {.world = 8, .tp = 2, .pp = 2, .kind = THREE_GROUPS},
                .count = dp_sum_on_rank_5},
    .examine = {.the_case = compare_stages,
                .may_lack = stage_may_lack,
                .lacks = stage_lacks,
                .wrong_group = wrong_group_of_grid,
                .reasons = grid_reasons,
                .more_reasons = grid_more_reasons,
                .suffices = suffices_14,
                .ending = grid_ending},
    .kinds = {[THREE_GROUPS] = {.expect = expect_grid},
              [SUMS] = {.expect = expect_grid},
              [WHOLE_STEPS] = {.scenario = scenario_14}},
    .forward = sent_by_sum,
    .backward = sent_in_step,
    .usual = usual_14,
    .cases = cases_14,
};
#endif
