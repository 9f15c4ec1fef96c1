/* Lab 18, Sequence parallelism: the exchanges along the sequence, the activations that a rank
 * keeps, and the norms' step. */
#include "backend/backend.h"
#include "grader/labs/sequence.h"
#include "grader/labs/work.h"

void scenario_18(Scenario *run)
{
    run_sequence(run);
}

#ifdef BALISE_DOUBLE
/* For [B,S,H], a gather sends as much as a reduce-scatter, and both together as much as the
 * all-reduce of f or g. */
static Allowance exchanges(int64_t n, const Sizes *z, int64_t times)
{
    return (Allowance){times * sent_by_all_gather(n, z->B * z->S * z->H), times};
}

static Allowance sent_forward_18(int64_t n, const Sizes *z)
{
    return exchanges(n, z, z->part == ALL_POSITIONS ? 2 * z->N : 1);
}

/* The backward pass of each pair, and its gather once more. */
static Allowance sent_backward_18(int64_t n, const Sizes *z)
{
    return z->part == NORM_GRADIENTS ? (Allowance){sent_by_all_reduce(n, z->N), 2}
                                     : exchanges(n, z, 3 * z->N);
}

enum {
    LINE = 16,    /* numbers; buffers are rounded up to multiples of it */
    BUFFERS = 16, /* the most that a block keeps */
};

/* The words that one row of a dropout's mask takes. */
static double words_of(int columns)
{
    return (double)dropout_words(columns);
}

/* What a rank may keep beyond 1/tp of what one rank keeps. Everything that a block keeps is split,
 * but its buffers are rounded up, and so are the rows of the inner dropout's mask. */
static double kept_18(const Case *c, const Label *pass)
{
    const double words = c->B * c->S * (words_of(c->F / c->tp) - words_of(c->F) / c->tp),
                 rounding = words + BUFFERS * LINE;
    return pass->step < STEPS ? c->blocks * rounding : rounding;
}

static Case case_18(const Lab *lab, Draw *d, int world, int tp, int kind, bool drawn_sizes)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.blocks = 2;
    c.S = 6 * tp;
    c.A = 5 * tp;
    c.H = 8 * c.A;
    c.F = c.H + 8 * tp;
    c.more_B = c.idle = 0;
    c.reverse = 0;
    if (!drawn_sizes)
        return c;
    c.B = kind == SEQUENCE_PAIRS && world == 2 ? 1 : draw(d, 2, 3);
    c.S = tp * draw(d, kind == SEQUENCE_PAIRS ? 1 : 3, 5);
    c.A = 2 * tp;
    c.H = c.A * draw(d, 9, 12);
    c.F = tp * (31 + 2 * draw(d, 0, 3));
    c.blocks = kind == SEQUENCE_PAIRS ? draw(d, 1, 3) : world == 2 ? 1 : world == 4 ? 2 : 3;
    c.dy_exponent = tp % 2 ? -24 : 20;
    c.p = draw(d, 2, 7) / 16.0;
    if (world == 3 && kind == SEQUENCE_BLOCKS) {
        c.p = 0; /* dropout then returns its argument, in training too */
        c.S = tp;
    }
    c.apart = world > tp && tp > 1;
    c.delay = world == tp;
    return c;
}

static Case usual_18(const Lab *lab, Draw *d, int world, int tp)
{
    return case_18(lab, d, world, tp, SEQUENCE_BLOCKS, false);
}

/* With tp = 1, two replicas have nothing to exchange; a case of blocks suffices to check that. */
static int cases_18(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    if (world > 1 && tp == 1) {
        cases[count++] = case_18(lab, d, world, tp, SEQUENCE_BLOCKS, false);
        return count;
    }
    for (int kind = SEQUENCE_PAIRS; kind <= SEQUENCE_BLOCKS; kind++) {
        cases[count++] = case_18(lab, d, world, tp, kind, false);
        if (world > 1)
            cases[count++] = case_18(lab, d, world, tp, kind, true);
    }
    return count;
}

static const char *misfit_18(const Case *c)
{
    return c->S % c->tp                              ? _("tp must divide S")
           : c->H % c->A || c->A % c->tp             ? _("tp must divide A, and A must divide H")
           : c->F % c->tp                            ? _("tp must divide F")
           : c->blocks < 1 || c->blocks > MOST_CALLS ? _("there must be 1 to 8 blocks")
                                                     : NULL;
}

static double bytes_of_block(int rank, const Entry *entry, const double *numbers)
{
    const Label forward = sequence_label(FORWARD_OF, ALL_POSITIONS, 0),
                backward = sequence_label(BACKWARD_OF, ALL_POSITIONS, 0);
    const bool is_of_pass =
        label_equal(&entry->label, &forward) || label_equal(&entry->label, &backward);
    return entry->kind == TRAFFIC && is_of_pass ? 4 * numbers[0] : 0;
}

Lab lab_18 = {
    LAB_FILES_18,
    .title = N_("Sequence parallelism"),
    .points = {[FORWARD] = 2,
               [INPUT_GRADIENT] = 2,
               [WEIGHT_GRADIENT] = 1,
               [STEP] = 1,
               [ARITHMETIC] = 1,
               [COMMUNICATION] = 2},
    .layouts = "1x1 2x2 3x3 4x2 4x4 2x1",
    .has_replicas = true,
    .sizes = SIZES_BSH | SIZE_A | SIZE_F | SIZE_P | SIZE_BLOCKS,
    .cuts = {{"query", CUT_0},
             {"key", CUT_0},
             {"value", CUT_0},
             {"output", CUT_1},
             {"up.weight", CUT_0},
             {"down.weight", CUT_1}},
    .predict = {.question = N_("Two ranks with tp = 2 run one block with H = 24 on two texts of 16 "
                               "tokens, forward and backward. How many bytes do the two ranks send "
                               "in all?"),
                .unit = N_("bytes"),
                .at = {.world = 2,
                       .tp = 2,
                       .kind = SEQUENCE_BLOCKS,
                       .B = 2,
                       .S = 16,
                       .H = 24,
                       .A = 4,
                       .F = 96,
                       .blocks = 1},
                .count = bytes_of_block},
    .examine = {.work = compare_work_of_positions,
                .reasons = sequence_reasons,
                .summand = sequence_summand},
    .kinds = {[SEQUENCE_PAIRS] = {.scenario = scenario_18,
                                  .facts = SHARDS_OF_POSITIONS,
                                  .name = N_("the pairs")},
              [SEQUENCE_BLOCKS] = {.scenario = scenario_18,
                                   .facts = SHARDS_OF_POSITIONS,
                                   .name = N_("blocks")}},
    .forward = sent_forward_18,
    .backward = sent_backward_18,
    .kept = kept_18,
    .usual = usual_18,
    .cases = cases_18,
    .misfit = misfit_18,
};
#endif
