/* Saves and resumes a run. */
#include "train/checkpoint_states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/language.h"
#include "checkpoint/checkpoint.h"

/* ---- the contents of a checkpoint ---------------------------------------------------------------------- */

static void data_key(const TokenSet *set, char key[DATA_KEY_SIZE])
{
    const size_t rows = (size_t)set->rows;
    XXH64_hash_t hash = XXH3_64bits(set->ids, (size_t)set->tokens * sizeof *set->ids);
    if (set->labels)
        hash = XXH3_64bits_withSeed(set->labels, rows * sizeof *set->labels, hash);
    if (set->begin)
        hash = XXH3_64bits_withSeed(set->begin, (rows + 1) * sizeof *set->begin, hash);
    if (!set->labels)
        hash = XXH3_64bits_withSeed(&set->seq, sizeof set->seq, hash);
    snprintf(key, DATA_KEY_SIZE, "%016" PRIx64, (uint64_t)hash);
}

/* One parameter in the list that a stage broadcasts to the other stages. */
typedef struct Listed {
    char name[200]; /* "" after the last one */
    Shape shape;
    Placement placement;
    bool is_copy;
} Listed;

static Listed listed_by(const Mesh *mesh, int stage, const Parameter *p)
{
    Listed one = {.name = ""};
    if (p) {
        one = (Listed){.shape = p->shape, .placement = p->placement};
        one.is_copy = parameter_is_copy(p, mesh);
        snprintf(one.name, sizeof one.name, "%s", p->name);
    }
    if (mesh->pp)
        MPI_Bcast(&one, sizeof one, MPI_BYTE, stage, group_comm(mesh->pp));
    return one;
}

/* The parameters of all stages. Collective. */
static void list_parameters(const Trainer *t, CheckpointIndex *index)
{
    const Mesh *mesh = &t->mesh;
    for (int stage = 0; stage < mesh->pp_degree; stage++) {
        const Parameter *p = stage == mesh->pp_rank ? t->model->parameters : NULL;
        Listed one;
        for (; (one = listed_by(mesh, stage, p)).name[0]; p = p ? p->next : NULL) {
            if (one.is_copy)
                continue;
            index->parameters =
                realloc(index->parameters, (size_t)(index->count + 1) * sizeof *index->parameters);
            index->parameters[index->count++] =
                (SavedParameter){strdup(one.name), one.shape, one.placement, stage};
        }
    }
}

/* The index that this run would write now; free it with checkpoint_index_clear(). Collective. */
static CheckpointIndex index_of(const Trainer *t)
{
    const TrainConfig *c = t->config;
    const TransformerConfig *b = &c->model;
    CheckpointIndex index = {.step = t->step,
                             .tp = t->mesh.tp_degree,
                             .pp = t->mesh.pp_degree,
                             .optimizer_steps = t->optimizer->steps,
                             .epsilon = b->epsilon,
                             .rotary = b->rotary,
                             .dropout = b->dropout,
                             .tokenizer = realpath(c->vocabulary, NULL),
                             .loss_scale = t->scaler.scale,
                             .good_steps = t->scaler.good,
                             .loss_sum = t->epoch.loss_sum,
                             .correct = t->epoch.correct,
                             .seen = t->epoch.count,
                             .fitting = {[FIT_LAYERS] = b->layers,
                                         [FIT_HIDDEN] = b->hidden,
                                         [FIT_HEADS] = b->heads,
                                         [FIT_VOCABULARY] = b->vocabulary,
                                         [FIT_CLASSES] = b->classes,
                                         [FIT_POSITIONS] = b->positions,
                                         [FIT_KV_HEADS] = b->kv_heads,
                                         [FIT_INNER] = b->inner,
                                         [FIT_OWN_HEAD] = b->own_head,
                                         [FIT_ROWS] = t->rows,
                                         [FIT_BATCH] = c->batch,
                                         [FIT_SEQ] = c->seq,
                                         [FIT_SEED] = (int64_t)c->seed}};
    snprintf(index.architecture, sizeof index.architecture, "%s", b->architecture->name);
    snprintf(index.optimizer, sizeof index.optimizer, "%s",
             c->optimizer.kind == ADAMW ? "adamw" : "sgd");
    data_key(t->train, index.data_key);
    list_parameters(t, &index);
    return index;
}

/* ---- saving -------------------------------------------------------------------------------------------- */

/* Does this rank write its shard? Of the ranks that hold it, the lowest one writes it, whatever a
 * lab has set in the mesh's dp fields. */
static bool writes_shard(const Trainer *t)
{
    MPI_Comm holders;
    int rank;
    const Mesh *mesh = &t->mesh;
    MPI_Comm_split(group_comm(t->world), mesh->pp_rank * mesh->tp_degree + mesh->tp_rank, 0,
                   &holders);
    MPI_Comm_rank(holders, &rank);
    MPI_Comm_free(&holders);
    return rank == 0;
}

/* Tensors that are whole on every rank are written once. */
static bool is_written(const Trainer *t, const Parameter *p)
{
    return !parameter_is_copy(p, &t->mesh) && (p->placement.kind == SHARD || t->mesh.tp_rank == 0);
}

/* Writes this rank's shard, if `writes` is set. Every replica must call it: with ZERO=1, each sends
 * its part of the states. */
static bool write_shard(const Trainer *t, const CheckpointIndex *index, const Checksum *checksum,
                        const char *folder, bool writes, Problem *problem)
{
    char step[32], rank[32];
    snprintf(step, sizeof step, "%" PRId64, t->step);
    snprintf(rank, sizeof rank, "%d", t->mesh.pp_rank * t->mesh.tp_degree + t->mesh.tp_rank);
    const char *const metadata[] = {"step", step, "rank", rank, "index", checksum->digits, NULL};
    int states = saved_states(index), count = 0;
    SafeTensor *tensors = calloc((size_t)index->count * (size_t)states, sizeof *tensors);
    for (int state = 0; state < states; state++)
        for (const Parameter *p = t->model->parameters; p; p = p->next)
            if (is_written(t, p))
                tensors[count++] =
                    (SafeTensor){.name = saved_name(state, p->name), .shape = p->value->shape};
    SafetensorsWriter *writer =
        writes ? safetensors_begin(shard_path(folder, index, t->mesh.pp_rank, t->mesh.tp_rank).text,
                                   tensors, count, metadata, NULL, problem)
               : NULL;
    for (int state = 0; state < states; state++)
        for (const Parameter *p = t->model->parameters; p; p = p->next)
            if (is_written(t, p))
                state_put(t, writer, p, state);
    while (count > 0)
        free((char *)tensors[--count].name);
    free(tensors);
    return !writes || (writer && safetensors_end(writer, problem));
}

/* The first parameter with a number that is not finite, or NULL. */
static const Parameter *not_finite(const Trainer *t, const CheckpointIndex *index)
{
    for (int state = 0; state < saved_states(index); state++)
        for (const Parameter *p = t->model->parameters; p; p = p->next)
            if (!state_is_finite(t, p, state))
                return p;
    return NULL;
}

/* Rejects numbers that are not finite: a run that has diverged must not replace a good
 * checkpoint. */
static bool may_be_saved(const Trainer *t, const CheckpointIndex *index, Problem *problem)
{
    char hint[HINT_SIZE];
    const Parameter *p = not_finite(t, index);
    return !p || problem_set(problem, p->name, hint_on_divergence(t, hint),
                             "the run has diverged: after step %lld a parameter is no longer "
                             "finite, and no checkpoint is written",
                             (long long)t->step);
}

static bool save(Trainer *t, Problem *problem)
{
    const char *folder = t->config->save;
    bool first = group_rank(t->world) == 0, writes = writes_shard(t);
    CheckpointIndex index = index_of(t);
    bool good = agree(t->world, may_be_saved(t, &index, problem), problem) &&
                agree(t->world, !first || checkpoint_begin(folder, t->step, problem), problem);
    if (!good) {
        checkpoint_index_clear(&index);
        return false;
    }
    if (t->report)
        report_sync(t->report); /* so the metrics of every step before the checkpoint are on disk */
    const Path partial = checkpoint_path(folder, t->step, true);
    Checksum checksum = checkpoint_index_checksum(&index);
    /* All ranks use the checksum of rank 0, which writes the index: the epoch's sums differ between
     * replicas. */
    MPI_Bcast(&checksum, sizeof checksum, MPI_BYTE, 0, group_comm(t->world));
    good =
        agree(t->world, write_shard(t, &index, &checksum, partial.text, writes, problem), problem);
    if (good)
        good = agree(t->world,
                     !first || (checkpoint_index_write(&index, partial.text, problem) &&
                                checkpoint_commit(folder, t->step, problem)),
                     problem);
    if (!good && first)
        checkpoint_abandon(folder, t->step);
    checkpoint_index_clear(&index);
    t->saved_step = t->step;
    return good;
}

bool checkpoint_save(Trainer *t, bool last, Problem *problem)
{
    const TrainConfig *c = t->config;
    bool due = c->save && (last || (c->save_every && t->step % c->save_every == 0));
    return !due || t->saved_step == t->step || save(t, problem);
}

/* ---- resuming ------------------------------------------------------------------------------------------ */

static bool read_parameter(Trainer *t, const SavedModel *saved, const Parameter *p,
                           Problem *problem)
{
    const SavedParameter *found = checkpoint_index_find(&saved->index, p->name);
    const char *hint =
        N_("name a checkpoint of this model: checkpoint info DIR lists what one holds");
    if (!found)
        return problem_set(problem, t->resumed.text, hint, "the checkpoint has no parameter %s",
                           p->name);
    if (!shape_equal(found->shape, p->shape))
        return problem_set(problem, t->resumed.text, hint,
                           "parameter %s has shape %s in the checkpoint, but %s in this run",
                           p->name, SHAPE_TEXT(found->shape), SHAPE_TEXT(p->shape));
    bool good = true;
    for (int state = 0; good && state < saved_states(&saved->index); state++)
        good = state_read(t, saved, p, state, found, problem);
    return good;
}

static bool read_checkpoint(Trainer *t, Problem *problem)
{
    CheckpointIndex run = index_of(t); /* collective, so it comes before anything that may fail */
    SavedModel *saved = saved_model_open(t->resumed.text, problem);
    if (!saved) {
        checkpoint_index_clear(&run);
        return false;
    }
    bool good = checkpoint_index_fits(&saved->index, &run, t->resumed.text, problem);
    if (good && saved->index.step > t->steps)
        good = problem_set(problem, t->resumed.text, "choose more EPOCHS or STEPS",
                           "the checkpoint is of step %" PRId64 ", but this run ends at "
                           "step %" PRId64,
                           saved->index.step, t->steps);
    if (good && saved->index.count != run.count)
        good = problem_set(problem, t->resumed.text, "name a checkpoint of this model",
                           "the checkpoint has %d parameters, but this run's model has %d",
                           saved->index.count, run.count);
    for (const Parameter *p = t->model->parameters; good && p; p = p->next)
        good = read_parameter(t, saved, p, problem);
    if (good && not_finite(t, &run))
        good =
            problem_set(problem, t->resumed.text,
                        "the run that wrote it had diverged: resume from an older checkpoint, "
                        "RESUME=DIR/step-...",
                        "parameter %s is not finite in the checkpoint", not_finite(t, &run)->name);
    if (good && group_rank(t->world) == 0 && !saved_model_has_checksums(saved))
        fprintf(stderr, _("warning: %s has no checksums, so damaged numbers go unnoticed\n"),
                t->resumed.text);
    if (good) {
        model_weights_changed(t->model);
        t->step = t->first_step = t->saved_step = saved->index.step;
        t->epoch = (Metrics){saved->index.loss_sum, saved->index.correct, saved->index.seen};
        optimizer_resume(t->optimizer, saved->index.optimizer_steps);
        if (t->scaler.scale > 0 && saved->index.loss_scale > 0) {
            t->scaler.scale = saved->index.loss_scale;
            t->scaler.good = saved->index.good_steps;
        }
    }
    checkpoint_index_clear(&run);
    saved_model_close(saved);
    return good;
}

bool checkpoint_resume(Trainer *t, Problem *problem)
{
    if (!t->resumed.text[0])
        return true;
    if (!agree(t->world, read_checkpoint(t, problem), problem))
        return false;
    const char *metrics = t->config->metrics;
    bool good = group_rank(t->world) != 0 || !metrics ||
                metrics_keep(metrics, t->step, t->steps_an_epoch, problem);
    return agree(t->world, good, problem);
}
