/* One step of training, and the evaluation. */

#include "backend/host_view.h"
#include "train/trainer.h"
#include "train/profile.h"
#include "train/trace.h"

static Tensor *logits_of(Trainer *t, bool training)
{
    const Batch *b = t->batch;
    tape_must_be_summed(t->tape);
    tape_reset(t->tape, (TapeBatch){t->config->seed, t->step, b->count, b->samples, training});
    model_use_tape(t->model, t->tape);
    tape_record(t->tape, training);
    Tensor *ids = tape_ints(t->tape, SHAPE(b->count, b->seq), b->ids);
    Tensor *mask = tape_ints(t->tape, SHAPE(b->count, b->seq), b->mask);
    return bert_forward(t->bert, ids, mask, &t->mesh);
}

/* The loss of the micro-batch in t->batch, divided by this replica's rows per step. */
static Tensor *loss_of(Trainer *t, Tensor *logits, Metrics *metrics)
{
    const Batch *b = t->batch;
    Tensor *labels = tape_ints(t->tape, SHAPE(b->count), b->labels);
    Tensor *loss = cross_entropy_mean(logits, labels, t->local_batch, NULL);
    metrics->loss_sum += (double)reals(loss)[0] * (double)t->local_batch;
    metrics->count += (double)b->count;
    HostView view = host_view_read(reals(logits), tensor_count(logits));
    for (int64_t i = 0; i < b->count; i++)
        metrics->correct += (view.numbers[2 * i + 1] > view.numbers[2 * i]) == (b->labels[i] == 1);
    host_view_end(&view);
    return loss;
}

/* The gradient of the loss: 1, or the scaler's factor. */
static Tensor *scaled_one(Trainer *t)
{
    if (t->scaler.scale == 0)
        return NULL;
    const real scale = (real)t->scaler.scale;
    return tape_reals(t->tape, SHAPE(1), whole(), &scale, false);
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

StepReport trainer_step(Trainer *t, const int64_t *rows, Metrics *metrics)
{
    const TrainConfig *config = t->config;
    int64_t micro = t->local_batch / config->accumulate;
    StepReport report = {.rate = schedule_rate(&config->schedule, t->step), .gradient_norm = -1};
    if (config->profile)
        profile_step(t->step - t->first_step);
    if (config->trace)
        trace_step(t->step - t->first_step);
    backend_range("step");
    model_clear_gradients(t->model);
    for (int i = 0; i < config->accumulate; i++) {
        batch_fill(t->train, rows + i * micro, micro, t->batch);
        span_end(N_("reading the batch"), false);
        backend_range("forward");
        Tensor *loss = loss_of(t, logits_of(t, true), metrics);
        backend_range_end();
        /* One reduction per step: the last backward pass completes the gradients. */
        if (i + 1 == config->accumulate)
            bucket_set_begin(t->buckets, t->tape);
        backend_range("backward");
        tape_backward(t->tape, loss, scaled_one(t));
        backend_range_end();
    }
    backend_range("reduction over replicas");
    report.wait_seconds = bucket_set_finish(t->buckets, t->tape);
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

/* ---- the evaluation -------------------------------------------------------------------------------------- */

void trainer_moved(const Trainer *t)
{
    enum { PATIENCE = 60 };
    /* rank 1 tells if rank 0 is stopped */
    if (group_size(t->world) > 1 && group_rank(t->world) <= 1)
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
    Metrics metrics = {0};
    backend_range("evaluation");
    int64_t rows = sampler_set_epoch(&t->test_sampler, 0, &t->mesh), most = t->batch->capacity;
    for (int64_t first = 0; evaluation_goes_on(t, first < rows); first += most) {
        if (first >= rows)
            continue;
        batch_fill(t->test, t->test_sampler.mine + first, rows - first < most ? rows - first : most,
                   t->batch);
        loss_of(t, logits_of(t, false), &metrics);
        trainer_moved(t);
    }
    if (!t->interrupted)
        metrics_synchronise(&metrics, &t->mesh);
    backend_range_end();
    return metrics;
}
