/* build/checkpoint: shows the contents of a checkpoint and checks it (info), writes its full
 * weights to one file (merge), and measures the difference between two checkpoints (compare). Runs
 * without MPI. Exit status: 0, or 2 on bad input. */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "base/run.h"
#include "pretrained/hugging_face.h"

enum { BAD_INPUT = 2 };

/* common/tensor needs this function. Labs, which may misuse functions, are not linked here. */
_Noreturn void run_ends(Problem *problem, void *address)
{
    problem_print(stderr, problem);
    exit(BAD_INPUT);
}

_Noreturn void run_todo(int balise, const char *function, void *address)
{
    abort();
}

static SavedModel *open_newest(const char *folder, Problem *problem)
{
    const Path path = checkpoint_find(folder);
    SavedModel *saved = path.text[0] ? saved_model_open(path.text, problem) : NULL;
    if (saved)
        printf(_("checkpoint  %s\n"), path.text);
    if (saved && !saved_model_has_checksums(saved))
        puts(_("checksums   none: an older kit wrote it, so damaged numbers go unnoticed"));
    if (!path.text[0])
        problem_set(problem, folder, "name a folder that training with SAVE=DIR has written",
                    "there is no checkpoint");
    return saved;
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static int name_width(const CheckpointIndex *index)
{
    int width = 4;
    for (int i = 0; i < index->count; i++) {
        int length = (int)strlen(index->parameters[i].name);
        width = length > width ? length : width;
    }
    return width;
}

static bool info(const char *folder, Problem *problem)
{
    SavedModel *saved = open_newest(folder, problem);
    if (!saved || !saved_model_is_intact(saved, problem)) {
        if (saved)
            saved_model_close(saved);
        return false;
    }
    const CheckpointIndex *index = &saved->index;
    const int64_t *fit = index->fitting;
    const int files = index->tp * index->pp;
    int64_t numbers = 0;
    printf(_("step        %" PRId64 ", seed %" PRId64 ", batches of %" PRId64 " from %" PRId64
             " rows of up to %" PRId64 " tokens (contents %s)\n"),
           index->step, fit[FIT_SEED], fit[FIT_BATCH], fit[FIT_ROWS], fit[FIT_SEQ],
           index->data_key);
    printf(_("model       %" PRId64 " layers, hidden %" PRId64 ", %" PRId64
             " heads, vocabulary %" PRId64 "%s\n"),
           fit[FIT_LAYERS], fit[FIT_HIDDEN], fit[FIT_HEADS], fit[FIT_VOCABULARY],
           fit[FIT_POSITIONS] ? _(", learned positions") : "");
    printf(_("optimiser   %s, %" PRId64 " steps\n"), index->optimizer, index->optimizer_steps);
    printf(ngettext("layout      tensor parallel %d, pipeline parallel %d: %d file\n\n",
                    "layout      tensor parallel %d, pipeline parallel %d: %d files\n\n",
                    (unsigned long)files),
           index->tp, index->pp, files);
    int width = name_width(index);
    printf("%-*s  %-20s  %s\n", padded_to(_("name"), width), _("name"), _("shape"), _("placement"));
    for (int i = 0; i < index->count; i++) {
        const SavedParameter *p = &index->parameters[i];
        char placement[32];
        numbers += shape_count(p->shape);
        printf("%-*s  %-20s  %s\n", width, p->name, SHAPE_TEXT(p->shape),
               _(placement_text(p->placement, placement)));
    }
    printf(_("\n%d parameters, %" PRId64 " numbers%s\n"), index->count, numbers,
           saved_states(index) > 1 ? _(", plus as many for each of AdamW's m and v") : "");
    saved_model_close(saved);
    return true;
}

/* ---- merge --------------------------------------------------------------------------------------------- */

static real *undivided(const SavedModel *saved, const SavedParameter *p, Problem *problem)
{
    real *values = malloc((size_t)shape_count(p->shape) * sizeof *values);
    if (saved_model_read(saved, 0, p, 0, (Range){0, p->shape.size[0]}, values, problem))
        return values;
    free(values);
    return NULL;
}

/* Writes one full parameter at a time, so memory never holds more than the largest one. */
static bool put_weights(const SavedModel *saved, SafetensorsWriter *writer, Problem *problem)
{
    for (int i = 0; i < saved->index.count; i++) {
        const SavedParameter *p = &saved->index.parameters[i];
        real *values = undivided(saved, p, problem);
        if (!values)
            return false;
        safetensors_put(writer, values, shape_count(p->shape));
        free(values);
    }
    return true;
}

static SafetensorsWriter *begin_merged(const SavedModel *saved, const char *path, Problem *problem)
{
    static const OutputKind merged = {.name = N_("a merged checkpoint"),
                                      .mark = "{\"format\":\"pt\",\"step\":"};
    char step[32];
    snprintf(step, sizeof step, "%" PRId64, saved->index.step);
    const char *const metadata[] = {"format", "pt", "step", step, NULL};
    SafeTensor *tensors = calloc((size_t)saved->index.count, sizeof *tensors);
    for (int i = 0; i < saved->index.count; i++)
        tensors[i] = (SafeTensor){.name = saved->index.parameters[i].name,
                                  .shape = saved->index.parameters[i].shape};
    SafetensorsWriter *writer =
        safetensors_begin(path, tensors, saved->index.count, metadata, &merged, problem);
    free(tensors);
    return writer;
}

static bool merge(const char *folder, const char *out, Problem *problem)
{
    SavedModel *saved = open_newest(folder, problem);
    SafetensorsWriter *writer = saved ? begin_merged(saved, out, problem) : NULL;
    bool good = writer && put_weights(saved, writer, problem);
    if (good)
        good = safetensors_end(writer, problem);
    else if (writer)
        safetensors_drop(writer);
    if (good)
        printf(_("merged      %s: %d full parameters of step %" PRId64 "\n"), out,
               saved->index.count, saved->index.step);
    if (saved)
        saved_model_close(saved);
    return good;
}

/* Writes a folder in Hugging Face's format instead of one file. */
static bool merge_hf(const char *folder, const char *out, Problem *problem)
{
    if (*checkpoint_find(out).text)
        return problem_set(problem, out, "name another folder", "this folder holds a checkpoint");
    SavedModel *saved = open_newest(folder, problem);
    const bool good = saved && hugging_face_write(saved, out, problem);
    if (good)
        printf(_("merged      %s: config.json and model.safetensors of step %" PRId64 "\n"), out,
               saved->index.step);
    if (saved)
        saved_model_close(saved);
    return good;
}

/* ---- compare ------------------------------------------------------------------------------------------- */

/* The largest difference between a parameter's numbers in two checkpoints; -1 with `problem` if
 * they cannot be compared. */
static double apart(const SavedModel *a, const SavedModel *b, const SavedParameter *p,
                    Problem *problem)
{
    const SavedParameter *other = checkpoint_index_find(&b->index, p->name);
    if (!other || !shape_equal(other->shape, p->shape)) {
        problem_set(problem, NULL, "compare checkpoints of one model",
                    "parameter %s is missing from one of the checkpoints, or has a different shape "
                    "there",
                    p->name);
        return -1;
    }
    real *x = undivided(a, p, problem), *y = x ? undivided(b, other, problem) : NULL;
    double largest = y ? 0 : -1;
    for (int64_t i = 0, count = shape_count(p->shape); y && i < count; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= largest)) /* detects NaN too */
            largest = fabs((double)x[i] - (double)y[i]);
    free(x);
    free(y);
    return largest;
}

/* Prints the largest difference in any weight. The two checkpoints may have different layouts. */
static bool compare(const char *folder_a, const char *folder_b, Problem *problem)
{
    SavedModel *a = open_newest(folder_a, problem), *b = a ? open_newest(folder_b, problem) : NULL;
    double largest = 0, one = 0;
    for (int i = 0; b && one >= 0 && i < a->index.count; i++) {
        one = apart(a, b, &a->index.parameters[i], problem);
        largest = one > largest ? one : largest;
    }
    if (b && one >= 0)
        printf("largest difference in any weight: %.9g\n", largest);
    bool good = b && one >= 0;
    if (a)
        saved_model_close(a);
    if (b)
        saved_model_close(b);
    return good;
}

int main(int argc, char **argv)
{
    language_begin();
    problem_if_output_is_lost();
    Problem problem = {0};
    bool good;
    signal(SIGXFSZ, SIG_IGN); /* exceeding a file size limit must only fail the write */
    if (argc == 3 && !strcmp(argv[1], "info"))
        good = info(argv[2], &problem);
    else if (argc == 4 && !strcmp(argv[1], "merge"))
        good = merge(argv[2], argv[3], &problem);
    else if (argc == 5 && !strcmp(argv[1], "merge") && !strcmp(argv[4], "--hf"))
        good = merge_hf(argv[2], argv[3], &problem);
    else if (argc == 4 && !strcmp(argv[1], "compare"))
        good = compare(argv[2], argv[3], &problem);
    else
        good = problem_set(
            &problem, NULL,
            "checkpoint info DIR, checkpoint merge DIR OUT.safetensors, checkpoint merge DIR OUT "
            "--hf, or checkpoint compare DIR DIR; DIR is a SAVE folder or one "
            "checkpoint in it",
            "checkpoint does not take these arguments");
    if (!good)
        problem_print(stderr, &problem);
    return good ? 0 : BAD_INPUT;
}
