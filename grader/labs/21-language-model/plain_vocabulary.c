/* Computes lab 21 on one rank, with the whole vocabulary. For a suspect, makes the mistake as the
 * first rank would. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/compare/wrong_operations.h"
#include "grader/labs/lab.h"

/* x with the same numbers, off the tape. */
static Tensor *values_of(Tensor *x)
{
    return tape_reals(x->tape, x->shape, whole(), reals(x), false);
}

/* The columns `part` of x, as a product with rows of the identity matrix. */
static Tensor *columns_of(Tensor *x, Range part)
{
    const int64_t all = shape_last(x->shape), count = part.end - part.begin;
    real *rows = calloc((size_t)(count * all + 1), sizeof *rows);
    for (int64_t i = 0; i < count; i++)
        rows[i * all + part.begin + i] = 1;
    Tensor *unit = tape_tensor(x->tape, REAL, SHAPE(count, all), whole());
    memcpy(reals(unit), rows, (size_t)(count * all) * sizeof *rows);
    free(rows);
    return linear(x, unit);
}

/* The targets as indices into the columns of a rank with this part, computed with the mistake. */
static Tensor *columns_on_rank(Tensor *targets, Range part, int rank, int mistake)
{
    const int width = (int)(part.end - part.begin);
    if (mistake == TARGETS_NOT_MOVED)
        return ids_between(targets, 0, width);
    if (mistake == TARGETS_BY_PRODUCT)
        return ids_between(targets, rank * width, rank * width + width);
    Tensor *columns = ids_between(targets, (int)part.begin, (int)part.end);
    for (int64_t i = 0; mistake == OTHERS_AS_FIRST && width > 0 && i < tensor_count(columns); i++)
        if (ints(columns)[i] == NO_ID)
            ints(columns)[i] = 0;
    return columns;
}

/* The sum of two ranks' terms; or the larger of both, off the tape. */
static Tensor *joined(Tensor *x, Tensor *y, bool larger)
{
    if (!x)
        return y;
    if (!larger)
        return add(x, y);
    x = values_of(x);
    for (int64_t i = 0; i < tensor_count(x); i++)
        reals(x)[i] = (real)fmax(reals(x)[i], reals(y)[i]);
    return x;
}

/* What a rank subtracts from its columns x in the sum of exp, or from the target's logit. */
static Tensor *subtracted(Tensor *x, Tensor *most, int mistake, bool in_sum)
{
    if (mistake == OWN_MAXIMUM || mistake == NOTHING_EXCHANGED ||
        mistake == (in_sum ? OWN_MAXIMUM_IN_SUM : OWN_MAXIMUM_IN_TARGET))
        return row_max(x);
    if (mistake != (in_sum ? MAXIMUM_ONLY_IN_TARGET : MAXIMUM_NOT_IN_TARGET))
        return most;
    Tensor *zero = tape_tensor(x->tape, REAL, most->shape, whole());
    kernel_vector_fill(tensor_count(zero), 0, reals(zero));
    return zero;
}

/* The sum of exp and the targets' terms, over the columns of those ranks that the mistake
 * includes. */
static void sums_of_ranks(Tensor *logits, Tensor *targets, int mistake, int ranks, Tensor **sum,
                          Tensor **right)
{
    Tensor *most = row_max(logits);
    *sum = *right = NULL;
    for (int rank = 0; rank < ranks; rank++) {
        const Range part = chunk(shape_last(logits->shape), rank, ranks);
        Tensor *x = columns_of(logits, part);
        Tensor *columns = columns_on_rank(targets, part, rank, mistake);
        if ((mistake != OWN_SUM && mistake != NOTHING_EXCHANGED) || rank == 0)
            *sum = joined(*sum, row_sum_exp(x, subtracted(x, most, mistake, true)),
                          mistake == SUM_BY_MAXIMUM);
        if ((mistake != OWN_TARGETS && mistake != NOTHING_EXCHANGED) || rank == 0)
            *right = joined(*right, row_pick(x, subtracted(x, most, mistake, false), columns),
                            mistake == TARGETS_BY_MAXIMUM);
    }
}

static Tensor *times(Tensor *x, int count)
{
    Tensor *sum = x;
    for (int i = 1; i < count; i++)
        sum = add(sum, x);
    return sum;
}

static Tensor *wrong_cross_entropy(Tensor *logits, Tensor *targets, int mistake, const Case *c)
{
    Tensor *sum, *right, *counted = targets;
    sums_of_ranks(logits, targets, mistake, c->tp, &sum, &right);
    if (mistake == SUM_TIMES_RANKS)
        sum = times(sum, c->tp);
    if (mistake == TARGETS_TIMES_RANKS)
        right = times(right, c->tp);
    if (mistake >= MEAN_OVER_POSITIONS && mistake <= SUM_OVER_TOKENS)
        logits->tape->batch.tokens = mistake == SUM_OVER_TOKENS     ? 1
                                     : mistake == MEAN_OVER_SAMPLES ? c->B
                                                                    : tensor_count(targets);
    if (mistake == OWN_TOKENS)
        counted = columns_on_rank(targets, chunk(shape_last(logits->shape), 0, c->tp), 0, mistake);
    if (mistake == POSITIONS_COUNTED) {
        counted = tape_ints(targets->tape, targets->shape, ints(targets));
        for (int64_t i = 0; i < tensor_count(counted); i++)
            ints(counted)[i] = 0;
    }
    if (mistake == SUM_OFF_TAPE && sum)
        sum = values_of(sum);
    if (mistake == TARGETS_OFF_TAPE && right)
        right = values_of(right);
    return mean_over_tokens(subtract(logarithm(sum), right), counted);
}

Tensor *vocabulary_embedding(Tensor *table, Tensor *ids, const Mesh *mesh)
{
    return lookup(ids, table);
}

Tensor *vocabulary_logits(Tensor *table, Tensor *x, const Mesh *mesh)
{
    return linear(x, table);
}

Tensor *vocabulary_parallel_cross_entropy(Tensor *logits, Tensor *targets, const Mesh *mesh)
{
    const Case *c;
    const int mistake = mistake_now(&c);
    if (mistake >= OWN_MAXIMUM && mistake <= TARGETS_BY_MAXIMUM)
        return wrong_cross_entropy(logits, targets, mistake, c);
    Tensor *most = row_max(logits), *sum = row_sum_exp(logits, most);
    return mean_over_tokens(subtract(logarithm(sum), row_pick(logits, most, targets)), targets);
}
