/* The sentences for the mistakes that the judge can reproduce. */
#include "grader/judge/diagnose/evidence.h"

const Suspect suspects[MISTAKES] = {
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
};
