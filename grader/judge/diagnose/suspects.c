/* The sentences for the mistakes that the judge can reproduce. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects[MISTAKES] = {
    /* ---- layers and segments */
    [GRADIENT_MISSING] = {IN_INPUT_GRADIENTS,
                          N_("no gradient flowed back through the layer. A "
                             "group_... function gives values only, and so does tensor_copy(); "
                             "duplication, all_reduce and all_gather are on the tape")},
    [CHANGED_INPUT] =
        {IN_SUMS, N_("all_reduce altered its input; another operation still needs the old values")},
    [BIAS_MISSING] = {IN_BIASES, N_("the bias is missing")},
    [PRODUCT_OVER_RANKS] = {IN_BIASES, N_("the product, without the bias, is divided by the number "
                                          "of ranks: the sum over the ranks (g) is not a mean")},
    [SCATTERED_FIRST] = {IN_SCATTERS, N_("every rank takes the first part: in scatter_forward, "
                                         "rank k of the group takes part k")},
    [SCATTERED_BY_WORLD] =
        {IN_SCATTERS, N_("each rank takes the part numbered by its rank in the world: its own part "
                         "has the number of its place in the tp group, mesh->tp_rank")},
    [GRADIENT_OF_OWN_PART] =
        {IN_SCATTERS, N_("outside of this rank's part, the gradient of x is zero: scatter_backward "
                         "joins the gradients of all ranks' parts")},
    [SEGMENT_NOT_RUN] = {IN_SEGMENTS,
                         N_("the segment has not run: the result is x itself, unchanged")},
    [GRADIENT_OF_RESULT] =
        {IN_SEGMENTS,
         N_("the gradient of the segment's result is returned as the gradient of x: dy must "
            "flow back through the segment, to a leaf")},
    [GRADIENT_IS_INPUT] = {IN_SEGMENTS, N_("x itself is returned as its gradient: return "
                                           "leaf_gradient() of the leaf")},
    [GRADIENT_OF_RESULT_TOO] =
        {IN_SEGMENTS, N_("the leaf's gradient is complete, but dy is added to it: a residual "
                         "path of the segment is part of its run")},
    [SEGMENT_OF_LAST_CALL] =
        {IN_SEGMENTS, N_("each backward pass runs the segment of the latest forward call: run the "
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
    /* ---- a loss over the vocabulary */
    [OWN_MAXIMUM] =
        {IN_VOCABULARY,
         N_("each rank subtracts the maximum of its own columns, so the ranks add up terms with "
            "different maxima: subtract the maximum over all ranks of mesh->tp, group_all_max")},
    [OWN_MAXIMUM_IN_SUM] =
        {IN_VOCABULARY,
         N_("in the sum of exp, each rank subtracts the maximum of its own columns: subtract the "
            "same number on all ranks, the one that is subtracted from the target's logit")},
    [OWN_MAXIMUM_IN_TARGET] =
        {IN_VOCABULARY,
         N_("the maximum of one rank's columns is subtracted from the logit of the target: "
            "subtract the maximum over all ranks, as in the sum of exp")},
    [OWN_SUM] = {IN_VOCABULARY, N_("the sum of exp covers this rank's columns only: the sums of "
                                   "all ranks must be added (g)")},
    [OWN_TARGETS] = {IN_VOCABULARY, N_("each rank picks only the logits of the targets that it "
                                       "holds: what all ranks have picked must be added (g)")},
    [TARGETS_TIMES_RANKS] =
        {IN_VOCABULARY,
         N_("the logit of each target counts tp times and must count once: one rank holds it, and the others add 0 (NO_ID)")},
    [SUM_TIMES_RANKS] =
        {IN_VOCABULARY,
         N_("the sum of exp counts each column tp times: sum it over the ranks once")},
    [SUM_BY_MAXIMUM] = {IN_VOCABULARY,
                        N_("the ranks' sums of exp are combined by a maximum instead of a sum: "
                           "only m is a maximum; the sums must be added (g)")},
    [TARGETS_BY_MAXIMUM] =
        {IN_VOCABULARY,
         N_("the logit of each target counts as 0; a maximum over the ranks also has this effect: add what the ranks have picked (g), and subtract it from the logarithm")},
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
    [MEAN_OVER_POSITIONS] =
        {IN_VOCABULARY, N_("the sum is divided by the number of all positions: mean_over_tokens "
                           "divides by the number of those that have a target")},
    [MEAN_OVER_SAMPLES] =
        {IN_VOCABULARY, N_("the sum is divided by the number of samples: mean_over_tokens divides "
                           "by the number of positions that have a target")},
    [SUM_OVER_TOKENS] = {IN_VOCABULARY,
                         N_("it is the sum over the tokens: mean_over_tokens divides "
                            "by the number of positions that have a target")},
    [OWN_TOKENS] = {IN_VOCABULARY, N_("only the targets that this rank holds count as tokens: "
                                      "mean_over_tokens takes the targets of all positions")},
    [POSITIONS_COUNTED] =
        {IN_VOCABULARY, N_("positions without a target (NO_ID) count as tokens: mean_over_tokens "
                           "takes the mean over those that have one")},
    [SUM_OFF_TAPE] =
        {IN_VOCABULARY,
         N_("no gradient flows back through the sum of exp: the group_... functions give values "
            "only; all_reduce (g) is on the tape")},
    [TARGETS_OFF_TAPE] =
        {IN_VOCABULARY,
         N_("no gradient flows back through the logit of the target: the group_... functions give "
            "values only; all_reduce (g) is on the tape")},
};
