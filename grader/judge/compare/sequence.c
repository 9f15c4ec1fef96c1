/* Lab 18 as the judge computes it, on one rank, and with the mistake of the current suspect. */
#include <string.h>

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

/* Copies the numbers of x at the positions of each rank and in the columns of the same rank; all others become 0. */
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

/* The same numbers, past which no gradient flows. */
static Tensor *detached(Tensor *x, Tape *tape)
{
    return tape_view(tape, ready(x), whole());
}

static void both_gradients(Node *node, Tensor *dy)
{
    gradient_add(node->input[0], dy);
    gradient_add(node->input[1], dy);
}

/* The numbers of x; both get its gradient. */
static Tensor *with_gradients_of(Tensor *x, Tensor *other)
{
    Tensor *y = tape_view(x->tape, ready(x), whole());
    tape_operation(x->tape, "two gradients", both_gradients, y, 2, (Tensor *[]){x, other});
    return y;
}

/* As the lab declares it; the judge holds all of it. */
static bool is_split_by(const Tensor *weight, int dim)
{
    return weight->parameter && weight->parameter->placement.kind == SHARD &&
           weight->parameter->placement.dim == dim;
}

/* Is the product with this weight left as each rank's own term? */
static bool has_own_term(const Tensor *weight, int now)
{
    const bool is_of_attention = strstr(weight->parameter->name, "attention");
    return now == POSITIONS_OF_OWN_TERM ||
           now == (is_of_attention ? POSITIONS_OF_OWN_ATTENTION : POSITIONS_OF_OWN_FEED_FORWARD);
}

Tensor *linear_on_own_positions(Tensor *x, Tensor *weight,
                                Tensor *(*multiply)(Tensor *x, Tensor *weight))
{
    const int now = mistake();
    Tape *tape = x->tape;
    if (is_split_by(weight, 1) && has_own_term(weight, now))
        return multiply(with_own(x, true), weight);
    /* One product for the gradient of x, one for that of the weight. */
    if (now == GATHER_GRADIENT_OWN && is_split_by(weight, 0))
        return with_gradients_of(multiply(detached(x, tape), weight),
                                 with_own(multiply(x, detached(weight, tape)), false));
    if (now == TERM_GRADIENT_OWN && is_split_by(weight, 1))
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

static Tensor *residual(Tensor *x, Tensor *y, const Dropout *layer, int missing)
{
    const int now = mistake();
    if (now == RESIDUAL_DROPOUTS_OF_SUM)
        return dropout(layer, add(x, y));
    return add(x, now == missing || now == RESIDUAL_DROPOUTS_MISSING ? y : dropout(layer, y));
}

Tensor *sequence_block_forward(const SequenceBlock *layer, Tensor *x, Tensor *mask,
                               const Mesh *mesh)
{
    const bool swapped = mistake() == RESIDUAL_DROPOUTS_SWAPPED;
    if (mistake() == BLOCK_NOT_RUN)
        return x;
    Tensor *all = gather_sequence(layer_norm(layer->norm1, x), mesh);
    Tensor *sum = reduce_scatter_sequence(attention_partial(layer->attention, all, mask), mesh);
    x = residual(x, sum, swapped ? layer->dropout2 : layer->dropout1, RESIDUAL_DROPOUT_1_MISSING);
    all = gather_sequence(layer_norm(layer->norm2, x), mesh);
    sum = reduce_scatter_sequence(feed_forward_partial(layer->feed_forward, all), mesh);
    return residual(x, sum, swapped ? layer->dropout1 : layer->dropout2,
                    RESIDUAL_DROPOUT_2_MISSING);
}

void sum_norm_gradients(Tensor *gradients, const Mesh *mesh)
{
}
