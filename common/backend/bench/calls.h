/** @file
 * The kernels as build/bench-kernels calls them: each on tensors of one model size, with the work it does.
 */
#pragma once

#include "backend/backend.h"

enum { HEAD_SIZE = 64, VOCABULARY = 30522, BUFFERS = 8, MOST_CALLS = 32 };

/** The tensors of one model size. Each kernel takes from `buffer` what it needs. */
typedef struct Bench {
    int64_t samples, positions, hidden;
    int64_t rows, inner, heads, count; /**< count = rows · hidden, the size of an activation */
    float *buffer[BUFFERS];            /**< [rows, inner], or larger */
    float *table;                      /**< [VOCABULARY, hidden] */
    float *squares; /**< [inner, hidden], AdamW's v: not negative, nor subnormal in the end */
    float *highest, *sums, *work;
    int32_t *ids, *shown;
    DropoutMask mask;
    uint32_t *kept;   /**< [rows, dropout_words(inner)] */
    uint16_t *narrow; /**< room for the weights of a product in 16 bits */
    AttentionShape shape;
} Bench;

/** One kernel, and its work in bytes or floating-point operations, which `unit` names by the thousand millions. */
typedef struct Call {
    const char *name;
    void (*kernel)(Bench *);
    double work;
    const char *unit;
} Call;

/** What may be rounded (see backend_set_products()). @return how many there are */
int calls_rounded(const Bench *b, Call calls[MOST_CALLS]);

/** All others. @param on_host a kernel has ended when its call returns: then the peak of a core comes first */
int calls_not_rounded(const Bench *b, bool on_host, Call calls[MOST_CALLS]);
