/* Lab 6, ColRowLinearPair: the first weight is split by rows, the second by columns; one sum in
 * each pass. */
#include "grader/labs/lab.h"

static void *make_06(Builder *b, const Case *c, int which, int H)
{
    return col_row_linear_pair_new(b, H, inner_of(c, which), out_of(c, which), (float)c->p);
}

static Tensor *forward_06(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return col_row_linear_pair_forward(layer, x, mesh);
}

void scenario_06(Scenario *run)
{
    run_layers(run, &(LayerScenario){make_06, forward_06, .wider = 1, .sizes = inner_and_out});
}

#ifdef BALISE_DOUBLE
static Allowance sent_forward_06(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * z->OUT), 1};
}

static Allowance sent_backward_06(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * z->H), 1};
}

static int cases_06(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = layer_cases(lab, d, world, tp, cases);
    cases[DRAWN_SIZES].out += world > 1; /* tp divides neither end, in nor out */
    cases[SINGLE_ROW].flat = 1;          /* as in a classifier */
    if (world == 2)
        cases[MANY_SAMPLES].flat = 1;
    return count;
}

static const char *misfit_06(const Case *c)
{
    return c->F % c->tp ? _("tp must divide F") : NULL;
}

Lab lab_06 = {
    LAB_FILES_06,
    .title = N_("ColRowLinearPair"),
    .points = {ONE_EACH, [FORWARD] = 2, [INPUT_GRADIENT] = 1, [SHARDING] = 1, [COMMUNICATION] = 2},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_F | SIZE_OUT | SIZE_P,
    .any_width = true,
    .cuts = {{"up.weight", CUT_0}, {"down.weight", CUT_1}},
    .predict = {.question =
                    N_("Four ranks run the pair with in = 24, inner = 80 and out = 48, on 32 rows "
                       "(B·S). How many bytes do the ranks send in all, forward and backward?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .B = 2, .S = 16, .H = 24, .F = 80, .out = 48},
                .count = bytes_of_layer},
    .kinds = {{.scenario = scenario_06, .facts = X_IS_USED_TWICE}},
    .forward = sent_forward_06,
    .backward = sent_backward_06,
    .cases = cases_06,
    .misfit = misfit_06,
};
#endif
