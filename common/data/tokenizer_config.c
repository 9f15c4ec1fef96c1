/* tokenizer_config.json, which Hugging Face keeps beside a vocabulary: each setting that changes ids is
 * followed, or refused. */
#include "data/internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"

static const char *const kind_names[] = {
    [WORDPIECE] = "WordPiece", [BPE] = "BPE", [UNIGRAM] = "SentencePiece"};

/* Settings with a single value that the kit implements; a missing one has it. */
static const struct {
    const char *key;
    unsigned kinds; /* a set of 1 << TokenizerForm */
    const char *value;
} fixed[] = {
    {"add_bos_token", 1 << BPE, "false"},
    {"add_bos_token", 1 << UNIGRAM, "true"},
    {"add_eos_token", 1 << UNIGRAM, "false"},
    {"add_prefix_space", 1 << BPE, "false"},
    {"add_prefix_space", 1 << UNIGRAM, "true"},
    {"bos_token", 1 << UNIGRAM, "<s>"},
    {"cls_token", 1 << WORDPIECE, "[CLS]"},
    {"do_basic_tokenize", 1 << WORDPIECE, "true"},
    {"eos_token", 1 << BPE, "<|endoftext|>"},
    {"eos_token", 1 << UNIGRAM, "</s>"},
    {"mask_token", 1 << WORDPIECE, "[MASK]"},
    {"pad_token", 1 << WORDPIECE, "[PAD]"},
    {"padding_side", 1 << WORDPIECE, "right"},
    {"sep_token", 1 << WORDPIECE, "[SEP]"},
    {"split_special_tokens", 1 << WORDPIECE, "false"},
    {"truncation_side", 1 << WORDPIECE | 1 << BPE | 1 << UNIGRAM, "right"},
    {"unk_token", 1 << WORDPIECE, "[UNK]"},
};

/* The tokenizers of Hugging Face that the kit's kinds are, without "Fast" at the end. */
static const struct {
    TokenizerForm kind;
    const char *name;
} classes[] = {
    {WORDPIECE, "BertTokenizer"},    {WORDPIECE, "DistilBertTokenizer"},
    {WORDPIECE, "ElectraTokenizer"}, {WORDPIECE, "MobileBertTokenizer"},
    {BPE, "GPT2Tokenizer"},          {UNIGRAM, "LlamaTokenizer"},
};

/* A setting in words: true, a text, or the content of a token that is an object. */
static const char *words_of(const json_t *value)
{
    const json_t *content = json_object_get(value, "content");
    value = content ? content : value;
    return json_is_string(value)  ? json_string_value(value)
           : json_is_true(value)  ? "true"
           : json_is_false(value) ? "false"
                                  : NULL; /* null: as if it were missing */
}

static bool refuse(const char *path, const char *key, const char *value, TokenizerForm kind,
                   Problem *problem)
{
    return problem_set(
        problem, path,
        N_("use a vocabulary with the usual settings; without this file in its folder, the usual "
           "ones hold"),
        "%s is %s, which the kit's %s tokenizer does not implement", key, clean_name(value).text,
        kind_names[kind]);
}

static bool is_class(TokenizerForm kind, const char *name)
{
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const size_t length = strlen(classes[i].name);
        if (classes[i].kind == kind && !strncmp(name, classes[i].name, length) &&
            (!name[length] || !strcmp(name + length, "Fast")))
            return true;
    }
    return false;
}

static bool is_implemented(const json_t *config, const char *path, TokenizerForm kind,
                           Problem *problem)
{
    const char *class = words_of(json_object_get(config, "tokenizer_class"));
    if (class && !is_class(kind, class))
        return refuse(path, "tokenizer_class", class, kind, problem);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const char *value = words_of(json_object_get(config, fixed[i].key));
        if (fixed[i].kinds >> kind & 1 && value && strcmp(value, fixed[i].value) != 0)
            return refuse(path, fixed[i].key, value, kind, problem);
    }
    static const char *const switches[] = {"do_lower_case", "strip_accents",
                                           "tokenize_chinese_chars"};
    for (size_t i = 0; kind == WORDPIECE && i < sizeof switches / sizeof *switches; i++) {
        const json_t *value = json_object_get(config, switches[i]);
        if (value && !json_is_boolean(value) && !json_is_null(value))
            return problem_set(problem, path, N_("write true, false or null"),
                               "%s is neither true nor false", switches[i]);
    }
    return true;
}

static bool is_usual(const char *content, TokenizerForm kind)
{
    static const char *const usual[] = {"<|endoftext|>", "<unk>", "<s>", "</s>", "<pad>"};
    bool known = false;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        known = known || (kind != WORDPIECE && !strcmp(content, usual[i]));
    for (int i = 0; i < SPECIAL_TOKENS; i++)
        known = known || (kind == WORDPIECE && !strcmp(content, special_token[i]));
    return known;
}

/* The token, unless it is a usual one, or the one found before. Text that spells an added token
 * becomes that token, so only the usual ones may be there. */
static const char *unusual(const json_t *token, TokenizerForm kind, const char *before)
{
    const char *content = words_of(token);
    return before || !content || is_usual(content, kind) ? before : content;
}

static bool adds_no_tokens(json_t *config, const char *path, TokenizerForm kind, Problem *problem)
{
    /* Each is a token, a list of tokens, or an object whose values are tokens. */
    static const char *const keys[] = {"added_tokens_decoder", "additional_special_tokens",
                                       "extra_special_tokens", "bos_token", "eos_token"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        json_t *tokens = json_object_get(config, keys[k]), *token;
        const char *other = unusual(tokens, kind, NULL), *name;
        size_t place;
        json_array_foreach(tokens, place, token)
        {
            other = unusual(token, kind, other);
        }
        json_object_foreach(json_object_get(tokens, "content") ? NULL : tokens, name, token)
        {
            other = unusual(token, kind, other);
        }
        if (other)
            return refuse(path, keys[k], other, kind, problem);
    }
    return true;
}

/* A setting that is true or false; null and a missing one are `usual`. */
static bool is_set(const json_t *config, const char *key, bool usual)
{
    const json_t *value = json_object_get(config, key);
    return json_is_boolean(value) ? json_is_true(value) : usual;
}

/* Reads an object. Returns NULL with `problem` if it is none. The caller releases it. */
static json_t *read_object(const char *path, Problem *problem)
{
    FileBytes file;
    json_error_t error;
    if (!file_read(path, N_("the tokenizer's settings"), TOKENIZER_PATH_HINT, &file, problem))
        return NULL;
    const char *bytes = file.bytes;
    size_t length = file.length;
    skip_bom(&bytes, &length);
    json_t *object = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    free(file.bytes);
    if (json_is_object(object))
        return object;
    problem_set(problem, path, TOKENIZER_PATH_HINT, "the tokenizer's settings cannot be read: %s",
                object ? N_("the file holds no object") : error.text);
    json_decref(object);
    return NULL;
}

bool tokenizer_config_read(Tokenizer *tokenizer, const char *path, TokenizerForm kind,
                           Problem *problem)
{
    json_t *config = read_object(path, problem);
    const bool ok = config && is_implemented(config, path, kind, problem) &&
                    adds_no_tokens(config, path, kind, problem);
    if (ok && kind == WORDPIECE) {
        tokenizer->lower_case = is_set(config, "do_lower_case", true);
        tokenizer->strip_accents = is_set(config, "strip_accents", tokenizer->lower_case);
        tokenizer->split_ideographs = is_set(config, "tokenize_chinese_chars", true);
    }
    json_decref(config);
    return ok;
}

bool tokenizer_tokens_read(const char *path, TokenizerForm kind, Problem *problem)
{
    json_t *tokens = read_object(path, problem), *id;
    const char *name;
    bool ok = tokens && is_implemented(tokens, path, kind, problem) &&
              adds_no_tokens(tokens, path, kind, problem);
    json_object_foreach(ok ? tokens : NULL, name, id)
    {
        if (ok && json_is_integer(id) && !is_usual(name, kind))
            ok = refuse(path, _("an added token"), name, kind, problem);
    }
    json_decref(tokens);
    return ok;
}
