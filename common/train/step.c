/* One step of training, the message about a run without progress, and the evaluation. */
#include <string.h>
#include <unistd.h>

#include "backend/host_view.h"
#include "base/clock.h"
#include "train/trainer.h"
#include "train/profile.h"
#include "train/trace.h"

/* Reads `count` rows of `set`: the micro-batch that the stage runs next. */
static void fill_stage(Trainer *t, const ReviewSet *set, const int64_t *rows, int64_t count,
                       bool training)
{
    Batch *b = t->batch;
    batch_fill(set, rows, count, b);
    tape_must_be_summed(t->stage->micro[0].tape);
    Tape *tape = stage_begin(t->stage, 0,
                             (TapeBatch){t->config->seed, t->step, b->count, b->samples, training});
    tape_record(tape, training);
    Tensor *ids = tape_ints(tape, SHAPE(b->count, b->seq), b->ids);
    Tensor *mask = tape_ints(tape, SHAPE(b->count, b->seq), b->mask);
    stage_fill(t->stage, 0, ids, mask, tape_ints(tape, SHAPE(b->count), b->labels), t->local_batch);
    span_end(N_("reading the batch"), false);
}

/* One reduction per step: the last backward pass completes the gradients. */
static void pass_begins(void *context, const Stage *stage, int micro, bool backward)
{
    Trainer *t = context;
    if (backward && ++t->passes == t->config->micro)
        bucket_set_begin(t->buckets, stage->micro[micro].tape);
}

/* Only the last stage has a loss, which is divided by this replica's rows per step. */
static void pass_has_ended(void *context, const Stage *stage, int micro, bool backward)
{
    const MicroBatch *m = &stage->micro[micro];
    Trainer *t = context;
    if (backward || !m->loss)
        return;
    const Batch *b = t->batch;
    t->metrics.loss_sum += (double)reals(m->loss)[0] * (double)m->rows_of_a_step;
    t->metrics.count += (double)b->count;
    HostView view = host_view_read(reals(m->logits), tensor_count(m->logits));
    for (int64_t i = 0; i < b->count; i++)
        t->metrics.correct +=
            (view.numbers[2 * i + 1] > view.numbers[2 * i]) == (b->labels[i] == 1);
    host_view_end(&view);
}

void trainer_watch_stage(Trainer *t)
{
    t->stage->watch = (StageWatch){pass_begins, pass_has_ended, t};
}

Metrics trainer_take_metrics(Trainer *t)
{
    Metrics m = t->metrics;
    t->metrics = (Metrics){0};
    if (t->mesh.pp) {
        double sums[] = {m.loss_sum, m.correct, m.count};
        group_sum(t->mesh.pp, sums, 3);
        m = (Metrics){sums[0], sums[1], sums[2]};
    }
    metrics_synchronise(&m, &t->mesh);
    return m;
}

static void step_with_gradients(Trainer *t, StepReport *report)
{
    const double clip = t->config->clip;
    if (clip > 0) {
        report->gradient_norm = gradient_norm(t->model);
        clip_gradients(t->model, report->gradient_norm, clip);
        span_end(N_("clipping"), false);
    }
    backend_range("optimiser");
    optimizer_step(t->optimizer, report->rate);
    backend_range_end();
    span_end(N_("optimiser"), false);
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
        fill_stage(t, t->train, rows + i * micro, micro, true);
        pipeline_step(t->stage, &t->mesh);
    }
    backend_range("reduction over replicas");
    report.wait_seconds = bucket_set_finish(t->buckets, t->stage->micro[0].tape);
    backend_range_end();
    span_end(REDUCTION_NOT_HIDDEN, true);
    report.scale = t->scaler.scale;
    if (t->scaler.scale == 0 || scaler_unscale(&t->scaler, t->model))
        step_with_gradients(t, &report);
    backend_range_end();
    report.left_out = t->scaler.left_out;
    spans_run(false);
    if (config->trace)
        trace_step_ends();
    return report;
}

/* ---- a run without progress ----------------------------------------------------------------------------- */

static volatile sig_atomic_t said;
static double longest, since;
static const char *line; /* translated */

/* May interrupt anything, so it uses only what POSIX allows in signal handlers. */
static void say(int signal)
{
    if (!said && write(STDERR_FILENO, line, strlen(line)) > 0)
        said = 1;
}

void stall_moved(int patience)
{
    double time = clock_now(), took = since > 0 ? time - since : 0;
    line = _(
        "\nno step has finished for a while. Either a step takes that long here, or the ranks are deadlocked: then press Ctrl-C twice to stop\n  HINT: make grade says which lab's calls do not match those of the other ranks; make trace LAB=n shows the calls\n");
    struct sigaction action = {.sa_handler = say, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    longest = took > longest ? took : longest;
    since = time;
    alarm((unsigned)(10 * longest > patience ? 10 * longest : patience));
}

void stall_end(void)
{
    alarm(0);
    longest = since = 0;
}

/* ---- the evaluation -------------------------------------------------------------------------------------- */

void trainer_moved(const Trainer *t)
{
    enum { PATIENCE = 60 };
    if (group_size(t->world) > 1 && group_rank(t->world) == 0)
        stall_moved(PATIENCE);
}

/* Before each batch: does any replica have rows left (one may have a batch less), and has no rank
 * been asked to stop? */
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
    int64_t rows = sampler_set_epoch(&t->test_sampler, 0, &t->mesh), most = t->batch->capacity;
    for (int64_t first = 0; evaluation_goes_on(t, first < rows); first += most) {
        if (first >= rows)
            continue;
        fill_stage(t, t->test, t->test_sampler.mine + first,
                   rows - first < most ? rows - first : most, false);
        forward_step(t->stage, 0, &t->mesh);
        trainer_moved(t);
    }
    backend_range_end();
    return trainer_take_metrics(t);
}
