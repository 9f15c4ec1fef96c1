/* A folder in Hugging Face's format: which tensor is which parameter, and this rank's part of
 * it. */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/language.h"
#include "checkpoint/safetensors.h"
#include "pretrained/hugging_face.h"
#include "pretrained/internal.h"

typedef struct Folder {
    const HuggingFaceModel *model;
    SafetensorsFolder *files;
    bool has_prefix;
} Folder;

/* ---- names --------------------------------------------------------------------------------------------- */

enum { NAME_SIZE = 256 };

/* Writes Hugging Face's name for a parameter; `block` is -1 for one outside the blocks. */
static void name_of(const Folder *folder, const HuggingFaceName *name, int block,
                    char text[NAME_SIZE])
{
    char number[32] = "";
    if (block >= 0)
        snprintf(number, sizeof number, "%s%d.", folder->model->block, block);
    snprintf(text, NAME_SIZE, "%s%s%s",
             folder->has_prefix && !name->has_no_prefix ? folder->model->prefix : "", number,
             name->theirs);
}

/* Models converted from TensorFlow call a norm's weight and bias gamma and beta. */
static const SafeTensor *find_renamed(const Folder *folder, const char *text,
                                      const Safetensors **file)
{
    char old[NAME_SIZE];
    const char *norm = strstr(text, "LayerNorm.");
    if (!norm)
        return NULL;
    norm += strlen("LayerNorm.");
    snprintf(old, sizeof old, "%.*s%s", (int)(norm - text), text,
             !strcmp(norm, "weight") ? "gamma" : "beta");
    return safetensors_folder_find(folder->files, old, file);
}

static const SafeTensor *find(const Folder *folder, const HuggingFaceName *name, int block,
                              const Safetensors **file)
{
    char text[NAME_SIZE];
    name_of(folder, name, block, text);
    const SafeTensor *tensor = safetensors_folder_find(folder->files, text, file);
    return tensor ? tensor : find_renamed(folder, text, file);
}

/* The entry of the kit's parameter `text`, and its block; NULL if there is none. */
static const HuggingFaceName *name_in_kit(const HuggingFaceModel *model, const char *text,
                                          int *block)
{
    const HuggingFaceName *name = model->once;
    *block = -1;
    if (!strncmp(text, "blocks.", 7)) {
        char *end;
        *block = (int)strtol(text + 7, &end, 10);
        text = end + 1;
        name = model->in_blocks;
    }
    for (; name->kit; name++)
        if (!strcmp(name->kit, text))
            return name;
    return NULL;
}

/* ---- do the tensors match config.json? ----------------------------------------------------------------- */

/* The tensors that do not match in one way: their number, and a list that begins with MOST_NAMES of
 * them. */
typedef struct Listed {
    int count, length;
    char list[1024];
} Listed;

typedef struct Mismatch {
    Listed missing, misshapen, left_over;
} Mismatch;

enum { MOST_NAMES = 5 };

static Shape shape_of(const TransformerConfig *config, const HuggingFaceName *name)
{
    Shape shape = {.rank = (int)strlen(name->shape)};
    for (int i = 0; i < shape.rank; i++)
        shape.size[i] = hugging_face_size(config, name, i);
    return shape;
}

/* Adds a line to the list. */
__attribute__((format(printf, 2, 3))) static void add_line(Listed *listed, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const size_t room = sizeof listed->list - (size_t)listed->length;
    const int length = vsnprintf(listed->list + listed->length, room, format, args);
    va_end(args);
    listed->length += length < (int)room ? length : (int)room - 1;
}

/* Counts a tensor, and lists it if it is among the first. `more` follows its name. */
static void note(Listed *listed, const char *what, const char *name, const char *more)
{
    if (listed->count++ < MOST_NAMES)
        add_line(listed, _("\n    %s: %s%s"), _(what), clean_name(name).text, more);
}

/* Adds a line that says how many tensors the list lacks. Returns the list. */
static const char *ended(Listed *listed)
{
    if (listed->count > MOST_NAMES)
        add_line(listed, _("\n    and %d more"), listed->count - MOST_NAMES);
    return listed->list;
}

static void check_name(const Pretrained *from, const HuggingFaceName *name, int block,
                       Mismatch *mismatch)
{
    const Safetensors *file;
    const Shape shape = shape_of(&from->config, name);
    const SafeTensor *tensor = find(from->open, name, block, &file);
    char text[NAME_SIZE], more[160];
    name_of(from->open, name, block, text);
    const bool is_repeated = name->third > 0 && !strcmp(name->theirs, name[-1].theirs);
    if (!hugging_face_has(&from->config, name) || is_repeated)
        return;
    if (!tensor && !name->head_of)
        note(&mismatch->missing, N_("missing"), text, "");
    if (tensor && !shape_equal(tensor->shape, shape)) {
        snprintf(more, sizeof more, _(" %s, not %s"), SHAPE_TEXT(tensor->shape), SHAPE_TEXT(shape));
        note(&mismatch->misshapen, N_("of a different shape"), text, more);
    }
}

static void check_names(const Pretrained *from, Mismatch *mismatch)
{
    const HuggingFaceModel *model = ((const Folder *)from->open)->model;
    for (const HuggingFaceName *name = model->once; name->kit; name++)
        check_name(from, name, -1, mismatch);
    for (int block = 0; block < from->config.layers; block++)
        for (const HuggingFaceName *name = model->in_blocks; name->kit; name++)
            check_name(from, name, block, mismatch);
}

/* Does the kit use this tensor, or may it ignore it? Integer tensors are masks and positions,
 * which the kit ignores. */
static bool is_known(const Pretrained *from, const SafeTensor *tensor)
{
    const Folder *folder = from->open;
    const Safetensors *file;
    for (const char *const *pattern = folder->model->unused; *pattern; pattern++)
        if (!fnmatch(*pattern, tensor->name, 0))
            return true;
    if (!strchr("FB", tensor->dtype[0]) || !strcmp(tensor->dtype, "BOOL"))
        return true;
    for (const HuggingFaceName *name = folder->model->once; name->kit; name++)
        if (find(folder, name, -1, &file) == tensor)
            return true;
    const char *block = strstr(tensor->name, folder->model->block);
    const int number = block ? atoi(block + strlen(folder->model->block)) : -1;
    for (const HuggingFaceName *name = folder->model->in_blocks; name->kit; name++)
        if (number >= 0 && number < from->config.layers && hugging_face_has(&from->config, name) &&
            find(folder, name, number, &file) == tensor)
            return true;
    return false;
}

static bool check_tensors(const Pretrained *from, Problem *problem)
{
    const SafetensorsFolder *files = ((const Folder *)from->open)->files;
    Mismatch mismatch = {0};
    check_names(from, &mismatch);
    for (int i = 0; i < files->count; i++)
        for (int k = 0; k < files->file[i]->count; k++)
            if (!is_known(from, &files->file[i]->tensors[k]))
                note(&mismatch.left_over, N_("left over"), files->file[i]->tensors[k].name, "");
    return mismatch.missing.count + mismatch.misshapen.count + mismatch.left_over.count == 0 ||
           problem_set(problem, from->path,
                       "use another copy of the model: config.json must match its weights",
                       "the tensors do not match config.json: %d missing, %d of a different shape, "
                       "%d left over%s%s%s",
                       mismatch.missing.count, mismatch.misshapen.count, mismatch.left_over.count,
                       ended(&mismatch.missing), ended(&mismatch.misshapen),
                       ended(&mismatch.left_over));
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool has_parameter(const Pretrained *from, const Parameter *p)
{
    int block;
    const Safetensors *file;
    const HuggingFaceName *name = name_in_kit(((const Folder *)from->open)->model, p->name, &block);
    return !name || !name->head_of || find(from->open, name, block, &file);
}

enum { ROWS = 2, COLUMNS = 3 }; /* the last two dimensions of a Box */

/* Returns where Hugging Face's tensor has this rank's part of a parameter, or of one third of it (see
 * `name`). `third` is the shape of that parameter or third in the kit. */
static Box part_of(const HuggingFaceName *name, const Parameter *p, Shape third)
{
    const int dim = p->placement.kind == SHARD ? p->placement.dim - name->in_thirds : -1;
    Box box = box_of(third, dim, p->held);
    if (name->is_transposed) {
        const Range rows = box.range[ROWS];
        box.range[ROWS] = box.range[COLUMNS];
        box.range[COLUMNS] = rows;
    }
    const int64_t first = strchr(name->shape, '3') ? name->third * third.size[0] : 0;
    box.range[COLUMNS].begin += first; /* their thirds are side by side, along the columns */
    box.range[COLUMNS].end += first;
    return box;
}

static void transpose(const real *x, int64_t rows, int64_t columns, real *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            y[c * rows + r] = x[r * columns + c];
}

/* Reads this rank's part of the parameter, or of the third of it that `name` names, to *values.
 * Moves *values past the numbers. */
static bool read_part(const Pretrained *from, const HuggingFaceName *name, int block,
                      const Parameter *p, real **values, Problem *problem)
{
    const Safetensors *file = NULL;
    const SafeTensor *tensor = find(from->open, name, block, &file);
    if (!tensor || !shape_equal(hugging_face_shape_in_kit(name, tensor->shape), p->shape))
        return problem_set(problem, from->path, "the model was made with different sizes",
                           "the parameter %s %s is not in the file", p->name, SHAPE_TEXT(p->shape));
    const Box all = box_of(tensor->shape, -1, (Range){0}),
              part = part_of(name, p, hugging_face_shape_of_third(name, tensor->shape));
    const int64_t rows = part.range[ROWS].end - part.range[ROWS].begin,
                  columns = part.range[COLUMNS].end - part.range[COLUMNS].begin;
    real *to = *values;
    *values += rows * columns;
    if (!name->is_transposed)
        return safetensors_read_box(file, tensor, &all, &part, to, problem);
    real *transposed = malloc((size_t)(rows * columns) * sizeof *transposed);
    const bool good = safetensors_read_box(file, tensor, &all, &part, transposed, problem);
    if (good)
        transpose(transposed, rows, columns, to);
    free(transposed);
    return good;
}

static bool read_parameter(const Pretrained *from, const Parameter *p, real *values,
                           Problem *problem)
{
    int block;
    const HuggingFaceName *name = name_in_kit(((const Folder *)from->open)->model, p->name, &block);
    if (!name)
        return problem_set(problem, from->path, "the model was made with different sizes",
                           "the parameter %s %s is not in the file", p->name, SHAPE_TEXT(p->shape));
    const bool holds_some_thirds =
        name->in_thirds && p->placement.kind == SHARD && p->placement.dim == 0;
    const Range thirds = !name->in_thirds    ? (Range){0, 1}
                         : holds_some_thirds ? p->held
                                             : (Range){0, 3};
    bool good = true;
    for (int64_t i = thirds.begin; good && i < thirds.end; i++)
        good = read_part(from, name + i, block, p, &values, problem);
    return good;
}

/* ---- opening ------------------------------------------------------------------------------------------- */

static void close_folder(Pretrained *from)
{
    Folder *folder = from->open;
    if (folder->files)
        safetensors_folder_close(folder->files);
    free(folder);
}

static const PretrainedFormat hugging_face = {
    .has = has_parameter, .read = read_parameter, .close = close_folder};

bool hugging_face_open(Pretrained *from, Problem *problem)
{
    Folder *folder = calloc(1, sizeof *folder);
    const Safetensors *file;
    char embedding[NAME_SIZE];
    from->open = folder;
    from->format = &hugging_face;
    folder->model = hugging_face_config(from->path, &from->config, problem);
    folder->files = folder->model ? safetensors_folder_open(from->path, problem) : NULL;
    if (!folder->files)
        return false;
    snprintf(embedding, sizeof embedding, "%s%s", folder->model->prefix, folder->model->embedding);
    folder->has_prefix = safetensors_folder_find(folder->files, embedding, &file);
    return check_tensors(from, problem);
}
