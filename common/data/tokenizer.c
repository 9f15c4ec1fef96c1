/* Code shared by all tokenizers: opening, encoding rows, decoding. */
#include "data/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- ids and pieces ---- */

void ids_put(Ids *ids, int32_t id)
{
    if (ids->count >= ids->limit)
        return;
    if (ids->count == ids->capacity) {
        ids->capacity = 2 * ids->capacity + 64;
        ids->ids = reallocate(ids->ids, (size_t)ids->capacity * sizeof *ids->ids);
    }
    ids->ids[ids->count++] = id;
}

static bool is_power_of_two(int64_t x)
{
    return (x & (x - 1)) == 0;
}

void tokenizer_put(Tokenizer *t, const char *bytes, size_t length)
{
    const int64_t begin = t->size ? t->begin[t->size] : 0, end = begin + (int64_t)length;
    if (is_power_of_two(t->size + 1)) /* the room was a power of two, and is full: doubles it */
        t->begin = reallocate(t->begin, 2 * ((size_t)t->size + 1) * sizeof *t->begin);
    if (end > t->room) {
        t->room = 2 * end;
        t->bytes = reallocate(t->bytes, (size_t)t->room);
    }
    if (length > 0)
        memcpy(t->bytes + begin, bytes, length);
    t->begin[t->size++] = begin;
    t->begin[t->size] = end;
}

int32_t tokenizer_size(const Tokenizer *tokenizer)
{
    return tokenizer->size;
}

int32_t tokenizer_special(const Tokenizer *tokenizer, SpecialToken token)
{
    return tokenizer->special[token];
}

/* ---- known words ---- */

/* A hash table with one word per slot: a new word replaces the old one. A slot has 64 bytes. */
enum { KNOWN_WORD_BYTES = 24, KNOWN_WORDS = 1 << 16 };
struct KnownWords {
    struct KnownWord {
        int32_t ids[KNOWN_WORD_IDS];
        char word[KNOWN_WORD_BYTES];
        uint8_t length, count;
    } slots[KNOWN_WORDS];
};

KnownWords *known_words_new(void)
{
    KnownWords *known = allocate(sizeof *known);
    memset(known, 0, sizeof *known);
    return known;
}

static size_t slot_of(const char *word, size_t length)
{
    return XXH3_64bits(word, length) % KNOWN_WORDS;
}

bool known_word_put(const KnownWords *known, const char *word, size_t length, Ids *ids)
{
    const struct KnownWord *slot = known->slots + slot_of(word, length);
    if (slot->length != length || memcmp(slot->word, word, length) != 0)
        return false;
    for (int i = 0; i < slot->count; i++)
        ids_put(ids, slot->ids[i]);
    return true;
}

void known_word_keep(KnownWords *known, const char *word, size_t length, const int32_t *ids,
                     size_t count)
{
    if (length > KNOWN_WORD_BYTES || count > KNOWN_WORD_IDS)
        return;
    struct KnownWord *slot = known->slots + slot_of(word, length);
    memcpy(slot->ids, ids, count * sizeof *ids);
    memcpy(slot->word, word, length);
    slot->length = (uint8_t)length;
    slot->count = (uint8_t)count;
}

/* ---- texts to ids and back ---- */

int64_t tokenizer_encode(const Tokenizer *tokenizer, Text text, int32_t seq, int32_t *ids,
                         Problem *problem)
{
    const int32_t begin = tokenizer->special[BEGIN_TOKEN], end = tokenizer->special[END_TOKEN];
    Ids row = {.ids = ids, .capacity = seq, .limit = seq - (end >= 0)};
    if (begin >= 0)
        ids_put(&row, begin);
    if (!tokenizer->kind->encode(tokenizer, text, &row, problem))
        return -1;
    row.limit = seq;
    if (end >= 0)
        ids_put(&row, end);
    return row.count;
}

int64_t tokenizer_encode_text(const Tokenizer *tokenizer, Text text, int32_t **ids,
                              Problem *problem)
{
    Ids all = {.limit = INT64_MAX};
    if (!tokenizer->kind->encode(tokenizer, text, &all, problem)) {
        free(all.ids);
        return -1;
    }
    *ids = all.ids ? all.ids : allocate(0);
    return all.count;
}

const char *tokenizer_piece(const Tokenizer *t, int32_t before, int32_t id, size_t *length)
{
    assert(id >= 0 && id < t->size);
    const char *piece = t->bytes + t->begin[id];
    const bool is_first = before < 0 || before == t->special[BEGIN_TOKEN];
    *length = (size_t)(t->begin[id + 1] - t->begin[id]);
    if (t->spaced && is_first && *length > 0 && *piece == ' ') {
        --*length;
        return piece + 1;
    }
    return piece;
}

char *tokenizer_decode(const Tokenizer *tokenizer, const int32_t *ids, int64_t count,
                       size_t *length)
{
    size_t more;
    *length = 0;
    for (int64_t i = 0; i < count; i++) {
        tokenizer_piece(tokenizer, i ? ids[i - 1] : -1, ids[i], &more);
        *length += more;
    }
    char *text = allocate(*length + 1), *end = text;
    for (int64_t i = 0; i < count; i++) {
        const char *piece = tokenizer_piece(tokenizer, i ? ids[i - 1] : -1, ids[i], &more);
        memcpy(end, piece, more);
        end += more;
    }
    *end = '\0';
    return text;
}

/* ---- opening ---- */

/* The names of files in Hugging Face's folders, and in OpenAI's. */
static const char *const tokenizer_files[] = {"tokenizer.model", "vocab.json", "encoder.json",
                                              "vocab.txt", NULL};
static const char *const vocabulary_files[] = {"vocab.json", "encoder.json", NULL};
static const char *const merges_files[] = {"merges.txt", "vocab.bpe", NULL};

/* The first of `names` that exists in the folder [length bytes of `path`]. @return its path, which
 * the caller frees; NULL if there is none */
static char *first_of(const char *path, size_t length, const char *const *names)
{
    for (; *names; names++) {
        char *file;
        if (asprintf(&file, "%.*s%s%s", (int)length, path, length ? "/" : "", *names) < 0)
            abort();
        if (access(file, F_OK) == 0)
            return file;
        free(file);
    }
    return NULL;
}

static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + (slash == path) : 0;
}

typedef enum FileKind { VOCABULARY_LINES, VOCABULARY_JSON, MERGES, SENTENCEPIECE } FileKind;

/* A SentencePiece model is a protocol buffer that begins with its first piece: the tag of field 1,
 * a length, then the tag of the piece's own field 1. A list of merges begins with its version, or
 * has a space between two symbols. */
static FileKind kind_of(const FileBytes *file)
{
    const char *bytes = file->bytes;
    size_t length = file->length;
    if (length >= 3 && bytes[0] == '\n' && bytes[2] == '\n')
        return SENTENCEPIECE;
    skip_bom(&bytes, &length);
    const char *end = bytes + length, *newline = memchr(bytes, '\n', length);
    const char *space = memchr(bytes, ' ', (size_t)((newline ? newline : end) - bytes));
    if (length > 0 && *bytes == '{') {
        do
            bytes++;
        while (bytes < end && strchr(" \t\r\n", *bytes));
        return bytes < end && (*bytes == '"' || *bytes == '}') ? VOCABULARY_JSON : VOCABULARY_LINES;
    }
    return space > bytes && space + 1 < end && !strchr(" \r\n", space[1]) ? MERGES
                                                                          : VOCABULARY_LINES;
}

/* Rejects what no tokenizer's text has: a zero byte, or a web server's error page. */
static bool check_text(const char *path, const FileBytes *file, Problem *problem)
{
    static const char page[] = "<!doctype html";
    const char *zero = memchr(file->bytes, 0, file->length);
    if (file->length > sizeof page && !strncasecmp(file->bytes, page, sizeof page - 1))
        return problem_set(problem, path, N_("download the file itself"),
                           "the tokenizer is a web page");
    return !zero ||
           problem_set(problem, path, TOKENIZER_FORMS_HINT,
                       "the tokenizer has a zero byte at byte %zu, which only a SentencePiece "
                       "model may have",
                       (size_t)(zero - file->bytes) + 1);
}

/* Makes the key depend on the contents of this file too. */
static void add_to_key(Tokenizer *tokenizer, const FileBytes *file)
{
    const XXH128_hash_t hash = XXH3_128bits(file->bytes, file->length);
    const uint64_t parts[] = {tokenizer->key.low64, tokenizer->key.high64, hash.low64, hash.high64};
    tokenizer->key = XXH3_128bits(parts, sizeof parts);
}

/* `given` is the vocabulary or the merges; the other file is in the same folder. */
static bool read_bpe(Tokenizer *tokenizer, const char *path, FileBytes given, bool is_vocabulary,
                     Problem *problem)
{
    const char *const *names = is_vocabulary ? merges_files : vocabulary_files;
    char *beside = first_of(path, folder_length(path), names);
    FileBytes other = {0};
    bool ok = beside ||
              problem_set(problem, path, N_("name the folder that has both files"),
                          is_vocabulary ? N_("the vocabulary's folder has no merges: merges.txt or "
                                             "vocab.bpe")
                                        : N_("the merges' folder has no vocabulary: vocab.json or "
                                             "encoder.json"));
    ok = ok && file_read(beside, N_("the tokenizer"), TOKENIZER_PATH_HINT, &other, problem) &&
         check_text(beside, &other, problem);
    if (ok) {
        const FileBytes *vocabulary = is_vocabulary ? &given : &other;
        const FileBytes *merges = is_vocabulary ? &other : &given;
        add_to_key(tokenizer, vocabulary);
        add_to_key(tokenizer, merges);
        ok = bpe_read(tokenizer, is_vocabulary ? path : beside, *vocabulary,
                      is_vocabulary ? beside : path, *merges, problem);
    }
    free(other.bytes);
    free(beside);
    return ok;
}

/* Reads the settings beside a tokenizer's file, if they are there. The key depends on them too. */
static bool read_settings(Tokenizer *tokenizer, const char *path, FileKind kind, Problem *problem)
{
    static const char *const names[] = {"tokenizer_config.json", NULL},
                             *const tokens[][2] = {{"special_tokens_map.json", NULL},
                                                   {"added_tokens.json", NULL}};
    static const TokenizerForm forms[] = {[VOCABULARY_LINES] = WORDPIECE,
                                          [VOCABULARY_JSON] = BPE,
                                          [MERGES] = BPE,
                                          [SENTENCEPIECE] = UNIGRAM};
    char *beside = first_of(path, folder_length(path), names);
    bool ok = !beside || tokenizer_config_read(tokenizer, beside, forms[kind], problem);
    for (int i = 0; i < 2 && ok; i++) {
        char *other = first_of(path, folder_length(path), tokens[i]);
        ok = !other || tokenizer_tokens_read(other, forms[kind], problem);
        free(other);
    }
    const char settings[] = {(char)tokenizer->lower_case, (char)tokenizer->strip_accents,
                             (char)tokenizer->split_ideographs};
    if (beside)
        add_to_key(tokenizer, &(FileBytes){(char *)settings, sizeof settings});
    free(beside);
    return ok;
}

static bool read_file(Tokenizer *tokenizer, const char *path, Problem *problem)
{
    FileBytes file;
    if (!file_read(path, N_("the tokenizer"), TOKENIZER_PATH_HINT, &file, problem))
        return false;
    const FileKind kind = kind_of(&file);
    if ((kind != SENTENCEPIECE && !check_text(path, &file, problem)) ||
        !read_settings(tokenizer, path, kind, problem)) {
        free(file.bytes);
        return false;
    }
    if (kind == VOCABULARY_LINES || kind == SENTENCEPIECE)
        add_to_key(tokenizer, &file);
    if (kind == VOCABULARY_LINES)
        return wordpiece_read(tokenizer, path, file, problem);
    bool ok = kind == SENTENCEPIECE
                  ? sentencepiece_read(tokenizer, path, file, problem)
                  : read_bpe(tokenizer, path, file, kind == VOCABULARY_JSON, problem);
    free(file.bytes);
    return ok;
}

Tokenizer *tokenizer_open(const char *path, Problem *problem)
{
    struct stat status;
    const bool is_folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    char *inside = is_folder ? first_of(path, strlen(path), tokenizer_files) : NULL;
    if (is_folder && !inside) {
        problem_set(problem, path,
                    N_("TOKENIZER= of make story, or VOCAB= of make train, names a folder with "
                       "tokenizer.model, vocab.json and merges.txt, or vocab.txt"),
                    "the folder has no tokenizer");
        return NULL;
    }
    Tokenizer *tokenizer = allocate(sizeof *tokenizer);
    memset(tokenizer, 0, sizeof *tokenizer);
    for (int i = 0; i < SPECIAL_TOKENS; i++)
        tokenizer->special[i] = -1;
    tokenizer->lower_case = tokenizer->strip_accents = tokenizer->split_ideographs = true;
    const bool ok = read_file(tokenizer, inside ? inside : path, problem);
    free(inside);
    if (ok)
        return tokenizer;
    tokenizer_free(tokenizer);
    return NULL;
}

void tokenizer_free(Tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    if (tokenizer->kind)
        tokenizer->kind->free(tokenizer->model);
    free(tokenizer->bytes);
    free(tokenizer->begin);
    free(tokenizer);
}
