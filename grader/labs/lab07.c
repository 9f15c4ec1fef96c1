/* Lab 7, Block and Classifier: the pair of lab 6 in both. */
#include "grader/labs/lab.h"

enum { BLOCK, CLASSIFIER }; /* the kinds of cases */

static void *make_block(Builder *b, const Case *c, int which, int H)
{
    return block_new(b, H, which ? c->tp : c->A, (float)c->p);
}

static Tensor *forward_block(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return block_forward(layer, x, mask, mesh);
}

static void *make_classifier(Builder *b, const Case *c, int which, int H)
{
    return classifier_new(b, H, which ? 3 : 2, (float)c->p);
}

static Tensor *forward_classifier(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return classifier_forward(layer, x, mesh);
}

static void sizes_beside_07(const Scenario *run, int which, Sizes *sizes)
{
    sizes->C = which ? 3 : 2;
    sizes->part = run->c.kind;
}

void scenario_07(Scenario *run)
{
    const bool block = run->c.kind == BLOCK;
    run_layers(run, &(LayerScenario){.make = block ? make_block : make_classifier,
                                     .forward = block ? forward_block : forward_classifier,
                                     .wider = run->c.A,
                                     .takes_mask = block,
                                     .sizes = sizes_beside_07});
}

#ifdef BALISE_DOUBLE
/* In a block, attention and the pair each communicate once; in a classifier, the pair does, on one
 * row per sample. */
static Allowance sent_forward_07(int64_t n, const Sizes *z)
{
    return z->part == BLOCK ? (Allowance){2 * sent_by_all_reduce(n, z->B * z->S * z->H), 2}
                            : (Allowance){sent_by_all_reduce(n, z->B * z->C), 1};
}

static Allowance sent_backward_07(int64_t n, const Sizes *z)
{
    return z->part == BLOCK ? (Allowance){2 * sent_by_all_reduce(n, z->B * z->S * z->H), 2}
                            : (Allowance){sent_by_all_reduce(n, z->B * z->H), 1};
}

enum { SHOWN = X_IS_USED_TWICE | A_ROW_PER_SAMPLE };

static Case classifier(Case c)
{
    c.kind = CLASSIFIER;
    c.F = c.H;
    return c;
}

static int cases_07(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = layer_cases(lab, d, world, tp, cases);
    cases[count++] = classifier(usual_case(lab, d, world));
    cases[count++] = classifier(drawn_case(lab, d, world));
    cases[count++] = classifier(world == 2 ? long_case(lab, d, world) : single_case(lab, d, world));
    if (world == 2)
        cases[count - 1].p = NEARLY_ONE;
    return count;
}

static const char *misfit_07(const Case *c)
{
    return c->H % c->A || c->A % c->tp ? _("tp must divide A, and A must divide H")
           : c->H % c->tp              ? _("tp must divide H: the second block has tp heads")
                                       : NULL;
}

static double bytes_of_weights(int rank, const Entry *entry, const double *numbers)
{
    const bool first = !strncmp(entry->label.name, "first.", strlen("first."));
    return rank == 0 && entry->kind == PARAMETER && first ? 4 * (double)entry->count : 0;
}

Lab lab_07 = {
    LAB_FILES_07,
    .title = N_("Block and Classifier"),
    .points = {ONE_EACH, [FORWARD] = 2, [INPUT_GRADIENT] = 1, [SHARDING] = 1, [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_A | SIZE_P,
    .starts_working = true,
    .cuts = {{"attention.query", CUT_0},
             {"attention.key", CUT_0},
             {"attention.value", CUT_0},
             {"attention.output", CUT_1},
             {"up.weight", CUT_0},
             {"down.weight", CUT_1}},
    .predict = {.question = N_(
                    "Four ranks split one block with H = 16. How many bytes of fp32 weights does "
                    "one rank hold?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .kind = BLOCK, .H = 16, .A = 4},
                .count = bytes_of_weights},
    .still_whole = N_("every rank holds all of parameter %s, as FeedForward and Linear do: "
                      "ColRowLinearPair splits it (%s)"),
    .kinds = {[BLOCK] = {.scenario = scenario_07, .facts = SHOWN},
              [CLASSIFIER] = {.scenario = scenario_07, .facts = SHOWN}},
    .forward = sent_forward_07,
    .backward = sent_backward_07,
    .cases = cases_07,
    .misfit = misfit_07,
};
#endif
