/* Lab 18 as the judge computes it, on one rank, and with the mistake of the current suspect. */
#include <string.h>

#include "grader/judge/compare/wrong_block.h"
#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/mistakes.h"
#include "model/model.h"

static int mistake(void)
{
    const Case *c;
    return mistake_now(&c);
}

static int ranks(void)
{
    const Case *c;
    mistake_now(&c);
    return c->tp;
}

/* ---- a rank's own positions and columns ------------------------------------------------------------------------ */

/* Copies the numbers of x at the positions of each rank and in the columns of the same rank; all
 * others become 0. */
static void copy_own(const Tensor *x, Tensor *y)
{
    const int64_t positions = x->shape.size[1], columns = x->shape.size[2];
    for (int64_t i = 0; i < tensor_count(x); i++) {
        const int64_t of_position = i / columns % positions * ranks() / positions,
                      of_column = i % columns * ranks() / columns;
        reals(y)[i] = of_position == of_column ? reals(x)[i] : 0;
    }
}

static Tensor *like(Tensor *x)
{
    return tape_tensor(x->tape, REAL, x->shape, whole());
}

static void full_gradient(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
}

static void own_gradient(Node *node, Tensor *dy)
{
    Tensor *dx = like(dy);
    copy_own(dy, dx);
    gradient_add(node->input[0], dx);
}

static Tensor *with_own(Tensor *x, bool forward)
{
    Tensor *y = like(x);
    if (forward)
        copy_own(ready(x), y);
    else
        memcpy(reals(y), reals(ready(x)), (size_t)tensor_count(x) * sizeof(real));
    tape_operation(x->tape, "own part", forward ? full_gradient : own_gradient, y, 1, &x);
    return y;
}

/* x as a new tensor on the tape, through which no gradient flows back. */
static Tensor *detached(Tensor *x, Tape *tape)
{
    return tape_view(tape, ready(x), whole());
}

static void both_gradients(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
    gradient_add(node->input[1], dy);
}

/* A tensor with the numbers of x. Its gradient goes to x and to `other`. */
static Tensor *with_gradients_of(Tensor *x, Tensor *other)
{
    Tensor *y = tape_view(x->tape, ready(x), whole());
    tape_operation(x->tape, "two gradients", both_gradients, y, 2, (Tensor *[]){x, other});
    return y;
}

/* Does the lab split this weight along `dim`? The judge itself holds the whole weight. */
static bool is_split_by(const Tensor *weight, int dim)
{
    return weight->parameter && weight->parameter->placement.kind == SHARD &&
           weight->parameter->placement.dim == dim;
}

static int half_of(const Tensor *weight)
{
    return strstr(weight->parameter->name, "attention") ? ATTENTION : FEED_FORWARD;
}

/* Does the mistake leave out the sum of the ranks' terms in the product with this weight? */
static bool has_own_term(const Tensor *weight, int now)
{
    return now == POSITIONS_OF_OWN_TERM ||
           now == (half_of(weight) == ATTENTION ? POSITIONS_OF_OWN_ATTENTION
                                                : POSITIONS_OF_OWN_FEED_FORWARD);
}

Tensor *linear_on_own_positions(Tensor *x, Tensor *weight,
                                Tensor *(*multiply)(Tensor *x, Tensor *weight))
{
    const int now = mistake();
    Tape *tape = x->tape;
    if (is_split_by(weight, 1) && has_own_term(weight, now))
        return multiply(with_own(x, true), weight);
    /* One product gives the gradient of x, the other that of the weight. */
    if (is_split_by(weight, 0) && half_now(half_of(weight))->own_weights)
        return with_gradients_of(multiply(detached(x, tape), weight),
                                 with_own(multiply(x, detached(weight, tape)), false));
    if (is_split_by(weight, 1) && half_now(half_of(weight))->own_dy)
        return with_gradients_of(multiply(with_own(x, false), detached(weight, tape)),
                                 multiply(with_own(detached(x, tape), true), weight));
    return multiply(x, weight);
}

/* ---- the lab's functions --------------------------------------------------------------------------------------- */

static Tensor *with_wrong_gradient(Tensor *x, int times, int over, int off_tape)
{
    const int now = mistake();
    return now == times                               ? with_gradient_times(x, ranks())
           : now == over                              ? with_gradient_times(x, 1.0 / ranks())
           : now == off_tape || now == PAIRS_OFF_TAPE ? with_gradient_times(x, 0)
                                                      : x;
}

Tensor *gather_sequence(Tensor *x, const Mesh *mesh)
{
    return with_wrong_gradient(x, GATHER_GRADIENT_TIMES_RANKS, GATHER_GRADIENT_OVER_RANKS,
                               GATHER_OFF_TAPE);
}

Tensor *reduce_scatter_sequence(Tensor *x, const Mesh *mesh)
{
    return with_wrong_gradient(x, TERM_GRADIENT_TIMES_RANKS, TERM_GRADIENT_OVER_RANKS,
                               TERM_OFF_TAPE);
}

Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask,
                               const Mesh *mesh)
{
    if (mistake() == BLOCK_NOT_RUN)
        return x;
    Tensor *all = gather_sequence(layer_norm(layer->norm1, x), mesh);
    Tensor *sum = reduce_scatter_sequence(attention_partial(layer->attention, all, mask), mesh);
    x = add(x, dropout(layer->dropout1, sum));
    all = gather_sequence(layer_norm(layer->norm2, x), mesh);
    sum = reduce_scatter_sequence(feed_forward_partial(layer->feed_forward, all), mesh);
    return add(x, dropout(layer->dropout2, sum));
}

/* ---- the norms ------------------------------------------------------------------------------------------------- */

/* Input 1 gets the negative gradients at all positions but the first rank's, so that the norm's
 * weights keep only the gradients at the first rank's positions. */
static void gradients_of_first(Node *node, Tensor *dy)
{
    Tensor *others = like(dy);
    const int64_t positions = dy->shape.size[1], columns = dy->shape.size[2];
    for (int64_t i = 0; i < tensor_count(dy); i++)
        reals(others)[i] = i / columns % positions * ranks() < positions ? 0 : -reals(dy)[i];
    gradient_add(node->input[0], dy);
    gradient_add(node->input[1], others);
}

Tensor *norm_with_gradients_of_first(const LayerNorm *layer, Tensor *x,
                                     Tensor *(*norm)(const LayerNorm *layer, Tensor *x))
{
    Tensor *of_all = norm(layer, x), *of_weights = norm(layer, detached(x, x->tape)),
           *y = tape_view(x->tape, ready(of_all), whole());
    tape_operation(x->tape, "norm", gradients_of_first, y, 2, (Tensor *[]){of_all, of_weights});
    return y;
}

void sum_norm_gradients(Tensor *gradients, const Mesh *mesh)
{
}
