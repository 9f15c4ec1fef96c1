/* The vocabulary as a hash table. */
#include "data/internal.h"

#include <stdlib.h>
#include <string.h>

const char *const special_token[SPECIAL_TOKENS] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};

static uint64_t hash_of(const char *token, int length, bool continues)
{
    uint64_t hash = hash_begin(continues);
    for (int i = 0; i < length; i++)
        hash = hash_add(hash, token[i]);
    return hash;
}

/* The slot that holds the token, or the empty one where it belongs. */
static Slot *slot_of(const Vocabulary *vocabulary, uint64_t hash, const char *token, int length)
{
    uint64_t last = ~UINT64_C(0) >> vocabulary->shift;
    for (uint64_t at = hash >> vocabulary->shift;; at = (at + 1) & last) {
        Slot *slot = vocabulary->slots + at;
        if (!slot->token || (slot->hash == hash && slot->length == length &&
                             memcmp(slot->token, token, (size_t)length) == 0))
            return slot;
    }
}

int32_t vocabulary_find(const Vocabulary *vocabulary, uint64_t hash, const char *piece, int length)
{
    const Slot *slot = slot_of(vocabulary, hash, piece, length);
    return slot->token ? slot->id : -1;
}

static bool bad_line(const char *path, int64_t id, const char *sentence, Problem *problem)
{
    char place[PLACE_SIZE];
    place_in_file(place, path, 0, id + 1);
    return problem_set(problem, place, TOKENIZER_FORMS_HINT, "%s", sentence);
}

/* Adds a token's piece for decoding: nothing for begin, end and padding, and a space before a
 * word. */
static void put_piece(Tokenizer *tokenizer, const char *token, size_t length, bool continues)
{
    static const SpecialToken unseen[] = {BEGIN_TOKEN, END_TOKEN, PAD_TOKEN};
    char piece[UINT16_MAX + 1] = " ";
    for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++) {
        const char *special = special_token[unseen[i]];
        if (!continues && length == strlen(special) && memcmp(token, special, length) == 0) {
            tokenizer_put(tokenizer, NULL, 0);
            return;
        }
    }
    memcpy(piece + 1, token, length);
    tokenizer_put(tokenizer, piece + continues, length + !continues);
}

/* Adds the token of a line of [length] bytes, without the line break. */
static bool add_token(Vocabulary *vocabulary, Tokenizer *tokenizer, const char *path,
                      const char *token, size_t length, Problem *problem)
{
    int64_t id = tokenizer->size;
    while (length > 0 && strchr(" \t\v\f\r", token[length - 1]) && token[length - 1] != '\0')
        length--; /* as Hugging Face does; no word ends with a blank */
    if (length == 0)
        return bad_line(path, id, _("the vocabulary has an empty line"), problem);
    if (utf8_valid_length(token, length) < length)
        return bad_line(path, id, _("the token is not valid UTF-8"), problem);
    if (length > UINT16_MAX)
        return bad_line(path, id, _("the token is longer than 65535 bytes"), problem);
    bool continues = length >= 2 && memcmp(token, "##", 2) == 0;
    int bytes = (int)length - (continues ? 2 : 0);
    token += continues ? 2 : 0;
    uint64_t hash = hash_of(token, bytes, continues);
    Slot *slot = slot_of(vocabulary, hash, token, bytes);
    if (slot->token) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 _("the token is in the vocabulary twice: line %lld has it too"),
                 (long long)slot->id + 1);
        return bad_line(path, id, sentence, problem);
    }
    *slot = (Slot){hash, token, (uint16_t)bytes, (int32_t)id};
    if (bytes > vocabulary->longest && bytes <= WORD_BYTES)
        vocabulary->longest = bytes;
    put_piece(tokenizer, token, (size_t)bytes, continues);
    return true;
}

static bool find_specials(const Vocabulary *vocabulary, Tokenizer *tokenizer, const char *path,
                          Problem *problem)
{
    for (int special = 0; special < SPECIAL_TOKENS; special++) {
        const char *token = special_token[special];
        int length = (int)strlen(token);
        int32_t id = vocabulary_find(vocabulary, hash_of(token, length, false), token, length);
        tokenizer->special[special] = id;
        if (id < 0 && special != MASK_TOKEN)
            return problem_set(problem, path, TOKENIZER_FORMS_HINT, "the vocabulary has no %s",
                               token);
    }
    return true;
}

/* Makes the hash table, with at least two slots per token. */
static void make_slots(Vocabulary *vocabulary, const char *bytes, size_t length)
{
    size_t lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += bytes[i] == '\n';
    vocabulary->shift = 63;
    while ((UINT64_C(1) << (64 - vocabulary->shift)) < 2 * lines)
        vocabulary->shift--;
    vocabulary->slots =
        allocate((UINT64_C(1) << (64 - vocabulary->shift)) * sizeof *vocabulary->slots);
    memset(vocabulary->slots, 0,
           (UINT64_C(1) << (64 - vocabulary->shift)) * sizeof *vocabulary->slots);
}

bool vocabulary_parse(Vocabulary *vocabulary, Tokenizer *tokenizer, const char *path,
                      FileBytes file, Problem *problem)
{
    *vocabulary = (Vocabulary){.file = file};
    const char *bytes = file.bytes;
    size_t length = file.length;
    skip_bom(&bytes, &length);
    make_slots(vocabulary, bytes, length);
    bool ok =
        length > 0 || problem_set(problem, path, TOKENIZER_FORMS_HINT, "the vocabulary is empty");
    for (const char *end = bytes + length; ok && bytes < end;) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *line_end = newline ? newline : end;
        ok = tokenizer->size < INT32_MAX &&
             add_token(vocabulary, tokenizer, path, bytes, (size_t)(line_end - bytes), problem);
        bytes = line_end + 1;
    }
    return ok && find_specials(vocabulary, tokenizer, path, problem);
}

void vocabulary_clear(Vocabulary *vocabulary)
{
    free(vocabulary->slots);
    free(vocabulary->file.bytes);
    *vocabulary = (Vocabulary){0};
}
