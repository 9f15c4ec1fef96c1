/** @file
 * The functions of labs that a program may lack, because only a setting calls them: ALLREDUCE=ring
 * (lab 15), AVERAGE (16), ZERO (17), SP (18) and RECOMPUTE (19). The linker sets those that it does not
 * find to NULL. make train looks for them before it begins (common/train/opening.c).
 */
#pragma once

#include "balise.h"

#pragma weak ring_reduce_scatter
#pragma weak ring_all_gather
#pragma weak average_is_due
#pragma weak average_weights
#pragma weak optimizer_part
#pragma weak reduce_scatter_gradients
#pragma weak squares_over_parts
#pragma weak sharded_step
#pragma weak gather_sequence_forward
#pragma weak gather_sequence_backward
#pragma weak reduce_scatter_sequence_forward
#pragma weak reduce_scatter_sequence_backward
#pragma weak sequence_block_forward
#pragma weak sum_norm_gradients
#pragma weak recompute_forward
#pragma weak recompute_backward

/** Has the program lab 15, 16, 17, 18 or 19? */
bool has_lab(int lab);
