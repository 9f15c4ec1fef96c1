/* The sentences for mistakes in a block and its parts, also on a shard of the positions. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects_of_blocks[MISTAKES] = {
    [RESIDUAL_1_MISSING] = {IN_RESIDUALS, N_("the residual around the attention is missing")},
    [RESIDUAL_2_MISSING] = {IN_RESIDUALS,
                            N_("the residual around the feed-forward layers is missing")},
    [RESIDUALS_MISSING] =
        {IN_RESIDUALS,
         N_("both residuals are missing: add x to the result of the attention, and that sum to the result of the feed-forward layers")},
    [NORM_1_MISSING] = {IN_NORMS_AND_TOKENS,
                        N_("the norm before the attention (norm1) is missing")},
    [NORM_2_MISSING] = {IN_NORMS_AND_TOKENS,
                        N_("the norm before the feed-forward layers (norm2) is missing")},
    [NORMS_MISSING] = {IN_NORMS_AND_TOKENS, N_("both norms (norm1 and norm2) are missing")},
    [NORM_1_BY_2] = {IN_NORMS_AND_TOKENS,
                     N_("the attention gets the output of norm2: norm1 belongs before the "
                        "attention, norm2 before the feed-forward layers")},
    [NORM_2_BY_1] = {IN_NORMS_AND_TOKENS,
                     N_("the feed-forward layers get the output of norm1: norm1 belongs before the "
                        "attention, norm2 before the feed-forward layers")},
    [NORMS_SWAPPED] = {IN_NORMS_AND_TOKENS,
                       N_("norm1 and norm2 are swapped: norm1 belongs before the attention, "
                          "norm2 before the feed-forward layers")},
    [NORM_2_OF_INPUT] = {IN_NORMS_AND_TOKENS,
                         N_("norm2 reads the x that the block was given: it must read the sum "
                            "after the attention")},
    [NORM_2_OF_ATTENTION] =
        {IN_NORMS_AND_TOKENS,
         N_("norm2 reads attention's result: it must read the sum of that result and x")},
    [FEED_FORWARD_OF_NORM_1] =
        {IN_NORMS_AND_TOKENS,
         N_("the feed-forward layers read what the attention reads, the output of norm1: they must read norm2 of the sum after the attention")},
    [RESIDUAL_1_OF_NORM] = {IN_NORMS_AND_TOKENS,
                            N_("the residual around the attention adds the normalised x: add x "
                               "itself, from before norm1")},
    [RESIDUAL_2_OF_NORM] = {IN_NORMS_AND_TOKENS,
                            N_("the residual around the feed-forward layers adds the normalised x: "
                               "add x itself, from before norm2")},
    [RESIDUALS_OF_NORM] =
        {IN_NORMS_AND_TOKENS,
         N_("both residuals add the normalised x: add x itself, from before the norm")},
    [RESIDUAL_2_OF_INPUT] =
        {IN_NORMS_AND_TOKENS,
         N_("the residual around the feed-forward layers adds the x that the block was given: add the sum after the attention")},
    [NORM_AFTER] = {IN_NORMS_AND_TOKENS,
                    N_("the norms come after the sums; in this block they belong before the "
                       "attention and before the feed-forward layers")},
    [NORM_1_AFTER] = {IN_NORMS_AND_TOKENS,
                      N_("norm1 comes after the first residual sum: it belongs before the "
                         "attention, and the residual path must bypass it")},
    [NORM_2_AFTER] = {IN_NORMS_AND_TOKENS,
                      N_("norm2 comes after the second residual sum: it belongs before the "
                         "feed-forward layers, and the residual path must bypass it")},
    [NORM_1_OF_TERM] = {IN_NORMS_AND_TOKENS, N_("norm1 is applied to the result of the attention: "
                                                "it belongs before the attention")},
    [NORM_2_OF_TERM] = {IN_NORMS_AND_TOKENS,
                        N_("norm2 is applied to the result of the feed-forward layers: it belongs "
                           "before the feed-forward layers")},
    [NORMS_OF_TERMS] =
        {IN_NORMS_AND_TOKENS,
         N_("the norms are applied to the results of the attention and of the feed-forward layers: they belong before both")},
    [NORM_2_ALSO_OF_TERM] = {IN_NORMS_AND_TOKENS,
                             N_("norm2 is also applied to the result of the feed-forward layers: "
                                "it belongs only before them")},
    [HALVES_SWAPPED] = {IN_NORMS_AND_TOKENS,
                        N_("the halves of the block are swapped: the attention comes first, "
                           "after norm1, then the feed-forward layers, after norm2")},
    [HALVES_SWAPPED_BUT_NORMS] =
        {IN_NORMS_AND_TOKENS,
         N_("the attention and the feed-forward layers are swapped: the attention comes after "
            "norm1, the feed-forward layers after norm2")},
    [NORM_OF_RESULT] =
        {IN_NORMS_AND_TOKENS,
         N_("norm2 is also applied to the result of the block: the block ends with the residual sum")},
    [TOKEN_LAST] = {IN_NORMS_AND_TOKENS,
                    N_("the classifier reads the last position: it must read the first token")},
    [TOKEN_MEAN] =
        {IN_NORMS_AND_TOKENS,
         N_("the classifier reads the mean over the positions: it must read the first token")},
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
    [RESIDUAL_DROPOUT_1_MISSING] = {IN_SEQUENCE_BLOCKS,
                                    N_("the dropout after the attention (dropout1) is missing")},
    [RESIDUAL_DROPOUT_2_MISSING] =
        {IN_SEQUENCE_BLOCKS, N_("the dropout after the feed-forward layers (dropout2) is missing")},
    [RESIDUAL_DROPOUTS_MISSING] = {IN_SEQUENCE_BLOCKS,
                                   N_("both dropouts before the residual sums are missing")},
    [RESIDUAL_DROPOUT_1_TWICE] =
        {IN_SEQUENCE_BLOCKS, N_("the dropout after the attention (dropout1) is applied twice")},
    [RESIDUAL_DROPOUT_2_TWICE] =
        {IN_SEQUENCE_BLOCKS,
         N_("the dropout after the feed-forward layers (dropout2) is applied twice")},
    [RESIDUAL_DROPOUTS_TWICE] = {IN_SEQUENCE_BLOCKS,
                                 N_("both dropouts before the residual sums are applied twice")},
    [RESIDUAL_DROPOUT_1_BY_2] = {IN_SEQUENCE_BLOCKS,
                                 N_("dropout2 acts after the attention, too: use dropout1 there, "
                                    "because it drops different elements")},
    [RESIDUAL_DROPOUT_2_BY_1] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout1 acts after the feed-forward layers, too: use dropout2 there, "
            "because it drops different elements")},
    [RESIDUAL_DROPOUTS_SWAPPED] =
        {IN_SEQUENCE_BLOCKS, N_("dropout1 and dropout2 are swapped: dropout1 belongs after the "
                                "attention, dropout2 after the feed-forward layers")},
    [RESIDUAL_DROPOUT_1_OF_SUM] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout1 acts on the residual sum; it belongs before that sum, on the result of the attention")},
    [RESIDUAL_DROPOUT_2_OF_SUM] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout2 acts on the residual sum; it belongs before that sum, on the result of the feed-forward layers")},
    [RESIDUAL_DROPOUTS_OF_SUM] =
        {IN_SEQUENCE_BLOCKS, N_("dropout acts on the residual sums; it belongs before those sums, "
                                "on the results of the attention and of the feed-forward layers")},
    [RESIDUAL_DROPOUT_1_OF_RESIDUAL] =
        {IN_SEQUENCE_BLOCKS, N_("dropout1 acts on the residual: it belongs on the result of the "
                                "attention, which is added to the residual")},
    [RESIDUAL_DROPOUT_2_OF_RESIDUAL] =
        {IN_SEQUENCE_BLOCKS, N_("dropout2 acts on the residual: it belongs on the result of the "
                                "feed-forward layers, which is added to the residual")},
    [RESIDUAL_DROPOUTS_OF_RESIDUAL] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout acts on the residuals: it belongs on the results of the attention and of the "
            "feed-forward layers, which are added to them")},
    [RESIDUAL_DROPOUT_1_OF_ARGUMENT] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout1 is applied to the input of attention; it belongs after attention")},
    [RESIDUAL_DROPOUT_2_OF_ARGUMENT] =
        {IN_SEQUENCE_BLOCKS,
         N_("dropout2 is applied to the input of the feed-forward layers; it belongs after them")},
    [RESIDUAL_DROPOUTS_OF_ARGUMENT] =
        {IN_SEQUENCE_BLOCKS, N_("dropout is applied to the inputs of attention and of the "
                                "feed-forward layers; it belongs after them")},
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
