/** @file
 * The kernels of a dry run: they compute nothing, and count what they would multiply.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** What kernels would do. Rows of padding and rows of zeros count. */
typedef struct DryWork {
    /** of linear layers and of attention, which multiplies every query by every key, causal or not;
     *  its backward pass counts as twice the forward pass, without the scores that it computes
     *  again */
    int64_t multiply_adds;
    /** that kernels other than attention read and write: each argument once, or twice if it is
     *  changed in place; not vectors with a number for each row or column, such as a bias */
    int64_t bytes;
} DryWork;

/** What kernels have done so far. */
DryWork dry_work(void);

/** Imitates a GPU or, by default, a CPU. The two differ in work space and in what attention rounds,
 *  and a GPU does not look for rows of zeros. */
void dry_imitate_gpu(bool gpu);

/** Sets how many rows of a table are in use at most: the tokens of all replicas in a step. */
void dry_set_most_rows_in_use(int64_t most);
