/* Lab 14: two steps of a model at a layout, and what the ranks contribute to the sums. */
#include "grader/labs/grid.h"

#include <math.h>

#include "grader/labs/stages.h"
#include "optim/optim.h"
#include "train/buckets.h"

static const double rate = 0.5;

void grid_write_number(Scenario *run, Check check, Label label, double number)
{
    double *to;
    stream_entry(&run->stream, VALUES, check, label, 1, &to)->shape = SHAPE(1);
    *to = number;
}

/* Draws an integer, because a sum of integers does not depend on their order. It may have more
 * digits than a float can hold. All replicas draw the same. */
static double drawn_squares(const Scenario *run, const char *what, int rank, int tp_rank, int time)
{
    const int place = stage_of_rank(&run->c, rank) * MAX_RANKS + tp_rank;
    return 1 + (double)random_below(run, what, place * SUMS_TIMES + time, INT64_C(1) << 40);
}

double grid_shards(const Scenario *run, int rank, int time)
{
    const bool first = stage_of_rank(&run->c, rank) == 0 && rank % run->c.tp == 0;
    return time == DIVERGED_SUM && first   ? (double)NAN
           : time == INFINITE_SUM && first ? (double)INFINITY
           : time == ZERO_SUM && run->c.tp > 1 && rank % run->c.tp == run->c.tp - 1
               ? 0
               : drawn_squares(run, "squares of shards", rank, rank % run->c.tp, time);
}

double grid_whole(const Scenario *run, int rank, int time)
{
    return drawn_squares(run, "squares of whole parameters", rank, 0, time);
}

/* ---- a step on a rank ---------------------------------------------------------------------------------------- */

#ifndef BALISE_DOUBLE
static struct {
    BucketSet *buckets;
    Tape *tape; /* of the last backward pass */
    int count;  /* of backward passes in this step */
} passes;

static void pass_begins(void *context, const Stage *stage, int micro, bool backward)
{
    if (!backward)
        return;
    passes.tape = stage->micro[micro].tape;
    bucket_set_begin(passes.buckets, passes.tape, passes.count++, stage->micros);
}

static void pass_ran(void *context, const Stage *stage, int micro, bool backward)
{
    stages_pass_ran(context, micro, (int)stage->micro[micro].tape->batch.step, backward);
}

static Stage *open_stage(Scenario *run, const TransformerConfig *config)
{
    Stage *stage = stage_new(run->model, config, run->c.micros);
    stage->watch = (StageWatch){.runs = pass_begins, .ran = pass_ran, .context = run};
    return stage;
}

static double loss_of_step(const Scenario *run, const Stage *stage)
{
    Metrics metrics = {0};
    for (int i = 0; i < stage->micros; i++)
        if (stage->micro[i].loss) {
            metrics.loss_sum += (double)reals(ready(stage->micro[i].loss))[0] *
                                (double)stage->micro[i].rows_of_a_step;
            metrics.count += (double)stage->micro[i].rows_of_a_step / stage->micros;
        }
    metrics_over_stages(&metrics, run->mesh);
    metrics_synchronise(&metrics, run->mesh);
    return metrics.loss_sum / metrics.count;
}

static double run_step(Scenario *run, Stage *stage, int step, double *norm)
{
    enum { FEW_BYTES = 1 << 10, MANY_BYTES = 1 << 14 }; /* of a bucket */
    const int replica = replica_of_rank(&run->c, group_rank(run->mesh->world));
    if (step == 0)
        passes.buckets = bucket_set_new(run->model, run->c.world == 2 ? FEW_BYTES : MANY_BYTES);
    passes.count = 0;
    stages_passes_begin();
    stages_fill(run, stage, step, replica, replicas_of(&run->c));
    traffic_begin(run);
    one_f_one_b_step(stage, run->mesh);
    stage_must_have_sent(stage, "one_f_one_b_step");
    bucket_set_finish(passes.buckets, passes.tape);
    model_must_be_added(run->model, ALL_AXES, "buckets_finish");
    *norm = model_gradient_norm(run->model);
    const double loss = loss_of_step(run, stage);
    const Sizes sizes = stages_sizes(run);
    traffic_end(run, label_of(ITSELF, THE_MODEL, 0, step), BACKWARD_BUDGET, &sizes);
    if (step == STEPS - 1)
        bucket_set_free(passes.buckets);
    return loss;
}
#else

/* ---- a step in the judge ------------------------------------------------------------------------------------- */

static Stage *open_stage(Scenario *run, const TransformerConfig *config)
{
    return stage_new(run->model, config, 1);
}

/* The gradients that the ranks of a replica hold in all. A bucket is a range of the arena, in which
 * each parameter is padded to 64 bytes. */
static int64_t held_by_replica(const Scenario *run)
{
    enum { PADDED_TO = 64 / sizeof(float) };
    const int64_t tp = run->c.tp;
    int64_t held = 0;
    for (const Parameter *p = run->model->parameters; p; p = p->next) {
        const int64_t parts = lab_cuts(lab_of(run->c.lab), p->name) == CUT_NOT ? 1 : tp,
                      mine = (tensor_count(p->value) + parts - 1) / parts;
        held += tp * ((mine + PADDED_TO - 1) / PADDED_TO * PADDED_TO);
    }
    return held;
}

static double run_step(Scenario *run, Stage *stage, int step, double *norm)
{
    Sizes sizes = stages_sizes(run);
    sizes.held = held_by_replica(run);
    stages_fill(run, stage, step, 0, 1);
    stage_run(stage, 0, stage_embed(stage, 0));
    const double loss = (double)reals(ready(stage->micro[0].loss))[0];
    stage_run_backward(stage, 0, NULL);
    model_complete_gradients(run->model);
    *norm = sqrt(kernel_vector_square_sum(run->model->arena_size, model_gradients(run->model)));
    traffic_end(run, label_of(ITSELF, THE_MODEL, 0, step), BACKWARD_BUDGET, &sizes);
    return loss;
}
#endif

/* ---- two steps of a model, on both sides --------------------------------------------------------------------- */

void grid_run_steps(Scenario *run)
{
    const TransformerConfig config = stages_config(&run->c);
    run->model = model_new(run->pool, run->mesh, run->c.key);
    run->stage_free = stage_free;
    run->stage = open_stage(run, &config);
    model_finish(run->model);
    write_parameters(run);
    for (int step = 0; step < STEPS; step++) {
        double norm;
        fill_weights(run, step);
        model_clear_gradients(run->model);
        at(run, label_of(ITSELF, THE_MODEL, 0, step));
        const double loss = run_step(run, run->stage, step, &norm);
        write_arena(run, GRADIENT, GRADIENT_OF, step);
        grid_write_number(run, LAYOUT, label_of(LOSS_OF, THE_MODEL, 0, step), loss);
        grid_write_number(run, LAYOUT, label_of(VALUE_OF, THE_NORM, 0, step), norm);
        kernel_sgd_step(run->model->arena_size, model_weights(run->model),
                        model_gradients(run->model), rate, 0);
        write_arena(run, LAYOUT, VALUE_OF, step);
    }
}
