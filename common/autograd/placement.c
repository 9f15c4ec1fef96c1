/* The placement rules, as a table, and the errors for broken ones. */
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

static bool is_last(const Tensor *x)
{
    return has_kind(x, SHARD) && x->placement.dim == x->shape.rank - 1;
}

bool may_be_columns(const Tensor *x)
{
    return is_last(x) || has_kind(x, UNKNOWN);
}

void must_be_cut_evenly(const Tape *tape, const char *function, const Tensor *weight)
{
    const int ranks = tape->mesh->tp_degree, dim = weight->placement.dim - weight->shape.rank;
    if (!has_kind(weight, SHARD) || (weight->parameter && weight->parameter->may_be_uneven) ||
        weight->undivided % ranks == 0)
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

/* ---- the table ------------------------------------------------------------------------------------------ */

/* A row: what an operation makes of x and y with these placements. The first row that fits holds.
 *
 * Placements are letters. W is whole, C copied, P a partial sum, U unknown, D a shard along the
 * dimension in question, O a shard along another one.
 *
 * The result is W, C, P or U; the placement of x or y; d, a shard along the dimension in question;
 * - the same as x, without that dimension; o, this rank's outputs, by a weight that is split by
 * them; +, a shard along one dimension more than x has. */
typedef struct Rule {
    int laws;
    const char *x, *y;
    char result;
    Harm harm;        /* if the rule is broken */
    const char *hint; /* NULL: see hint_of_f() */
    const char *says; /* NULL: the rule is kept. Arguments: function, x, and y or the dimension */
} Rule;

#define ANY     "WCPUDO"
#define SHARDED "DO"
#define FITS    HARMS_RESULTS, NULL, NULL

#define IS_NOT_WHOLE    N_("%s: x %s is not whole")
#define IS_NO_SUM       N_("%s: x %s is not a partial sum")
#define IS_NO_SHARD     N_("%s: x %s is not a shard")
#define LACKS_POSITIONS N_("%s: x %s is not a shard of the positions")
#define FITS_NO_WEIGHT  N_("%s: x %s and the weight %s do not fit")
#define FITS_NO_BIAS    N_("%s: x %s and the bias %s do not fit")
#define DO_NOT_MATCH    N_("%s: %s and %s do not match")
#define TO_THE_SAME     N_("bring both to the same placement first (f, g or all_gather)")
#define LIKE_COLUMNS    N_("split the bias like the columns of x")
#define SUM_FIRST       N_("sum it first: all_reduce (g)")
#define WHOLE_ALREADY   N_("it is already whole: the sum would count it once per rank")

static const Rule rules[] = {
    {PLACE_LINEAR, "CU", "O", 'o', FITS},
    {PLACE_LINEAR, "W", "O", 'o', HARMS_RESULTS, NULL,
     N_("%s: x %s and the weight %s: each rank computes only some outputs, so its gradient of x is only a partial sum")},
    {PLACE_LINEAR, ANY, "O", 'o', HARMS_RESULTS,
     N_("a weight split by columns takes all of x: gather or sum x first"), FITS_NO_WEIGHT},
    {PLACE_LINEAR, "DU", "D", 'P', FITS},
    {PLACE_LINEAR, ANY, "D", 'P', HARMS_RESULTS,
     N_("a weight split by rows takes this rank's columns of x"), FITS_NO_WEIGHT},
    {PLACE_LINEAR, "WU", "W", 'W', FITS},
    {PLACE_LINEAR, "C", "W", 'x', HARMS_GRADIENTS,
     N_("a weight that every rank holds whole takes x as it is, without duplication (f)"),
     N_("%s: x %s and the weight %s: the weight's gradient would be a partial sum")},
    {PLACE_LINEAR, ANY, "W", 'x', HARMS_RESULTS, N_("gather or sum x first, or split the weight"),
     FITS_NO_WEIGHT},
    {PLACE_LINEAR, ANY, ANY, 'U', FITS},

    {PLACE_ADD_BIAS, "P", ANY, 'x', HARMS_RESULTS, N_("add the bias after the sum: all_reduce (g)"),
     N_("%s: x %s: each rank would add the bias %s")},
    {PLACE_ADD_BIAS, "U", SHARDED, 'd', FITS},
    {PLACE_ADD_BIAS, "U", ANY, 'W', FITS},
    {PLACE_ADD_BIAS, ANY, "U", 'x', FITS},
    {PLACE_ADD_BIAS, "D", SHARDED, 'x', FITS},
    {PLACE_ADD_BIAS, "D", ANY, 'x', HARMS_RESULTS, LIKE_COLUMNS, FITS_NO_BIAS},
    {PLACE_ADD_BIAS, ANY, SHARDED, 'x', HARMS_RESULTS, LIKE_COLUMNS, FITS_NO_BIAS},
    {PLACE_ADD_BIAS, "C", "W", 'x', HARMS_GRADIENTS,
     N_("a bias that every rank holds whole is added before duplication (f): to what f takes"),
     N_("%s: x %s and the bias %s: the bias's gradient would be a partial sum")},
    {PLACE_ADD_BIAS, ANY, ANY, 'x', FITS},

    {PLACE_LOOKUP, ANY, "D", 'P', FITS},
    {PLACE_LOOKUP, ANY, "O", '+', FITS},
    {PLACE_LOOKUP, ANY, ANY, 'y', FITS},

    {PLACE_ALIKE, "U", ANY, 'y', FITS},
    {PLACE_ALIKE, ANY, "U", 'x', FITS},
    {PLACE_ALIKE, "W", "W", 'x', FITS},
    {PLACE_ALIKE, "C", "C", 'x', FITS},
    {PLACE_ALIKE, "P", "P", 'x', FITS},
    {PLACE_ALIKE, "D", "D", 'x', FITS},
    {PLACE_ALIKE, "WC", "WC", 'y', HARMS_GRADIENTS, TO_THE_SAME, DO_NOT_MATCH},
    {PLACE_ALIKE, "WC", ANY, 'y', HARMS_RESULTS, TO_THE_SAME, DO_NOT_MATCH},
    {PLACE_ALIKE, ANY, ANY, 'x', HARMS_RESULTS, TO_THE_SAME, DO_NOT_MATCH},

    {PLACE_HEADS, "O", ANY, 'U', HARMS_RESULTS,
     N_("gather the positions first; the heads may be split, along the last dimension"),
     N_("%s: x %s is not split by heads")},
    {PLACE_NOT_PARTIAL | PLACE_HEADS | PLACE_ROW_MAX | PLACE_ROW_SUM, "P", ANY, 'x', HARMS_RESULTS,
     SUM_FIRST,
     N_("%s: x %s: applying this to each term is not the same as applying it to the sum")},
    {PLACE_ROW_MAX, "D", ANY, 'U', FITS},
    {PLACE_ROW_SUM, "D", ANY, 'P', FITS},
    {PLACE_NOT_PARTIAL | PLACE_HEADS | PLACE_ROW_MAX | PLACE_ROW_SUM, ANY, ANY, 'x', FITS},

    {PLACE_ROWS, "O", ANY, 'x', FITS},
    {PLACE_ROWS | PLACE_ALL_OF_X, "WU", ANY, 'W', FITS},
    {PLACE_ROWS | PLACE_ALL_OF_X, "C", ANY, 'W', HARMS_GRADIENTS,
     N_("f comes too early: put it after this operation, right before the product with a split weight"),
     IS_NOT_WHOLE},
    {PLACE_ROWS | PLACE_ALL_OF_X, ANY, ANY, 'W', HARMS_RESULTS,
     N_("this operation takes a tensor that every rank holds in full: all_reduce (g) makes one from a partial sum, all_gather from a shard"),
     IS_NOT_WHOLE},

    {PLACE_FIRST_TOKEN, "D", ANY, 'U', HARMS_RESULTS, N_("gather the positions first"),
     N_("%s: x %s: the first token is on one rank only")},
    {PLACE_TAKE, "D", ANY, 'U', HARMS_RESULTS,
     N_("split each of the three matrices: a weight [3,out,in] with shard(1)"),
     N_("%1$s along dimension %3$s: x %2$s: other ranks hold the rest")},
    {PLACE_FIRST_TOKEN | PLACE_TAKE, SHARDED, ANY, '-', FITS},
    {PLACE_FIRST_TOKEN | PLACE_TAKE, ANY, ANY, 'x', FITS},
    {PLACE_PART, "D", ANY, 'U', HARMS_RESULTS,
     N_("if q, k and v are stacked and split as one matrix, the first ranks hold all of q: split each of them, as a weight [3,out,in] with shard(1)"),
     N_("%1$s along dimension %3$s: x %2$s: part k of this rank's columns is not this rank's share of part k of x")},
    {PLACE_PART, ANY, ANY, 'U', FITS},

    {PLACE_DUPLICATION, "WU", ANY, 'C', FITS},
    {PLACE_DUPLICATION, "C", ANY, 'C', HARMS_GRADIENTS,
     N_("x has been duplicated already: a second duplication would sum its gradient twice"),
     IS_NOT_WHOLE},
    {PLACE_DUPLICATION, ANY, ANY, 'C', HARMS_RESULTS,
     N_("duplication (f) takes what every rank holds in full"), IS_NOT_WHOLE},

    {PLACE_ALL_REDUCE, "PU", ANY, 'W', FITS},
    {PLACE_ALL_REDUCE, SHARDED, ANY, 'W', HARMS_RESULTS,
     N_("all_reduce (g) adds partial sums; shards are joined with all_gather, or go into a product with a weight split by rows, whose result is a partial sum"),
     IS_NO_SUM},
    {PLACE_ALL_REDUCE, ANY, ANY, 'W', HARMS_RESULTS, WHOLE_ALREADY, IS_NO_SUM},

    {PLACE_ALL_GATHER, "DU", ANY, 'W', FITS},
    {PLACE_ALL_GATHER, "P", ANY, 'W', HARMS_RESULTS,
     N_("use all_reduce (g) to add partial sums; all_gather joins shards"), IS_NO_SHARD},
    {PLACE_ALL_GATHER, "O", ANY, 'W', HARMS_RESULTS,
     N_("join the pieces along the dimension that was split"),
     N_("%1$s along dimension %3$s: x %2$s")},
    {PLACE_ALL_GATHER, ANY, ANY, 'W', HARMS_RESULTS, N_("every rank holds all of it already"),
     IS_NO_SHARD},

    {PLACE_GATHER_SEQUENCE, "DU", ANY, 'C', FITS},
    {PLACE_GATHER_SEQUENCE, "P", ANY, 'C', HARMS_RESULTS,
     N_("reduce_scatter_sequence adds partial sums; gather_sequence joins positions"),
     LACKS_POSITIONS},
    {PLACE_GATHER_SEQUENCE, "O", ANY, 'C', HARMS_RESULTS,
     N_("it joins positions, which are dimension 1"), LACKS_POSITIONS},
    {PLACE_GATHER_SEQUENCE, ANY, ANY, 'C', HARMS_RESULTS,
     N_("every rank holds all positions already"), LACKS_POSITIONS},

    {PLACE_REDUCE_SCATTER_SEQUENCE, "PU", ANY, 'd', FITS},
    {PLACE_REDUCE_SCATTER_SEQUENCE, SHARDED, ANY, 'd', HARMS_RESULTS,
     N_("it adds the ranks' terms; a shard is a piece, not a term"), IS_NO_SUM},
    {PLACE_REDUCE_SCATTER_SEQUENCE, ANY, ANY, 'd', HARMS_RESULTS, WHOLE_ALREADY, IS_NO_SUM},

    {PLACE_SCATTER, "WU", ANY, 'd', FITS},
    {PLACE_SCATTER, "C", ANY, 'd', HARMS_GRADIENTS,
     N_("scatter takes x as it is, without duplication (f): its backward pass gathers the whole gradient on each rank, and f would sum these copies"),
     IS_NOT_WHOLE},
    {PLACE_SCATTER, "P", ANY, 'd', HARMS_RESULTS, SUM_FIRST, IS_NOT_WHOLE},
    {PLACE_SCATTER, ANY, ANY, 'd', HARMS_RESULTS, N_("it is split already"), IS_NOT_WHOLE},
};

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

/* For an x without f before a weight that is split by its outputs. */
static const char *hint_of_f(const Tape *tape, const Tensor *x)
{
    return has_joined_positions(x)
               ? N_("gather positions with gather_sequence: its backward pass adds the gradients of "
                    "all ranks; all_gather's does not")
           : is_duplicated(tape, x)
               ? N_("x has already been put through duplication (f): read its result")
               : N_("put x through duplication (f) first");
}

static char letter_of(const Tensor *x, int dim)
{
    static const char letters[] = {
        [WHOLE] = 'W', [COPIED] = 'C', [PARTIAL] = 'P', [UNKNOWN] = 'U', [SHARD] = 'O'};
    return has_kind(x, SHARD) && x->placement.dim == dim ? 'D' : letters[x->placement.kind];
}

static Placement result_of(const Rule *rule, const Tensor *x, Placement of_y, int dim)
{
    switch (rule->result) {
    case 'x':
        return x->placement;
    case 'y':
        return of_y;
    case 'd':
        return shard(dim);
    case '-':
        return shard(x->placement.dim - (x->placement.dim > dim));
    case 'o': /* the weight's dimensions without the last one replace x's last one */
        return shard(x->shape.rank - 1 + of_y.dim);
    case '+':
        return shard(x->shape.rank);
    default:
        return (Placement){rule->result == 'W'   ? WHOLE
                           : rule->result == 'C' ? COPIED
                           : rule->result == 'P' ? PARTIAL
                                                 : UNKNOWN,
                           0};
    }
}

Placement place_result(const Tape *tape, Law law, const char *function, const Tensor *x,
                       const Tensor *y, int dim)
{
    if (!is_split(tape))
        return whole();
    dim = law == PLACE_ALIKE ? x->placement.dim : dim < 0 ? x->shape.rank + dim : dim;
    const Placement of_y = y ? y->placement : (Placement){UNKNOWN, 0};
    const int along = law == PLACE_ALIKE ? dim : law == PLACE_LOOKUP || !y ? 0 : y->shape.rank - 1;
    const char is_x[] = {letter_of(x, dim), 0}, is_y[] = {y ? letter_of(y, along) : 'U', 0};
    const Rule *rule = rules;
    while (!(rule->laws & law) || !strpbrk(rule->x, is_x) || !strpbrk(rule->y, is_y))
        rule++;
    if (!rule->says)
        return result_of(rule, x, of_y, dim);
    char number[16];
    snprintf(number, sizeof number, "%d", dim);
    const Harm harm = rule->hint              ? rule->harm
                      : is_from_parameters(x) ? HARMS_GRADIENTS
                                              : HARMS_GRADIENT_OF_X;
    misplaced_with(harm, rule->hint ? rule->hint : hint_of_f(tape, x), rule->says, function,
                   TENSOR_TEXT(x), y ? TENSOR_TEXT(y) : number);
    return result_of(rule, x, of_y, dim);
}

void mark_by_positions(const Tape *tape, const Tensor *x, Tensor *const *weights, int count)
{
    for (int i = 0; i < count && is_split(tape) && has_kind(x, SHARD) && !is_last(x); i++)
        if (weights[i]->parameter)
            weights[i]->parameter->partial |= OVER_TP;
}

void partial_sums_change(const Tensor *x)
{
    if (x->partial)
        *x->partial = 0;
}

void must_be_added(unsigned partial, Harm harm, void *address, const char *function,
                   const char *what)
{
    if (partial)
        misplaced_since(address, harm,
                        N_("each rank of that group has one term: add the terms over the group"),
                        "%s: %s is still a partial sum over mesh->%s: nothing has added the other "
                        "ranks' terms",
                        function, what, axis_name(partial));
}

void terms_begin(Tensor *x, unsigned *partial, Axis axis)
{
    const Mesh *mesh = x->tape->mesh;
    *partial = (axis == OVER_DP ? mesh->dp_degree : mesh->tp_degree) > 1 ? (unsigned)axis : 0;
    x->partial = partial;
}

void terms_end(Tensor *x, void *function, const char *name, const char *what)
{
    const unsigned partial = *x->partial;
    x->partial = NULL;
    must_be_added(partial, HARMS_RESULTS, (char *)function + 1, name, what);
}
