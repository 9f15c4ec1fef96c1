/* The placement rules, and the errors for broken ones. */
#include "autograd/placement.h"

#include <string.h>

#include "base/language.h"
#include "base/run.h"

bool is_split(const Tape *tape)
{
    return tape->mesh->tp_degree > 1;
}

static bool has_kind(const Tensor *x, PlacementKind kind)
{
    return x->placement.kind == (int)kind;
}

static bool is_same_everywhere(const Tensor *x)
{
    return has_kind(x, WHOLE) || has_kind(x, COPIED);
}

static bool is_last(const Tensor *x)
{
    return has_kind(x, SHARD) && x->placement.dim == x->shape.rank - 1;
}

static Placement one_of_kind(PlacementKind kind)
{
    return (Placement){kind, 0};
}

void must_be_cut_evenly(const Tape *tape, const char *function, const Tensor *weight)
{
    const int ranks = tape->mesh->tp_degree, dim = weight->placement.dim - weight->shape.rank;
    if (!has_kind(weight, SHARD) || weight->may_be_uneven || weight->undivided % ranks == 0)
        return;
    misuse(dim < -2
               ? N_("shard(1) splits each of them")
               : N_("check the weight's sizes and which dimension is split: that size must be a "
                    "multiple of the number of ranks"),
           dim == -1   ? N_("%s: the weight has %lld columns, which cannot be split into %d equal "
                              "parts")
           : dim == -2 ? N_("%s: the weight has %lld rows, which cannot be split into %d equal "
                            "parts")
                       : N_("%s: the weight holds %lld matrices, which cannot be split into %d "
                            "equal parts"),
           function, (long long)weight->undivided, ranks);
}

/* Has all_gather joined the positions of all ranks in x? */
static bool has_joined_positions(const Tensor *x)
{
    return x->shape.rank == 3 && x->producer && !strcmp(x->producer->name, "all_gather") &&
           x->producer->with.pair.dim == 1;
}

/* Is x computed from a parameter of the model? */
static bool is_from_parameters(const Tensor *x)
{
    bool found = x->parameter != NULL;
    for (int i = 0; x->producer && i < NODE_INPUTS && x->producer->input[i] && !found; i++)
        found = is_from_parameters(x->producer->input[i]);
    return found;
}

/* Has duplication (f) taken x before? */
static bool is_duplicated(const Tape *tape, const Tensor *x)
{
    for (const Node *node = tape->last; node; node = node->previous)
        if (node->input[0] == x && !strcmp(node->name, "duplication"))
            return true;
    return false;
}

/* In the result's shape, the weight's dimensions without the last one replace x's last one. */
static Placement linear_of_columns(const Tape *tape, const Tensor *x, const Tensor *weight)
{
    if (has_kind(x, WHOLE))
        misplaced_with(
            is_from_parameters(x) ? HARMS_GRADIENTS : HARMS_GRADIENT_OF_X,
            has_joined_positions(x)
                ? N_("gather positions with gather_sequence: its backward pass adds the "
                     "gradients of all ranks; all_gather's does not")
            : is_duplicated(tape, x)
                ? N_("x has already been put through duplication (f): read its result")
                : N_("put x through duplication (f) first"),
            "linear: x %s and the weight %s: each rank computes only some outputs, so its "
            "gradient of x is only a partial sum",
            TENSOR_TEXT(x), TENSOR_TEXT(weight));
    else if (!has_kind(x, COPIED) && !has_kind(x, UNKNOWN))
        misplaced("a weight split by columns takes all of x: gather or sum x first",
                  "linear: x %s and the weight %s do not fit", TENSOR_TEXT(x), TENSOR_TEXT(weight));
    return shard(x->shape.rank - 1 + weight->placement.dim);
}

static Placement linear_of_rows(const Tensor *x, const Tensor *weight)
{
    if (!is_last(x) && !has_kind(x, UNKNOWN))
        misplaced("a weight split by rows takes this rank's columns of x",
                  "linear: x %s and the weight %s do not fit", TENSOR_TEXT(x), TENSOR_TEXT(weight));
    return one_of_kind(PARTIAL);
}

static Placement linear_of_whole(const Tensor *x, const Tensor *weight)
{
    if (has_kind(x, COPIED))
        misplaced_with(
            HARMS_GRADIENTS,
            "a weight that every rank holds whole takes x as it is, without duplication (f)",
            "linear: x %s and the weight %s: the weight's gradient would be a partial sum",
            TENSOR_TEXT(x), TENSOR_TEXT(weight));
    else if (!has_kind(x, WHOLE) && !has_kind(x, UNKNOWN))
        misplaced("gather or sum x first, or split the weight",
                  "linear: x %s and the weight %s do not fit", TENSOR_TEXT(x), TENSOR_TEXT(weight));
    return has_kind(x, UNKNOWN) ? one_of_kind(WHOLE) : x->placement;
}

Placement place_linear(const Tape *tape, const Tensor *x, const Tensor *weight)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(weight, SHARD))
        return is_last(weight) ? linear_of_rows(x, weight) : linear_of_columns(tape, x, weight);
    return has_kind(weight, WHOLE) ? linear_of_whole(x, weight) : one_of_kind(UNKNOWN);
}

Placement place_add_bias(const Tape *tape, const Tensor *x, Tensor *bias)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, PARTIAL))
        misplaced("add the bias after the sum: all_reduce (g)",
                  "add_bias: x %s: each rank would add the bias %s", TENSOR_TEXT(x),
                  TENSOR_TEXT(bias));
    else if (!has_kind(x, UNKNOWN) && !has_kind(bias, UNKNOWN) &&
             is_last(x) != has_kind(bias, SHARD))
        misplaced("split the bias like the columns of x",
                  "add_bias: x %s and the bias %s do not fit", TENSOR_TEXT(x), TENSOR_TEXT(bias));
    else if (has_kind(x, COPIED) && has_kind(bias, WHOLE))
        misplaced_with(
            HARMS_GRADIENTS,
            "a bias that every rank holds whole is added before duplication (f): to what f takes",
            "add_bias: x %s and the bias %s: the bias's gradient would be a partial sum",
            TENSOR_TEXT(x), TENSOR_TEXT(bias));
    if (has_kind(x, SHARD) && !is_last(x))
        bias->is_by_positions = true;
    return has_kind(x, UNKNOWN) ? has_kind(bias, SHARD) ? shard(x->shape.rank - 1) : whole()
                                : x->placement;
}

Placement place_lookup(const Tape *tape, const Tensor *weight, int rank_of_result)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(weight, SHARD))
        return weight->placement.dim == 0 ? one_of_kind(PARTIAL) : shard(rank_of_result - 1);
    return weight->placement;
}

Placement place_alike(const Tape *tape, const char *function, const Tensor *x, const Tensor *y)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, UNKNOWN))
        return y->placement;
    if (!has_kind(y, UNKNOWN) && !placement_equal(x->placement, y->placement)) {
        misplaced_with(is_same_everywhere(x) && is_same_everywhere(y) ? HARMS_GRADIENTS
                                                                      : HARMS_RESULTS,
                       "bring both to the same placement first (f, g or all_gather)",
                       "%s: %s and %s do not match", function, TENSOR_TEXT(x), TENSOR_TEXT(y));
        return is_same_everywhere(x) ? y->placement : x->placement;
    }
    return x->placement;
}

Placement place_not_partial(const Tape *tape, const char *function, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, PARTIAL))
        misplaced("sum it first: all_reduce (g)",
                  "%s: x %s: applying this to each term is not the same as applying it to the sum",
                  function, TENSOR_TEXT(x));
    return x->placement;
}

Placement place_heads(const Tape *tape, const char *function, const Tensor *x)
{
    if (is_split(tape) && has_kind(x, SHARD) && !is_last(x)) {
        misplaced("gather the positions first; the heads may be split, along the last dimension",
                  "%s: x %s is not split by heads", function, TENSOR_TEXT(x));
        return one_of_kind(UNKNOWN);
    }
    return place_not_partial(tape, function, x);
}

Placement place_whole(const Tape *tape, const char *function, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (!has_kind(x, WHOLE) && !has_kind(x, UNKNOWN))
        misplaced_with(
            has_kind(x, COPIED) ? HARMS_GRADIENTS : HARMS_RESULTS,
            has_kind(x, COPIED)
                ? N_("f comes too early: put it after this operation, right before the product "
                     "with a split weight")
                : N_("this operation takes a tensor that every rank holds in full: "
                     "all_reduce (g) makes one from a partial sum, all_gather from "
                     "a shard"),
            "%s: x %s is not whole", function, TENSOR_TEXT(x));
    return whole();
}

Placement place_rows(const Tape *tape, const char *function, const Tensor *x,
                     Tensor *const *weights, int count)
{
    if (!is_split(tape) || !has_kind(x, SHARD) || is_last(x))
        return place_whole(tape, function, x);
    for (int i = 0; i < count; i++)
        weights[i]->is_by_positions = true;
    return x->placement;
}

bool may_be_columns(const Tensor *x)
{
    return is_last(x) || has_kind(x, UNKNOWN);
}

Placement place_row_max(const Tape *tape, const Tensor *x)
{
    const Placement placement = place_not_partial(tape, "row_max", x);
    return is_split(tape) && is_last(x) ? one_of_kind(UNKNOWN) : placement;
}

Placement place_row_sum(const Tape *tape, const char *function, const Tensor *x)
{
    const Placement placement = place_not_partial(tape, function, x);
    return is_split(tape) && is_last(x) ? one_of_kind(PARTIAL) : placement;
}

Placement place_first_token(const Tape *tape, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, SHARD) && x->placement.dim == 1) {
        misplaced("gather the positions first",
                  "first_token: x %s: the first token is on one rank only", TENSOR_TEXT(x));
        return one_of_kind(UNKNOWN);
    }
    return is_last(x) ? shard(1) : x->placement;
}

Placement place_duplication(const Tape *tape, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (!has_kind(x, WHOLE) && !has_kind(x, UNKNOWN))
        misplaced_with(
            has_kind(x, COPIED) ? HARMS_GRADIENTS : HARMS_RESULTS,
            has_kind(x, COPIED)
                ? N_("x has been duplicated already: a second duplication would sum its gradient "
                     "twice")
                : N_("duplication (f) takes what every rank holds in full"),
            "duplication: x %s is not whole", TENSOR_TEXT(x));
    return one_of_kind(COPIED);
}

Placement place_all_reduce(const Tape *tape, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, SHARD))
        misplaced(
            "all_reduce (g) adds partial sums; shards are joined with all_gather, or go into a "
            "product with a weight split by rows, whose result is a partial sum",
            "all_reduce: x %s is not a partial sum", TENSOR_TEXT(x));
    else if (!has_kind(x, PARTIAL) && !has_kind(x, UNKNOWN))
        misplaced("it is already whole: the sum would count it once per rank",
                  "all_reduce: x %s is not a partial sum", TENSOR_TEXT(x));
    return whole();
}

Placement place_all_gather(const Tape *tape, const Tensor *x, int dim)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, PARTIAL))
        misplaced("use all_reduce (g) to add partial sums; all_gather joins shards",
                  "all_gather: x %s is not a shard", TENSOR_TEXT(x));
    else if (has_kind(x, SHARD) && x->placement.dim != dim)
        misplaced("join the pieces along the dimension that was split",
                  "all_gather along dimension %d: x %s", dim, TENSOR_TEXT(x));
    else if (!has_kind(x, SHARD) && !has_kind(x, UNKNOWN))
        misplaced("every rank holds all of it already", "all_gather: x %s is not a shard",
                  TENSOR_TEXT(x));
    return whole();
}

Placement place_gather_sequence(const Tape *tape, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, PARTIAL))
        misplaced("reduce_scatter_sequence adds partial sums; gather_sequence joins positions",
                  "gather_sequence: x %s is not a shard of the positions", TENSOR_TEXT(x));
    else if (has_kind(x, WHOLE) || has_kind(x, COPIED))
        misplaced("every rank holds all positions already",
                  "gather_sequence: x %s is not a shard of the positions", TENSOR_TEXT(x));
    else if (has_kind(x, SHARD) && x->placement.dim != 1)
        misplaced("it joins positions, which are dimension 1",
                  "gather_sequence: x %s is not a shard of the positions", TENSOR_TEXT(x));
    return one_of_kind(COPIED);
}

Placement place_reduce_scatter_sequence(const Tape *tape, const Tensor *x)
{
    if (!is_split(tape))
        return whole();
    if (!has_kind(x, PARTIAL) && !has_kind(x, UNKNOWN))
        misplaced(has_kind(x, SHARD)
                      ? N_("it adds the ranks' terms; a shard is a piece, not a term")
                      : N_("it is already whole: the sum would count it once per rank"),
                  "reduce_scatter_sequence: x %s is not a partial sum", TENSOR_TEXT(x));
    return shard(1);
}

Placement place_scatter(const Tape *tape, const Tensor *x, int dim)
{
    if (!is_split(tape))
        return whole();
    if (has_kind(x, COPIED))
        misplaced_with(
            HARMS_GRADIENTS,
            "scatter takes x as it is, without duplication (f): its backward pass gathers the "
            "whole gradient on each rank, and f would sum these copies",
            "scatter: x %s is not whole", TENSOR_TEXT(x));
    else if (!has_kind(x, WHOLE) && !has_kind(x, UNKNOWN))
        misplaced(has_kind(x, SHARD) ? N_("it is split already")
                                     : N_("sum it first: all_reduce (g)"),
                  "scatter: x %s is not whole", TENSOR_TEXT(x));
    return shard(dim);
}

Placement place_part(const Tape *tape, const Tensor *x, int dim)
{
    if (!is_split(tape))
        return whole();
    if (tape->recording && has_kind(x, SHARD) && x->placement.dim == dim)
        misplaced("if q, k and v are stacked and split as one matrix, the first ranks hold all "
                  "of q: split each of them, as a weight [3,out,in] with shard(1)",
                  "part along dimension %d: x %s: part k of this rank's columns is not this "
                  "rank's share of part k of x",
                  dim, TENSOR_TEXT(x));
    return one_of_kind(UNKNOWN);
}

Placement place_slice(const Tape *tape, const Tensor *x, int dim)
{
    if (!is_split(tape))
        return whole();
    if (!has_kind(x, SHARD))
        return x->placement;
    if (x->placement.dim == dim) {
        misplaced("split each of the three matrices: a weight [3,out,in] with shard(1)",
                  "take along dimension %d: x %s: other ranks hold the rest", dim, TENSOR_TEXT(x));
        return one_of_kind(UNKNOWN);
    }
    return shard(x->placement.dim - (x->placement.dim > dim));
}
