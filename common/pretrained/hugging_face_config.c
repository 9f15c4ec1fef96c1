/* config.json of Hugging Face's models. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/language.h"
#include "pretrained/hugging_face.h"

/* The file config.json. */
typedef struct HuggingFaceConfig {
    const char *path; /* the path of the file */
    json_t *object;   /* its contents */
} HuggingFaceConfig;

/* ---- values -------------------------------------------------------------------------------------------- */

enum { MOST = 1 << 24, MOST_LAYERS = 10000 };

static const json_t *value_of(const HuggingFaceConfig *from, const char *key)
{
    const json_t *value = json_object_get(from->object, key);
    return json_is_null(value) ? NULL : value;
}

static bool wrong_value(const HuggingFaceConfig *from, const char *key, Problem *problem)
{
    return problem_set(problem, from->path,
                       "use another copy of the model: config.json must match its weights",
                       "config.json has no %s, or an invalid value for it", key);
}

/* Reads a size, which is at least 1. `otherwise` is the default; 0 means that the key is
 * required. */
static bool size_of(const HuggingFaceConfig *from, const char *key, int otherwise, int *size,
                    Problem *problem)
{
    const json_t *value = value_of(from, key);
    const json_int_t number = value ? json_integer_value(value) : otherwise;
    *size = (int)number;
    return (number >= 1 && number <= MOST) || wrong_value(from, key, problem);
}

static bool positive(const HuggingFaceConfig *from, const char *key, double otherwise,
                     double *number, Problem *problem)
{
    const json_t *value = value_of(from, key);
    *number = value ? json_number_value(value) : otherwise;
    return (*number > 0 && *number < 1e12) || wrong_value(from, key, problem);
}

/* Reads the probabilities of two dropouts, for which the kit has one: NAN if they differ. */
static bool dropout_of(const HuggingFaceConfig *from, const char *const keys[2],
                       TransformerConfig *c, Problem *problem)
{
    c->dropout = 0.1; /* the library's default */
    for (int i = 0; i < 2; i++) {
        const json_t *value = value_of(from, keys[i]);
        const double number = value ? json_number_value(value) : c->dropout;
        if (!(number >= 0 && number < 1) || (value && !json_is_number(value)))
            return wrong_value(from, keys[i], problem);
        c->dropout = i == 0 || number == c->dropout ? number : NAN;
    }
    return true;
}

static bool boolean(const HuggingFaceConfig *from, const char *key, bool otherwise, bool *is_true,
                    Problem *problem)
{
    const json_t *value = value_of(from, key);
    *is_true = value ? json_is_true(value) : otherwise;
    return !value || json_is_boolean(value) || wrong_value(from, key, problem);
}

/* Checks a key for which the kit supports only the value `one` and its synonym `same`. */
static bool has_only(const HuggingFaceConfig *from, const char *key, const char *one,
                     const char *same, Problem *problem)
{
    const json_t *value = value_of(from, key);
    const char *text = json_string_value(value);
    if (!value || (text && (!strcmp(text, one) || !strcmp(text, same))))
        return true;
    return problem_set(problem, from->path, "use a model with the supported value",
                       "the model has %s=%s: the kit supports only %s", key,
                       clean_name(text ? text : "?").text, one);
}

/* Checks a key that must not be true, because the kit does not support this variant of the
 * model. */
static bool is_false(const HuggingFaceConfig *from, const char *key, Problem *problem)
{
    bool is_true;
    return boolean(from, key, false, &is_true, problem) &&
           (!is_true || problem_set(problem, from->path, "use a model without it",
                                    "the model has %s, which the kit does not support", key));
}

static bool heads_divide(const HuggingFaceConfig *from, const TransformerConfig *c,
                         Problem *problem)
{
    if (c->heads > 0 && c->hidden % c->heads == 0)
        return true;
    problem_set(problem, from->path,
                "use another copy of the model: config.json must match its weights",
                "%d heads do not divide a hidden size of %d", c->heads, c->hidden);
    return false;
}

static bool layers_of(const HuggingFaceConfig *from, const char *key, TransformerConfig *c,
                      Problem *problem)
{
    return size_of(from, key, 0, &c->layers, problem) &&
           (c->layers <= MOST_LAYERS || wrong_value(from, key, problem));
}

/* ---- the models ---------------------------------------------------------------------------------------- */

static bool bert_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    const size_t labels = json_object_size(value_of(from, "id2label"));
    bool is_tied;
    if (!boolean(from, "tie_word_embeddings", true, &is_tied, problem))
        return false;
    c->own_head = !is_tied;
    c->classes = labels ? (int)labels : 2;
    return size_of(from, "vocab_size", 0, &c->vocabulary, problem) &&
           size_of(from, "hidden_size", 0, &c->hidden, problem) &&
           layers_of(from, "num_hidden_layers", c, problem) &&
           size_of(from, "num_attention_heads", 0, &c->heads, problem) &&
           size_of(from, "intermediate_size", 0, &c->inner, problem) &&
           size_of(from, "max_position_embeddings", 0, &c->positions, problem) &&
           size_of(from, "type_vocab_size", 2, &c->token_types, problem) &&
           size_of(from, "num_labels", c->classes, &c->classes, problem) &&
           positive(from, "layer_norm_eps", 1e-12, &c->epsilon, problem) &&
           dropout_of(from, (const char *[]){"hidden_dropout_prob", "classifier_dropout"}, c,
                      problem) &&
           heads_divide(from, c, problem) &&
           has_only(from, "hidden_act", "gelu", "gelu", problem) &&
           has_only(from, "position_embedding_type", "absolute", "absolute", problem) &&
           is_false(from, "is_decoder", problem) && is_false(from, "add_cross_attention", problem);
}

static bool gpt2_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    bool is_tied, is_scaled;
    if (!boolean(from, "tie_word_embeddings", true, &is_tied, problem) ||
        !boolean(from, "scale_attn_weights", true, &is_scaled, problem))
        return false;
    c->own_head = !is_tied;
    if (!is_scaled)
        return problem_set(
            problem, from->path, "use a model with scale_attn_weights=true",
            "the model has scale_attn_weights=false, which the kit does not support");
    return size_of(from, "vocab_size", 0, &c->vocabulary, problem) &&
           size_of(from, "n_embd", 0, &c->hidden, problem) &&
           layers_of(from, "n_layer", c, problem) &&
           size_of(from, "n_head", 0, &c->heads, problem) &&
           size_of(from, "n_positions", 0, &c->positions, problem) &&
           size_of(from, "n_inner", 4 * c->hidden, &c->inner, problem) &&
           positive(from, "layer_norm_epsilon", 1e-5, &c->epsilon, problem) &&
           dropout_of(from, (const char *[]){"resid_pdrop", "embd_pdrop"}, c, problem) &&
           heads_divide(from, c, problem) &&
           has_only(from, "activation_function", "gelu_new", "gelu_pytorch_tanh", problem) &&
           is_false(from, "scale_attn_by_inverse_layer_idx", problem) &&
           is_false(from, "add_cross_attention", problem);
}

static bool llama3_scaling(const HuggingFaceConfig *record, RotaryAngles *r, Problem *problem)
{
    int original;
    if (!size_of(record, "original_max_position_embeddings", 0, &original, problem) ||
        !positive(record, "low_freq_factor", 0, &r->low, problem) ||
        !positive(record, "high_freq_factor", 0, &r->high, problem))
        return false;
    r->original = original;
    return r->high > r->low || wrong_value(record, "high_freq_factor", problem);
}

/* Reads how rotary positions are scaled, and their base, which newer versions of the library write
 * in rope_parameters. */
static bool rope(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    const char *const keys[] = {"rope_scaling", "rope_parameters"};
    RotaryAngles *r = &c->rotary;
    for (int i = 0; i < 2; i++) {
        const json_t *record = value_of(from, keys[i]),
                     *type = json_object_get(record, "rope_type");
        const char *text = json_string_value(type ? type : json_object_get(record, "type"));
        const bool is_llama3 = text && !strcmp(text, "llama3"),
                   is_scaled = is_llama3 || (text && !strcmp(text, "linear"));
        if (record && !is_scaled && (!text || strcmp(text, "default")))
            return problem_set(problem, from->path,
                               "use a model with the type default, linear or llama3",
                               "the model has %s of type %s, which the kit does not support",
                               keys[i], clean_name(text ? text : "?").text);
        const HuggingFaceConfig inner = {from->path, (json_t *)record};
        if ((record && !positive(&inner, "rope_theta", r->theta, &r->theta, problem)) ||
            (is_scaled && !positive(&inner, "factor", 0, &r->factor, problem)) ||
            (is_llama3 && !llama3_scaling(&inner, r, problem)))
            return false;
    }
    return true;
}

static bool decoder_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    int head_size;
    bool is_tied;
    if (!(boolean(from, "tie_word_embeddings", false, &is_tied, problem) &&
          size_of(from, "vocab_size", 0, &c->vocabulary, problem) &&
          size_of(from, "hidden_size", 0, &c->hidden, problem) &&
          layers_of(from, "num_hidden_layers", c, problem) &&
          size_of(from, "num_attention_heads", 0, &c->heads, problem) &&
          size_of(from, "num_key_value_heads", c->heads, &c->kv_heads, problem) &&
          size_of(from, "intermediate_size", 0, &c->inner, problem) &&
          size_of(from, "max_position_embeddings", 2048, &c->positions, problem) &&
          positive(from, "rms_norm_eps", 1e-6, &c->epsilon, problem) &&
          positive(from, "rope_theta", 10000, &c->rotary.theta, problem) &&
          rope(from, c, problem) && heads_divide(from, c, problem) &&
          size_of(from, "head_dim", c->hidden / c->heads, &head_size, problem)))
        return false;
    c->own_head = !is_tied;
    if (head_size != c->hidden / c->heads || c->kv_heads < 1 || c->heads % c->kv_heads ||
        head_size % 2)
        return problem_set(problem, from->path,
                           "use a model whose heads share the hidden size evenly",
                           "%d heads of %d numbers, which share %d key-value heads, do not fit a "
                           "hidden size of %d",
                           c->heads, head_size, c->kv_heads, c->hidden);
    return has_only(from, "hidden_act", "silu", "swish", problem);
}

static bool llama_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    if (!boolean(from, "attention_bias", false, &c->qkv_bias, problem))
        return false;
    c->output_bias = c->qkv_bias;
    return decoder_config(from, c, problem) && is_false(from, "mlp_bias", problem);
}

static bool qwen2_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    c->qkv_bias = true;
    return decoder_config(from, c, problem) && is_false(from, "use_sliding_window", problem);
}

/* In Mistral, a window is the number of keys that a query sees; null means all of them. */
static bool mistral_config(const HuggingFaceConfig *from, TransformerConfig *c, Problem *problem)
{
    const char *key = "sliding_window";
    int window = 0;
    if (!decoder_config(from, c, problem))
        return false;
    if (json_is_null(json_object_get(from->object, key)))
        return true;
    return size_of(from, key, 4096, &window, problem) &&
           (window >= c->positions ||
            problem_set(problem, from->path,
                        "use a model whose sliding_window is null, or at least "
                        "max_position_embeddings",
                        "the model has a sliding_window of %d for %d positions, which the kit does "
                        "not support",
                        window, c->positions));
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static const struct {
    const char *type;
    const Architecture *architecture;
    bool (*read)(const HuggingFaceConfig *from, TransformerConfig *config, Problem *problem);
} readers[] = {{"bert", &architecture_real_bert, bert_config},
               {"bert", &architecture_masked_real_bert, bert_config},
               {"gpt2", &architecture_gpt2, gpt2_config},
               {"llama", &architecture_llama, llama_config},
               {"mistral", &architecture_llama, mistral_config},
               {"qwen2", &architecture_llama, qwen2_config}};

static bool read_sizes(const HuggingFaceConfig *from, const HuggingFaceModel *model,
                       TransformerConfig *config, Problem *problem)
{
    int i = 0;
    while (strcmp(readers[i].type, model->type) ||
           strcmp(readers[i].architecture->name, model->architecture))
        i++;
    *config = (TransformerConfig){.architecture = readers[i].architecture};
    return readers[i].read(from, config, problem);
}

static const HuggingFaceModel *model_of(const HuggingFaceConfig *from, TransformerConfig *config,
                                        Problem *problem)
{
    const char *type = json_string_value(value_of(from, "model_type")),
               *of_class = json_string_value(json_array_get(value_of(from, "architectures"), 0));
    const HuggingFaceModel *found = NULL;
    for (const HuggingFaceModel *const *model = hugging_face_models; type && *model; model++)
        if (!strcmp(type, (*model)->type) &&
            (!found || (of_class && !strcmp(of_class, (*model)->library_class))))
            found = *model;
    if (found)
        return read_sizes(from, found, config, problem) ? found : NULL;
    problem_set(problem, from->path, "use a model of type bert, gpt2, llama, mistral or qwen2",
                "config.json has model_type %s, which the kit does not know",
                clean_name(type ? type : "?").text);
    return NULL;
}

const HuggingFaceModel *hugging_face_config(const char *folder, TransformerConfig *config,
                                            Problem *problem)
{
    const Path path = path_in(folder, "config.json");
    char reason[REASON_SIZE];
    json_t *object = json_from_file(path.text, reason);
    const HuggingFaceModel *model = NULL;
    if (object)
        model = model_of(&(HuggingFaceConfig){path.text, object}, config, problem);
    else
        problem_set(
            problem, path.text,
            "name a folder with config.json and model.safetensors, a SAVE folder, or a .bin",
            "the model's config.json cannot be read: %s", reason);
    json_decref(object);
    return model;
}
