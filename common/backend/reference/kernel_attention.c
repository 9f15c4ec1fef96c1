/* Attention, one head at a time, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/** scores [S,S] = factor q k^T of one head, whose rows are `width` numbers apart. */
static void scores_of(const AttentionShape *shape, const real *q, const real *k, real *scores)
{
    const int64_t positions = shape->positions, width = shape->heads * shape->head_size;
    reference_product(reference_order(shape->head_size), (Factor){q, positions, width, 1},
                      (Factor){k, positions, width, 1}, scores, positions);
    for (int64_t i = 0; i < positions * positions; i++)
        scores[i] = rounded(rounded(shape->factor) * scores[i]);
}

/** The largest of a row of scores over the keys that `mask` shows, and the sum of exp(score -
 *  highest). */
static void measure_row(Order order, const int32_t *mask, const real *scores, real *highest,
                        real *sum)
{
    *highest = -INFINITY;
    *sum = 0;
    for (int64_t j = 0; j < order.count; j++)
        if (mask[j] && !(scores[j] <= *highest || isnan(*highest))) /* NaN stays NaN */
            *highest = scores[j];
    for (int64_t n = 0, j = order.first; n < order.count; n++, j = order_next(order, j))
        if (mask[j])
            *sum = rounded(*sum + reference_inexact(exp(rounded(scores[j] - *highest))));
}

/** The softmax of the row, in place. */
static void masked_softmax(int64_t positions, const int32_t *mask, real highest, real sum,
                           real *scores)
{
    for (int64_t j = 0; j < positions; j++)
        scores[j] =
            mask[j] ? rounded(reference_inexact(exp(rounded(scores[j] - highest))) / sum) : 0;
}

int64_t kernel_attention_work(const AttentionShape *shape)
{
    return 2 * shape->positions * shape->positions;
}

void kernel_attention_forward(const AttentionShape *shape, const real *q, const real *k,
                              const real *v, const int32_t *mask, real *y, real *highest,
                              real *sums, real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size;
    const Order by_key = reference_order(positions);
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++) {
            const int64_t head = b * positions * width + a * size;
            scores_of(shape, q + head, k + head, work);
            for (int64_t i = 0; i < positions; i++, highest++, sums++) {
                real *row = work + i * positions;
                measure_row(by_key, mask + b * positions, row, highest, sums);
                masked_softmax(positions, mask + b * positions, *highest, *sums, row);
            }
            reference_product(by_key, (Factor){work, positions, positions, 1},
                              (Factor){v + head, size, 1, width}, y + head, width);
        }
}

/** ds [S,S], the gradient of one head's scores q k^T: factor p (dp - sum of dp p over the row),
 * with dp = dy v^T. Rows of dy and v are `width` numbers apart. */
static void scores_backward(const AttentionShape *shape, const real *dy, const real *v,
                            const real *probabilities, real *ds)
{
    const int64_t positions = shape->positions, width = shape->heads * shape->head_size;
    const Order by_size = reference_order(shape->head_size), by_key = reference_order(positions);
    reference_product(by_size, (Factor){dy, positions, width, 1}, (Factor){v, positions, width, 1},
                      ds, positions);
    for (int64_t i = 0; i < positions; i++, ds += positions, probabilities += positions) {
        const real mean = reference_dot(by_key, ds, 1, probabilities, 1);
        for (int64_t j = 0; j < positions; j++)
            ds[j] =
                rounded(rounded(shape->factor) * rounded(probabilities[j] * rounded(ds[j] - mean)));
    }
}

void kernel_attention_backward(const AttentionShape *shape, const real *q, const real *k,
                               const real *v, const int32_t *mask, const real *highest,
                               const real *sums, const real *dy, real *dq, real *dk, real *dv,
                               real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size;
    real *probabilities = work, *ds = work + positions * positions;
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++) {
            const int64_t head = b * positions * width + a * size;
            scores_of(shape, q + head, k + head, probabilities);
            for (int64_t i = 0; i < positions; i++, highest++, sums++)
                masked_softmax(positions, mask + b * positions, *highest, *sums,
                               probabilities + i * positions);
            scores_backward(shape, dy + head, v + head, probabilities, ds);
            const Order order = reference_order(positions);
            const Factor keys = {k + head, size, 1, width}, queries = {q + head, size, 1, width},
                         gradients = {dy + head, size, 1, width};
            reference_product(order, (Factor){ds, positions, positions, 1}, keys, dq + head, width);
            reference_product(order, (Factor){ds, positions, 1, positions}, queries, dk + head,
                              width);
            reference_product(order, (Factor){probabilities, positions, 1, positions}, gradients,
                              dv + head, width);
        }
}
