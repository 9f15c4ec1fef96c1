/** @file
 * The data room: reviews in, batches of ids out.
 *
 *     CSV ──> reviews ──WordPiece──> ids ──> token cache (mmap) ──> batches [B,S] with sample numbers
 *
 * Letters in shapes: B batch, S sequence (SEQ), rows of the data set.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"

enum { SEQ_MIN = 2 };       /**< the least SEQ: [CLS] and [SEP] must fit */
enum { SEQ_MAX = 1 << 20 }; /**< the greatest: a row of more ids is no text any more */

/* ---- WordPiece ---- */

/** WordPiece as in BERT uncased: the same ids as Hugging Face's BertWordPieceTokenizer (tokenizers 0.23) with
 * its default settings. A tokenizer is not changed by use, so threads may share one. */
typedef struct Tokenizer Tokenizer;

/** Reads the vocabulary at this path: UTF-8, one token a line, the line's number from 0 is the id.
 *  @return NULL and a problem when it cannot be read, lacks [UNK], [CLS], [SEP] or [PAD], or holds a token
 * twice, an empty line or invalid UTF-8; otherwise the caller's, to be freed with tokenizer_free */
Tokenizer *tokenizer_new(const char *vocabulary, Problem *problem);
/** Frees what tokenizer_new() gave. NULL is allowed. */
void tokenizer_free(Tokenizer *tokenizer);

/** Writes the ids of `text` [length], valid UTF-8 (see utf8_valid_length), zero bytes allowed: [CLS], the text's
 *  pieces, [SEP], cut to `seq` ids (SEQ_MIN to SEQ_MAX), not padded, into `ids`, which has room for [seq].
 *  @return how many ids were written, 2..seq */
int64_t tokenizer_encode(const Tokenizer *tokenizer, const char *text, size_t length, int32_t seq,
                         int32_t *ids);

/** How many bytes from the start of `text` are valid UTF-8; `length` when all are. */
size_t utf8_valid_length(const char *text, size_t length);

/* ---- The data set ---- */

/** The tokens of a CSV file, read-only in memory that all ranks of a node share. */
typedef struct ReviewSet {
    int64_t rows;          /**< reviews, one a row of the CSV file */
    int64_t seq;           /**< no row has more ids */
    int32_t vocabulary;    /**< every id is below it */
    int32_t pad;           /**< the id of [PAD] */
    const int64_t *begin;  /**< [rows+1] row r's ids are ids[begin[r]] to ids[begin[r+1]-1] */
    const int32_t *labels; /**< [rows] 1 positive, 0 negative */
    const int32_t *ids;    /**< [begin[rows]] */
    void *map;             /**< the mapped cache file, and its size in bytes */
    size_t map_size;       /**< bytes of it */
} ReviewSet;

/** Opens the tokens of a CSV file, `seq` (SEQ_MIN..SEQ_MAX) of a row at most, through the cache in `cache_folder`, which is made where it is missing.
 *
 *  The cache file's name comes from the contents of both files, SEQ and the format, so a change of any of
 * them makes a new one; a damaged file is made anew. It is written beside and renamed, so ranks may open the
 * same set at once.
 *  The CSV file: header `review,label`, RFC 4180, UTF-8, labels 0/1 or neg/pos.
 *  @return NULL and a problem with file, row and line on bad input, or when the cache cannot be written;
 * otherwise the caller's, to be freed with review_set_close */
ReviewSet *review_set_open(const char *csv, const char *vocabulary, int64_t seq,
                           const char *cache_folder, Problem *problem);
/** Unmaps the file and frees the set. NULL is allowed. */
void review_set_close(ReviewSet *set);

/* ---- Batches ---- */

/** What one step reads. */
typedef struct Batch {
    int64_t count;    /**< B, the rows filled */
    int64_t capacity; /**< the rows there is room for */
    int64_t seq;      /**< S */
    int32_t *ids;     /**< [B,S] padded with [PAD] */
    int32_t *mask;    /**< [B,S] 1 where a token is, 0 where padding is */
    int32_t *labels;  /**< [B] */
    int64_t *samples; /**< [B] row numbers in the data set: dropout is keyed by them */
} Batch;

/** An empty batch with room for `capacity` rows of `seq` ids; the caller's, to be freed with batch_free. */
Batch *batch_new(int64_t capacity, int64_t seq);
/** Frees the batch and its arrays. NULL is allowed. */
void batch_free(Batch *batch);

/** Fills `batch` with rows [count] of `set`, which has the batch's seq; repeats are allowed. count: 0..batch->capacity. */
void batch_fill(const ReviewSet *set, const int64_t *rows, int64_t count, Batch *batch);

/* permutation(), the order of an epoch, stands in balise.h, as a lab calls it too. */
