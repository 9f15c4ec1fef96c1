/* Lab 5, FeedForwardBlock: two ColWiseLinear, each with its gather. */
#include "grader/labs/lab.h"

static void *make_05(Builder *b, const Case *c, int which, int H)
{
    return feed_forward_new(b, H, inner_of(c, which), out_of(c, which), (float)c->p);
}

static Tensor *forward_05(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return feed_forward_forward(layer, x, mesh);
}

void scenario_05(Scenario *run)
{
    run_layers(run, &(LayerScenario){make_05, forward_05, .wider = 1, .sizes = inner_and_out});
}

#ifdef BALISE_DOUBLE
static Allowance sent_forward_05(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_gather(n, z->B * z->S * (z->F + z->OUT)), 2};
}

static Allowance sent_backward_05(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * (z->H + z->F)), 2};
}

static const char *misfit_05(const Case *c)
{
    return c->F % c->tp ? _("tp must divide F") : c->out % c->tp ? _("tp must divide OUT") : NULL;
}

Lab lab_05 = {
    LAB_FILES_05,
    .title = N_("FeedForwardBlock"),
    .points = {ONE_EACH, [FORWARD] = 1, [INPUT_GRADIENT] = 1, [SHARDING] = 1, [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_F | SIZE_OUT | SIZE_P,
    .any_width = true,
    .starts_working = true,
    .cuts = {{"up.weight", CUT_0}, {"down.weight", CUT_0}},
    .predict = {.question =
                    N_("Four ranks run the feed-forward block with in = 24, inner = 80 and out = "
                       "48, on 32 rows (B·S). How many bytes do the ranks send in all, forward and "
                       "backward?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .B = 2, .S = 16, .H = 24, .F = 80, .out = 48},
                .count = bytes_of_layer},
    .kinds = {{.scenario = scenario_05, .facts = X_IS_USED_TWICE}},
    .forward = sent_forward_05,
    .backward = sent_backward_05,
    .cases = layer_cases,
    .misfit = misfit_05,
};
#endif
