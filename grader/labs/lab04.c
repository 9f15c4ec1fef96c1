/* Lab 4, MultiHeadSelfAttention: heads are distributed; the output's weight is split by columns. */
#include "grader/labs/lab.h"

static int heads_of(const Case *c, int which)
{
    return which && c->A / 2 > c->tp ? c->A / 2 : c->A;
}

static void *make_04(Builder *b, const Case *c, int which, int H)
{
    return attention_new(b, H, heads_of(c, which));
}

static Tensor *forward_04(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return attention_forward(layer, x, mask, mesh);
}

void scenario_04(Scenario *run)
{
    run_layers(run, &(LayerScenario){make_04, forward_04, .wider = run->c.A, .takes_mask = true});
}

#ifdef BALISE_DOUBLE
/* One sum in each pass. */
static Allowance sent(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * z->H), 1};
}

static const char *misfit_04(const Case *c)
{
    for (int layer = 0; layer < 2; layer++)
        if (c->H % heads_of(c, layer) || heads_of(c, layer) % c->tp)
            return layer == 0
                       ? _("tp must divide A, and A must divide H")
                       : _("tp must divide A/2 as well: the second layer has half the heads");
    return c->H % c->tp ? _("tp must divide H") : NULL;
}

static double multiplications_forward(int rank, const Entry *entry, const double *numbers)
{
    return entry->label.what == FORWARD_OF ? multiplications_of_layer(rank, entry, numbers) : 0;
}

Lab lab_04 = {
    LAB_FILES_04,
    .title = N_("MultiHeadSelfAttention"),
    .points = {ONE_EACH, [FORWARD] = 2, [INPUT_GRADIENT] = 2, [SHARDING] = 1, [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_A,
    .cuts = {{"query", CUT_0}, {"key", CUT_0}, {"value", CUT_0}, {"output", CUT_1}},
    .predict = {.question =
                    N_("Four ranks split attention with B = 2, S = 64, H = 24 and A = 4. How many "
                       "multiplications does one rank do in a forward pass?"),
                .unit = N_("multiplications"),
                .at = {.world = 4, .tp = 4, .B = 2, .S = 64, .H = 24, .A = 4},
                .count = multiplications_forward},
    .kinds = {{.scenario = scenario_04, .facts = X_IS_USED_TWICE}},
    .forward = sent,
    .backward = sent,
    .cases = layer_cases,
    .misfit = misfit_04,
};
#endif
