/* The files of byte-level BPE: a vocabulary in JSON, and the list of merges. */
#include "data/internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/clean.h"

#define BPE_HINT                                                                                   \
    N_("take vocabulary and merges from one folder, unchanged: vocab.json and merges.txt, or "     \
       "GPT-2's encoder.json and vocab.bpe")

/* The files write a byte as a character: as itself if it is printable, otherwise as one from U+0100
 * on. */
enum { BYTE_CHARACTERS = 256 + 68 };
typedef struct Alphabet {
    int16_t byte_of[BYTE_CHARACTERS]; /* -1: no byte */
    char of_byte[256][3];             /* UTF-8, ended by a zero byte */
} Alphabet;

static Alphabet alphabet_new(void)
{
    Alphabet alphabet;
    int32_t next = 256;
    memset(&alphabet, 0, sizeof alphabet);
    for (int c = 0; c < BYTE_CHARACTERS; c++)
        alphabet.byte_of[c] = -1;
    for (int byte = 0; byte < 256; byte++) {
        const bool seen = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
        const int32_t c = seen ? byte : next++;
        alphabet.byte_of[c] = (int16_t)byte;
        utf8proc_encode_char(c, (utf8proc_uint8_t *)alphabet.of_byte[byte]);
    }
    return alphabet;
}

/* ---- the vocabulary ---- */

/* Gives the next id the bytes of `token`. Returns false if a character of `token` stands for no
 * byte. */
static bool put_token(Tokenizer *tokenizer, const Alphabet *alphabet, const char *token)
{
    const size_t length = strlen(token);
    char *bytes = allocate(length);
    size_t count = 0;
    bool ok = true;
    for (size_t at = 0; ok && at < length;) {
        utf8proc_int32_t c;
        at += (size_t)utf8proc_iterate((const utf8proc_uint8_t *)token + at,
                                       (utf8proc_ssize_t)(length - at), &c);
        ok = c < BYTE_CHARACTERS && alphabet->byte_of[c] >= 0;
        bytes[count++] = ok ? (char)alphabet->byte_of[c] : '\0';
    }
    if (ok)
        tokenizer_put(tokenizer, bytes, count);
    free(bytes);
    return ok;
}

/* Adds the tokens in the order of their ids, which must be 0, 1, ..., each once. */
static bool put_tokens(Tokenizer *tokenizer, json_t *vocabulary, const char *path, Problem *problem)
{
    const size_t size = json_object_size(vocabulary);
    const char **tokens = allocate(size * sizeof *tokens), *token;
    const Alphabet alphabet = alphabet_new();
    memset(tokens, 0, size * sizeof *tokens);
    json_t *value;
    bool ok = true;
    json_object_foreach(vocabulary, token, value)
    {
        const json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
        if (id < 0 || (size_t)id >= size)
            ok = problem_set(problem, path, BPE_HINT,
                             "the id of '%.100s' is not a number from 0 to %zu, for %zu tokens",
                             token, size - 1, size);
        else if (tokens[id])
            ok = problem_set(problem, path, BPE_HINT, "'%.100s' and '%.100s' have the same id %lld",
                             tokens[id], token, (long long)id);
        if (!ok)
            break;
        tokens[id] = token;
    }
    for (size_t id = 0; ok && id < size; id++)
        ok = put_token(tokenizer, &alphabet, tokens[id]) ||
             problem_set(problem, path, BPE_HINT,
                         "the token '%.100s' has a character that stands for no byte", tokens[id]);
    free(tokens);
    return ok;
}

static int32_t id_of(json_t *vocabulary, const char *token, size_t length)
{
    char *name = strndup(token, length);
    json_t *id = name ? json_object_get(vocabulary, name) : NULL;
    free(name);
    return id ? (int32_t)json_integer_value(id) : -1;
}

static bool find_bytes(Bpe *bpe, json_t *vocabulary, const char *path, Problem *problem)
{
    const Alphabet alphabet = alphabet_new();
    for (int byte = 0; byte < 256; byte++) {
        const char *token = alphabet.of_byte[byte];
        bpe->of_byte[byte] = id_of(vocabulary, token, strlen(token));
        if (bpe->of_byte[byte] < 0)
            return problem_set(problem, path, BPE_HINT,
                               "the vocabulary has no token for the byte 0x%02X", (unsigned)byte);
    }
    return true;
}

static void find_specials(Tokenizer *tokenizer, json_t *vocabulary)
{
    static const char *const names[SPECIAL_TOKENS][2] = {{"<unk>", NULL},
                                                         {"<|endoftext|>", "<s>"},
                                                         {"<|endoftext|>", "</s>"},
                                                         {"<pad>", NULL},
                                                         {"<mask>", NULL}};
    for (int special = 0; special < SPECIAL_TOKENS; special++)
        for (int i = 0; i < 2 && names[special][i] && tokenizer->special[special] < 0; i++)
            tokenizer->special[special] =
                id_of(vocabulary, names[special][i], strlen(names[special][i]));
}

/* ---- the merges ---- */

static void make_slots(Bpe *bpe, const char *bytes, size_t length)
{
    size_t lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    bpe->shift = 63;
    while ((UINT64_C(1) << (64 - bpe->shift)) < 2 * lines)
        bpe->shift--;
    const size_t slots = (size_t)1 << (64 - bpe->shift);
    bpe->merges = allocate(slots * sizeof *bpe->merges);
    for (size_t i = 0; i < slots; i++)
        bpe->merges[i].left = -1;
}

/* Adds the merge of a line "left right". @return the error in the line, or NULL */
static const char *add_merge(Bpe *bpe, json_t *vocabulary, const char *line, size_t length,
                             int32_t rank)
{
    const char *space = memchr(line, ' ', length);
    const size_t left = space ? (size_t)(space - line) : 0;
    const size_t right = space ? length - left - 1 : 0;
    if (left == 0 || right == 0 || memchr(space + 1, ' ', right))
        return N_("the line is not two symbols with a space between them");
    char *both = allocate(left + right);
    memcpy(both, line, left);
    memcpy(both + left, space + 1, right);
    const int32_t left_id = id_of(vocabulary, line, left);
    const int32_t right_id = id_of(vocabulary, space + 1, right);
    const int32_t id = id_of(vocabulary, both, left + right);
    free(both);
    if (left_id < 0 || right_id < 0 || id < 0)
        return N_(
            "the vocabulary lacks one of the two symbols of this merge, or the merged symbol");
    Merge *slot = bpe_slot(bpe, left_id, right_id);
    if (slot->left >= 0)
        return N_("an earlier line has the same merge");
    *slot = (Merge){left_id, right_id, rank, id};
    return NULL;
}

static bool read_merges(Bpe *bpe, json_t *vocabulary, const char *path, FileBytes merges,
                        Problem *problem)
{
    const char *bytes = merges.bytes, *wrong = NULL;
    size_t length = merges.length;
    skip_bom(&bytes, &length);
    make_slots(bpe, bytes, length);
    int32_t rank = 0;
    int64_t line = 1;
    for (const char *end = bytes + length, *next; bytes < end; bytes = next, line++) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        next = newline ? newline + 1 : end;
        size_t width = (size_t)((newline ? newline : end) - bytes);
        width -= width > 0 && bytes[width - 1] == '\r';
        if (line == 1 && width >= 8 && memcmp(bytes, "#version", 8) == 0)
            continue;
        wrong = add_merge(bpe, vocabulary, bytes, width, rank++);
        if (wrong)
            break;
    }
    char place[PLACE_SIZE];
    place_in_file(place, path, 0, line);
    return !wrong || problem_set(problem, place, BPE_HINT, "%s", _(wrong));
}

/* Is it spelt like a special or unused token, such as <s> or [PAD]? */
static bool is_bracketed(const char *token, size_t length)
{
    const char first = token[0], last = token[length - 1];
    return (first == '<' && last == '>') || (first == '[' && last == ']');
}

/* Could a merge make the token? A merge joins two tokens of the vocabulary. No two tokens make up a
 * special token, or one that was added after the training, such as RoBERTa's madeupword0000. */
static bool is_two_tokens(json_t *vocabulary, const char *token)
{
    const size_t length = strlen(token);
    for (size_t at = 1; at < length && !is_bracketed(token, length); at++)
        if (id_of(vocabulary, token, at) >= 0 && id_of(vocabulary, token + at, length - at) >= 0)
            return true;
    return false;
}

/* Do the merges make all tokens that consist of two others? */
static bool check_made(const Tokenizer *tokenizer, json_t *vocabulary, const char *path,
                       Problem *problem)
{
    const Bpe *bpe = tokenizer->model;
    const size_t size = (size_t)tokenizer->size, slots = (size_t)1 << (64 - bpe->shift);
    bool *is_made = memset(allocate(size), false, size);
    int32_t made = 0, lacking = 0;
    const char *token;
    json_t *id;
    for (size_t i = 0; i < slots; i++)
        if (bpe->merges[i].left >= 0)
            is_made[bpe->merges[i].id] = true;
    json_object_foreach(vocabulary, token, id)
    {
        const bool is = is_made[json_integer_value(id)];
        made += is;
        lacking += !is && is_two_tokens(vocabulary, token);
    }
    free(is_made);
    return lacking == 0 ||
           problem_set(
               problem, path, BPE_HINT,
               "the merges make %d of the vocabulary's %d tokens that consist of two others",
               (int)made, (int)(made + lacking));
}

bool bpe_parse(Tokenizer *tokenizer, const char *path, FileBytes vocabulary,
               const char *merges_path, FileBytes merges, Problem *problem)
{
    json_error_t error;
    const char *bytes = vocabulary.bytes;
    size_t length = vocabulary.length;
    skip_bom(&bytes, &length);
    json_t *tokens = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &error);
    Bpe *bpe = tokenizer->model;
    bool ok = tokens || problem_set(problem, path, BPE_HINT,
                                    "the vocabulary is not JSON: line %d, column %d: %s",
                                    error.line, error.column, clean_name(error.text).text);
    ok = ok &&
         (json_is_object(tokens) ||
          problem_set(problem, path,
                      "vocab.json has the form {\"token\": id, ...}: copy or download it again",
                      "the vocabulary is JSON, but not an object")) &&
         put_tokens(tokenizer, tokens, path, problem) && find_bytes(bpe, tokens, path, problem) &&
         read_merges(bpe, tokens, merges_path, merges, problem) &&
         check_made(tokenizer, tokens, merges_path, problem);
    if (ok)
        find_specials(tokenizer, tokens);
    json_decref(tokens);
    return ok;
}
