/* Lab 1, Duplication and AllReduce: f and g of Megatron-LM, over the world. */
#include "grader/labs/f_and_g.h"

#ifndef BALISE_DOUBLE
void scenario_01(Scenario *run)
{
    run_operations(run);
}
#else
static int cases_01(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    Case *c = cases;
    *c++ = usual_case(lab, d, world);
    *c = drawn_case(lab, d, world);
    c++->exponent = world % 2 ? -24 : 30; /* a sum must keep very small and very large numbers */
    *c++ = single_case(lab, d, world);
    *c = usual_case(lab, d, world);
    c++->integers = 1; /* small, with zeros on one rank */
    /* More numbers than MPI buffers, so a blocking send waits for its receive, and the data of a
     * request that no rank waits for is missing. */
    *c = usual_case(lab, d, world);
    c->kind = LARGE;
    c->S = world == 2 ? 65 : 17; /* where it is cheap, more numbers than 16 bits can count */
    c->H = 512;
    c->diverged = world > 1;
    c++->delay = 1;
    if (world > 2) { /* fewer numbers than ranks: not every rank has a part */
        *c = usual_case(lab, d, world);
        c->B = c->S = c->H = 1;
        c++;
    }
    return (int)(c - cases);
}

Lab lab_01 = {
    LAB_FILES_01,
    .title = N_("Duplication and AllReduce"),
    .points = {[FORWARD] = 3, [INPUT_GRADIENT] = 4, [COMMUNICATION] = 2},
    .layouts = "1 2 3 4 5",
    .sizes = SIZES_BSH,
    .predict = {.question =
                    N_("Four ranks call f and g once each, forward and backward, on x of 12,288 "
                       "fp32 elements. How many bytes do the ranks send in all?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .B = 8, .S = 16, .H = 96},
                .count = bytes_of_f_and_g},
    .examine = {.more_reasons = operations_more_reasons, .summand = operation_summand},
    .kinds = {[USUAL] = {.expect = expect_operations}, [LARGE] = {.expect = expect_operations}},
    .forward = operations_send_forward,
    .backward = operations_send_backward,
    .cases = cases_01,
    .misfit = all_sizes_fit,
};
#endif
