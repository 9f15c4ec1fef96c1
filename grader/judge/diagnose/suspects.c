/* The sentence for each mistake. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects[MISTAKES] = {
    [OWN_ONLY] =
        {IN_SUMS,
         N_("it holds this rank's own contribution only: those of the other ranks are missing")},
    [COUNTED_TWICE] = {IN_SUMS, N_("it counts this rank's own part once too often: the tape adds "
                                   "up what you return, so return this use's gradient only")},
    [PAIRS_ONLY] = {IN_SUMS, N_("this rank has the sum of two contributions only: the exchange "
                                "does not reach the whole group")},
    [CHANGED_INPUT] =
        {IN_SUMS, N_("all_reduce altered its input; another operation still needs the old values")},
    [OTHER_REPLICAS] =
        {IN_SUMS | IN_BIASES,
         N_("it contains contributions of another replica: it was summed over the world")},
    [NOT_DIVIDED] = {IN_AVERAGES, N_("gradients grow with the number of replicas: this is their "
                                     "sum, not their mean")},
    [DIVIDED_TWICE] = {IN_AVERAGES, N_("the gradients are averaged twice: divided by the number of "
                                       "replicas once too often")},
    [DIVIDED_BY_WORLD] =
        {IN_AVERAGES,
         N_("it is divided by the number of all ranks: divide by the number of replicas")},
    [DIVIDED_BY_TP] =
        {IN_AVERAGES,
         N_("it is divided by the size of the tp group: divide by the number of replicas")},
    [DIVIDED_ALONE] =
        {IN_AVERAGES,
         N_("it is this replica's own value, divided: the other replicas are missing")},
    [OVER_TP] = {IN_AVERAGES, N_("it is taken over the tp group: use the dp group, the replicas")},
    [OVER_TP_BY_DP] = {IN_AVERAGES, N_("it is a sum over the tp group, but the ranks of that group "
                                       "hold different pieces of the weights")},
    [OVER_THE_WORLD] = {IN_AVERAGES, N_("it is taken over the world: this mixes different pieces "
                                        "of the weights, or counts each row once per tp rank")},
    [OVER_THE_WORLD_BY_DP] = {IN_AVERAGES, N_("gradients of different pieces of a weight were "
                                              "added together: the group is the world")},
    [ONE_REPLICA] = {IN_AVERAGES,
                     N_("it covers one replica's data only: the other replicas are missing")},
    [FACTOR_HIDDEN] =
        {IN_ATTENTION,
         N_("attention scores are scaled by the hidden size; use the size of one head")},
    [FACTOR_MISSING] = {IN_ATTENTION, N_("attention scores are not scaled: the factor 1/sqrt(head "
                                         "size) is missing")},
    [FACTOR_NO_ROOT] =
        {IN_ATTENTION,
         N_("attention scores are divided by the head size; divide by its square root")},
    [FACTOR_INVERSE] =
        {IN_ATTENTION,
         N_("attention scores are multiplied by the square root of the head size; divide by it")},
    [FACTOR_LOCAL_HEADS] =
        {IN_ATTENTION,
         N_("attention scores are scaled by the hidden size divided by the heads on this rank: "
            "the size of one head is the same on every rank, hidden / heads of the whole layer")},
    [FACTOR_WIDTH] = {IN_ATTENTION, N_("attention scores are scaled by the width that this rank "
                                       "holds; use the size of one head")},
    [FACTOR_SHARE] =
        {IN_ATTENTION,
         N_("attention scores are scaled by the size of a head divided by the number of ranks: "
            "the size of one head is the same on every rank, hidden / heads of the whole layer")},
    [FACTOR_HEADS] =
        {IN_ATTENTION,
         N_("attention scores are scaled by the number of heads; use the size of one head")},
    [KEY_VALUE_SWAPPED] = {IN_ATTENTION | IN_PROJECTIONS, N_("keys and values are exchanged")},
    [QUERY_KEY_SWAPPED] = {IN_ATTENTION | IN_PROJECTIONS, N_("queries and keys are exchanged")},
    [MASK_IGNORED] = {IN_ATTENTION, N_("positions hidden by the mask still influence the output")},
    [HEADS_TOTAL] = {IN_ATTENTION, N_("the size of a head changed with the number of ranks: count "
                                      "the heads on this rank")},
    [HEADS_ONE] = {IN_ATTENTION,
                   N_("everything on a rank is treated as one head: count the heads on this rank")},
    [GELU_MISSING] = {IN_INNER_LAYERS,
                      N_("the activation (GELU) between the two linear layers is missing")},
    [GELU_TWICE] = {IN_INNER_LAYERS, N_("GELU is applied twice")},
    [GELU_AFTER] = {IN_INNER_LAYERS, N_("the activation is in the wrong place: GELU belongs "
                                        "between the two linear layers, not after the second")},
    [DROPOUT_FIRST] =
        {IN_INNER_LAYERS,
         N_("dropout is in the wrong place: it belongs after the activation, not before it")},
    [DROPOUT_LAST] =
        {IN_INNER_LAYERS,
         N_("dropout is in the wrong place: it belongs before the second linear layer, not after it")},
    [DROPOUT_MISSING] = {IN_INNER_LAYERS, N_("dropout is missing")},
    [DROPOUT_TWICE] = {IN_INNER_LAYERS, N_("dropout is applied twice")},
    [DROPOUT_COMPLEMENT] = {IN_INNER_LAYERS, N_("the probability of dropout is that of dropping a "
                                                "number, not of keeping it")},
    [DROPOUT_REPEATED] =
        {IN_INNER_LAYERS,
         N_("all ranks drop the same units of their parts: their masks are copies, as if each rank "
            "held the first columns. Mark the tensor as a shard: placed(x, shard(LAST))")},
    [RESIDUAL_1_MISSING] = {IN_RESIDUALS, N_("the residual around the attention is missing")},
    [GRADIENT_TIMES_RANKS] =
        {IN_INPUT_GRADIENTS,
         N_("the gradient of x is too large by a factor of the number of ranks: it is summed over "
            "the ranks twice, or was already complete")},
    [GRADIENT_TWICE_TIMES_RANKS] =
        {IN_INPUT_GRADIENTS, N_("the gradient of x is summed over the ranks twice too often")},
    [GRADIENT_OVER_RANKS] = {IN_INPUT_GRADIENTS,
                             N_("the gradient of x is divided by the number of ranks")},
    [GRADIENT_MISSING] = {IN_INPUT_GRADIENTS,
                          N_("no gradient flowed back through the layer. A "
                             "group_... function gives values only, and so does tensor_copy(); "
                             "duplication, all_reduce and all_gather are on the tape")},
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
                       N_("norm1 and norm2 are exchanged: norm1 belongs before the attention, "
                          "norm2 before the feed-forward layers")},
    [NORM_2_OF_INPUT] = {IN_NORMS_AND_TOKENS,
                         N_("norm2 reads the x that the block was given: it must read the sum "
                            "after the attention")},
    [RESIDUAL_1_OF_NORM] = {IN_NORMS_AND_TOKENS,
                            N_("the residual around the attention adds the normalised x: add x "
                               "itself, from before norm1")},
    [RESIDUAL_2_OF_NORM] = {IN_NORMS_AND_TOKENS,
                            N_("the residual around the feed-forward layers adds the normalised x: "
                               "add x itself, from before norm2")},
    [NORM_AFTER] = {IN_NORMS_AND_TOKENS,
                    N_("the norms come after the sums; in this block they stand before the "
                       "attention and before the feed-forward layers")},
    [TOKEN_LAST] = {IN_NORMS_AND_TOKENS,
                    N_("the classifier reads the last position: it must read the first token")},
    [TOKEN_MEAN] =
        {IN_NORMS_AND_TOKENS,
         N_("the classifier reads the mean over the positions: it must read the first token")},
    [ACTIVATION_RELU] = {IN_INNER_LAYERS, N_("the activation is ReLU; the reference has GELU")},
    [ACTIVATION_TANH] = {IN_INNER_LAYERS, N_("the activation is tanh; the reference has GELU")},
    [ACTIVATION_SILU] = {IN_INNER_LAYERS,
                         N_("the activation is SiLU, x times its sigmoid; the reference has GELU")},
    [ACTIVATION_APPROXIMATE] =
        {IN_INNER_LAYERS, N_("GELU is computed by its approximation with tanh; the reference has "
                             "the exact one, with the error function")},
    [DROPOUT_HALVED] = {IN_INNER_LAYERS,
                        N_("dropout acts with half the probability that the layer was given")},
    [DROPOUT_FIXED_HALF] =
        {IN_INNER_LAYERS,
         N_("dropout acts with a probability of 0.5 instead of the p that the layer was given")},
    [DROPOUT_FIXED_TENTH] =
        {IN_INNER_LAYERS,
         N_("dropout acts with a probability of 0.1 instead of the p that the layer was given")},
    [HEADS_DEALT] =
        {IN_ATTENTION,
         N_("the columns of queries, keys and values are distributed round-robin: each rank must have consecutive columns, because those of a head are neighbours")},
    [KEY_OF_FIRST] =
        {IN_ATTENTION,
         N_("every rank uses the keys of the first rank: each must use those of its own heads")},
    [VALUE_OF_FIRST] =
        {IN_ATTENTION,
         N_("every rank uses the values of the first rank: each must use those of its own heads")},
    [KEY_VALUE_OF_FIRST] = {IN_ATTENTION, N_("every rank uses the keys and values of the first "
                                             "rank: each must use those of its own heads")},
    [MASK_AS_LENGTH] = {IN_ATTENTION,
                        N_("each sample attends to its first n positions, where n counts the "
                           "ones of its mask; it must attend to the positions where the mask "
                           "is one")},
    [FIRST_WEIGHT_SHARED] =
        {IN_KEPT_QUERIES, N_("the first layer uses the queries' weight of the layer made after it: "
                             "keep a layer's weights in its own struct, not in a static variable")},
    [ALL_WEIGHTS_SHARED] = {IN_KEPT_WEIGHTS,
                            N_("the first layer uses the weights of the layer made after it: keep "
                               "a layer's weights in its own struct, not in a static variable")},
    [GRADIENT_OF_FIRST_PART] =
        {IN_GATHERED_PARTS, N_("every rank uses the first rank's part of dy: in the backward pass "
                               "of all_gather, each rank takes the part for its own columns")},
    [OWN_MAXIMUM] =
        {IN_VOCABULARY,
         N_("each rank subtracts the maximum of its own columns, so the ranks add up terms of "
            "different sizes: subtract the maximum over all ranks of mesh->tp, group_all_max")},
    [OWN_MAXIMUM_IN_SUM] =
        {IN_VOCABULARY,
         N_("in the sum of exp, each rank subtracts the maximum of its own columns: "
            "subtract the same number on all ranks, as from the logit of the target")},
    [OWN_MAXIMUM_IN_TARGET] =
        {IN_VOCABULARY,
         N_("the maximum of one rank's columns is subtracted from the logit of the target: "
            "subtract the maximum over all ranks, as in the sum of exp")},
    [OWN_SUM] = {IN_VOCABULARY, N_("the sum of exp covers this rank's columns only: the sums of "
                                   "all ranks must be added (g)")},
    [OWN_TARGETS] = {IN_VOCABULARY, N_("each rank picks only the logits of the targets that it "
                                       "holds: what all ranks have picked must be added (g)")},
    [TARGETS_TIMES_RANKS] = {IN_VOCABULARY, N_("the logit of each target is counted once per "
                                               "rank: one rank holds it, the others add 0")},
    [SUM_TIMES_RANKS] = {IN_VOCABULARY, N_("the sum of exp counts each column once per rank: it is "
                                           "summed over the ranks twice")},
    [SUM_BY_MAXIMUM] = {IN_VOCABULARY,
                        N_("the ranks' sums of exp are combined by a maximum instead of a sum: "
                           "only m is a maximum; the sums must be added (g)")},
    [TARGETS_BY_MAXIMUM] =
        {IN_VOCABULARY,
         N_("what the ranks have picked is combined by a maximum instead of a sum, which gives "
            "the 0 of a rank that does not hold the target: it must be added (g)")},
    [NOTHING_EXCHANGED] =
        {IN_VOCABULARY,
         N_("each rank computes the loss of its own columns only: the maximum, the sum of exp "
            "and the logit of the target must be taken over all ranks")},
    [TARGETS_NOT_MOVED] =
        {IN_VOCABULARY,
         N_("every rank uses a target as an index into its own columns: own_ids() turns "
            "targets into indices within this rank's part of the vocabulary")},
    [TARGETS_BY_PRODUCT] =
        {IN_VOCABULARY,
         N_("the first column of rank r is not r times its number of columns if the ranks have "
            "different numbers of columns: use own_ids(), which knows them")},
    [OTHERS_AS_FIRST] = {IN_VOCABULARY,
                         N_("for a target that another rank holds, each rank picks its own first "
                            "column: it must add 0, as NO_ID does")},
    [MAXIMUM_NOT_IN_TARGET] =
        {IN_VOCABULARY,
         N_("the maximum is subtracted in the sum of exp, but not from the logit of the target")},
    [MAXIMUM_ONLY_IN_TARGET] =
        {IN_VOCABULARY,
         N_("the maximum is subtracted from the logit of the target, but not in the sum of exp")},
    [LOGARITHM_MISSING] = {IN_VOCABULARY, N_("the logarithm of the sum of exp is missing")},
    [MEAN_OVER_POSITIONS] =
        {IN_VOCABULARY, N_("the sum is divided by the number of all positions: divide by those "
                           "that have a target, mean_over_tokens")},
    [MEAN_OVER_SAMPLES] =
        {IN_VOCABULARY, N_("the sum is divided by the number of samples: divide by the positions "
                           "that have a target, mean_over_tokens")},
    [SUM_OVER_TOKENS] = {IN_VOCABULARY, N_("it is the sum over the tokens: divide by the positions "
                                           "that have a target, mean_over_tokens")},
    [OWN_TOKENS] = {IN_VOCABULARY, N_("only the targets that this rank holds count as tokens: "
                                      "mean_over_tokens takes the targets of all positions")},
    [POSITIONS_COUNTED] =
        {IN_VOCABULARY, N_("positions without a target (NO_ID) count as tokens: the mean is over "
                           "those that have one, mean_over_tokens")},
    [WEIGHTS_OWN] = {IN_WEIGHTS,
                     N_("these are this replica's own weights, with nothing of the other "
                        "replicas")},
    [WEIGHTS_SUMMED] = {IN_WEIGHTS,
                        N_("the weights grow with the number of replicas: this is their "
                           "sum, not their mean")},
    [WEIGHTS_AS_EQUALS] =
        {IN_WEIGHTS, N_("each replica counts the same, 1/dp, but they have trained on "
                        "different numbers of rows: scale each replica's weights by its share "
                        "of all rows")},
    [WEIGHTS_BY_TP] = {IN_WEIGHTS, N_("the sum is divided by the size of the tp group: scale each "
                                      "replica's weights by its share of all rows instead")},
    [WEIGHTS_BY_WORLD] = {IN_WEIGHTS,
                          N_("the sum is divided by the number of all ranks: scale each replica's "
                             "weights by its share of all rows instead")},
    [WEIGHTS_SCALED_LATE] =
        {IN_WEIGHTS, N_("the sum of the weights is multiplied by this replica's share of the rows: "
                        "each replica multiplies its own weights, before the sum")},
    [WEIGHTS_OVER_WORLD] = {IN_WEIGHTS,
                            N_("the mean is taken over the world, which mixes different "
                               "pieces of the weights: take it over mesh->dp")},
    [WEIGHTS_SUMMED_OVER_WORLD] =
        {IN_WEIGHTS, N_("the weights are summed over the world, which mixes different pieces of "
                        "them: sum over mesh->dp")},
    [WEIGHTS_OVER_TP] = {IN_WEIGHTS, N_("the mean is taken over the tp group, whose ranks hold "
                                        "different pieces of the weights: take it over mesh->dp")},
    [ROWS_OVER_WORLD] = {IN_WEIGHTS,
                         N_("the rows are summed over the world, which counts each row once per tp "
                            "rank: the shares of the replicas must add up to 1")},
    [WEIGHTS_NOT_SUMMED] =
        {IN_WEIGHTS,
         N_("these are this replica's own weights times its share of the rows: those of "
            "the other replicas are missing, or the sum is in another tensor")},
    [WEIGHTS_HALF_WAY] = {IN_WEIGHTS, N_("the weights are half-way between this replica's own and "
                                         "the mean: after an average, all replicas have the mean")},
    [SHARDS_OWN] = {IN_SHARDS,
                    N_("these are this replica's own gradients, with nothing of the other "
                       "replicas")},
    [SHARDS_SUMMED] = {IN_SHARDS, N_("it is the sum over the replicas, not their mean")},
    [SHARDS_OWN_SCALED] = {IN_SHARDS, N_("these are this replica's own gradients, divided by the "
                                         "number of replicas: those of the others are missing")},
    [SHARDS_BY_TP] = {IN_SHARDS,
                      N_("the sum is divided by the size of the tp group, or by a constant: "
                         "the mean is over the replicas, mesh->dp_degree")},
    [SHARDS_BY_WORLD] = {IN_SHARDS, N_("the sum is divided by the number of all ranks: the mean is "
                                       "over the replicas, mesh->dp_degree")},
    [SHARDS_OVER_WORLD] = {IN_SHARDS, N_("the mean is taken over the world, which mixes the "
                                         "gradients of different weights: take it over mesh->dp")},
    [SHARDS_SUMMED_OVER_WORLD] =
        {IN_SHARDS, N_("the gradients are summed over the world, which mixes those of different "
                       "weights: sum over mesh->dp")},
    [SHARDS_OVER_TP] = {IN_SHARDS, N_("the mean is taken over the tp group, whose ranks hold the "
                                      "gradients of different weights: take it over mesh->dp")},
    [SHARDS_OWN_DIVIDED] = {IN_SHARDS, N_("before the sum, each replica divides its own part only: "
                                          "divide all of `gradients` then, or this part after "
                                          "the sum")},
    [SHARDS_DIVIDED_TWICE] = {IN_SHARDS, N_("the sum is divided by the number of replicas twice")},
    [SUM_OF_REPLICAS] = {IN_VOCABULARY, N_("the sum of exp also has the terms of other replicas: "
                                           "the group is the world, and should be mesh->tp")},
    [TARGETS_OF_REPLICAS] =
        {IN_VOCABULARY,
         N_("the logit of the target is summed over other replicas, too: the group is the world, "
            "and should be mesh->tp")},
    [SUM_OFF_TAPE] =
        {IN_VOCABULARY,
         N_("no gradient flows back through the sum of exp: the group_... functions give values "
            "only; all_reduce (g) is on the tape")},
    [TARGETS_OFF_TAPE] =
        {IN_VOCABULARY,
         N_("no gradient flows back through the logit of the target: the group_... functions give "
            "values only; all_reduce (g) is on the tape")},
    [BIAS_MISSING] = {IN_BIASES, N_("the bias is missing")},
    [BIAS_TIMES_RANKS] =
        {IN_BIASES, N_("the bias is added once per rank: add it after the sum over the ranks (g)")},
    [ALL_QUERIES] = {IN_PROJECTIONS, N_("q, k and v are all computed with the first matrix: "
                                        "the second matrix gives k, the third gives v")},
    [SCATTERED_FIRST] = {IN_SCATTERS, N_("every rank takes the first part: in scatter_forward, "
                                         "rank k of the group takes part k")},
    [GRADIENT_OF_OWN_PART] =
        {IN_SCATTERS, N_("outside of this rank's part, the gradient of x is zero: scatter_backward "
                         "joins the gradients of all ranks' parts")},
    [RESIDUAL_2_MISSING] = {IN_RESIDUALS,
                            N_("the residual around the feed-forward layers is missing")},
    [SEGMENT_NOT_RUN] = {IN_SEGMENTS,
                         N_("the segment has not run: the result is x itself, unchanged")},
    [GRADIENT_OF_RESULT] =
        {IN_SEGMENTS, N_("the gradient of the segment's result is taken for that of x: dy must "
                         "flow back through the segment, to a leaf")},
    [SEGMENT_OF_LAST_CALL] =
        {IN_SEGMENTS, N_("each backward pass runs the segment of the last forward call: run the "
                         "one that recompute_backward was given, and keep none in a static "
                         "variable")},
    [RUN_ON_GRADIENT] = {IN_SEGMENTS,
                         N_("the second run reads dy: it must read x, as the first one did")},
    [RUN_ON_RESULT] = {IN_SEGMENTS, N_("the second run reads the result of the segment: it must "
                                       "read x, as the first one did")},
    [RUN_ON_RUN] = {IN_SEGMENTS, N_("the backward pass runs the segment twice, one run on the "
                                    "result of the other: one run on x suffices")},
    [BACKWARD_FROM_INPUT] = {IN_SEGMENTS, N_("the backward pass begins with x in place of dy, the "
                                             "gradient of the result")},
    [BACKWARD_FROM_RESULT] = {IN_SEGMENTS, N_("the backward pass begins with the result in place "
                                              "of dy, which is the gradient of the result")},
    [GATHER_GRADIENT_OWN] =
        {IN_SEQUENCE,
         N_("it has only what this rank's weights contribute: every rank has used all positions, so "
            "the backward pass of gather_sequence adds the gradients of all ranks "
            "(a reduce-scatter)")},
    [GATHER_GRADIENT_TIMES_RANKS] =
        {IN_SEQUENCE, N_("the backward pass of gather_sequence adds the gradients of all ranks "
                         "twice: a reduce-scatter alone has the sum")},
    [GATHER_GRADIENT_OVER_RANKS] = {IN_SEQUENCE, N_("the backward pass of gather_sequence divides "
                                                    "by the number of ranks: the gradient is a "
                                                    "sum, not a mean")},
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
         N_("of the attention, it has only this rank's term: each position needs the terms of all "
            "ranks, which reduce_scatter_sequence adds")},
    [POSITIONS_OF_OWN_FEED_FORWARD] =
        {IN_SEQUENCE_BLOCKS,
         N_("of the feed-forward layers, it has only this rank's term: each position needs the "
            "terms of all ranks, which reduce_scatter_sequence adds")},
    [TERM_GRADIENT_OWN] =
        {IN_SEQUENCE, N_("a rank's term is in the sums of all positions: the backward pass of "
                         "reduce_scatter_sequence gathers the gradients of all ranks' positions")},
    [TERM_GRADIENT_TIMES_RANKS] =
        {IN_SEQUENCE,
         N_("the gradient of a term is too large by a factor of the number of ranks: the backward "
            "pass of reduce_scatter_sequence gathers, and sums nothing")},
    [TERM_GRADIENT_OVER_RANKS] = {IN_SEQUENCE, N_("the backward pass of reduce_scatter_sequence "
                                                  "divides by the number of ranks: the sum is no "
                                                  "mean")},
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
    [RESIDUAL_DROPOUTS_SWAPPED] =
        {IN_SEQUENCE_BLOCKS, N_("dropout1 and dropout2 are exchanged: dropout1 belongs after the "
                                "attention, dropout2 after the feed-forward layers")},
    [RESIDUAL_DROPOUTS_OF_SUM] =
        {IN_SEQUENCE_BLOCKS, N_("dropout acts on the residual sums: it belongs before them, on the "
                                "results of the attention and of the feed-forward layers")},
    [MASKS_OF_FIRST_POSITIONS] =
        {IN_SEQUENCE_BLOCKS,
         N_("all ranks draw the masks of the first positions: dropout does not know that the tensor "
            "is a shard. reduce_scatter_sequence marks its result, and placed(x, shard(1)) that "
            "of your own operation")},
    [PAIRS_OFF_TAPE] =
        {IN_SEQUENCE_BLOCKS,
         N_("the pairs are not on the tape: a group_... or ..._forward function gives values only, "
            "and does not mark its result as a shard. Call gather_sequence and "
            "reduce_scatter_sequence")},
};
