/** @file
 * The parts that all kinds of tokenizers share, and functions that read their files. C++ includes
 * this file too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "base/cxx.h"
#include "base/language.h"
#include "base/problem.h"

BEGIN_C

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

/** The checksum of a file's bytes, which are read in blocks and not kept. `what`, `hint` and the
 *  result are as for file_read. */
bool file_checksum(const char *path, const char *what, const char *hint, XXH128_hash_t *sum,
                   Problem *problem);

/** Allocates memory, or ends the program with a message. Allocations in this folder are small
 *  compared with the files already read, so a caller could do nothing better. */
void *allocate(size_t bytes);
/** Like allocate(), for realloc(). */
void *reallocate(void *memory, size_t bytes);

enum { PLACE_SIZE = sizeof((Problem *)0)->where }; /**< bytes of a location, with its terminator */

/** Writes `path` and a location in it; a path that is too long loses its beginning. `row` is left
 *  out if it is 0. `place` has room for [PLACE_SIZE]. */
void place_in_file(char *place, const char *path, int64_t row, int64_t line);
/** The number of line breaks in `bytes`. */
int64_t line_breaks(const char *bytes, size_t length);
/** Writes the place of a text's byte `at`: the file and the line. `place` is as for
 *  place_in_file(). */
void place_in_text(char *place, const Text *text, size_t at);

/* ---- tokenizer.c ---- */

/** A growing array of ids. */
typedef struct Ids {
    int32_t *ids;     /**< [capacity] */
    int64_t count;    /**< the number of ids */
    int64_t capacity; /**< room in `ids`, which grows */
    int64_t limit;    /**< further ids are dropped */
} Ids;

/** Appends an id, unless there are `limit` already. */
void ids_put(Ids *ids, int32_t id);

/** The functions of a kind of tokenizer. */
typedef struct TokenizerKind {
    /** Appends the ids of a text's pieces; may stop at the limit. Returns false with `problem` if
     * it would need too much memory. */
    bool (*encode)(const Tokenizer *tokenizer, Text text, Ids *ids, Problem *problem);
    void (*free)(void *model); /**< frees Tokenizer.model */
} TokenizerKind;

/** The members of a Tokenizer. */
struct Tokenizer {
    const TokenizerKind *kind;       /**< its functions */
    void *model;                     /**< of its kind */
    XXH128_hash_t key;               /**< checksum of its files */
    int32_t size;                    /**< the number of pieces */
    int32_t special[SPECIAL_TOKENS]; /**< ids, or -1 */
    /** a piece may begin with a space that separates it from the word before it; at the beginning
     * of a text, this space is dropped */
    bool spaced;
    /** WordPiece: letters are lower-cased, accents removed, and each Chinese character is a word */
    bool lower_case, strip_accents, split_ideographs;
    char *bytes;    /**< [room] all pieces, concatenated */
    int64_t room;   /**< of `bytes`, which grows */
    int64_t *begin; /**< [size+1] a piece is bytes[begin[id]] to bytes[begin[id+1]-1] */
};

/** Gives the next id its piece. */
void tokenizer_put(Tokenizer *tokenizer, const char *bytes, size_t length);

/** A cache of words and their ids, so each frequent word is split into pieces only once.
 * free() frees it. */
typedef struct KnownWords KnownWords;
enum { KNOWN_WORD_IDS = 9 }; /**< words with more ids are not cached */
/** Makes an empty cache. */
KnownWords *known_words_new(void);
/** Appends the ids of a word to `ids`. Returns false if the word is not in the cache. */
bool known_word_put(const KnownWords *known, const char *word, size_t length, Ids *ids);
/** Caches the ids [count] of a word, unless it is long. May replace another word. */
void known_word_keep(KnownWords *known, const char *word, size_t length, const int32_t *ids,
                     size_t count);

/** Fills in a tokenizer: kind, model, pieces, special tokens and `spaced`. `path` is only for
 *  messages. Takes ownership of file.bytes. Returns false with `problem` on bad input. */
bool wordpiece_read(Tokenizer *tokenizer, const char *path, FileBytes file, Problem *problem);
/** Like wordpiece_read(), but does not take ownership of the bytes. The vocabulary is JSON; the
 *  merges are lines. */
bool bpe_read(Tokenizer *tokenizer, const char *path, FileBytes vocabulary, const char *merges_path,
              FileBytes merges, Problem *problem);
/** Like wordpiece_read(), but does not take ownership of file.bytes. */
bool sentencepiece_read(Tokenizer *tokenizer, const char *path, FileBytes file, Problem *problem);

/** The hint for a tokenizer that cannot be read. */
#define TOKENIZER_PATH_HINT                                                                        \
    N_("check the path; `make data` downloads BERT's vocabulary, `make data ONLY=stories` "        \
       "GPT-2's and LLaMA's tokenizers")

/** The hint for a file that is no tokenizer, or a damaged one of a kind that is not clear. */
#define TOKENIZER_FORMS_HINT                                                                       \
    N_("give BERT's vocab.txt (a token on each line, and no empty lines), GPT-2's vocab.json "     \
       "beside merges.txt, or a SentencePiece model such as LLaMA's tokenizer.model")

END_C
