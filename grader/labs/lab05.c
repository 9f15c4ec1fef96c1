/* Lab 5, FeedForwardBlock: two ColWiseLinears, each with its gather. */
#include "grader/labs/lab.h"

static int width(const Case *c, int which)
{
    return wider_second(c, which, 1);
}

static int inner_of(const Case *c, int which)
{
    return which ? 2 * c->F : c->F;
}

static int out_of(const Case *c, int which)
{
    return which ? c->out + c->tp : c->out;
}

static void *make(Builder *b, const Case *c, int which)
{
    return feed_forward_new(b, width(c, which), inner_of(c, which), out_of(c, which), (float)c->p);
}

static Tensor *forward(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return feed_forward_forward(layer, x, mesh);
}

static Sizes sizes(const Scenario *run, int which)
{
    const Case *c = &run->c;
    return (Sizes){.B = c->B,
                   .S = c->S,
                   .H = width(c, which),
                   .F = inner_of(c, which),
                   .OUT = out_of(c, which)};
}

void scenario_05(Scenario *run)
{
    run_layers(run, &(LayerScenario){make, forward, .width = width, .sizes = sizes});
}

#ifdef BALISE_DOUBLE
static Allowance sent_forward(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_gather(n, z->B * z->S * (z->F + z->OUT)), 2};
}

static Allowance sent_backward(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * (z->H + z->F)), 2};
}

static const char *misfit(const Case *c)
{
    return c->F % c->tp ? _("tp must divide F") : c->out % c->tp ? _("tp must divide OUT") : NULL;
}

Lab lab_05 = {
    LAB_FILES_05,
    .title = N_("FeedForwardBlock"),
    .points = {[FORWARD] = 1,
               [INPUT_GRADIENT] = 1,
               [WEIGHT_GRADIENT] = 1,
               [STEP] = 1,
               [INITIAL_VALUES] = 1,
               [SHARDING] = 1,
               [ARITHMETIC] = 1,
               [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_F | SIZE_OUT | SIZE_P,
    .any_width = true,
    .starts_working = true,
    .cuts = {{"up.weight", CUT_0}, {"down.weight", CUT_0}},
    .kinds = {{.scenario = scenario_05, .mistakes = IN_INNER_LAYERS | IN_INPUT_GRADIENTS}},
    .forward = sent_forward,
    .backward = sent_backward,
    .cases = layer_cases,
    .misfit = misfit,
};
#endif
