/* Lab 19, Recomputation: what is kept of a segment, and its second run in the backward pass. */
#include "grader/labs/segments.h"
#include "grader/labs/work.h"

void scenario_19(Scenario *run)
{
    run_segments(run);
}

#ifdef BALISE_DOUBLE
/* An all-reduce (g) for each half of a block. */
static Allowance sums(int64_t n, const Sizes *z, int64_t times)
{
    const int64_t halves = z->part == SEGMENT_ATTENTION ? 1 : 2, all = times * halves * z->N;
    return (Allowance){all * sent_by_all_reduce(n, z->B * z->S * z->H), n > 1 ? all : 0};
}

static Allowance sent_forward_19(int64_t n, const Sizes *z)
{
    return sums(n, z, 1);
}

/* The sums of f and, in the second run, of g. */
static Allowance sent_backward_19(int64_t n, const Sizes *z)
{
    return sums(n, z, 2);
}

static double numbers_of_x(const Case *c)
{
    return (double)c->B * c->S * c->H;
}

enum { LINE = 16 }; /* numbers; buffers are rounded up to multiples of it */

/* The inputs of all calls. The first call's input exists before the pass, so the last call's result
 * counts instead. The input of an attention is a norm's result. It is computed again from x and two
 * numbers per row, so these count instead of it; after a backward pass, a lab may have looked at the
 * gradient of it. */
static double kept_19(const Case *c, const Label *pass)
{
    const bool of_norms = c->kind == SEGMENT_ATTENTION && pass->step < STEPS;
    const double each = numbers_of_x(c) + LINE + (of_norms ? 2.0 * c->B * c->S + LINE : 0);
    return pass->what == BACKWARD_OF ? each : each * segment_calls(c);
}

static Case case_19(const Lab *lab, Draw *d, int world, int tp, int kind, bool drawn_sizes)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.blocks = kind == SEGMENT_TWICE ? 2 : 4;
    c.H = 24;
    c.A = 2 * tp;
    c.F = 48;
    c.more_B = c.idle = 0;
    c.reverse = 0;
    if (!drawn_sizes)
        return c;
    c.B = draw(d, 2, 3);
    c.S = 5 + 2 * draw(d, 0, 1);
    c.blocks = kind == SEGMENT_TWICE ? 1 + (world > 2) : draw(d, 3, 5);
    c.H = c.A * draw(d, 3, 5);
    c.F = tp * (7 + 2 * draw(d, 0, 3));
    c.dy_exponent = tp % 2 ? -24 : 20;
    c.p = draw(d, 2, 7) / 16.0;
    c.apart = world > tp && tp > 1;
    c.delay = world == tp;
    return c;
}

static Case usual_19(const Lab *lab, Draw *d, int world, int tp)
{
    return case_19(lab, d, world, tp, SEGMENT_BLOCKS, false);
}

static int cases_19(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    const bool all = world < 3;
    for (int kind = SEGMENT_BLOCKS; kind <= SEGMENT_TWICE; kind++)
        if (all || kind != SEGMENT_ATTENTION)
            cases[count++] = case_19(lab, d, world, tp, kind, world != 1 || kind);
    if (world == 2) { /* a single call in each pass: consecutive calls have the same draw */
        cases[count] = case_19(lab, d, world, tp, SEGMENT_BLOCKS, true);
        cases[count++].blocks = 1;
    }
    return count;
}

static const char *misfit_19(const Case *c)
{
    return c->H % c->A || c->A % c->tp ? _("tp must divide A, and A must divide H")
           : c->F % c->tp              ? _("tp must divide F")
           : c->blocks < 1             ? _("there must be at least one block")
                                       : NULL;
}

/* The bytes that are kept: the inputs of all calls (see kept_19()). */
static double bytes_kept(int rank, const Entry *entry, const double *numbers)
{
    const Label pass = segment_label(FORWARD_OF, ALL_CALLS, 0);
    return entry->kind == WORK && label_equal(&entry->label, &pass) ? 4 * numbers[KEPT] : 0;
}

Lab lab_19 = {
    LAB_FILES_19,
    .title = N_("Recomputation"),
    .points = {[FORWARD] = 1,
               [INPUT_GRADIENT] = 2,
               [WEIGHT_GRADIENT] = 2,
               [ARITHMETIC] = 2,
               [COMMUNICATION] = 1},
    .layouts = "1x1 2x2 3x3 4x2 4x4",
    .has_replicas = true,
    .backward_first = true,
    .sizes = SIZES_BSH | SIZE_A | SIZE_F | SIZE_P | SIZE_BLOCKS,
    .cuts = {{"query", CUT_0},
             {"key", CUT_0},
             {"value", CUT_0},
             {"output", CUT_1},
             {"up", CUT_0},
             {"down", CUT_1}},
    .predict = {.question = N_("Two ranks with tp = 2 run three blocks with H = 24 and an inner "
                               "width of 96 on two texts of 16 tokens, with recomputation. How "
                               "many bytes do they keep in all, from the forward pass to the "
                               "backward pass?"),
                .unit = N_("bytes"),
                .at = {.world = 2,
                       .tp = 2,
                       .kind = SEGMENT_BLOCKS,
                       .B = 2,
                       .S = 16,
                       .H = 24,
                       .A = 4,
                       .F = 96,
                       .blocks = 3},
                .count = bytes_kept},
    .examine = {.work = compare_work_of_segments,
                .entry = compare_bits,
                .reasons = segments_reasons},
    .kinds = {[SEGMENT_BLOCKS] = {.scenario = scenario_19, .name = N_("blocks")},
              [SEGMENT_ATTENTION] = {.scenario = scenario_19, .name = N_("attention alone")},
              [SEGMENT_TWICE] = {.scenario = scenario_19, .name = N_("each block twice")}},
    .forward = sent_forward_19,
    .backward = sent_backward_19,
    .kept = kept_19,
    .usual = usual_19,
    .cases = cases_19,
    .misfit = misfit_19,
};
#endif
