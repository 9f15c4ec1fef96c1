/* Opens a checkpoint, and reads parts of its tensors. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/language.h"
#include "checkpoint/checkpoint.h"

const char *const saved_state[SAVED_STATES] = {"weight", "m", "v"};

char *saved_name(int state, const char *parameter)
{
    return strdup(path_in(saved_state[state], parameter).text);
}

int saved_states(const CheckpointIndex *index)
{
    return !strcmp(index->optimizer, "adamw") ? SAVED_STATES : 1;
}

static int files_of(const CheckpointIndex *index)
{
    return index->pp * index->tp;
}

Path shard_path(const char *folder, const CheckpointIndex *index, int stage, int part)
{
    char name[64];
    snprintf(name, sizeof name, "rank-%d-of-%d.safetensors", stage * index->tp + part,
             files_of(index));
    return path_in(folder, name);
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static int holders(const CheckpointIndex *index, const SavedParameter *p)
{
    return p->placement.kind == SHARD ? index->tp : 1;
}

static const Safetensors *file_with(const SavedModel *saved, const SavedParameter *p, int rank)
{
    return saved->file[p->stage * saved->index.tp + rank];
}

/* This tp rank's part of a parameter's state, or NULL if it is missing. */
static const SafeTensor *part_in(const SavedModel *saved, int rank, int state,
                                 const SavedParameter *p)
{
    char *name = saved_name(state, p->name);
    const SafeTensor *part = safetensors_find(file_with(saved, p, rank), name);
    free(name);
    return part;
}

static bool check_part(const SavedModel *saved, int rank, int state, const SavedParameter *p,
                       Problem *problem)
{
    const SafeTensor *part = part_in(saved, rank, state, p);
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): tp is at least 1, so open_one() has opened the file */
    const char *path = file_with(saved, p, rank)->path,
               *hint = N_("use another copy of the checkpoint");
    int dim = p->placement.kind == SHARD ? p->placement.dim : -1;
    if (!part)
        return problem_set(problem, path, hint, "%s of %s is missing", saved_state[state], p->name);
    bool good = part->shape.rank == p->shape.rank;
    for (int d = 0; good && d < p->shape.rank; d++)
        good = d == dim || part->shape.size[d] == p->shape.size[d];
    return good ||
           problem_set(problem, path, hint, "%s of %s has shape %s, which is not a part of %s",
                       saved_state[state], p->name, SHAPE_TEXT(part->shape), SHAPE_TEXT(p->shape));
}

static bool check_parts(const SavedModel *saved, int state, const SavedParameter *p,
                        const char *folder, Problem *problem)
{
    int64_t sum = 0;
    for (int rank = 0; rank < holders(&saved->index, p); rank++) {
        if (!check_part(saved, rank, state, p, problem))
            return false;
        sum += part_in(saved, rank, state, p)->shape.size[p->placement.dim];
    }
    if (sum == p->shape.size[p->placement.dim])
        return true;
    return problem_set(
        problem, folder, "use another copy of the checkpoint",
        "the parts of %s of %s have %lld rows in all along dimension %d, but the parameter's shape "
        "is %s",
        saved_state[state], p->name, (long long)sum, p->placement.dim, SHAPE_TEXT(p->shape));
}

/* Did rank `number` write this shard together with this index? In a shard of an older kit, only the
 * step can be checked. */
static bool belongs(const SavedModel *saved, int number, const char *hint, Problem *problem)
{
    const Safetensors *file = saved->file[number];
    const char *step = safetensors_metadata(file, "step"),
               *writer = safetensors_metadata(file, "rank"),
               *index = safetensors_metadata(file, "index"),
               *expected = saved->index.read_checksum.digits;
    char here[32];
    snprintf(here, sizeof here, "%lld", (long long)saved->index.step);
    if (!step || strcmp(step, here))
        return problem_set(problem, file->path, hint,
                           "this shard is from step %.32s, but its checkpoint is from step %s",
                           clean_name(step ? step : "?").text, here);
    snprintf(here, sizeof here, "%d", number);
    if (writer && strcmp(writer, here))
        return problem_set(problem, file->path, hint,
                           "this is the shard of rank %.32s, not of rank %s",
                           clean_name(writer).text, here);
    return !index || !*expected || !strcmp(index, expected) ||
           problem_set(problem, file->path, hint,
                       "this shard belongs to another checkpoint: it was not written together "
                       "with this index.json");
}

static bool open_file(SavedModel *saved, const char *folder, int file, Problem *problem)
{
    const int tp = saved->index.tp;
    const Path path = shard_path(folder, &saved->index, file / tp, file % tp);
    const char *hint =
        N_("copy all files of the checkpoint, or use an older one: RESUME=DIR/step-...");
    if (access(path.text, F_OK))
        return files_of(&saved->index) > 1
                   ? problem_set(problem, path.text, hint,
                                 "a shard is missing: the checkpoint should have %d of them",
                                 files_of(&saved->index))
                   : problem_set(problem, path.text, hint,
                                 "the only shard of the checkpoint is missing");
    saved->file[file] = safetensors_open(path.text, problem);
    return saved->file[file] && belongs(saved, file, hint, problem);
}

static SavedModel *open_one(const char *folder, Problem *problem)
{
    SavedModel *saved = calloc(1, sizeof *saved);
    bool good = checkpoint_index_read(&saved->index, folder, problem);
    if (!good) {
        free(saved);
        return NULL;
    }
    saved->folder = strdup(folder);
    saved->file = calloc((size_t)files_of(&saved->index), sizeof(Safetensors *));
    for (int file = 0; good && file < files_of(&saved->index); file++)
        good = open_file(saved, folder, file, problem);
    for (int i = 0; good && i < saved->index.count; i++)
        for (int state = 0; good && state < saved_states(&saved->index); state++)
            good = check_parts(saved, state, &saved->index.parameters[i], folder, problem);
    if (good)
        return saved;
    saved_model_close(saved);
    return NULL;
}

static bool numbers_are_intact(const SavedModel *saved, Problem *problem)
{
    bool good = true;
    for (int n = 0; good && n < files_of(&saved->index); n++) {
        const Safetensors *file = saved->file[n];
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): open_one() has opened all files */
        for (int i = 0; good && i < file->count; i++) {
            real *numbers = malloc((size_t)shape_count(file->tensors[i].shape) * sizeof(real));
            good = safetensors_read(file, &file->tensors[i], numbers, problem);
            free(numbers);
        }
    }
    return good;
}

/* Names an older, intact checkpoint in the hint, if there is one. */
static void hint_at_older(const char *folder, Problem *problem)
{
    Problem ignored;
    SavedModel *saved = NULL;
    Path older = checkpoint_before(folder);
    while (older.text[0] && !saved) {
        saved = open_one(older.text, &ignored);
        if (saved && !numbers_are_intact(saved, &ignored)) {
            saved_model_close(saved);
            saved = NULL;
        }
        if (!saved)
            older = checkpoint_before(older.text);
    }
    if (saved) {
        snprintf(problem->hint, sizeof problem->hint,
                 _("use another copy of it, or move it away: the older %.300s beside it is intact"),
                 older.text);
        saved_model_close(saved);
    }
}

SavedModel *saved_model_open(const char *folder, Problem *problem)
{
    SavedModel *saved = open_one(folder, problem);
    if (!saved)
        hint_at_older(folder, problem);
    return saved;
}

void saved_model_close(SavedModel *saved)
{
    for (int file = 0; file < files_of(&saved->index); file++)
        if (saved->file[file])
            safetensors_close(saved->file[file]);
    free(saved->file);
    free(saved->folder);
    checkpoint_index_clear(&saved->index);
    free(saved);
}

bool saved_model_is_intact(const SavedModel *saved, Problem *problem)
{
    bool good = numbers_are_intact(saved, problem);
    if (!good)
        hint_at_older(saved->folder, problem);
    return good;
}

bool saved_model_has_checksums(const SavedModel *saved)
{
    bool all = true;
    for (int file = 0; file < files_of(&saved->index); file++)
        all = all && saved->file[file]->has_checksums;
    return all;
}

/* ---- parts --------------------------------------------------------------------------------------------- */

bool saved_model_read(const SavedModel *saved, int state, const SavedParameter *p, int dim,
                      Range held, real *values, Problem *problem)
{
    const Box wanted = box_of(p->shape, dim, held);
    bool good = true;
    int64_t begin = 0;
    for (int rank = 0; good && rank < holders(&saved->index, p); rank++) {
        const SafeTensor *part = part_in(saved, rank, state, p);
        const int64_t end = begin + part->shape.size[p->placement.dim];
        const Box place = box_of(p->shape, p->placement.dim, (Range){begin, end});
        good =
            safetensors_read_box(file_with(saved, p, rank), part, &place, &wanted, values, problem);
        if (!good)
            hint_at_older(saved->folder, problem);
        begin = end;
    }
    return good;
}
