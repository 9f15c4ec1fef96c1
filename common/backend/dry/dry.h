/** @file
 * The kernels of a dry run: they compute nothing, and count what they would multiply.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** The multiply-adds so far of linear layers and of attention. Attention multiplies every query by
 *  every key, causal or not. Its backward pass counts as twice the forward pass, without the scores
 *  that it computes again. Rows of padding and rows of zeros count. */
int64_t dry_multiply_adds(void);

/** Imitates a GPU or, by default, a CPU. The two differ in work space and in what attention rounds,
 *  and a GPU does not look for rows of zeros. */
void dry_imitate_gpu(bool gpu);

/** Sets how many rows of a table are in use at most: the tokens of all replicas in a step. */
void dry_set_most_rows_in_use(int64_t most);
