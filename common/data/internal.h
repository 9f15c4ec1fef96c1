/** @file
 * What the files of this room share with each other and with its tests.
 */
#ifndef BALISE_DATA_INTERNAL_H
#define BALISE_DATA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"
#include "data/data.h"

/* ---- file.c -----------------------------------------------------------------------------------------------
 */

/** A whole file in memory; `bytes` belongs to whoever called file_read. */
typedef struct FileBytes {
    char *bytes;
    size_t length;
} FileBytes;

/** @param what what the file is, for the message ("the reviews") */
bool file_read(const char *path, const char *what, const char *hint, FileBytes *file, Problem *problem);

/** Makes `folder` and the folders above it. */
bool folder_make(const char *folder, Problem *problem);

/** One piece of a file to be written. */
typedef struct FilePart {
    const void *bytes;
    size_t length;
} FilePart;

/** Writes the parts to a new file beside `path`, and renames it to `path` once all of it is on the disk. On
 * failure nothing is left behind. */
bool file_replace(const char *path, const FilePart *parts, int count, Problem *problem);

/** Memory, or the end of the program with a sentence: what the room allocates is small beside the files it
 * has read, so there is nothing sensible left to do. */
void *allocate(size_t bytes);
void *reallocate(void *memory, size_t bytes);

/** Skips a byte order mark. */
void skip_bom(const char **bytes, size_t *length);

enum { PLACE_SIZE = sizeof((Problem){0}.where) };

/** `path`, and where in it; a long path loses its beginning, not the place. `row` is left out when it is 0.
 *  @param place room for [PLACE_SIZE] */
void place_in_file(char *place, const char *path, int64_t row, int64_t line);

/* ---- csv.c ------------------------------------------------------------------------------------------------
 */

/** The rows of a CSV file, in memory. */
typedef struct Reviews {
    int64_t rows;
    char *text;      /**< all reviews, one after the other */
    int64_t *begin;  /**< [rows+1] row r is text[begin[r]] to text[begin[r+1]-1] */
    int32_t *labels; /**< [rows] */
} Reviews;

/** @param path for messages only
 *  @return NULL and a problem on bad input; otherwise the caller's, to be freed with reviews_free */
Reviews *reviews_parse(const char *path, const char *bytes, size_t length, Problem *problem);
void reviews_free(Reviews *reviews);

/* ---- vocabulary.c -----------------------------------------------------------------------------------------
 */

/** BERT's special tokens: text that spells one is that token. [MASK] may be missing. */
typedef enum Special { UNK, CLS, SEP, PAD_TOKEN, MASK, SPECIALS } Special;

enum { WORD_CHARACTERS = 100, WORD_BYTES = 4 * WORD_CHARACTERS };

typedef struct Slot {
    uint64_t hash;
    const char *token; /**< NULL in an empty slot; without `##` where the piece continues a word */
    uint16_t length;
    int32_t id;
} Slot;

/** A hash table with open addressing over the bytes of the vocabulary file. The hash grows a byte at a time,
 * so one pass over a word gives the hash of each of its beginnings. */
typedef struct Vocabulary {
    FileBytes file;
    Slot *slots;               /**< [1 << (64 - shift)] */
    int shift;                 /**< the slot of a hash is hash >> shift */
    int32_t size;              /**< tokens */
    int longest;               /**< bytes of the longest token that a word can hold */
    int32_t special[SPECIALS]; /**< id, or -1 */
} Vocabulary;

/** The spelling of a special token. */
const char *special_token(Special special);

/** Takes over file.bytes, on failure too. */
bool vocabulary_parse(Vocabulary *vocabulary, const char *path, FileBytes file, Problem *problem);
void vocabulary_clear(Vocabulary *vocabulary);

/** The hash of no bytes, at the start of a word or within one: two pieces with the same bytes never share a
 * hash, as each step of hash_add is one-to-one. */
static inline uint64_t hash_begin(bool continues)
{
    return continues ? 0x2545F4914F6CDD1Du : 0x9E6C63D0876A9A47u;
}

static inline uint64_t hash_add(uint64_t hash, char byte)
{
    return (hash ^ (unsigned char)byte) * 0x9E3779B97F4A7C15u;
}

/** @param hash of the piece's bytes, begun as its place in the word asks @return the piece's id, or -1 */
int32_t vocabulary_find(const Vocabulary *vocabulary, uint64_t hash, const char *piece, int length);

#define VOCABULARY_PATH_HINT "check the path; `make data` downloads the vocabulary of bert-base-uncased"

/** As tokenizer_new, from a file that was read already; takes over file.bytes. */
Tokenizer *tokenizer_parse(const char *path, FileBytes file, Problem *problem);

/* ---- unicode.c --------------------------------------------------------------------------------------------
 */

/** What BERT's normalizer and pre-tokenizer do with a character. */
typedef enum CharacterClass { REMOVED, SPACE, IDEOGRAPH, PUNCTUATION, ACCENT, LETTER } CharacterClass;

CharacterClass character_class(int32_t c);

/** The canonical decomposition. @param parts room for [DECOMPOSED_MAX] @return how many */
int character_decompose(int32_t c, int32_t *parts);
enum { DECOMPOSED_MAX = 8 };

int32_t character_lower(int32_t c);

/** The canonical combining class. */
int character_combining(int32_t c);

#endif
