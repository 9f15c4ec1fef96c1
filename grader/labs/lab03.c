/* Lab 3, Embedding: a table that is split by columns or by rows; both are right. */
#include "grader/labs/lab.h"

static void *make_03(Builder *b, const Case *c, int which, int H)
{
    return embedding_new(for_embedding(b), table_rows_of(c, which), H);
}

static Tensor *forward_03(const void *layer, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    return embedding_forward(layer, x, mesh);
}

static void sizes_beside_03(const Scenario *run, int which, Sizes *sizes)
{
    sizes->vocabulary = is_split_by_rows(run, "first.weight");
}

void scenario_03(Scenario *run)
{
    run_layers(run, &(LayerScenario){make_03, forward_03, .wider = run->c.H, .takes_ids = true,
                                     .sizes = sizes_beside_03});
}

#ifdef BALISE_DOUBLE
/* A gather of columns, or a sum of rows. */
static Allowance sent_forward_03(int64_t n, const Sizes *z)
{
    int64_t count = z->B * z->S * z->H;
    return (Allowance){z->vocabulary ? sent_by_all_reduce(n, count) : sent_by_all_gather(n, count),
                       1};
}

static Allowance sent_backward_03(int64_t n, const Sizes *z)
{
    return (Allowance){0, 0};
}

static int cases_03(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = layer_cases(lab, d, world, tp, cases);
    if (world == 2) {
        cases[MANY_SAMPLES].B = 33;
        cases[MANY_SAMPLES].H = 520; /* long rows, where they are cheap */
    }
    cases[count] = usual_case(lab, d, world);
    cases[count].integers = 1;                  /* all ids in one part of the table */
    cases[count++].V = world == 2 ? 2049 : 999; /* more than a byte can count */
    return count;
}

static const char *misfit_03(const Case *c)
{
    return c->H % c->tp ? _("tp must divide H") : NULL;
}

Lab lab_03 = {
    LAB_FILES_03,
    .title = N_("Embedding"),
    .points = {ONE_EACH, [FORWARD] = 2, [SHARDING] = 1, [COMMUNICATION] = 1},
    .layouts = "1 2 3 4",
    .sizes = SIZES_BSH | SIZE_V,
    .cuts = {{"weight", CUT_0 | CUT_1}},
    .predict = {.question = N_(
                    "With your split, four ranks look up 64 ids (B·S) in a table with V = 30 and H "
                    "= 48. How many bytes do the ranks send in all, forward and backward?"),
                .unit = N_("bytes"),
                .at = {.world = 4, .tp = 4, .B = 4, .S = 16, .H = 48, .V = 30},
                .count = bytes_of_layer},
    .kinds = {{.scenario = scenario_03}},
    .forward = sent_forward_03,
    .backward = sent_backward_03,
    .cases = cases_03,
    .misfit = misfit_03,
};
#endif
