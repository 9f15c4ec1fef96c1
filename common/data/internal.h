/** @file
 * What the files of this room share with each other and with its tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/language.h"
#include "base/problem.h"
#include "data/data.h"

/* ---- file.c ---- */

/** A whole file in memory; `bytes` belongs to whoever called file_read. */
typedef struct FileBytes {
    char *bytes;   /**< allocated; NULL where there is none */
    size_t length; /**< of `bytes` */
} FileBytes;

/** Reads a whole file. `what` is what the file is, for the message ("the reviews"). Returns false with `problem` (and `hint`)
 *  when it cannot be read; otherwise file->bytes is the caller's to free. */
bool file_read(const char *path, const char *what, const char *hint, FileBytes *file,
               Problem *problem);

/** Memory, or the end of the program with a sentence: what the room allocates is small beside the files it
 * has read, so there is nothing sensible left to do. */
void *allocate(size_t bytes);
/** The same as realloc(). */
void *reallocate(void *memory, size_t bytes);

/** Skips a byte order mark. */
void skip_bom(const char **bytes, size_t *length);

enum { PLACE_SIZE = sizeof((Problem){0}.where) }; /**< of a place in a message, its end included */

/** `path`, and where in it; a long path loses its beginning, not the place. `row` is left out when it is 0.
 *  `place` has room for [PLACE_SIZE]. */
void place_in_file(char *place, const char *path, int64_t row, int64_t line);

/* ---- csv.c ---- */

/** The rows of a CSV file, in memory. */
typedef struct Reviews {
    int64_t rows;    /**< reviews in the file */
    char *text;      /**< all reviews, one after the other */
    int64_t *begin;  /**< [rows+1] row r is text[begin[r]] to text[begin[r+1]-1] */
    int32_t *labels; /**< [rows] */
} Reviews;

/** Parses [length] bytes of a CSV file; `path` is for messages only.
 *  @return NULL and a problem on bad input; otherwise the caller's, to be freed with reviews_free */
Reviews *reviews_parse(const char *path, const char *bytes, size_t length, Problem *problem);
/** Frees the reviews. NULL is allowed. */
void reviews_free(Reviews *reviews);

/* ---- vocabulary.c ---- */

/** BERT's special tokens: text that spells one is that token. [MASK] may be missing. */
typedef enum Special {
    UNK,       /**< [UNK], a word that no pieces make up */
    CLS,       /**< [CLS], before a text */
    SEP,       /**< [SEP], behind it */
    PAD_TOKEN, /**< [PAD], behind the end of a text */
    MASK,      /**< [MASK], of BERT's pretraining */
    SPECIALS,  /**< how many there are */
} Special;

enum { WORD_CHARACTERS = 100 };            /**< a longer word is [UNK] */
enum { WORD_BYTES = 4 * WORD_CHARACTERS }; /**< that such a word may take */

/** A place of the vocabulary's hash table. */
typedef struct Slot {
    uint64_t hash;     /**< of the piece's bytes, see hash_begin() */
    const char *token; /**< NULL in an empty slot; without `##` where the piece continues a word */
    uint16_t length;   /**< of `token`, in bytes */
    int32_t id;        /**< its line in the vocabulary, from 0 */
} Slot;

/** A hash table with open addressing over the bytes of the vocabulary file. The hash grows a byte at a time,
 * so one pass over a word gives the hash of each of its beginnings. */
typedef struct Vocabulary {
    FileBytes file;            /**< the vocabulary as it was read; tokens point into it */
    Slot *slots;               /**< [1 << (64 - shift)] */
    int shift;                 /**< the slot of a hash is hash >> shift */
    int32_t size;              /**< tokens */
    int longest;               /**< bytes of the longest token that a word can hold */
    int32_t special[SPECIALS]; /**< id, or -1 */
} Vocabulary;

/** The spelling of the special tokens. */
extern const char *const special_token[SPECIALS];

/** Takes over file.bytes, on failure too. */
bool vocabulary_parse(Vocabulary *vocabulary, const char *path, FileBytes file, Problem *problem);
/** Frees what the vocabulary holds, not the record itself. */
void vocabulary_clear(Vocabulary *vocabulary);

/** The hash of no bytes, at the start of a word or within one: two pieces with the same bytes never share a
 * hash, as each step of hash_add is one-to-one. */
static inline uint64_t hash_begin(bool continues)
{
    return continues ? 0x2545F4914F6CDD1Du : 0x9E6C63D0876A9A47u;
}

/** The hash of the bytes so far and one more. */
static inline uint64_t hash_add(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 0x9E3779B97F4A7C15u;
}

/** Looks up a piece of `length` bytes. `hash` is that of its bytes, begun as its place in the word asks.
 *  @return the piece's id, or -1 */
int32_t vocabulary_find(const Vocabulary *vocabulary, uint64_t hash, const char *piece, int length);

/** The hint of a vocabulary that cannot be read. */
#define VOCABULARY_PATH_HINT                                                                       \
    N_("check the path; `make data` downloads the vocabulary of bert-base-uncased")

/** The parts of a Tokenizer. */
struct Tokenizer {
    Vocabulary vocabulary;    /**< the pieces */
    uint8_t ascii_class[128]; /**< CharacterClass */
    char ascii_lower[128];    /**< of each such character */
};

/** As tokenizer_new, from a file that was read already; takes over file.bytes. */
Tokenizer *tokenizer_parse(const char *path, FileBytes file, Problem *problem);

/* ---- unicode.c ---- */

/** What BERT's normalizer and pre-tokenizer do with a character. */
typedef enum CharacterClass {
    REMOVED,     /**< control and format characters, private ones */
    SPACE,       /**< ends a word */
    IDEOGRAPH,   /**< a word of its own */
    PUNCTUATION, /**< a word of its own */
    ACCENT,      /**< a mark that is taken off its letter */
    LETTER,      /**< everything else */
} CharacterClass;

/** The class of a character, by the Unicode that Hugging Face's tokenizers know. */
CharacterClass character_class(int32_t c);

/** The canonical decomposition of a character, into `parts`, with room for [DECOMPOSED_MAX]. @return how many */
int character_decompose(int32_t c, int32_t *parts);
enum { DECOMPOSED_MAX = 8 }; /**< characters that one may be decomposed into, at most */

/** The lower case of a character; itself where it has none. */
int32_t character_lower(int32_t c);

/** The canonical combining class. */
int character_combining(int32_t c);
