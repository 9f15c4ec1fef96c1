/* The sentences for mistakes in a block and its parts, also on a shard of the positions. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects_of_blocks[MISTAKES] = {
    [GATHER_GRADIENT_OWN] =
        {IN_SEQUENCE,
         N_("it has only what this rank's weights contribute: every rank has used all positions, so "
            "the backward pass of gather_sequence adds the gradients of all ranks "
            "(a reduce-scatter); all_gather's (lab 9) does not")},
    [GATHER_GRADIENT_OWN_1] =
        {IN_SEQUENCE_BLOCKS,
         N_("from the attention, it has only what this rank's weights contribute: gather x with "
            "gather_sequence, whose backward pass adds the gradients of all ranks; all_gather's "
            "(lab 9) does not")},
    [GATHER_GRADIENT_OWN_2] =
        {IN_SEQUENCE_BLOCKS,
         N_("from the feed-forward layers, it has only what this rank's weights contribute: gather "
            "x with gather_sequence, whose backward pass adds the gradients of all ranks; "
            "all_gather's (lab 9) does not")},
    [GATHER_GRADIENT_TIMES_RANKS] =
        {IN_SEQUENCE, N_("the gradient from gather_sequence is tp times the sum over the ranks: "
                         "a reduce-scatter over mesh->tp, alone, gives the sum")},
    [GATHER_GRADIENT_OVER_RANKS] = {IN_SEQUENCE, N_("the backward pass of gather_sequence divides "
                                                    "by the number of ranks: the gradient must be "
                                                    "a sum, not a mean")},
    [GATHER_OFF_TAPE] =
        {IN_SEQUENCE,
         N_("no gradient flowed back through the gather: a group_... or ..._forward function "
            "gives values only; gather_sequence is on the tape")},
    [POSITIONS_OF_OWN_TERM] =
        {IN_SEQUENCE,
         N_("it has only this rank's term of the sum: each position needs the terms of "
            "all ranks (a reduce-scatter)")},
    [POSITIONS_OF_OWN_ATTENTION] =
        {IN_SEQUENCE_BLOCKS,
         N_("it has only this rank's term of the attention's result: each position needs the "
            "terms of all ranks, which reduce_scatter_sequence adds")},
    [POSITIONS_OF_OWN_FEED_FORWARD] =
        {IN_SEQUENCE_BLOCKS,
         N_("it has only this rank's term of the feed-forward layers' result: each position "
            "needs the terms of all ranks, which reduce_scatter_sequence adds")},
    [TERM_GRADIENT_OWN] =
        {IN_SEQUENCE,
         N_("a rank's term is in the sums of all positions, so it needs the gradients of all "
            "positions, which the backward pass of reduce_scatter_sequence gathers; all_reduce and "
            "part() return only those of this rank's positions")},
    [TERM_GRADIENT_OWN_1] =
        {IN_SEQUENCE_BLOCKS,
         N_("after the attention, a rank's term is in the sums of all positions, so it needs the "
            "gradients of all positions, which the backward pass of reduce_scatter_sequence "
            "gathers; all_reduce and part() return only those of this rank's positions")},
    [TERM_GRADIENT_OWN_2] =
        {IN_SEQUENCE_BLOCKS,
         N_("after the feed-forward layers, a rank's term is in the sums of all positions, so it "
            "needs the gradients of all positions, which the backward pass of "
            "reduce_scatter_sequence gathers; all_reduce and part() return only those of this "
            "rank's positions")},
    [TERM_GRADIENT_TIMES_RANKS] =
        {IN_SEQUENCE,
         N_("the gradient of a term is too large by a factor of the number of ranks: the backward "
            "pass of reduce_scatter_sequence gathers, and sums nothing")},
    [TERM_GRADIENT_OVER_RANKS] = {IN_SEQUENCE,
                                  N_("the backward pass of reduce_scatter_sequence divides by the "
                                     "number of ranks: the result must be a sum, not a mean")},
    [TERM_OFF_TAPE] =
        {IN_SEQUENCE,
         N_("no gradient flowed back through the sum: a group_... or ..._forward function gives "
            "values only; reduce_scatter_sequence is on the tape")},
    [BLOCK_NOT_RUN] = {IN_SEQUENCE_BLOCKS, N_("the block returns x itself, unchanged")},
    [MASKS_OF_FIRST_POSITIONS] =
        {IN_SEQUENCE_BLOCKS,
         N_("all ranks draw the masks of the first positions: dropout does not know that the tensor "
            "is a shard. reduce_scatter_sequence marks its result, and placed(x, shard(1)) "
            "marks the result of your own operation")},
    [MASK_1_OF_FIRST_POSITIONS] =
        {IN_SEQUENCE_BLOCKS,
         N_("all ranks draw the mask of the first positions for dropout1, which does not know that the "
            "tensor is a shard. reduce_scatter_sequence marks its result, and placed(x, shard(1)) "
            "marks the result of your own operation")},
    [MASK_2_OF_FIRST_POSITIONS] =
        {IN_SEQUENCE_BLOCKS,
         N_("all ranks draw the mask of the first positions for dropout2, which does not know that the "
            "tensor is a shard. reduce_scatter_sequence marks its result, and placed(x, shard(1)) "
            "marks the result of your own operation")},
    [SUMS_CUT] =
        {IN_SEQUENCE_BLOCKS,
         N_("part() of an all_reduce does not say which positions it has: all ranks draw the masks "
            "of the first positions, and in the backward pass, a rank's term has the gradient of "
            "its own positions only. Call reduce_scatter_sequence in both halves")},
    [SUM_1_CUT] =
        {IN_SEQUENCE_BLOCKS,
         N_("part() of an all_reduce does not say which positions it has: dropout1 draws the mask "
            "of the first positions on all ranks, and in the backward pass, a rank's term has the "
            "gradient of its own positions only. Call reduce_scatter_sequence after the "
            "attention")},
    [SUM_2_CUT] =
        {IN_SEQUENCE_BLOCKS,
         N_("part() of an all_reduce does not say which positions it has: dropout2 draws the mask "
            "of the first positions on all ranks, and in the backward pass, a rank's term has the "
            "gradient of its own positions only. Call reduce_scatter_sequence after the "
            "feed-forward layers")},
    [PAIRS_OFF_TAPE] =
        {IN_SEQUENCE_BLOCKS,
         N_("the pairs are not on the tape: a group_... or ..._forward function gives values only, "
            "and does not mark its result as a shard. Call gather_sequence and "
            "reduce_scatter_sequence")},
    [NORM_GRADIENTS_OF_FIRST] =
        {IN_SEQUENCE_BLOCKS,
         N_("every rank has the norms' gradients of the first rank's positions. Each rank must contribute the terms of its own positions: the gradients are their sum over mesh->tp (an all-reduce)")},
};
