#include "train/trainer.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "mesh/mesh.h"
#include "train/parts.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static Counter sent_so_far(const Mesh *mesh)
{
    Counter sum = group_total(mesh->world);
    Group *const groups[] = {mesh->tp, mesh->dp};
    for (int i = 0; i < 2; i++)
        if (groups[i] && groups[i] != mesh->world) {
            Counter more = group_total(groups[i]);
            sum.calls += more.calls;
            sum.bytes += more.bytes;
            sum.seconds += more.seconds;
        }
    return sum;
}

/* ---- one step
 * ------------------------------------------------------------------------------------------------- */

static Tensor *logits_of(Trainer *t, bool training)
{
    const Batch *b = t->batch;
    tape_reset(t->tape, (TapeBatch){t->config->seed, t->step, b->samples, training});
    model_use_tape(t->model, t->tape);
    tape_record(t->tape, training);
    Tensor *ids = tape_ints(t->tape, SHAPE(b->count, b->seq), b->ids);
    Tensor *mask = tape_ints(t->tape, SHAPE(b->count, b->seq), b->mask);
    return bert_forward(t->bert, ids, mask, &t->mesh);
}

static Tensor *loss_of(Trainer *t, Tensor *logits, Metrics *metrics)
{
    const Batch *b = t->batch;
    Tensor *labels = tape_ints(t->tape, SHAPE(b->count), b->labels);
    Tensor *loss = cross_entropy_mean(logits, labels, b->count, NULL);
    metrics->loss_sum += (double)reals(loss)[0] * (double)b->count;
    metrics->count += (double)b->count;
    for (int64_t i = 0; i < b->count; i++)
        metrics->correct += (reals(logits)[2 * i + 1] > reals(logits)[2 * i]) == (b->labels[i] == 1);
    return loss;
}

static void train_step(Trainer *t, Metrics *metrics)
{
    model_clear_gradients(t->model);
    Tensor *loss = loss_of(t, logits_of(t, true), metrics);
    tape_backward(t->tape, loss, NULL);
    optimizer_step(t->optimizer, t->config->rate);
}

static void report_one(Trainer *t, int epoch, const Metrics *m, double seconds, Counter before, Counter after)
{
    StepReport step = {.step = t->step,
                       .epoch = epoch,
                       .loss = m->loss_sum / m->count,
                       .accuracy = m->correct / m->count,
                       .rate = t->config->rate,
                       .seconds = seconds,
                       .tokens_per_second = m->count * t->config->seq / seconds,
                       .comm_bytes = after.bytes - before.bytes,
                       .comm_seconds = after.seconds - before.seconds};
    if (t->report)
        report_step(t->report, &step);
}

/* ---- epochs
 * --------------------------------------------------------------------------------------------------- */

static bool anybody_stops(const Trainer *t, const volatile sig_atomic_t *stop)
{
    double stops = *stop;
    group_sum(t->world, &stops, 1);
    return stops > 0;
}

/* Returns false when the run is to end. */
static bool train_epoch(Trainer *t, int epoch, const volatile sig_atomic_t *stop)
{
    sampler_set_epoch(&t->sampler, epoch, &t->mesh);
    t->epoch = (Metrics){0};
    for (int64_t i = 0; i < t->steps_an_epoch && t->step < t->steps; i++) {
        Metrics metrics = {0};
        Counter before = sent_so_far(&t->mesh);
        double begin = now();
        batch_fill(t->train, t->sampler.mine + i * t->local_batch, t->local_batch, t->batch);
        train_step(t, &metrics);
        double seconds = now() - begin;
        Counter after = sent_so_far(&t->mesh);
        t->step_seconds[t->step++] = seconds;
        t->sent.bytes += after.bytes - before.bytes;
        t->sent.seconds += after.seconds - before.seconds;
        metrics_synchronise(&metrics, &t->mesh);
        report_one(t, epoch + 1, &metrics, seconds, before, after);
        t->epoch.loss_sum += metrics.loss_sum;
        t->epoch.correct += metrics.correct;
        t->epoch.count += metrics.count;
        if (anybody_stops(t, stop))
            return false;
    }
    return t->step < t->steps;
}

static Metrics evaluate(Trainer *t)
{
    Metrics metrics = {0};
    int64_t rows = sampler_set_epoch(&t->test_sampler, 0, &t->mesh);
    for (int64_t first = 0; first < rows; first += t->local_batch) {
        int64_t count = rows - first < t->local_batch ? rows - first : t->local_batch;
        batch_fill(t->test, t->test_sampler.mine + first, count, t->batch);
        loss_of(t, logits_of(t, false), &metrics);
    }
    metrics_synchronise(&metrics, &t->mesh);
    return metrics;
}

/* Each epoch is followed by an evaluation; the last one's metrics remain in t->epoch. */
static bool train_epochs(Trainer *t, const volatile sig_atomic_t *stop)
{
    bool goes_on = true;
    for (int epoch = 0; goes_on && epoch < t->config->epochs; epoch++) {
        goes_on = train_epoch(t, epoch, stop);
        if (*stop || !t->test)
            continue;
        t->epoch = evaluate(t);
        if (t->report)
            report_epoch(t->report, epoch + 1, t->epoch.loss_sum / t->epoch.count,
                         t->epoch.correct / t->epoch.count, (int64_t)t->epoch.count);
    }
    return anybody_stops(t, stop);
}

/* ---- the end
 * -------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    if (count == 0)
        return 0;
    qsort(values, (size_t)count, sizeof *values, by_size);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void report_end(Trainer *t, bool interrupted)
{
    enum { NUMBERS = sizeof(RankReport) / sizeof(double) };
    PoolUse use = pool_use(t->pool);
    int ranks = group_size(t->world), rank = group_rank(t->world);
    RankReport *all = calloc((size_t)ranks, sizeof *all);
    all[rank] = (RankReport){.loss = t->epoch.loss_sum / t->epoch.count,
                             .accuracy = t->epoch.correct / t->epoch.count,
                             .parameters = (double)model_held(t->model),
                             .peak_bytes = (double)use.peak_total,
                             .weights = (double)use.peak[WEIGHTS],
                             .gradients = (double)use.peak[GRADIENTS],
                             .optimiser = (double)use.peak[OPTIMISER],
                             .activations = (double)use.peak[ACTIVATIONS],
                             .step_seconds = median(t->step_seconds, t->step),
                             .comm_bytes = (double)t->sent.bytes,
                             .comm_seconds = t->sent.seconds};
    group_sum(t->world, &all[0].loss, ranks * NUMBERS); /* the other ranks' rows are zero here */
    if (t->report)
        report_ranks(t->report, all, ranks, interrupted);
    free(all);
}

/* ---- all of it
 * ------------------------------------------------------------------------------------------------ */

/* Before balise 9 the collectives take the whole world, so all ranks must split one model. */
static bool check_stage(const Trainer *t, Problem *problem)
{
    int ranks = group_size(t->world);
    if (t->mesh.tp || ranks == t->config->tp)
        return true;
    return problem_set(problem, NULL, "choose TP equal to NTASKS",
                       "NTASKS=%d and TP=%d: before balise 9 all ranks split one model", ranks,
                       t->config->tp);
}

static void set_threads(const TrainConfig *config, const Group *world)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), share = cores / group_size(world);
    backend_set_threads(config->threads ? config->threads : share > 1 ? (int)share : 1);
}

bool train(TrainConfig *config, Group *world, const volatile sig_atomic_t *stop, Problem *problem)
{
    Trainer t = {.config = config, .world = world};
    set_threads(config, world);
    mesh_open(&t.mesh, world, config->tp);
    bool good = check_stage(&t, problem) && trainer_open_data(&t, problem);
    if (good) {
        trainer_build_model(&t, config);
        good = trainer_open_report(&t, problem);
    }
    if (good)
        report_end(&t, train_epochs(&t, stop));
    trainer_close(&t);
    return good;
}
