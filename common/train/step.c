/* One step of training, and the evaluation. */
#include <math.h>

#include "backend/host_view.h"
#include "base/run.h"
#include "train/trainer.h"
#include "train/profile.h"
#include "train/trace.h"

/* Reads `count` rows of `set` into a micro-batch. An evaluation hides the same tokens each time. */
static void read_rows(Trainer *t, int micro, const TokenSet *set, const int64_t *rows,
                      int64_t count, bool training)
{
    const uint64_t seed = t->config->seed;
    batch_fill(set, rows, count, t->batch[micro]);
    if (t->config->model.architecture->is_masked)
        batch_mask_tokens(t->batch[micro], set,
                          training ? philox_key(seed, "masks", (uint64_t)t->step)
                                   : philox_key(seed, "masks of the test", 0),
                          t->config->model.max_predictions);
}

static void count_work(Trainer *t, const Batch *batch)
{
    for (int64_t row = 0; row < batch->count; row++) {
        int64_t length = 0;
        for (int64_t s = 0; s < batch->seq; s++)
            length += batch->mask[row * batch->seq + s];
        t->work += transformer_work(&t->config->model, 1, length);
    }
}

/* The number of tokens or rows by which the losses of a step are divided. The replicas average
 * their gradients, but each has a different number of hidden tokens or of tokens in documents, so
 * each divides by the mean over the replicas. Replicas that step alone divide by their own count, or
 * by 1 if that is 0; the result is also the weight of the replica in the average. */
static double targets_of_a_step(Trainer *t)
{
    const Architecture *is = t->config->model.architecture;
    double targets = 0;
    if (!is->is_language || (!is->is_masked && t->config->pack))
        return (double)t->local_batch * (is->is_language ? t->config->seq : 1);
    for (int i = 0; i < t->config->micro; i++)
        targets += (double)batch_targets(t->batch[i]);
    if (t->replicas->finish)
        return fmax(targets, 1);
    if (t->mesh.dp)
        group_sum(t->mesh.dp, &targets, 1);
    return targets / t->mesh.dp_degree;
}

/* Puts a micro-batch's rows, which read_rows() has read, on its tape. */
static void fill_stage(Trainer *t, int micro, bool training, double targets)
{
    const Batch *b = t->batch[micro];
    tape_must_be_summed(t->stage->micro[micro].tape);
    Tape *tape = stage_begin(t->stage, micro,
                             (TapeBatch){.seed = t->config->seed,
                                         .step = t->step,
                                         .count = b->count,
                                         .samples = b->samples,
                                         .training = training,
                                         .tokens = targets});
    tape_record(tape, training);
    const Shape shape = SHAPE(b->count, b->seq);
    Tensor *labels = t->config->model.architecture->is_language
                         ? tape_ints(tape, shape, b->targets)
                         : tape_ints(tape, SHAPE(b->count), b->labels);
    stage_fill(t->stage, micro, tape_ints(tape, shape, b->ids), tape_ints(tape, shape, b->mask),
               labels, t->local_batch);
    span_end(N_("reading the batch"), false);
}

static void pass_begins(void *context, const Stage *stage, int micro, bool backward)
{
    Trainer *t = context;
    if (backward) {
        t->last_tape = stage->micro[micro].tape;
        if (t->replicas->begin)
            t->replicas->begin(t, t->passes);
        t->passes++;
    }
}

/* Adds a micro-batch to the metrics. Only the last stage has a loss, which is divided by
 * targets_of_a_step(). */
static void pass_has_ended(void *context, const Stage *stage, int micro, bool backward)
{
    const MicroBatch *m = &stage->micro[micro];
    Trainer *t = context;
    if (backward || !m->loss)
        return;
    const Batch *b = t->batch[micro];
    t->metrics.loss_sum += (double)reals(m->loss)[0] * m->tape->batch.tokens;
    if (t->config->model.architecture->is_language) {
        t->metrics.count += (double)batch_targets(b);
        return;
    }
    t->metrics.count += (double)b->count;
    HostView view = host_view_read(reals(m->logits), tensor_count(m->logits));
    for (int64_t i = 0; i < b->count; i++)
        t->metrics.correct +=
            (view.numbers[2 * i + 1] > view.numbers[2 * i]) == (b->labels[i] == 1);
    host_view_end(&view);
}

/* Lets ranks that wait for a message or a sum from this one go on. */
static void between_operations(const Mesh *mesh)
{
    if (mesh->pp)
        comm_poke(mesh->pp);
    if (mesh->dp && comm_poke(mesh->dp))
        span_end(REDUCTION_UNDER_WAY, true);
}

void trainer_watch_stage(Trainer *t)
{
    tape_observer()->between = between_operations;
    t->stage->watch = (StageWatch){.runs = pass_begins, .ran = pass_has_ended, .context = t};
}

/* A program without lab 14 uses this function. */
__attribute__((weak)) void metrics_over_stages(Metrics *metrics, const Mesh *mesh)
{
    Metrics *m = metrics;
    double of_stage[] = {m->loss_sum, m->correct, m->count};
    if (mesh->pp)
        group_sum(mesh->pp, of_stage, 3);
    *m = (Metrics){of_stage[0], of_stage[1], of_stage[2]};
}

Metrics trainer_take_metrics(Trainer *t)
{
    Metrics m = t->metrics;
    t->metrics = (Metrics){0};
    metrics_over_stages(&m, &t->mesh);
    metrics_synchronise(&m, &t->mesh);
    return m;
}

static void step_with_gradients(Trainer *t, StepReport *report)
{
    const double clip = t->config->clip;
    if (clip > 0) {
        report->gradient_norm = t->replicas->norm(t->optimizer);
        clip_gradients(t->optimizer, report->gradient_norm, clip);
        span_end(N_("clipping"), false);
    }
    backend_range("optimiser");
    const double before = group_total(t->mesh.dp).seconds;
    t->replicas->step(t->optimizer, report->rate, t->last_tape);
    report->wait_seconds += group_total(t->mesh.dp).seconds - before;
    backend_range_end();
    span_end(N_("optimiser"), false);
}

/* Is the model evaluated or saved after `step` (counted from 1), or does the run end? */
static bool is_read_after(const Trainer *t, int64_t step)
{
    const TrainConfig *c = t->config;
    return step == t->steps || (t->test && step % t->steps_an_epoch == 0) ||
           (c->save && c->save_every && step % c->save_every == 0);
}

/* Runs all passes of the micro-batches. */
static void run_schedule(Trainer *t)
{
    const bool gpipe = t->config->pipeline == GPIPE;
    const char *function = gpipe ? "gpipe_step" : "one_f_one_b_step";
    (gpipe ? gpipe_step : one_f_one_b_step)(t->stage, &t->mesh);
    stage_must_have_sent(t->stage, function);
    if (t->passes != t->config->micro)
        misuse("each micro-batch runs forward once and backward once: make grade LAB=13 checks it",
               "%s ran %d of %d micro-batches backward", function, t->passes, t->config->micro);
}

StepReport trainer_step(Trainer *t, const int64_t *rows)
{
    const TrainConfig *config = t->config;
    int64_t micro = t->local_batch / config->micro;
    StepReport report = {.rate = schedule_rate(&config->schedule, t->step), .gradient_norm = -1};
    if (config->profile)
        profile_step(t->step - t->first_step);
    if (config->trace)
        trace_step(t->step - t->first_step);
    backend_range("step");
    model_clear_gradients(t->model);
    t->stage->loss_scale = t->scaler.scale;
    t->passes = 0;
    for (int i = 0; i < config->micro; i++) {
        read_rows(t, i, t->train, rows + i * micro, micro, true);
        count_work(t, t->batch[i]);
    }
    const double targets = targets_of_a_step(t);
    for (int i = 0; i < config->micro; i++)
        fill_stage(t, i, true, targets);
    run_schedule(t);
    report.wait_seconds = t->replicas->gradients(t);
    model_must_be_added(t->model, ALL_AXES, t->replicas->adds);
    report.scale = t->scaler.scale;
    if (t->scaler.scale == 0 || scaler_unscale(&t->scaler, t->optimizer))
        step_with_gradients(t, &report);
    if (t->replicas->finish)
        report.wait_seconds +=
            t->replicas->finish(t, t->step + 1, targets, is_read_after(t, t->step + 1));
    backend_range_end();
    report.left_out = t->scaler.left_out;
    spans_run(false);
    if (config->trace)
        trace_step_ends();
    return report;
}

/* ---- the evaluation -------------------------------------------------------------------------------------- */

void trainer_moved(const Trainer *t)
{
    enum { PATIENCE = 60 };
    /* rank 1 reports a stall if rank 0 is stopped */
    if (group_size(t->world) > 1 && group_rank(t->world) <= 1)
        stall_moved(PATIENCE);
}

/* Called before each batch. Does any replica have rows left (one may have a batch less), and has no
 * rank been asked to stop? */
static bool evaluation_goes_on(Trainer *t, bool rows_left)
{
    double asked[] = {*t->stop, rows_left};
    group_sum(t->world, asked, 2);
    t->interrupted = asked[0] > 0 && asked[1] > 0;
    return asked[1] > 0 && !t->interrupted;
}

Metrics trainer_evaluate(Trainer *t)
{
    backend_range("evaluation");
    int64_t rows = sampler_set_epoch(&t->test_sampler, 0, &t->mesh), most = t->batch[0]->capacity;
    for (int64_t first = 0; evaluation_goes_on(t, first < rows); first += most) {
        if (first >= rows)
            continue;
        read_rows(t, 0, t->test, t->test_sampler.mine + first,
                  rows - first < most ? rows - first : most, false);
        fill_stage(t, 0, false, (double)t->local_batch); /* pass_has_ended() multiplies by it */
        forward_step(t->stage, 0, &t->mesh);
        stage_sends_finish(t->stage); /* a step of lab 13 does so itself */
        trainer_moved(t);
    }
    backend_range_end();
    return trainer_take_metrics(t);
}
