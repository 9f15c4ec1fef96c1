/** @file
 * Declarations that the files of this folder share with each other and with its tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/language.h"
#include "base/problem.h"
#include "data/data.h"
#include "data/tokenizer.h"

/* ---- file.c ---- */

/** Skips a byte order mark. */
void skip_bom(const char **bytes, size_t *length);

/** Creates a folder and those above it. Returns false with `problem` if that fails. */
bool folder_make(const char *folder, Problem *problem);

/* ---- csv.c ---- */

/** The rows of a CSV file, in memory. */
typedef struct Reviews {
    int64_t rows;    /**< reviews in the file */
    char *text;      /**< all reviews, concatenated */
    int64_t *begin;  /**< [rows+1] row r is text[begin[r]] to text[begin[r+1]-1] */
    int64_t *lines;  /**< [rows] the line of the file where a row begins */
    int32_t *labels; /**< [rows] */
} Reviews;

/** Parses [length] bytes of a CSV file; `path` is only for messages.
 *  @return NULL with `problem` on bad input; otherwise reviews that the caller frees with
 *  reviews_free */
Reviews *reviews_parse(const char *path, const char *bytes, size_t length, Problem *problem);
/** Frees the reviews. NULL is allowed. */
void reviews_free(Reviews *reviews);

/* ---- documents.c ---- */

/** The contents of a cache file after its header. */
typedef struct Content {
    size_t rows;     /**< reviews, or documents of a text */
    int64_t *begin;  /**< [rows+1] as in TokenSet */
    int32_t *labels; /**< [rows] of reviews */
    Ids ids;         /**< of all rows */
} Content;

/** Appends a text's documents as token_set_open_text() describes. Returns false with `problem` if
 *  the text is not UTF-8, is a CSV file, has no document, or cannot be encoded. */
bool documents_encode(const Tokenizer *tokenizer, const char *path, const char *bytes,
                      size_t length, Content *content, Problem *problem);

/* ---- tokenizer_config.c ---- */

/** What Hugging Face's settings are about. */
typedef enum TokenizerForm {
    WORDPIECE, /**< BERT's */
    BPE,       /**< GPT-2's */
    UNIGRAM,   /**< SentencePiece, as LLaMA's */
} TokenizerForm;

/** Reads the tokenizer's settings from `path`, a tokenizer_config.json. Returns false with `problem` if
 *  it cannot be read, or has a setting that changes ids and is not implemented. */
bool tokenizer_config_read(Tokenizer *tokenizer, const char *path, TokenizerForm kind,
                           Problem *problem);
/** Checks that special_tokens_map.json or added_tokens.json, `path`, has the usual tokens only. Returns
 *  false with `problem` if not. */
bool tokenizer_tokens_read(const char *path, TokenizerForm kind, Problem *problem);

/* ---- vocabulary.c ---- */

enum { WORD_CHARACTERS = 100 };            /**< a longer word is [UNK] */
enum { WORD_BYTES = 4 * WORD_CHARACTERS }; /**< the most bytes that this many characters can have */

/** A slot of the vocabulary's hash table. */
typedef struct Slot {
    uint64_t hash;     /**< of the piece's bytes, see hash_begin() */
    const char *token; /**< NULL in an empty slot; without `##` if the piece continues a word */
    uint16_t length;   /**< of `token`, in bytes */
    int32_t id;        /**< its line number in the vocabulary, from 0 */
} Slot;

/** A hash table with open addressing over the bytes of the vocabulary file. The hash grows byte by
 * byte, so one pass over a word gives the hash of each of its prefixes. */
typedef struct Vocabulary {
    FileBytes file; /**< the vocabulary file; tokens point into it */
    Slot *slots;    /**< [1 << (64 - shift)] */
    int shift;      /**< the slot of a hash is hash >> shift */
    int longest;    /**< bytes of the longest token that can occur in a word */
} Vocabulary;

/** The spelling of BERT's special tokens. Text that spells one becomes that token. [MASK] may be
 * missing. */
extern const char *const special_token[SPECIAL_TOKENS];

/** Parses a vocabulary, and gives the tokenizer its pieces and special tokens. Takes ownership of
 *  file.bytes. The caller calls vocabulary_clear(), even after a failure.
 *  @return false with `problem` on bad input */
bool vocabulary_parse(Vocabulary *vocabulary, Tokenizer *tokenizer, const char *path,
                      FileBytes file, Problem *problem);
/** Frees the vocabulary's contents, but not the record itself. */
void vocabulary_clear(Vocabulary *vocabulary);

/** The hash of an empty piece, at the start of a word or within one. A piece at the start of a word
 * and one with the same bytes within a word never share a hash, because each step of hash_add() is
 * one-to-one. */
static inline uint64_t hash_begin(bool continues)
{
    return continues ? 0x2545F4914F6CDD1Du : 0x9E6C63D0876A9A47u;
}

/** Extends a hash by one byte. */
static inline uint64_t hash_add(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 0x9E3779B97F4A7C15u;
}

/** Looks up a piece of `length` bytes. `hash` is the hash of its bytes, starting from hash_begin()
 *  for its place in the word.
 *  @return the piece's id, or -1 */
int32_t vocabulary_find(const Vocabulary *vocabulary, uint64_t hash, const char *piece, int length);

/* ---- bpe.c: the model and its merges; bpe_files.c: reading them from files ---- */

/** A slot of a hash table: two neighbours that merge into one symbol. */
typedef struct Merge {
    int32_t left, right; /**< ids; left is -1 in an empty slot */
    int32_t rank;        /**< its place in the list of merges: lower ranks come first */
    int32_t id;          /**< id of the merged symbol */
} Merge;

/** Byte-level BPE: the merges, and the ids of single bytes. */
typedef struct Bpe {
    Merge *merges;             /**< [1 << (64 - shift)] */
    int shift;                 /**< the slot of a hash is hash >> shift */
    int32_t of_byte[256];      /**< id of each byte */
    struct Splitter *splitter; /**< of texts into words */
    struct Merger *merger;     /**< memory for merging a word, and known words */
} Bpe;

/** The slot of a pair, or the empty one where it belongs. */
Merge *bpe_slot(const Bpe *bpe, int32_t left, int32_t right);

/** Reads vocabulary and merges into tokenizer->model, which is a Bpe that has neither yet, and
 * gives the tokenizer its pieces and special tokens. See bpe_read(). */
bool bpe_parse(Tokenizer *tokenizer, const char *path, FileBytes vocabulary,
               const char *merges_path, FileBytes merges, Problem *problem);

/* ---- unicode.c ---- */

/** How BERT's normalizer and pre-tokenizer treat a character. */
typedef enum CharacterClass {
    REMOVED,     /**< control, format and private-use characters */
    SPACE,       /**< ends a word */
    IDEOGRAPH,   /**< a word of its own */
    PUNCTUATION, /**< a word of its own */
    ACCENT,      /**< a mark that is removed from its letter */
    LETTER,      /**< everything else */
} CharacterClass;

/** The class of a character, in the Unicode version of Hugging Face's tokenizers. */
CharacterClass character_class(int32_t c);

/** Writes the canonical decomposition of a character to `parts` [DECOMPOSED_MAX].
 *  @return the number of its characters */
int character_decompose(int32_t c, int32_t *parts);
enum { DECOMPOSED_MAX = 8 }; /**< the most characters in a decomposition */

/** The lower case of a character, or the character itself. */
int32_t character_lower(int32_t c);

/** The canonical combining class of a character. */
int character_combining(int32_t c);
