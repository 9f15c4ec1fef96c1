/* Writes a checkpoint in Hugging Face's format, tensor by tensor. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "pretrained/hugging_face.h"
#include "pretrained/internal.h"

/* ---- config.json --------------------------------------------------------------------------------------- */

static const OutputKind config = {.name = N_("the config.json of a merged checkpoint"),
                                  .mark = "\"written_by\": \"Balise\""};

/* The names of the classes, from which their library derives the number of classes. */
static json_t *labels(int classes)
{
    json_t *all = json_object();
    for (int i = 0; i < classes; i++) {
        char number[16], label[32];
        snprintf(number, sizeof number, "%d", i);
        snprintf(label, sizeof label, "LABEL_%d", i);
        json_object_set_new(all, number, json_string(label));
    }
    return all;
}

/* NULL if the probability is not known: then their default holds. */
static json_t *known(double probability)
{
    return probability < 0 ? NULL : json_real(probability);
}

/* How rotary positions are scaled, with the keys that the first versions of the library with this
 * type expect; NULL if they are not. */
static json_t *scaling_of(const RotaryAngles *r)
{
    if (r->factor == 0)
        return NULL;
    if (r->original == 0)
        return json_pack("{s:s, s:f}", "type", "linear", "factor", r->factor);
    return json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor", r->factor,
                     "low_freq_factor", r->low, "high_freq_factor", r->high,
                     "original_max_position_embeddings", (json_int_t)r->original);
}

static json_t *sizes_of(const HuggingFaceModel *model, const TransformerConfig *c)
{
    if (!strcmp(model->type, "gpt2"))
        return json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:o*, s:o*, s:f, s:s}", "n_embd",
                         c->hidden, "n_layer", c->layers, "n_head", c->heads, "n_inner", c->inner,
                         "n_positions", c->positions, "layer_norm_epsilon", c->epsilon,
                         "resid_pdrop", known(c->dropout), "embd_pdrop", known(c->dropout),
                         "attn_pdrop", 0.0, "activation_function", "gelu_new");
    json_t *sizes =
        json_pack("{s:i, s:i, s:i, s:i, s:i}", "hidden_size", c->hidden, "num_hidden_layers",
                  c->layers, "num_attention_heads", c->heads, "intermediate_size", c->inner,
                  "max_position_embeddings", c->positions);
    json_t *more =
        !strcmp(model->type, "bert")
            ? json_pack("{s:s, s:i, s:f, s:o*, s:f, s:o*}", "hidden_act", "gelu", "type_vocab_size",
                        c->token_types, "layer_norm_eps", c->epsilon, "hidden_dropout_prob",
                        known(c->dropout), "attention_probs_dropout_prob", 0.0, "id2label",
                        c->classes ? labels(c->classes) : NULL)
            : json_pack("{s:s, s:i, s:f, s:f, s:o*, s:o*}", "hidden_act", "silu",
                        "num_key_value_heads", c->kv_heads, "rms_norm_eps", c->epsilon,
                        "rope_theta", c->rotary.theta, "rope_scaling", scaling_of(&c->rotary),
                        "attention_bias", c->output_bias ? json_true() : NULL);
    json_object_update(sizes, more);
    json_decref(more);
    return sizes;
}

static bool write_config(const HuggingFaceModel *model, const TransformerConfig *c,
                         const char *folder, Problem *problem)
{
    const char *hint = N_("free some space; what was written before is intact"),
               *what = N_("config.json cannot be written: %s");
    Replacement *file =
        replacement_begin(path_in(folder, "config.json").text, &config, hint, what, problem);
    if (!file)
        return false;
    json_t *all =
        json_pack("{s:s, s:[s], s:s, s:s, s:i, s:b}", "written_by", "Balise", "architectures",
                  model->library_class, "model_type", model->type, "torch_dtype", "float32",
                  "vocab_size", c->vocabulary, "tie_word_embeddings", !c->own_head);
    json_t *sizes = sizes_of(model, c);
    json_object_update(all, sizes);
    json_dumpf(all, file->stream, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    putc('\n', file->stream);
    json_decref(sizes);
    json_decref(all);
    return replacement_end(file, hint, what, problem);
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

/* The folder that is being written. */
typedef struct Export {
    const SavedModel *saved;
    const HuggingFaceModel *model;
    TransformerConfig config;
    SafeTensor *tensors; /* [count]; owns their names */
    int count;
    SafetensorsWriter *writer; /* NULL while the tensors are listed */
    Problem *problem;
} Export;

static char *text_of(const char *before, int block, const char *name)
{
    char *text;
    if (block < 0 ? asprintf(&text, "%s", name) < 0
                  : asprintf(&text, "%s%d.%s", before, block, name) < 0)
        abort();
    return text;
}

static void list(Export *e, const HuggingFaceName *name, int block)
{
    char *theirs = text_of(e->model->block, block, name->theirs);
    SafeTensor *tensor = &e->tensors[e->count++];
    *tensor = (SafeTensor){.shape = {.rank = (int)strlen(name->shape)}};
    for (int i = 0; i < tensor->shape.rank; i++)
        tensor->shape.size[i] = hugging_face_size(&e->config, name, i);
    tensor->name = text_of("", -1, theirs);
    if (!name->has_no_prefix) {
        free((char *)tensor->name);
        if (asprintf((char **)&tensor->name, "%s%s", e->model->prefix, theirs) < 0)
            abort();
    }
    free(theirs);
}

/* Copies a parameter x of the kit, or a third of one, to its place in Hugging Face's tensor y.
 * `shape` is the shape of x. */
static void place(const HuggingFaceName *name, Shape shape, const real *x, real *y)
{
    const bool has_all = strchr(name->shape, '3');
    const int64_t out = shape.size[0], in = shape.rank > 1 ? shape.size[1] : 1,
                  width = has_all ? 3 * out : out, first = has_all ? name->third * out : 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++)
            y[name->is_transposed ? i * width + first + o : (first + o) * in + i] = x[o * in + i];
}

/* Reads a parameter, or a third of one, and copies it to its place in Hugging Face's tensor y,
 * whose shape is `theirs`. */
static bool add_parameter(const Export *e, const HuggingFaceName *name, int block, Shape theirs,
                          real *y)
{
    char *kit = text_of("blocks.", block, name->kit);
    const Shape shape = hugging_face_shape_in_kit(name, theirs);
    const SavedParameter *p = checkpoint_index_find(&e->saved->index, kit);
    bool good = p && shape_equal(p->shape, shape);
    if (good) {
        const Shape third = hugging_face_shape_of_third(name, theirs);
        const Range rows =
            name->in_thirds ? (Range){name->third, name->third + 1} : (Range){0, p->shape.size[0]};
        real *x = malloc((size_t)shape_count(third) * sizeof *x);
        good = saved_model_read(e->saved, 0, p, 0, rows, x, e->problem);
        if (good)
            place(name, third, x, y);
        free(x);
    } else {
        problem_set(e->problem, e->saved->folder,
                    N_("checkpoint info DIR lists what a checkpoint holds"),
                    "the checkpoint has no parameter %s %s", kit, SHAPE_TEXT(shape));
    }
    free(kit);
    return good;
}

/* Writes their next tensor, which consists of one parameter, one third or three thirds. */
static bool put(Export *e, const HuggingFaceName *name, int block)
{
    const Shape shape = e->tensors[e->count++].shape;
    const int64_t count = shape_count(shape);
    real *y = malloc((size_t)count * sizeof *y);
    const int parts = strchr(name->shape, '3') ? 3 : 1;
    bool good = true;
    for (int i = 0; good && i < parts; i++)
        good = add_parameter(e, name + i, block, shape, y);
    if (good)
        safetensors_put(e->writer, y, count);
    free(y);
    return good;
}

static bool each_name(Export *e, const HuggingFaceName *name, int block)
{
    bool good = true;
    for (; good && name->kit; name++) {
        const bool unneeded = !hugging_face_has(&e->config, name) ||
                              (name->head_of && strcmp(name->head_of, e->model->library_class));
        if (unneeded || (name->third > 0 && strchr(name->shape, '3')))
            continue;
        if (e->writer)
            good = put(e, name, block);
        else
            list(e, name, block);
    }
    return good;
}

static bool each_tensor(Export *e)
{
    e->count = 0;
    bool good = each_name(e, e->model->once, -1);
    for (int block = 0; good && block < e->config.layers; block++)
        good = each_name(e, e->model->in_blocks, block);
    return good;
}

static bool write_tensors(Export *e, const char *folder)
{
    enum { MOST_NAMES = 20 }; /* in a block, and outside of the blocks */
    static const OutputKind merged = {.name = N_("a merged checkpoint"),
                                      .mark = "{\"format\":\"pt\",\"" SAFETENSORS_CHECKSUM};
    const char *const metadata[] = {"format", "pt", NULL};
    e->tensors = calloc((size_t)(e->config.layers + 1) * MOST_NAMES, sizeof *e->tensors);
    each_tensor(e);
    const int count = e->count;
    e->writer = safetensors_begin(path_in(folder, "model.safetensors").text, e->tensors, count,
                                  metadata, &merged, e->problem);
    bool good = e->writer && each_tensor(e);
    if (good)
        good = safetensors_end(e->writer, e->problem);
    else if (e->writer)
        safetensors_drop(e->writer);
    for (int i = 0; i < count; i++)
        free((char *)e->tensors[i].name);
    free(e->tensors);
    return good;
}

bool hugging_face_write(const SavedModel *saved, const char *folder, Problem *problem)
{
    Export e = {.saved = saved, .problem = problem};
    const bool is_possible = own_checkpoint_config(saved, &e.config, problem),
               has_qkv_bias = e.config.qkv_bias && !e.config.output_bias;
    for (const HuggingFaceModel *const *model = hugging_face_models; !e.model && *model; model++)
        if (!strcmp((*model)->architecture, saved->index.architecture) &&
            (*model)->has_qkv_bias == has_qkv_bias)
            e.model = *model;
    if (!e.model)
        return problem_set(problem, saved->folder,
                           "merge it without --hf; MODEL=bert trains a BERT that their library has",
                           "Hugging Face's library has no model like this %s",
                           saved->index.architecture);
    if (!is_possible)
        return false;
    if (e.config.positions == 0)
        e.config.positions = (int)saved->index.fitting[FIT_SEQ];
    if (!output_may_replace(path_in(folder, "config.json").text, &config, problem))
        return false;
    const bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return problem_set(problem, folder, "name a folder inside an existing, writable one",
                           "the folder cannot be created: %s", strerror(errno));
    const bool good =
        write_tensors(&e, folder) && write_config(e.model, &e.config, folder, problem);
    if (!good && made) {
        unlink(path_in(folder, "model.safetensors").text);
        rmdir(folder);
    }
    return good;
}
