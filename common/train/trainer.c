/* The loop over epochs and steps, and the final report. */
#include "train/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/language.h"
#include "train/profile.h"
#include "train/trace.h"

/* Returns a + sign · b. */
static Counter plus(Counter a, int sign, Counter b)
{
    return (Counter){a.calls + sign * b.calls, a.bytes + sign * b.bytes,
                     a.seconds + sign * b.seconds};
}

static Sent sent_plus(Sent a, int sign, Sent b)
{
    return (Sent){plus(a.tp, sign, b.tp), plus(a.dp, sign, b.dp), plus(a.pp, sign, b.pp),
                  plus(a.all, sign, b.all)};
}

Sent sent_so_far(const Mesh *mesh)
{
    const Counter world = group_total(mesh->world), tp = group_total(mesh->tp),
                  dp = group_total(mesh->dp), pp = group_total(mesh->pp);
    return (Sent){group_total(mesh_tp_group(mesh)), dp, pp,
                  plus(plus(world, 1, tp), 1, plus(dp, 1, pp))};
}

/* ---- epochs -------------------------------------------------------------------------------------------- */

const char *hint_on_divergence(const Trainer *t, char *text)
{
    char saved[256] = "";
    if (t->saved_step >= 0 && t->config->save)
        snprintf(saved, sizeof saved, _("; %.160s still has the checkpoint of step %lld"),
                 t->config->save, (long long)t->saved_step);
    snprintf(
        text, HINT_SIZE,
        _("choose a smaller LR (here %g), a longer WARMUP or CLIP=1; with STACK=mine, make grade "
          "finds wrong gradients%s"),
        t->config->schedule.rate, saved);
    return text;
}

/* After a step or an evaluation: has any rank been asked to stop, and has the run diverged on any
 * rank? */
static bool look_around(Trainer *t, double loss, Problem *problem)
{
    double anybody[] = {*t->stop, !isfinite(loss)};
    char hint[HINT_SIZE];
    group_sum(t->world, anybody, 2);
    t->interrupted = anybody[0] > 0;
    return anybody[1] == 0 ||
           problem_set(problem, NULL, hint_on_divergence(t, hint),
                       "the run has diverged: the loss after step %lld is no longer finite",
                       (long long)t->step);
}

static void report_one(Trainer *t, StepReport *step, int epoch, double seconds, Sent before)
{
    step->sent = sent_plus(sent_so_far(&t->mesh), -1, before);
    t->sent = sent_plus(t->sent, 1, step->sent);
    t->step_seconds[t->step - 1] = seconds;
    t->wait_seconds[t->step - 1] = step->wait_seconds;
    const Metrics metrics = trainer_take_metrics(t);
    t->epoch.loss_sum += metrics.loss_sum;
    t->epoch.correct += metrics.correct;
    t->epoch.count += metrics.count;
    step->step = t->step;
    step->epoch = epoch + 1;
    const double count = fmax(metrics.count, 1); /* a tiny batch may have no hidden token */
    step->loss = metrics.loss_sum / count;
    step->accuracy = metrics.correct / count;
    step->seconds = seconds;
    step->tokens_per_second = (double)t->config->batch * t->config->seq / seconds;
    if (t->report)
        report_step(t->report, step);
}

/* Trains the rest of an epoch. Returns false with `problem` if the run diverges, weights that
 * should be equal differ, or a checkpoint cannot be written. */
static bool train_epoch(Trainer *t, int epoch, Problem *problem)
{
    int64_t first = epoch * t->steps_an_epoch;
    sampler_set_epoch(&t->sampler, epoch, &t->mesh);
    if (t->step == first)
        t->epoch = (Metrics){0};
    while (!t->interrupted && t->step < t->steps && t->step < first + t->steps_an_epoch) {
        Sent before = sent_so_far(&t->mesh);
        double begin = clock_now();
        StepReport step = trainer_step(t, t->sampler.mine + (t->step - first) * t->local_batch);
        t->step++;
        trainer_moved(t);
        report_one(t, &step, epoch, clock_now() - begin, before);
        if (t->config->profile)
            waiting_step(&t->mesh);
        if (!look_around(t, step.loss, problem))
            return false;
        if (t->interrupted && t->replicas->finish)
            t->replicas->finish(t, t->step, 0, true);
        t->check_is_due |= t->config->check && t->step % t->config->check == 0;
        if (t->check_is_due && !t->apart) {
            t->check_is_due = false;
            if (!weights_are_equal(t->model, t->step, problem))
                return false;
        }
        if (!checkpoint_save(t, t->interrupted || t->step == t->steps, problem))
            return false;
    }
    return true;
}

/* Trains the rest of the epochs. Each ends with an evaluation; the metrics of the last one stay in
   t->epoch. A run that resumes at the end of an epoch begins with that epoch's evaluation, which
   may be missing. */
static bool train_epochs(Trainer *t, Problem *problem)
{
    int epoch = t->step > 0 ? (int)((t->step - 1) / t->steps_an_epoch) : 0;
    trainer_moved(t);
    for (; !t->interrupted && epoch * t->steps_an_epoch < t->steps; epoch++) {
        if (!train_epoch(t, epoch, problem))
            return false;
        if (t->interrupted || !t->test)
            continue;
        if (t->report)
            report_evaluation(t->report, t->test->rows);
        Metrics tested = trainer_evaluate(t);
        if (!t->interrupted) {
            t->epoch = tested;
            if (t->report)
                report_epoch(t->report, epoch + 1, tested.loss_sum / tested.count,
                             tested.correct / tested.count, (int64_t)tested.count);
            if (!look_around(t, tested.loss_sum / tested.count, problem))
                return false;
        }
        if (t->interrupted && !checkpoint_save(t, true, problem))
            return false;
    }
    return true;
}

/* ---- the end ------------------------------------------------------------------------------------------- */

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

static double sum_of(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

/* The peak of the cores that this rank uses. If the ranks of a node together have more threads than
 * usable cores, they share the cores. With AMP, products have another peak, so returns 0. */
static double peak_of_rank(const Trainer *t)
{
    MPI_Comm node;
    int ranks = 1;
    Cores cores = cores_usable(); // Slurm may bind each rank to cores of its own
    MPI_Comm_split_type(group_comm(t->world), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, cores.words, CORE_WORDS, MPI_UINT64_T, MPI_BOR, node);
    MPI_Comm_free(&node);
    const double threads = t->config->threads, share = (double)cores_count(&cores) / ranks;
    return t->config->amp == FP32 ? backend_peak() * fmin(threads, share) : 0;
}

static void report_end(Trainer *t)
{
    struct rusage process;
    getrusage(RUSAGE_SELF, &process);
    const int64_t steps = t->step - t->first_step;
    const RankReport mine = {
        .rank = group_rank(t->world),
        .loss = t->epoch.loss_sum / t->epoch.count,
        .accuracy = t->epoch.correct / t->epoch.count,
        .parameters = model_held(t->model),
        .use = memory_use(),
        .sent = t->sent,
        .step_seconds = median(t->step_seconds + t->first_step, steps),
        .wait_seconds = t->mesh.dp_degree > 1 ? median(t->wait_seconds + t->first_step, steps) : -1,
        .resident_bytes = 1024 * (int64_t)process.ru_maxrss,
        .stage = t->mesh.pp_rank,
        .blocks = t->stage->part.blocks,
        .in_flight = t->stage->most_in_flight,
        .idle = t->sent.pp.seconds / sum_of(t->step_seconds + t->first_step, steps),
        .peak = peak_of_rank(t)};
    const int ranks = group_size(t->world);
    double work = t->work;
    if (t->mesh.dp)
        group_sum(t->mesh.dp, &work, 1);
    RankReport *all = calloc((size_t)ranks, sizeof *all);
    MPI_Gather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, group_comm(t->world));
    if (t->report && t->config->profile)
        profile_report(t->report, steps);
    if (t->report)
        report_ranks(t->report, all, ranks, (double)t->config->batch * t->config->seq,
                     work / (double)steps, t->interrupted);
    free(all);
}

/* ---- the whole run ------------------------------------------------------------------------------------- */

/* Has the lab that makes the grid set the requested degrees? With other degrees, the run would have
 * another layout. */
static bool grid_is_as_asked(const Trainer *t, Problem *problem)
{
    const Mesh *mesh = &t->mesh;
    return (mesh->tp_degree == t->config->tp && mesh->pp_degree == t->config->pp) ||
           problem_set(problem, NULL,
                       N_("mesh_init_3d (lab 14), or before lab 14 mesh_init_tp (lab 8), sets "
                          "these degrees: make grade checks them"),
                       "the grid has tp_degree %d and pp_degree %d, but TP=%d and PP=%d",
                       mesh->tp_degree, mesh->pp_degree, t->config->tp, t->config->pp);
}

bool train(TrainConfig *config, Group *world, const volatile sig_atomic_t *stop, Problem *problem)
{
    Trainer t = {.config = config, .world = world, .stop = stop};
    backend_set_threads(config->threads);
    mesh_open(&t.mesh, world, config->tp, config->pp);
    bool good = agree(world, grid_is_as_asked(&t, problem), problem) &&
                checkpoint_prepare(&t, problem) && trainer_open_data(&t, problem) &&
                trainer_build_model(&t, config, problem) && checkpoint_resume(&t, problem) &&
                trainer_open_report(&t, problem);
    if (good)
        map_report(&t.mesh, config->map);
    if (good && config->trace)
        trace_open(t.stage, t.pool, t.steps - t.step);
    good = good && train_epochs(&t, problem);
    stall_end();
    if (good)
        report_end(&t);
    if (good && t.report)
        good = report_is_complete(t.report, config, problem);
    if (config->trace && agree(world, good, problem))
        good = trace_write(config->trace, t.first_step, problem);
    trace_close();
    trainer_close(&t);
    return good;
}
