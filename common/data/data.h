/** @file
 * Turns text into ids, and reviews or a long text into batches of ids.
 *
 *     CSV ──> reviews ──Tokenizer──> ids ──> token cache (mmap) ──> batches [B,S] with sample numbers
 *
 * In shapes: B is the batch size, S the sequence length (SEQ), `rows` the number of rows of the
 * data set.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/philox.h"
#include "base/problem.h"

enum { SEQ_MIN = 2 };       /**< the smallest SEQ: [CLS] and [SEP] must fit */
enum { SEQ_MAX = 1 << 20 }; /**< the largest SEQ */

/* ---- Tokenizers ---- */

/** Turns text into ids and back: WordPiece (BERT uncased), byte-level BPE (GPT-2) or SentencePiece
 * (LLaMA), with the same ids as Hugging Face's tokenizers 0.23 and SentencePiece. Only one thread
 * at a time may use it: it caches the ids of frequent words. */
typedef struct Tokenizer Tokenizer;

/** The special tokens. */
typedef enum SpecialToken {
    UNKNOWN_TOKEN,  /**< [UNK], `<unk>`: text that no pieces spell */
    BEGIN_TOKEN,    /**< before a text: [CLS], `<s>`; GPT-2's `<|endoftext|>` also ends a text */
    END_TOKEN,      /**< after a text: [SEP], `</s>`, `<|endoftext|>` */
    PAD_TOKEN,      /**< padding after a text: [PAD], `<pad>` */
    MASK_TOKEN,     /**< a hidden token, in BERT's pretraining: [MASK], `<mask>` */
    SPECIAL_TOKENS, /**< the number of special tokens */
} SpecialToken;

/** Opens a tokenizer. `path` is one of these files, recognised by its contents whatever its name,
 *  or a folder that has them under these names:
 *    WordPiece      vocab.txt: UTF-8, one token per line; the line's number, from 0, is the id
 *    BPE            vocab.json (encoder.json) and merges.txt (vocab.bpe), in one folder; `path` names
 *                   one of them
 *    SentencePiece  tokenizer.model
 *  @return NULL with `problem` if a file cannot be read, is damaged, or does not match the other
 *  file; otherwise a tokenizer that the caller frees with tokenizer_free */
Tokenizer *tokenizer_open(const char *path, Problem *problem);
/** Frees a tokenizer. NULL is allowed. */
void tokenizer_free(Tokenizer *tokenizer);

/** The number of ids. They range from 0 to this number - 1. */
int32_t tokenizer_size(const Tokenizer *tokenizer);
/** The id of a special token, or -1 if the tokenizer has none. */
int32_t tokenizer_special(const Tokenizer *tokenizer, SpecialToken token);

/** A text, and where it begins, for messages. It may contain zero bytes. */
typedef struct Text {
    const char *bytes; /**< [length] */
    size_t length;     /**< of `bytes` */
    const char *path;  /**< of its file, or what else it comes from */
    int64_t line;      /**< its first line in the file, from 1 */
} Text;

/** Writes the ids of `text` to `ids`, which has room for [seq]: the begin token, the text's pieces,
 *  the end token (each if there is one), truncated to `seq` ids (SEQ_MIN to SEQ_MAX), not padded.
 *  The text is valid UTF-8 (see utf8_check).
 *  @return the number of ids written, at most seq; -1 with `problem` if SentencePiece would need
 *  too much memory */
int64_t tokenizer_encode(const Tokenizer *tokenizer, Text text, int32_t seq, int32_t *ids,
                         Problem *problem);

/** The ids of a text's pieces, without begin and end tokens. The text is valid UTF-8. BPE and
 *  SentencePiece read the name of a special token as text; WordPiece, like Hugging Face's, as that
 *  token.
 *  @return the number of ids; the caller frees *ids. Or -1 with `problem`, as tokenizer_encode() */
int64_t tokenizer_encode_text(const Tokenizer *tokenizer, Text text, int32_t **ids,
                              Problem *problem);

/** The text of `count` ids, each from 0 to tokenizer_size - 1: their pieces (see tokenizer_piece)
 *  concatenated and followed by a zero byte.
 *  @return its bytes, not necessarily valid UTF-8, *length of them; the caller frees them */
char *tokenizer_decode(const Tokenizer *tokenizer, const int32_t *ids, int64_t count,
                       size_t *length);

/** The bytes that `id` adds to a text. `before` is the id before it, or -1 at the beginning of the
 *  text, where a space that only separates words is left out. In BPE, every token has bytes; in the
 *  other kinds, begin, end and padding have none.
 *  @return [*length] bytes, which belong to the tokenizer and do not end with a zero byte */
const char *tokenizer_piece(const Tokenizer *tokenizer, int32_t before, int32_t id, size_t *length);

/** The number of bytes from the start of `text` that are valid UTF-8; `length` if all are. */
size_t utf8_valid_length(const char *text, size_t length);
/** Do the bytes of a file begin as those of gzip do? */
bool is_compressed(const char *bytes, size_t length);
/** The HINT for a text that is not UTF-8, by its first bytes: UTF-16, gzip, or another encoding. */
const char *hint_to_convert(const char *text, size_t length);

/** Is the text valid UTF-8? If not, returns false with `problem`, which names the line and the
 *  byte. */
bool utf8_check(Text text, Problem *problem);

/* ---- The data set ---- */

/** The tokens of a file, read-only, in memory shared by all ranks of a node. A row is a review, a
 * window of a text, or a document of a text. */
typedef struct TokenSet {
    int64_t rows;       /**< number of reviews, one per row of the CSV file, windows or documents */
    int64_t seq;        /**< the most ids of a row that a batch takes; a window has as many */
    int64_t tokens;     /**< number of ids */
    int32_t vocabulary; /**< every id is below it */
    int32_t pad;        /**< the id of padding */
    int32_t special[SPECIAL_TOKENS]; /**< the tokenizer's ids, or -1 */
    const int64_t *begin; /**< [rows+1] row r's ids are ids[begin[r]] to ids[begin[r+1]-1]; NULL for
                              windows */
    const int32_t *labels; /**< [rows] 1 positive, 0 negative; NULL for a text */
    const int32_t *ids;    /**< [tokens] */
    void *map;             /**< the mapped cache file */
    size_t map_size;       /**< its size in bytes */
} TokenSet;

/** Opens the tokens of a CSV file of reviews, at most `seq` (SEQ_MIN..SEQ_MAX) per row, through the
 *  cache in `cache_folder`, which it creates if necessary. `tokenizer` is a path (tokenizer_open).
 *
 *  The cache file's name depends on the contents of both files, SEQ and the format, so a change in
 *  any of them makes a new file; a damaged file is made again. A cache file gets its name only once
 *  it is complete, so ranks may open the same set at once. The CSV file: header `review,label`, RFC
 *  4180, UTF-8, labels 0/1 or neg/pos.
 *  @return NULL with `problem` (file, row and line) on bad input or if the cache cannot be written;
 *  otherwise a set that the caller frees with token_set_close */
TokenSet *token_set_open_reviews(const char *csv, const char *tokenizer, int64_t seq,
                                 const char *cache_folder, Problem *problem);

/** Opens a text through the same cache, in which one file serves every SEQ, windows and documents. The text is UTF-8. If
 *  it has `<|endoftext|>`, that ends each document; otherwise a line that is only `-` does; if
 *  there is no such line either, each line is a document. Blanks around a document and
 *  empty documents are left out. The stream of tokens is every document in turn: begin token,
 *  pieces, end token (if begin and end are one token, as GPT-2's are, only at the end).
 *
 *  Window r, a row, is the tokens r*seq to r*seq + seq - 1 of the stream; the targets are the next
 *  tokens, r*seq + 1 to r*seq + seq. So windows do not overlap, and every token but the first is a
 *  target once, up to the last window that is complete.
 *  @return NULL with `problem` on bad input, if the text is shorter than a window, or if the cache
 *  cannot be written; otherwise a set that the caller frees with token_set_close */
TokenSet *token_set_open_text(const char *text, const char *tokenizer, int64_t seq,
                              const char *cache_folder, Problem *problem);
/** Opens the same cache file as token_set_open_text(), but a row is a document, padded or cut to
 *  `seq` ids. The targets are the next tokens of the same document; its last id and the padding have
 *  none. With a tokenizer that has a mask token, BERT's, a document that is cut still ends with the
 *  end token, as with Hugging Face's tokenizers. */
TokenSet *token_set_open_documents(const char *text, const char *tokenizer, int64_t seq,
                                   const char *cache_folder, Problem *problem);
/** Unmaps the file and frees the set. NULL is allowed. */
void token_set_close(TokenSet *set);

/* ---- Batches ---- */

/** The input of one step. */
typedef struct Batch {
    int64_t count;    /**< B, the number of rows filled */
    int64_t capacity; /**< the number of rows that fit */
    int64_t seq;      /**< S */
    int32_t *ids;     /**< [B,S] padded with TokenSet.pad */
    int32_t *mask;    /**< [B,S] 1 for a token, 0 for padding */
    int32_t *targets; /**< [B,S] the token after each of `ids`, or NO_ID; see batch_mask_tokens() */
    int32_t *labels;  /**< [B] for reviews */
    int64_t *samples; /**< [B] row numbers in the data set: dropout is keyed by them */
} Batch;

/** Makes an empty batch with room for `capacity` rows of `seq` ids. The caller frees it with
 *  batch_free. */
Batch *batch_new(int64_t capacity, int64_t seq);
/** Frees the batch and its arrays. NULL is allowed. */
void batch_free(Batch *batch);

/** Fills `batch` with rows [count] of `set`, which must have the batch's seq. Rows may repeat.
 *  count: 0..batch->capacity. */
void batch_fill(const TokenSet *set, const int64_t *rows, int64_t count, Batch *batch);

/** The probability with which batch_mask_tokens() chooses a token. */
#define MASKED_SHARE 0.15

/** Chooses tokens of a text at random, and hides them (Devlin et al., arXiv:1810.04805, section
 *  3.1): each token but begin, end and padding with probability MASKED_SHARE, but at most `most` in
 *  a row (0: no limit; max_predictions_per_seq of their program): those whose draws are smallest,
 *  at any positions. Of the chosen tokens, 80 % become the mask token, 10 % become a random token, and 10 % stay. The targets are
 *  the chosen tokens, and NO_ID at other positions. The choice depends only on the key, the row
 *  and the position, so it is the same in every layout. `set` must have a mask token. */
void batch_mask_tokens(Batch *batch, const TokenSet *set, PhiloxKey key, int64_t most);
/** The number of targets that are not NO_ID. */
int64_t batch_targets(const Batch *batch);

/* permutation(), which draws an epoch's order, is in balise.h because a lab calls it too. */
