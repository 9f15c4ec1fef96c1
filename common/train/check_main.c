/* build/check: a dry run of make train. Simulates a step of some ranks of any layout, one after another
 * in one process: the real model, schedule and optimiser, with kernels that only count and exchanges
 * that send nothing. Prints what each rank would hold, send and multiply. Exit status: 0, or 2 on bad
 * input, misuse, or if a rank needs more memory than MEM. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "backend/dry/dry.h"
#include "base/language.h"
#include "comm/dry/dry.h"
#include "train/program.h"
#include "train/trainer.h"

/* The rank's place in the grid, numbered as in lab 14. Before lab 8, the world splits the model; before
 * lab 10, replicas know nothing of each other. */
static Mesh simulated_mesh(const TrainConfig *c, int rank)
{
    const bool has_tp = !c->labs || c->labs >= 8, has_dp = !c->labs || c->labs >= 10;
    Mesh mesh = {.tp_degree = c->tp, .dp_degree = has_dp ? c->dp : 1, .pp_degree = c->pp};
    mesh.tp_rank = rank % c->tp;
    mesh.dp_rank = has_dp ? rank / c->tp % c->dp : 0;
    mesh.pp_rank = rank / c->tp / c->dp;
    mesh.world = simulated_group("world", rank, c->tp * c->dp * c->pp);
    mesh.tp = has_tp ? simulated_group("tp", mesh.tp_rank, c->tp) : NULL;
    mesh.dp = has_dp ? simulated_group("dp", mesh.dp_rank, c->dp) : NULL;
    mesh.pp = simulated_group("pp", mesh.pp_rank, c->pp);
    return mesh;
}

static void mesh_free(const Mesh *mesh)
{
    Group *all[] = {mesh->world, mesh->tp, mesh->dp, mesh->pp};
    for (int i = 0; i < 4; i++)
        if (all[i])
            group_free(all[i]);
}

/* A set with one row of SEQ tokens, without padding: ids that are no special tokens. */
static bool open_row(const TrainConfig *c, TokenSet *set, Problem *problem)
{
    static const int32_t label;
    static int64_t begin[2];
    int32_t size = c->vocabulary_size ? c->vocabulary_size
                   : c->pretrained    ? c->model.vocabulary
                                      : 0;
    Tokenizer *tokenizer = size ? NULL : tokenizer_open(c->vocabulary, problem);
    if (!tokenizer && !size)
        return false;
    size = size ? size : tokenizer_size(tokenizer);
    const bool is_language = c->model.architecture->is_language;
    int32_t *ids = calloc((size_t)c->seq + 1, sizeof *ids);
    for (int i = 0; i <= c->seq; i++)
        ids[i] = size - 1;
    begin[1] = c->seq;
    *set = (TokenSet){.rows = 1,
                      .seq = c->seq,
                      .tokens = c->seq + 1,
                      .vocabulary = size,
                      .begin = is_language && c->pack ? NULL : begin,
                      .labels = is_language ? NULL : &label,
                      .ids = ids};
    for (int i = 0; i < SPECIAL_TOKENS; i++)
        set->special[i] = tokenizer ? tokenizer_special(tokenizer, i) : i;
    tokenizer_free(tokenizer);
    return true;
}

/* ---- the work of a step, by span and pass ---- */

enum { MOST_KINDS = 2 * MAX_SPANS };

/* What is counted now: the spans of `mesh`. */
static struct {
    const Mesh *mesh;
    double share; /* of a step's work in the mean of all steps */
    DryWork before;
    Counter exchanged[SPLIT_AXES][OPERATIONS];
    int kinds;
    WorkOf *work;
} counting;

/* The last kind also has all for which there is no room. */
static WorkOf *work_of(const char *what, bool backward)
{
    int i = 0;
    while (i < counting.kinds &&
           (strcmp(counting.work[i].what, what) != 0 || counting.work[i].backward != backward))
        i++;
    if (i == MOST_KINDS)
        i--;
    if (i == counting.kinds)
        counting.work[counting.kinds++] = (WorkOf){.what = what, .backward = backward};
    return &counting.work[i];
}

/* Adds what has been counted since the last span ended. */
static void count_span(const char *what, bool backward, double seconds)
{
    WorkOf *w = work_of(what, backward);
    const DryWork now = dry_work();
    const Group *group[SPLIT_AXES] = {mesh_tp_group(counting.mesh), counting.mesh->dp,
                                      counting.mesh->pp};
    w->multiply_adds +=
        counting.share * (double)(now.multiply_adds - counting.before.multiply_adds);
    w->bytes += counting.share * (double)(now.bytes - counting.before.bytes);
    counting.before = now;
    for (int axis = 0; axis < SPLIT_AXES; axis++)
        for (int i = 0; i < OPERATIONS; i++) {
            Counter *last = &counting.exchanged[axis][i];
            const Counter all = group_total_of(group[axis], i);
            w->calls[axis][i] += counting.share * (double)(all.calls - last->calls);
            w->sent[axis][i] += counting.share * (double)(all.bytes - last->bytes);
            *last = all;
        }
}

static void count_spans(const Mesh *mesh)
{
    memset(&counting, 0, sizeof counting);
    counting.mesh = mesh;
    counting.before = dry_work();
    counting.work = calloc(MOST_KINDS, sizeof *counting.work);
    spans_listen(count_span);
}

/* Takes a step, whose work is this share of the mean. */
static void take_step(Trainer *t, const int64_t *rows, double share)
{
    counting.share = share;
    spans_run(true);
    trainer_step(t, rows);
}

/* With AVERAGE=h, replaces `sent`, the bytes of an ordinary step, by the mean of h steps, the last of
 * which averages the weights. */
static void add_step_with_average(Trainer *t, const int64_t *rows, Sent *sent)
{
    const int64_t h = t->config->average;
    t->step = h - 1;
    take_step(t, rows, 1 / (double)h);
    const Sent after = sent_so_far(&t->mesh);
    const int64_t of_two[] = {after.tp.bytes, after.dp.bytes, after.pp.bytes, after.all.bytes};
    Counter *mean[] = {&sent->tp, &sent->dp, &sent->pp, &sent->all};
    for (int i = 0; i < 4; i++)
        mean[i]->bytes = (mean[i]->bytes * (h - 2) + of_two[i]) / h;
}

/* Simulates a step of this rank. Adds the full parameters of its stage to `parameters`. */
static bool simulate_rank(TrainConfig *config, int rank, Group *alone, TokenSet *row,
                          RankReport *report, int64_t *parameters, Problem *problem)
{
    static const volatile sig_atomic_t not_stopped;
    Trainer t = {.config = config,
                 .world = alone,
                 .stop = &not_stopped,
                 .mesh = simulated_mesh(config, rank),
                 .train = row,
                 .steps = config->average ? config->average : 1};
    memory_begin();
    const int64_t before = dry_work().multiply_adds;
    t.local_batch = config->batch / t.mesh.dp_degree;
    int64_t *rows = calloc((size_t)t.local_batch, sizeof *rows); /* each is row 0 */
    Batch *batch = batch_new(t.local_batch / config->micro, config->seq);
    t.batch = calloc((size_t)config->micro, sizeof(Batch *));
    for (int i = 0; i < config->micro; i++)
        t.batch[i] = batch; /* each micro-batch is copied to its tape before the next is read */
    const bool good = trainer_build_model(&t, config, problem);
    if (good) {
        const double h = config->average > 1 ? config->average : 1;
        count_spans(&t.mesh);
        take_step(&t, rows, h > 1 ? (h - 1) / h : 1);
        *parameters += model_full(t.model);
        *report = (RankReport){.rank = rank,
                               .parameters = model_held(t.model),
                               .sent = sent_so_far(&t.mesh),
                               .stage = t.mesh.pp_rank,
                               .blocks = t.stage->part.blocks,
                               .in_flight = t.stage->most_in_flight,
                               .multiply_adds = (double)(dry_work().multiply_adds - before)};
        if (h > 1)
            add_step_with_average(&t, rows, &report->sent);
        report->work = counting.work;
        report->kinds = counting.kinds;
    }
    report->use = memory_use();
    t.train = NULL; /* the caller's */
    memset(t.batch, 0, (size_t)config->micro * sizeof(Batch *));
    batch_free(batch);
    trainer_close(&t);
    mesh_free(&t.mesh);
    free(rows);
    return good;
}

/* Does every rank's memory suffice? memory 0: no limit. */
static bool fits(const TrainConfig *config, const RankReport *ranks, int count, int64_t memory,
                 Problem *problem)
{
    const RankReport *most = ranks;
    for (int i = 1; i < count; i++)
        most = ranks[i].use.peak_total > most->use.peak_total ? &ranks[i] : most;
    const int64_t *peak = most->use.peak;
    const char *hint =
        2 * peak[ACTIVATIONS] <= most->use.peak_total
            ? N_("the model takes the most memory: choose a larger TP or PP, or ZERO=1 with AdamW "
                 "and more replicas")
        : config->model.recompute == RECOMPUTE_BLOCKS
            ? N_("activations take the most memory: choose a smaller BATCH_SIZE or SEQ, or a larger "
                 "TP or NTASKS")
            : N_("activations take the most memory: choose RECOMPUTE=block, a smaller BATCH_SIZE or "
                 "SEQ, or a larger TP or NTASKS");
    return !memory || most->use.peak_total <= memory ||
           problem_set(problem, NULL, hint, "rank %d needs %.1f MB, and MEM allows %.1f MB",
                       most->rank, (double)most->use.peak_total / 1e6, (double)memory / 1e6);
}

/* Simulates the first rank of each stage, which has the largest shards, and RANK. */
static bool simulate_all(TrainConfig *config, Group *alone, TokenSet *row, Problem *problem)
{
    const int ranks_of_a_stage = config->dp * config->tp;
    const int64_t memory = config->memory;
    int64_t parameters = 0, held = 0, of_rank = 0;
    int count = 0;
    config->memory = 0; /* a rank that needs more is simulated, too */
    config->trace = NULL;
    config->metrics = config->counts;
    RankReport *all = calloc((size_t)config->pp + 1, sizeof *all);
    bool good = true;
    for (int stage = 0; stage < config->pp && good; stage++) {
        const int first = stage * ranks_of_a_stage;
        good = simulate_rank(config, first, alone, row, &all[count++], &parameters, problem);
        if (good && config->rank > first && config->rank < first + ranks_of_a_stage)
            good =
                simulate_rank(config, config->rank, alone, row, &all[count++], &of_rank, problem);
    }
    Range *blocks = calloc((size_t)config->pp, sizeof *blocks);
    for (int i = 0; i < count; i++)
        blocks[all[i].stage] = all[i].blocks;
    good = good && stages_share_blocks(blocks, config->pp, config->model.layers, problem);
    free(blocks);
    for (int i = 0; i < count; i++)
        held = all[i].parameters > held ? all[i].parameters : held;
    Report *report = good ? report_open(config, 0, 1, problem) : NULL;
    if (report) {
        report_model(config, parameters, held);
        report_dry_run(report, all, count,
                       transformer_work(&config->model, config->batch, config->seq));
        good = report_is_complete(report, config, problem);
        report_close(report);
    }
    good = good && report && fits(config, all, count, memory, problem);
    for (int i = 0; i < count; i++)
        free((void *)all[i].work);
    free(all);
    return good;
}

static bool rank_exists(const TrainConfig *config, Problem *problem)
{
    const int ranks = config->ranks ? config->ranks : 1;
    return config->rank < ranks ||
           problem_set(problem, NULL, N_("ranks are numbered from 0"),
                       "RANK=%d, but the last rank is %d", config->rank, ranks - 1);
}

int main(int argc, char **argv)
{
    language_begin();
    TrainConfig config;
    Problem problem = {0};
    TokenSet row = {0};
    bool good = train_config(&config, argc, argv, &problem);
    Group *alone = program_begin(argc, argv);
    signal(SIGINT, SIG_DFL); /* a dry run has nothing to save */
    signal(SIGTERM, SIG_DFL);
    good = good && train_config_check(&config, config.ranks ? config.ranks : 1, &problem) &&
           rank_exists(&config, &problem);
    dry_imitate_gpu(config.gpu);
    good = good && backend_set_products(config.amp, config.model.hidden, &problem) &&
           open_row(&config, &row, &problem);
    if (good) {
        backend_set_threads(config.threads);
        dry_set_most_rows_in_use((int64_t)config.batch * config.seq);
        good = simulate_all(&config, alone, &row, &problem);
    }
    free((void *)row.ids);
    return program_end(alone, good, &problem);
}
