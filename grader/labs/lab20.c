/* Lab 20, Parallel linears: linear layers with biases, alone and in pairs; q, k and v in one
 * weight. */
#include "base/run.h"
#include "grader/labs/lab.h"

#include <math.h>

enum { SCATTER, COLUMN, ROW, NO_SYNC, SYNC_POINT, PROJECTIONS, EXAMPLE };

/* Each kind of case uses some of these. */
typedef struct Layers {
    ColumnParallelLinear column;
    RowParallelLinear row;
    QueryKeyValue projections;
    int kind, heads;
    int dim; /* of the scatter */
} Layers;

static int heads_of(const Case *c, int which)
{
    return which && c->A / 2 > c->tp ? c->A / 2 : c->A;
}

/* The width of an output that is not split: in the second layer, tp does not divide it. */
static int any_out(const Case *c, int which)
{
    return c->out + which;
}

/* Only the first pair has a sync point, so that the two pairs differ in their options. */
static bool is_synced(const Case *c, int which)
{
    return c->kind == SYNC_POINT && which == 0;
}

static void *make_20(Builder *b, const Case *c, int which, int H)
{
    Layers *layers = NEW(b, Layers);
    Builder *column = within(b, "column"), *row = within(b, "row");
    const int F = inner_of(c, which), out = any_out(c, which);
    const bool syncs = is_synced(c, which);
    layers->kind = c->kind;
    layers->heads = heads_of(c, which) / b->mesh->tp_degree;
    layers->dim = !which || c->idle ? LAST : c->exponent ? 0 : 1; /* drawn sizes have an exponent */
    if (c->kind == COLUMN)
        layers->column = column_parallel_linear_new(column, H, out_of(c, which), true);
    if (c->kind == ROW)
        layers->row = row_parallel_linear_new(row, H, out, false);
    if (c->kind == NO_SYNC || c->kind == SYNC_POINT) {
        layers->column = column_parallel_linear_new(column, H, F, syncs);
        layers->row = row_parallel_linear_new(row, F, out, !syncs);
    }
    if (c->kind == PROJECTIONS) {
        layers->projections = query_key_value_new(within(b, "query_key_value"), H);
        layers->row = row_parallel_linear_new(row, H, H, true);
    }
    return layers;
}

/* Rejects a tensor that attention cannot take. Accepts [B,S,H] in full on each rank, because the
 * counted work shows that mistake. */
static void must_be_projection(const char *name, const Tensor *y, const Tensor *x, int tp)
{
    if (!y)
        misuse("return all three", "query_key_value_forward: one of q, k and v is NULL");
    const int64_t B = x->shape.size[0], S = x->shape.size[1], H = x->shape.size[2];
    if (!shape_equal(y->shape, SHAPE(B, S, H / tp)) && !shape_equal(y->shape, x->shape))
        misuse("q, k and v are the three parts of the product [B,S,3,H/tp] along dimension 2",
               "query_key_value_forward: %s is %s, expected [%lld,%lld,%lld], the columns of this "
               "rank's heads",
               name, TENSOR_TEXT(y), (long long)B, (long long)S, (long long)(H / tp));
}

static Scenario *now; /* the case that runs */

/* Attention alone would hide a bias of k, or a factor in q that k undoes. */
static void write_projection(const char *name, Tensor *y, const Tensor *x, const Mesh *mesh)
{
    Label label = label_of(VALUE_OF, A_LAYER, now->pass.index, now->pass.step);
    strcpy(label.name, name);
    must_be_projection(name, y, x, mesh->tp_degree);
    const int64_t H = x->shape.size[2];
    write_shard(now, FORWARD, label, y, 2, chunk(H, mesh->tp_rank, mesh->tp_degree), H);
}

static Tensor *attend(const Layers *l, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Projections p = query_key_value_forward(&l->projections, x, mesh);
    write_projection("q", p.q, x, mesh);
    write_projection("k", p.k, x, mesh);
    write_projection("v", p.v, x, mesh);
    const float size = (float)tensor_size(p.q, LAST) / (float)l->heads;
    not_of_lab(true);
    Tensor *y = attention(p.q, p.k, p.v, mask, l->heads, 1 / sqrtf(size));
    not_of_lab(false);
    return row_parallel_linear_forward(&l->row, y, mesh);
}

static Tensor *forward_20(const void *made, Tensor *x, Tensor *mask, const Mesh *mesh)
{
    const Layers *l = made;
    switch (l->kind) {
    case COLUMN:
        return column_parallel_linear_forward(&l->column, x, mesh);
    case ROW:
        return row_parallel_linear_forward(&l->row, x, mesh);
    case PROJECTIONS:
        return attend(l, x, mask, mesh);
    case SCATTER:
        return all_gather(scatter(x, l->dim, mesh), l->dim, mesh);
    default:
        x = column_parallel_linear_forward(&l->column, x, mesh);
        not_of_lab(true);
        x = gelu(x);
        not_of_lab(false);
        return row_parallel_linear_forward(&l->row, x, mesh);
    }
}

static void sizes_20(const Scenario *run, int which, Sizes *sizes)
{
    const Case *c = &run->c;
    sizes->part = c->kind == SYNC_POINT && !is_synced(c, which) ? NO_SYNC : c->kind;
    sizes->F = inner_of(c, which);
    sizes->OUT = c->kind == COLUMN ? out_of(c, which) : any_out(c, which);
}

/* The example of the lab's text: x holds 1 to 12 and W^T [in,out] 1 to 8, so that x W^T is 50 60,
 * 114 140, 178 220. The bias is 0 on purpose; dy is 1, 2, 3, ... */
static double counted(void *context, const Parameter *p, int64_t index)
{
    if (p->shape.rank == 1)
        return 0;
    const int64_t in = p->shape.size[1], out = p->shape.size[0];
    const int64_t row = index / in, column = index % in;
    return (double)(column * out + row + 1);
}

static Tensor *one_two_three(Scenario *run, Shape shape, bool needs_gradient)
{
    Tensor *x = tape_host_tensor(run->tape, REAL, shape, whole());
    for (int64_t i = 0; i < tensor_count(x); i++)
        reals(x)[i] = (real)(i + 1);
    x->needs_gradient = needs_gradient;
    return x;
}

static void run_example(Scenario *run)
{
    const Case *c = &run->c;
    const Label first = label_of(FORWARD_PASS_OF, A_LAYER, 0, 0);
    run->model = model_new(run->pool, run->mesh, c->key);
    const RowParallelLinear layer = row_parallel_linear_new(
        within(within(run->model->builder, "first"), "row"), c->H, c->out, false);
    model_finish(run->model);
    model_use_tape(run->model, run->tape);
    model_fill(run->model, NULL, counted, NULL);
    model_clear_gradients(run->model);
    at(run, first);
    Tensor *x = one_two_three(run, SHAPE(c->S, c->H), true);
    Tensor *y = row_parallel_linear_forward(&layer, into_layer(run, x), run->mesh);
    write_values(run, FORWARD, label_of(OUTPUT_OF, A_LAYER, 0, 0), y);
    at(run, label_of(BACKWARD_PASS_OF, A_LAYER, 0, 0));
    tape_backward(run->tape, y, one_two_three(run, y->shape, false));
    write_values(run, INPUT_GRADIENT, label_of(INPUT_GRADIENT_OF, A_LAYER, 0, 0), x->gradient);
    model_complete_gradients(run->model);
    write_arena(run, WEIGHT_GRADIENT, GRADIENT_OF, 0);
}

void scenario_20(Scenario *run)
{
    const int kind = run->c.kind;
    now = run;
    if (kind == EXAMPLE)
        run_example(run);
    else
        run_layers(run, &(LayerScenario){make_20, forward_20,
                                         .wider = kind == PROJECTIONS ? run->c.A : run->c.tp,
                                         .takes_mask = kind == PROJECTIONS, .sizes = sizes_20});
}

#ifdef BALISE_DOUBLE
#include "autograd/placement.h"
#include "base/problem.h"

static Allowance sent_forward_20(int64_t n, const Sizes *z)
{
    const int64_t rows = z->B * z->S;
    const bool gathers = z->part == COLUMN || z->part == SYNC_POINT || z->part == SCATTER,
               sums = z->part != COLUMN && z->part != SCATTER;
    const int64_t gathered = z->part == COLUMN    ? z->OUT
                             : z->part == SCATTER ? z->H
                                                  : z->F,
                  summed = z->part == PROJECTIONS ? z->H : z->OUT;
    return (Allowance){gathers * sent_by_all_gather(n, rows * gathered) +
                           sums * sent_by_all_reduce(n, rows * summed),
                       gathers + sums};
}

/* f sums; the backward pass of the scatter gathers. */
static Allowance sent_backward_20(int64_t n, const Sizes *z)
{
    const int64_t rows = z->B * z->S;
    const bool gathers = z->part == ROW || z->part == SYNC_POINT || z->part == SCATTER,
               sums = z->part != ROW && z->part != SCATTER;
    return (Allowance){gathers *
                               sent_by_all_gather(n, rows * (z->part == SYNC_POINT ? z->F : z->H)) +
                           sums * sent_by_all_reduce(n, rows * z->H),
                       gathers + sums};
}

/* A row-parallel layer alone, a scatter and the projections split H; the other kinds do not. */
static Case case_20(const Lab *lab, Draw *d, int world, int tp, int kind, bool drawn_sizes)
{
    Case c = usual_replicas(lab, d, world, tp);
    c.kind = kind;
    c.p = 0;
    c.training = 0;
    if (kind == EXAMPLE) {
        c.B = 1;
        c.S = 3;
        c.H = 4;
        c.out = 2;
    } else if (kind == SCATTER) {
        c.S = 2 * tp;
        c.more_B = 0; /* equal calls, of which no third one may leave more memory */
    }
    if (!drawn_sizes || kind == EXAMPLE)
        return c;
    c = other_sizes(c, d);
    c.A = 2 * tp;
    c.F = tp * (5 + 2 * draw(d, 0, 3));
    c.out = tp * (1 + 2 * draw(d, 0, 1));
    if (kind == ROW || kind == SCATTER)
        c.H = tp * draw(d, 5, 9);
    if (kind == PROJECTIONS)
        c.H = c.A * draw(d, 2, 5);
    if (kind == SCATTER)
        c.S = 3 * tp;
    c.more_B = -c.more_B;
    c.idle = 0;
    c.reverse = 1;
    if (kind == SCATTER) {
        c.exponent = tp % 2 ? -12 : 20;
        c.B = 2 * tp;
        c.more_B = tp == 4 ? -tp : 0;
    } else /* x keeps the order of magnitude of a bias */
        c.dy_exponent = tp % 2 ? -24 : 20;
    c.flat = kind != SCATTER && kind != PROJECTIONS; /* attention takes three dimensions */
    c.apart = world > tp && tp > 1;
    c.delay = world == tp;
    return c;
}

static Case usual_20(const Lab *lab, Draw *d, int world, int tp)
{
    return case_20(lab, d, world, tp, NO_SYNC, false);
}

static int cases_20(const Lab *lab, Draw *d, int world, int tp, Case *cases)
{
    int count = 0;
    for (int kind = SCATTER; kind <= PROJECTIONS; kind++) {
        if (world == tp)
            cases[count++] = case_20(lab, d, world, tp, kind, false);
        if (world != 2 && tp > 1)
            cases[count++] = case_20(lab, d, world, tp, kind, true);
    }
    if (4 % tp == 0)
        cases[count++] = case_20(lab, d, world, tp, EXAMPLE, false);
    return count;
}

static const char *misfit_20(const Case *c)
{
    return c->F % c->tp ? _("tp must divide F") : NULL;
}

/* Does a row-parallel layer get x whole, or does a product in a pair get an x that does not fit it? */
static bool refusal_20(const Case *c, int rank, const Problem *problem, char *line, size_t size)
{
    snprintf(line, size, "%s",
             c->kind == ROW
                 ? _("input_is_parallel is false in this case: x is whole, so scatter it before "
                     "the product")
                 : _("gather_output is false and input_is_parallel is true in this case: the row "
                     "layer takes the part that the column layer returns"));
    return c->kind == ROW ? !strcmp(problem->hint, _(linear_takes_shard))
                          : c->kind == NO_SYNC && !strncmp(problem->what, "linear: ", 8);
}

Lab lab_20 = {
    LAB_FILES_20,
    .title = N_("Parallel linears"),
    .points = {ONE_EACH, [FORWARD] = 2, [INPUT_GRADIENT] = 1, [SHARDING] = 1, [COMMUNICATION] = 2},
    .layouts = "2x2 6x3 4x2 4x4 1x1",
    .has_replicas = true,
    .sizes = SIZES_BSH | SIZE_F | SIZE_OUT,
    .any_width = true,
    .cuts = {{"column.weight", CUT_0},
             {"column.bias", CUT_0},
             {"row.weight", CUT_1},
             {"query_key_value.weight", CUT_1},
             {"query_key_value.bias", CUT_1}},
    .predict = {.question =
                    N_("Four ranks run a ColumnParallelLinear that gathers its output, GELU and a "
                       "RowParallelLinear that scatters its input, with in = 24, inner = 80 and "
                       "out = 24, on 32 rows (B·S). How many bytes do the ranks send in all, "
                       "forward and backward?"),
                .unit = N_("bytes"),
                .at = {.world = 4,
                       .tp = 4,
                       .kind = SYNC_POINT,
                       .B = 2,
                       .S = 16,
                       .H = 24,
                       .F = 80,
                       .out = 24},
                .count = bytes_of_layer},
    .examine = {.refusal = refusal_20},
    .kinds =
        {[SCATTER] = {.scenario = scenario_20,
                      .facts = X_IS_USED_TWICE | A_PART_OF_X,
                      .name = N_("scatter")},
         [COLUMN] = {.scenario = scenario_20,
                     .facts = X_IS_USED_TWICE,
                     .name = N_("column, gather_output = true")},
         [ROW] = {.scenario = scenario_20,
                  .facts = X_IS_USED_TWICE | A_PART_OF_X,
                  .name = N_("row, input_is_parallel = false")},
         [NO_SYNC] = {.scenario = scenario_20,
                      .facts = X_IS_USED_TWICE,
                      .name = N_("pairs without a sync point")},
         [SYNC_POINT] = {.scenario = scenario_20,
                         .facts = X_IS_USED_TWICE,
                         .name = N_("sync point in the first pair")},
         [PROJECTIONS] = {.scenario = scenario_20, .facts = X_IS_USED_TWICE, .name = N_("q, k, v")},
         [EXAMPLE] = {.scenario = scenario_20, .facts = X_IS_USED_TWICE, .name = N_("example")}},
    .forward = sent_forward_20,
    .backward = sent_backward_20,
    .usual = usual_20,
    .cases = cases_20,
    .misfit = misfit_20,
};
#endif
