/* Opens and closes a run: data, model, report. */
#include <math.h>
#include <stdlib.h>

#include "backend/host_view.h"
#include "base/optional_labs.h"
#include "pretrained/pretrained.h"
#include "train/trainer.h"

/* Rank 0 makes the token cache if necessary; then the other ranks find it. If a rank fails, all
 * return NULL with its problem. */
static TokenSet *open_set(const Trainer *t, const char *path, Problem *problem)
{
    const TrainConfig *c = t->config;
    TokenSet *(*open)(const char *, const char *, int64_t, const char *, Problem *) =
        !c->model.architecture->is_language ? token_set_open_reviews
        : c->pack                           ? token_set_open_text
                                            : token_set_open_documents;
    TokenSet *set = NULL;
    for (int turn = 0; turn < 2; turn++) {
        if ((group_rank(t->world) == 0) == (turn == 0))
            set = open(path, c->vocabulary, c->seq, c->cache, problem);
        if (!agree(t->world, set || (group_rank(t->world) == 0) != (turn == 0), problem)) {
            token_set_close(set);
            return NULL;
        }
    }
    return set;
}

static Sampler sampler_of(int64_t rows, uint64_t seed, Tail tail)
{
    Sampler sampler = {.rows = rows, .seed = seed, .tail = tail};
    sampler.order = malloc((size_t)rows * sizeof(int64_t));
    sampler.mine = malloc((size_t)rows * sizeof(int64_t));
    return sampler;
}

bool trainer_open_data(Trainer *t, Problem *problem)
{
    const TrainConfig *c = t->config;
    t->train = open_set(t, c->data, problem);
    if (!t->train || (c->test && !(t->test = open_set(t, c->test, problem))))
        return false;
    if (c->model.architecture->is_masked && t->train->special[MASK_TOKEN] < 0)
        return problem_set(problem, c->vocabulary,
                           N_("TASK=mlm takes a BERT vocabulary, such as data/reviews/vocab.txt"),
                           "the tokenizer has no token [MASK]");
    t->rows = c->samples && c->samples < t->train->rows ? c->samples : t->train->rows;
    if (t->rows < c->batch)
        return problem_set(problem, c->data, "choose a smaller BATCH_SIZE or more SAMPLES",
                           "a batch of %d rows is larger than the data, which has %lld rows",
                           c->batch, (long long)t->rows);
    t->steps_an_epoch = t->rows / c->batch;
    t->steps = t->steps_an_epoch * c->epochs;
    if (c->steps && c->steps < t->steps)
        t->steps = c->steps;
    t->step_seconds = calloc((size_t)t->steps, sizeof *t->step_seconds);
    t->wait_seconds = calloc((size_t)t->steps, sizeof *t->wait_seconds);
    if (!t->step_seconds || !t->wait_seconds)
        return problem_set(problem, NULL, "choose fewer EPOCHS",
                           "%lld steps are more than this machine can count", (long long)t->steps);
    t->sampler = sampler_of(t->rows, c->seed, DROP);
    if (t->test)
        t->test_sampler = sampler_of(t->test->rows, c->seed, EVERY_ROW_ONCE);
    t->local_batch = c->batch / t->mesh.dp_degree;
    t->batch = calloc((size_t)c->micro, sizeof(Batch *));
    for (int i = 0; i < c->micro; i++)
        t->batch[i] = batch_new(t->local_batch / c->micro, c->seq);
    return true;
}

/* For tests of layouts: moves each weight by one unit in the last place (see
 * TrainConfig.perturb). */
static void perturb(Trainer *t)
{
    for (Parameter *p = t->model->parameters; p; p = p->next) {
        PhiloxKey key = philox_key(t->config->perturb, p->name, 1);
        HostView view = host_view_read(reals(p->value), tensor_count(p->value));
        for (int64_t i = 0; i < view.count; i++) {
            bool down = philox_uniform_at(key, (uint64_t)parameter_global_index(p, i)) < 0.5;
            view.numbers[i] = (real)nextafterf((float)view.numbers[i], down ? -INFINITY : INFINITY);
        }
        host_view_store(&view);
    }
    model_weights_changed(t->model);
}

/* DDP's 25 MB, or less for a small model. So a small model, too, has several buckets, and its
 * reduction begins before the backward pass ends. */
static int64_t bucket_bytes(const Model *model)
{
    const int64_t most = 25 << 20;
    int64_t share = model->arena_size * (int64_t)sizeof(real) / 8;
    return share < most ? share : most;
}

bool stages_share_blocks(const Range *blocks, int stages, int layers, Problem *problem)
{
    const char *hint =
        N_("stage_blocks of lab 12 gives each block to one stage: make grade LAB=12 checks it");
    int64_t end = 0;
    for (int stage = 0; stage < stages; stage++) {
        if (blocks[stage].begin != end)
            return problem_set(problem, NULL, hint,
                               "stage %d begins with block %lld, but the stages before it end "
                               "before block %lld",
                               stage, (long long)blocks[stage].begin, (long long)end);
        end = blocks[stage].end;
    }
    return end == layers ||
           problem_set(problem, NULL, hint, "the last stage ends before block %lld of %d",
                       (long long)end, layers);
}

/* In a dry run, there is no other stage to ask. */
static bool stages_fit(const Trainer *t, Problem *problem)
{
    const Mesh *mesh = &t->mesh;
    const Range mine = t->stage->part.blocks;
    if (backend_only_counts())
        return true;
    Range *all = calloc((size_t)mesh->pp_degree, sizeof *all);
    all[0] = mine;
    if (mesh->pp)
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE,
                      group_comm(mesh->pp));
    const bool good = stages_share_blocks(all, mesh->pp_degree, t->config->model.layers, problem);
    free(all);
    return good;
}

/* Sets the size of the vocabulary. A pretrained model and its tokenizer must have the same number
 * of tokens. */
static bool take_vocabulary(const Trainer *t, TrainConfig *config, Problem *problem)
{
    const int of_data = t->train->vocabulary, of_model = config->model.vocabulary;
    config->model.vocabulary = of_data;
    return !config->pretrained || of_data == of_model ||
           problem_set(problem, config->pretrained,
                       N_("VOCAB= names the tokenizer that the model was trained with"),
                       "the model has %d tokens, but its tokenizer has %d", of_model, of_data);
}

/* Does the program have the labs that its settings need? */
static bool has_labs(const TrainConfig *c, Problem *problem)
{
    const struct {
        bool is_set;
        const char *setting;
        int lab;
    } needed[] = {{c->ring, "ALLREDUCE=ring", 15},
                  {c->average > 0, "AVERAGE", 16},
                  {c->zero > 0, "ZERO", 17},
                  {c->model.sequence_parallel, "SP", 18},
                  {c->model.recompute != RECOMPUTE_NOTHING, "RECOMPUTE", 19}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (needed[i].is_set && !has_lab(needed[i].lab))
            return problem_set(
                problem, NULL, N_("solve this lab and leave out UPTO, or leave out STACK"),
                "%s is set, but this stack has no lab %d", needed[i].setting, needed[i].lab);
    return true;
}

static void sum_around_ring(Group *group, Tensor *x)
{
    ring_reduce_scatter(group, x);
    ring_all_gather(group, x);
}

/* Applies ALLREDUCE=ring. */
static bool take_ring(const Trainer *t, Problem *problem)
{
    Group *replicas = t->mesh.dp_degree > 1 ? t->mesh.dp : NULL;
    group_sum_by(NULL, NULL);
    if (!t->config->ring)
        return true;
    if (!replicas)
        return problem_set(problem, NULL,
                           N_("choose NTASKS larger than TP times PP: the ring sums gradients over "
                              "replicas"),
                           "ALLREDUCE=ring, but there is only one replica");
    if (!group_is_over_mpi(replicas))
        return problem_set(problem, NULL,
                           N_("leave out ALLREDUCE, or start more ranks than there are GPUs"),
                           "ALLREDUCE=ring: lab 15 sends messages through MPI, but the replicas "
                           "communicate through NCCL");
    group_sum_by(replicas, sum_around_ring);
    return true;
}

static bool load_pretrained(const Trainer *t, Problem *problem)
{
    if (!t->config->pretrained || backend_only_counts())
        return true;
    Pretrained *from = pretrained_open(t->config->pretrained, problem);
    const bool good = from && pretrained_load(from, t->model, problem);
    pretrained_close(from);
    return good;
}

bool trainer_build_model(Trainer *t, TrainConfig *config, Problem *problem)
{
    if (!has_labs(config, problem) || !take_vocabulary(t, config, problem))
        return false;
    t->pool = pool_new(config->memory, false);
    t->model = model_new(t->pool, &t->mesh, config->seed);
    t->stage = stage_new(t->model, &config->model, config->micro);
    trainer_watch_stage(t);
    model_finish(t->model);
    if (config->amp == FP16)
        t->scaler.scale = SCALE_AT_FIRST;
    if (precision_is_16_bits(config->amp))
        model_keep_rounded(t->model);
    t->buckets = bucket_set_new(t->model, bucket_bytes(t->model));
    t->replicas = replicas_as_set(config);
    t->optimizer = t->replicas->optimizer(t->model, &config->optimizer);
    const bool good = agree(t->world, stages_fit(t, problem), problem) &&
                      agree(t->world, take_ring(t, problem), problem) &&
                      agree(t->world, load_pretrained(t, problem), problem);
    if (good && config->perturb)
        perturb(t);
    return good;
}

void trainer_close(Trainer *t)
{
    if (t->optimizer) {
        bucket_set_free(t->buckets);
        optimizer_free(t->optimizer);
        stage_free(t->stage);
        model_free(t->model);
        pool_free(t->pool);
    }
    if (t->save_lock)
        checkpoint_folder_close(t->save_lock, t->config->save, t->save_made);
    for (int i = 0; t->batch && i < t->config->micro; i++)
        batch_free(t->batch[i]);
    free(t->batch);
    token_set_close(t->train);
    token_set_close(t->test);
    if (t->report)
        report_close(t->report);
    free(t->sampler.order);
    free(t->sampler.mine);
    free(t->test_sampler.order);
    free(t->test_sampler.mine);
    free(t->step_seconds);
    free(t->wait_seconds);
}

bool trainer_open_report(Trainer *t, Problem *problem)
{
    if (group_rank(t->world) == 0)
        t->report = report_open(t->config, t->first_step, t->steps, problem);
    if (!agree(t->world, t->report || group_rank(t->world) != 0, problem))
        return false;
    int64_t parameters = model_full(t->model), held = model_held(t->model);
    if (t->mesh.pp)
        MPI_Allreduce(MPI_IN_PLACE, &parameters, 1, MPI_INT64_T, MPI_SUM, group_comm(t->mesh.pp));
    MPI_Allreduce(MPI_IN_PLACE, &held, 1, MPI_INT64_T, MPI_MAX, group_comm(t->world));
    if (t->report) {
        report_configuration(t->config, parameters, held, t->rows, t->test ? t->test->rows : 0,
                             t->steps);
        checkpoint_describe(t);
    }
    return true;
}
