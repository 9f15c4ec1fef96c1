/** @file
 * The tiles of attention on a CPU, and what follows from their sizes: work space, and whether
 * products are in 16 bits. A dry run needs them, too.
 */
#pragma once

#include "backend/backend.h"

/** Computes the scores of a tile of queries at a time, with every visible key. The backward pass
 * recomputes them (Dao et al., arXiv:2205.14135), so memory grows with the number of positions, not
 * its square. With smaller tiles, the library packs keys and values too often; larger ones do not
 * fit the cache. */
enum { ROWS_OF_A_TILE = 256 /**< of attention to all keys */ };

/** A tile of causal attention ends at the last key that its last query sees: smaller tiles compute
 * fewer scores of the future. */
enum { ROWS_OF_A_CAUSAL_TILE = 64 /**< of causal attention */ };

/** The queries of a tile. */
static inline int64_t rows_of_tile(const AttentionShape *shape)
{
    const int64_t most = shape->causal ? ROWS_OF_A_CAUSAL_TILE : ROWS_OF_A_TILE;
    return shape->positions < most ? shape->positions : most;
}

/** Each product rounds a tile of scores. Attention stays in FP32 if a product has fewer
 * multiply-adds than this per number of its three matrices. Measured forward and backward, on one
 * core with AMX: with 21 (128 queries, 128 keys, 32 numbers), FP32 takes 1.0 times as long as BF16,
 * with 32 (128·128·64) 1.3 times, with 35 (256·256·48) 1.8 times; in causal tiles, with 25
 * (64·256·48) 0.9 times, with 30 (64·512·64) 1.3 times. The choice depends only on the shape, so it
 * is the same in both passes and in every layout. With many masked keys, BF16 is still 0.95 to 1.6
 * times as fast as FP32. */
enum { BF16_LEAST_PER_NUMBER = 30 /**< multiply-adds */ };

/** Is attention in 16 bits faster? */
static inline bool is_worth_rounding(const AttentionShape *shape)
{
    const int64_t rows = rows_of_tile(shape), keys = attention_keys(shape), size = shape->head_size;
    const int64_t numbers = rows * size + keys * size + rows * keys;
    return rows * keys * size >= BF16_LEAST_PER_NUMBER * numbers;
}

/** The numbers of work space that a thread needs: for scores and, in 16 bits, for results before they
 * are rounded. */
static inline int64_t work_of_thread(const AttentionShape *shape, bool in_16_bits)
{
    const int64_t rows = rows_of_tile(shape), keys = attention_keys(shape);
    return 2 * rows * keys + (in_16_bits ? (rows + 2 * keys) * shape->head_size : 0);
}
