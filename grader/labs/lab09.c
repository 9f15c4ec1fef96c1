/* Lab 9, Collectives on the TP group: the operations of lab 1, in worlds of several replicas. */
#include "grader/labs/f_and_g.h"

#ifndef BALISE_DOUBLE
void scenario_09(Scenario *run)
{
    run_operations(run);
}
#else
/* Small integers, zeros on one rank. */
static Case usual_09(const Lab *lab, Draw *d, int world, int tp)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.integers = 1;
    return c;
}

static int cases_09(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    cases[0] = usual_09(lab, d, world, tp);
    Case c = other_sizes(usual_replicas(lab, d, world, tp), d);
    c.exponent = 12;
    if (world == 4 && tp == 2) { /* thousands of numbers */
        c.S = 33;
        c.H = 64;
    }
    c.delay = 1;
    c.apart = world == 6; /* a rank's number does not reveal its group */
    cases[1] = c;
    return 2;
}

Lab lab_09 = {
    LAB_FILES_09,
    .title = N_("Collectives on the TP group"),
    .points = {[FORWARD] = 3, [INPUT_GRADIENT] = 4, [COMMUNICATION] = 1},
    .layouts = "4x2 6x2 6x3 4x1 4x4",
    .has_replicas = true,
    .sizes = SIZES_BSH,
    .starts_working = true,
    .starts_from = 1,
    .predict = {.question = N_(
                    "Six ranks with tp = 2 call f and g once each, forward and backward, on x of "
                    "1,600 fp32 elements. How many bytes do the six ranks send in all?"),
                .unit = N_("bytes"),
                .at = {.world = 6, .tp = 2, .B = 4, .S = 8, .H = 50},
                .count = bytes_of_f_and_g},
    .examine = {.more_reasons = operations_more_reasons, .summand = operation_summand},
    .kinds = {{.expect = expect_operations}},
    .forward = operations_send_forward,
    .backward = operations_send_backward,
    .usual = usual_09,
    .cases = cases_09,
    .misfit = all_sizes_fit,
};
#endif
