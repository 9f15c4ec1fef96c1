/** @file
 * Turns reviews into batches of ids.
 *
 *     CSV ──> reviews ──WordPiece──> ids ──> token cache (mmap) ──> batches [B,S] with sample numbers
 *
 * Letters in shapes: B batch, S sequence (SEQ), rows of the data set.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/problem.h"

enum { SEQ_MIN = 2 };       /**< the smallest SEQ: [CLS] and [SEP] must fit */
enum { SEQ_MAX = 1 << 20 }; /**< the largest: a row with more ids is not a text */

/* ---- WordPiece ---- */

/** WordPiece as in BERT uncased: the same ids as Hugging Face's BertWordPieceTokenizer (tokenizers
 * 0.23) with default settings. Using a tokenizer does not change it, so threads may share one. */
typedef struct Tokenizer Tokenizer;

/** Reads a vocabulary: UTF-8, one token per line; the line's number, from 0, is the id.
 *  @return NULL with `problem` if it cannot be read, lacks [UNK], [CLS], [SEP] or [PAD], or has a
 * duplicate token, an empty line or invalid UTF-8; otherwise a tokenizer that the caller frees with
 * tokenizer_free */
Tokenizer *tokenizer_new(const char *vocabulary, Problem *problem);
/** Frees a tokenizer. NULL is allowed. */
void tokenizer_free(Tokenizer *tokenizer);

/** Writes the ids of `text` [length] to `ids`, which has room for [seq]: [CLS], the text's pieces,
 *  [SEP], truncated to `seq` ids (SEQ_MIN to SEQ_MAX), not padded. The text is valid UTF-8 (see
 *  utf8_valid_length) and may contain zero bytes.
 *  @return how many ids were written, 2..seq */
int64_t tokenizer_encode(const Tokenizer *tokenizer, const char *text, size_t length, int32_t seq,
                         int32_t *ids);

/** The number of bytes from the start of `text` that are valid UTF-8; `length` if all are. */
size_t utf8_valid_length(const char *text, size_t length);

/* ---- The data set ---- */

/** The tokens of a CSV file, read-only, in memory that all ranks of a node share. */
typedef struct ReviewSet {
    int64_t rows;          /**< number of reviews, one per row of the CSV file */
    int64_t seq;           /**< no row has more ids */
    int32_t vocabulary;    /**< every id is below it */
    int32_t pad;           /**< the id of [PAD] */
    const int64_t *begin;  /**< [rows+1] row r's ids are ids[begin[r]] to ids[begin[r+1]-1] */
    const int32_t *labels; /**< [rows] 1 positive, 0 negative */
    const int32_t *ids;    /**< [begin[rows]] */
    void *map;             /**< the mapped cache file */
    size_t map_size;       /**< its size in bytes */
} ReviewSet;

/** Opens the tokens of a CSV file, at most `seq` (SEQ_MIN..SEQ_MAX) per row, through the cache in
 *  `cache_folder`, which it creates if necessary.
 *
 *  The cache file's name depends on the contents of both files, SEQ and the format, so a change in
 *  any of them makes a new file; a damaged file is made again. It is written beside and renamed, so
 *  ranks may open the same set at once. The CSV file: header `review,label`, RFC 4180, UTF-8,
 *  labels 0/1 or neg/pos.
 *  @return NULL with `problem` (file, row and line) on bad input or if the cache cannot be written;
 *  otherwise a set that the caller frees with review_set_close */
ReviewSet *review_set_open(const char *csv, const char *vocabulary, int64_t seq,
                           const char *cache_folder, Problem *problem);
/** Unmaps the file and frees the set. NULL is allowed. */
void review_set_close(ReviewSet *set);

/* ---- Batches ---- */

/** The input of one step. */
typedef struct Batch {
    int64_t count;    /**< B, the number of rows filled */
    int64_t capacity; /**< the number of rows that fit */
    int64_t seq;      /**< S */
    int32_t *ids;     /**< [B,S] padded with [PAD] */
    int32_t *mask;    /**< [B,S] 1 for a token, 0 for padding */
    int32_t *labels;  /**< [B] */
    int64_t *samples; /**< [B] row numbers in the data set: dropout is keyed by them */
} Batch;

/** Makes an empty batch with room for `capacity` rows of `seq` ids. The caller frees it with
 *  batch_free. */
Batch *batch_new(int64_t capacity, int64_t seq);
/** Frees the batch and its arrays. NULL is allowed. */
void batch_free(Batch *batch);

/** Fills `batch` with rows [count] of `set`, which must have the batch's seq. Rows may repeat.
 *  count: 0..batch->capacity. */
void batch_fill(const ReviewSet *set, const int64_t *rows, int64_t count, Batch *batch);

/* permutation(), which draws an epoch's order, is in balise.h because a lab calls it too. */
