/** @file
 * Declarations that the files of this room share with each other and with its tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/language.h"
#include "base/problem.h"
#include "data/data.h"

/* ---- file.c ---- */

/** A whole file in memory. The caller of file_read frees `bytes`. */
typedef struct FileBytes {
    char *bytes;   /**< allocated, or NULL */
    size_t length; /**< of `bytes` */
} FileBytes;

/** Reads a whole file. `what` names it in messages ("the reviews"). Returns false with `problem`
 *  (and `hint`) if it cannot be read; otherwise the caller frees file->bytes. */
bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem);

/** Allocates memory, or ends the program with a message: this room's allocations are small compared
 * with the files that it has read, so nothing sensible is left to do. */
void *allocate(size_t bytes);
/** The same for realloc(). */
void *reallocate(void *memory, size_t bytes);

/** Skips a byte order mark. */
void skip_bom(const char **bytes, size_t *length);

enum { PLACE_SIZE = sizeof((Problem){0}.where) }; /**< of a location, with its terminator */

/** Writes `path` and a location in it; a path that is too long loses its beginning. `row` is left
 *  out if it is 0. `place` has room for [PLACE_SIZE]. */
void place_in_file(char *place, const char *path, int64_t row, int64_t line);

/* ---- csv.c ---- */

/** The rows of a CSV file, in memory. */
typedef struct Reviews {
    int64_t rows;    /**< reviews in the file */
    char *text;      /**< all reviews, concatenated */
    int64_t *begin;  /**< [rows+1] row r is text[begin[r]] to text[begin[r+1]-1] */
    int32_t *labels; /**< [rows] */
} Reviews;

/** Parses [length] bytes of a CSV file; `path` is only for messages.
 *  @return NULL with `problem` on bad input; otherwise reviews that the caller frees with
 *  reviews_free */
Reviews *reviews_parse(const char *path, const char *bytes, size_t length, Problem *problem);
/** Frees the reviews. NULL is allowed. */
void reviews_free(Reviews *reviews);

/* ---- vocabulary.c ---- */

/** BERT's special tokens. Text that spells one becomes that token. [MASK] may be missing. */
typedef enum Special {
    UNK,       /**< [UNK], a word that no pieces spell */
    CLS,       /**< [CLS], before a text */
    SEP,       /**< [SEP], after a text */
    PAD_TOKEN, /**< [PAD], padding after a text */
    MASK,      /**< [MASK], used in BERT's pretraining */
    SPECIALS,  /**< the number of special tokens */
} Special;

enum { WORD_CHARACTERS = 100 };            /**< a longer word is [UNK] */
enum { WORD_BYTES = 4 * WORD_CHARACTERS }; /**< the most bytes that such a word takes */

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
    FileBytes file;            /**< the vocabulary file; tokens point into it */
    Slot *slots;               /**< [1 << (64 - shift)] */
    int shift;                 /**< the slot of a hash is hash >> shift */
    int32_t size;              /**< number of tokens */
    int longest;               /**< bytes of the longest token that can occur in a word */
    int32_t special[SPECIALS]; /**< id, or -1 */
} Vocabulary;

/** The spelling of the special tokens. */
extern const char *const special_token[SPECIALS];

/** Parses a vocabulary. Takes over file.bytes, even on failure. */
bool vocabulary_parse(Vocabulary *vocabulary, const char *path, FileBytes file, Problem *problem);
/** Frees what the vocabulary holds, but not the record itself. */
void vocabulary_clear(Vocabulary *vocabulary);

/** The hash of zero bytes, at the start of a word or within one. Two pieces with the same bytes
 * never share a hash, because each step of hash_add is one-to-one. */
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

/** The hint for a vocabulary that cannot be read. */
#define VOCABULARY_PATH_HINT                                                                       \
    N_("check the path; `make data` downloads the vocabulary of bert-base-uncased")

/** The members of a Tokenizer. */
struct Tokenizer {
    Vocabulary vocabulary;    /**< the pieces */
    uint8_t ascii_class[128]; /**< CharacterClass */
    char ascii_lower[128];    /**< the lower case of each ASCII character */
};

/** As tokenizer_new, but from a file already read. Takes over file.bytes. */
Tokenizer *tokenizer_parse(const char *path, FileBytes file, Problem *problem);

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

/** Writes the canonical decomposition of a character to `parts` [DECOMPOSED_MAX]. @return how
 *  many */
int character_decompose(int32_t c, int32_t *parts);
enum { DECOMPOSED_MAX = 8 }; /**< the most characters in a decomposition */

/** The lower case of a character, or the character itself. */
int32_t character_lower(int32_t c);

/** The canonical combining class of a character. */
int character_combining(int32_t c);
