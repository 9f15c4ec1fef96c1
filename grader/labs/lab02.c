/* Lab 2, ColWiseLinear: a linear layer whose weight is split by rows; the columns of its output are
 * gathered. */
#include "grader/labs/lab.h"

static int columns_of(const Case *c, int which)
{
    return which ? 2 * c->out : c->out;
}

static void *make_02(Builder *b, const Case *c, int which, int H)
{
    return col_wise_linear_new(b, H, columns_of(c, which));
}

static Tensor *forward_02(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return col_wise_linear_forward(layer, x, mesh);
}

static void sizes_beside_02(const Scenario *run, int which, Sizes *sizes)
{
    sizes->OUT = columns_of(&run->c, which);
}

void scenario_02(Scenario *run)
{
    run_layers(run, &(LayerScenario){make_02, forward_02, .wider = 1, .sizes = sizes_beside_02});
}

#ifdef BALISE_DOUBLE
static Allowance sent_forward_02(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_gather(n, z->B * z->S * z->OUT), 1};
}

static Allowance sent_backward_02(int64_t n, const Sizes *z)
{
    return (Allowance){sent_by_all_reduce(n, z->B * z->S * z->H), 1};
}

static const char *misfit_02(const Case *c)
{
    return c->out % c->tp ? _("tp must divide OUT") : NULL;
}

Lab lab_02 = {
    LAB_FILES_02,
    .title = N_("ColWiseLinear"),
    .points = {ONE_EACH, [FORWARD] = 1, [INPUT_GRADIENT] = 1, [SHARDING] = 2, [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_OUT,
    .any_width = true,
    .cuts = {{"weight", CUT_0}},
    .predict = {.question =
                    N_("Four ranks hold a ColWiseLinear with in = 40 and out = 96, and x has 32 "
                       "rows (B·S). How many multiplications does one rank do in a forward and a "
                       "backward pass?"),
                .unit = N_("multiplications"),
                .at = {.world = 4, .tp = 4, .B = 4, .S = 8, .H = 40, .out = 96},
                .count = multiplications_of_layer},
    .kinds = {{.scenario = scenario_02, .facts = X_IS_USED_TWICE}},
    .forward = sent_forward_02,
    .backward = sent_backward_02,
    .cases = layer_cases,
    .misfit = misfit_02,
};
#endif
