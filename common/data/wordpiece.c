/* WordPiece: turns text into ids. */
#include "data/internal.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

typedef struct WordPiece {
    Vocabulary vocabulary;
    bool lower_case, strip_accents, split_ideographs;
    uint8_t ascii_class[128]; /* CharacterClass */
    char ascii_lower[128];    /* the character itself, unless letters are lower-cased */
} WordPiece;

/* The ids written so far, and the current word. */
typedef struct Writer {
    const WordPiece *model;
    const int32_t *special; /* ids of the special tokens */
    Ids *ids;
    int characters; /* of the word; continues beyond WORD_CHARACTERS, where the bytes no longer matter */
    int length;  /* bytes of the word */
    int barrier; /* combining marks do not move before this byte */
    char word[WORD_BYTES];
} Writer;

/* The longest piece of the vocabulary at position `from` of the word. @return its length in bytes,
 * or 0 */
static int longest_piece(const Writer *writer, int from, int32_t *id)
{
    const Vocabulary *vocabulary = &writer->model->vocabulary;
    const char *word = writer->word + from;
    int longest =
        writer->length - from < vocabulary->longest ? writer->length - from : vocabulary->longest;
    uint64_t hash[WORD_BYTES + 1];
    hash[0] = hash_begin(from > 0);
    for (int i = 0; i < longest; i++)
        hash[i + 1] = hash_add(hash[i], word[i]);
    for (int length = longest; length > 0; length--) {
        *id = vocabulary_find(vocabulary, hash[length], word, length);
        if (*id >= 0)
            return length;
    }
    return 0;
}

/* WordPiece: takes the longest piece, repeatedly. If no piece matches somewhere, the word is
 * [UNK]. */
static void end_word(Writer *writer)
{
    int64_t count = writer->ids->count;
    int at = 0;
    if (writer->characters == 0)
        return;
    if (writer->characters <= WORD_CHARACTERS) {
        for (int32_t id; at < writer->length;) {
            int length = longest_piece(writer, at, &id);
            if (length == 0)
                break;
            ids_put(writer->ids, id);
            at += length;
        }
    }
    if (at < writer->length || writer->characters > WORD_CHARACTERS) {
        writer->ids->count = count;
        ids_put(writer->ids, writer->special[UNKNOWN_TOKEN]);
    }
    writer->characters = writer->length = writer->barrier = 0;
}

/* Canonical order (NFD): a mark comes after marks with a lower or equal combining class. */
static int place_of_mark(const Writer *writer, int combining)
{
    int place = writer->length;
    while (place > writer->barrier) {
        int before = place - 1;
        while ((writer->word[before] & 0xC0) == 0x80)
            before--;
        utf8proc_int32_t c;
        utf8proc_iterate((const utf8proc_uint8_t *)writer->word + before, place - before, &c);
        if (character_combining(c) <= combining)
            break;
        place = before;
    }
    return place;
}

static void add_to_word(Writer *writer, int32_t c, int combining)
{
    if (++writer->characters > WORD_CHARACTERS)
        return;
    char bytes[4];
    int place = combining == 0 ? writer->length : place_of_mark(writer, combining);
    size_t size = (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)bytes);
    memmove(writer->word + place + size, writer->word + place, (size_t)(writer->length - place));
    memcpy(writer->word + place, bytes, size);
    writer->length += (int)size;
}

/* A punctuation character is a word. */
static void add_punctuation(Writer *writer, int32_t c)
{
    end_word(writer);
    add_to_word(writer, c, 0);
    end_word(writer);
}

/* One character of the decomposed text. */
static void add_part(Writer *writer, int32_t c)
{
    CharacterClass class = character_class(c);
    int combining = character_combining(c);
    if (combining == 0)
        writer->barrier = writer->length;
    if (class == PUNCTUATION)
        add_punctuation(writer, c);
    else if (class != ACCENT)
        add_to_word(writer, writer->model->lower_case ? character_lower(c) : c, combining);
}

/* One character of a text that keeps its accents, and so its composed letters. The lower case of a
 * capital I with a dot is two characters. */
static void add_composed(Writer *writer, int32_t c)
{
    enum { DOTTED_I = 0x130, DOT_ABOVE = 0x307 };
    const bool lowers = writer->model->lower_case;
    if (character_class(c) == PUNCTUATION)
        add_punctuation(writer, c);
    else
        add_to_word(writer, lowers && c == DOTTED_I ? 'i' : lowers ? character_lower(c) : c, 0);
    if (lowers && c == DOTTED_I)
        add_to_word(writer, DOT_ABOVE, 0);
}

static void add_character(Writer *writer, int32_t c)
{
    int32_t parts[DECOMPOSED_MAX];
    CharacterClass class = character_class(c);
    const bool alone = class == IDEOGRAPH && writer->model->split_ideographs;
    if (class == REMOVED)
        return;
    if (class == SPACE || alone)
        end_word(writer);
    if (class == SPACE)
        return;
    const int count = writer->model->strip_accents ? character_decompose(c, parts) : 0;
    for (int i = 0; i < count; i++)
        add_part(writer, parts[i]);
    if (!writer->model->strip_accents)
        add_composed(writer, c);
    if (alone)
        end_word(writer);
}

/* Adds the special token at the start of `text`. @return its length in bytes; 0 if there is none */
static int add_special(Writer *writer, const char *text, const char *end)
{
    for (int special = 0; special < SPECIAL_TOKENS; special++) {
        int32_t id = writer->special[special];
        size_t length = strlen(special_token[special]);
        if (id >= 0 && (size_t)(end - text) >= length &&
            memcmp(text, special_token[special], length) == 0) {
            end_word(writer);
            ids_put(writer->ids, id);
            return (int)length;
        }
    }
    return 0;
}

/* Adds the letters and digits at the start of `text` to the word, lower-cased by table. @return
 * their length in bytes */
static int add_ascii_letters(Writer *writer, const char *text, const char *end)
{
    const WordPiece *model = writer->model;
    const char *at = text;
    for (; at < end && !(*at & 0x80) && model->ascii_class[(int)*at] == LETTER; at++) {
        if (writer->characters++ < WORD_CHARACTERS)
            writer->word[writer->length++] = model->ascii_lower[(int)*at];
    }
    writer->barrier = writer->length;
    return (int)(at - text);
}

/* @return the number of bytes consumed */
static int add_ascii(Writer *writer, const char *text, const char *end)
{
    switch ((CharacterClass)writer->model->ascii_class[(int)*text]) {
    case LETTER:
        return add_ascii_letters(writer, text, end);
    case SPACE:
        end_word(writer);
        return 1;
    case PUNCTUATION: {
        int taken = *text == '[' ? add_special(writer, text, end) : 0;
        if (taken > 0)
            return taken;
        add_punctuation(writer, *text);
        return 1;
    }
    default: /* control characters */
        return 1;
    }
}

static bool wordpiece_encode(const Tokenizer *tokenizer, Text whole, Ids *ids, Problem *problem)
{
    Writer writer;
    writer.model = tokenizer->model;
    writer.special = tokenizer->special;
    writer.ids = ids;
    writer.characters = writer.length = writer.barrier = 0;
    for (const char *text = whole.bytes, *end = text + whole.length;
         text < end && ids->count < ids->limit;) {
        if (!(*text & 0x80)) {
            text += add_ascii(&writer, text, end);
        } else {
            utf8proc_int32_t c;
            text += utf8proc_iterate((const utf8proc_uint8_t *)text, end - text, &c);
            add_character(&writer, c);
        }
    }
    end_word(&writer);
    return true;
}

static void wordpiece_free(void *model)
{
    vocabulary_clear(&((WordPiece *)model)->vocabulary);
    free(model);
}

bool wordpiece_read(Tokenizer *tokenizer, const char *path, FileBytes file, Problem *problem)
{
    static const TokenizerKind kind = {wordpiece_encode, wordpiece_free};
    WordPiece *model = allocate(sizeof *model);
    tokenizer->kind = &kind;
    tokenizer->model = model;
    tokenizer->spaced = true;
    model->lower_case = tokenizer->lower_case;
    model->strip_accents = tokenizer->strip_accents;
    model->split_ideographs = tokenizer->split_ideographs;
    for (int c = 0; c < 128; c++) {
        model->ascii_class[c] = (uint8_t)character_class(c);
        model->ascii_lower[c] = (char)(model->lower_case ? character_lower(c) : c);
    }
    return vocabulary_parse(&model->vocabulary, tokenizer, path, file, problem);
}
