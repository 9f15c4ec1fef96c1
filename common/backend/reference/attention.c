#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/** The softmax of one row of scores over the keys that `mask` does not hide, in place. */
static void masked_softmax(Order order, const int32_t *mask, real *scores)
{
    real highest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < order.count; j++)
        if (mask[j] && scores[j] > highest)
            highest = scores[j];
    for (int64_t n = 0, j = order.first; n < order.count; n++, j = order_next(order, j)) {
        scores[j] = mask[j] ? rounded(exp(rounded(scores[j] - highest))) : 0;
        sum = rounded(sum + scores[j]);
    }
    for (int64_t j = 0; j < order.count; j++)
        scores[j] = mask[j] ? rounded(scores[j] / sum) : 0;
}

void kernel_attention_forward(const AttentionShape *shape, const real *q, const real *k, const real *v,
                              const int32_t *mask, real *y, real *probabilities)
{
    const int64_t positions = shape->positions, size = shape->head_size, width = shape->heads * size;
    const Order by_size = reference_order(size), by_key = reference_order(positions);
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++) {
            const int64_t head = b * positions * width + a * size;
            for (int64_t i = 0; i < positions; i++, probabilities += positions) {
                for (int64_t j = 0; j < positions; j++)
                    probabilities[j] =
                        rounded(rounded(shape->factor) *
                                reference_dot(by_size, q + head + i * width, 1, k + head + j * width, 1));
                masked_softmax(by_key, mask + b * positions, probabilities);
                for (int64_t d = 0; d < size; d++)
                    y[head + i * width + d] = reference_dot(by_key, probabilities, 1, v + head + d, width);
            }
        }
}

/** ds [S,S], the gradient of the scores q k^T of one head: factor p (dp - sum of dp p over the row), dp = dy
 * v^T. dy and v lie `width` numbers apart from row to row. */
static void scores_backward(const AttentionShape *shape, const real *dy, const real *v,
                            const real *probabilities, real *ds)
{
    const int64_t positions = shape->positions, width = shape->heads * shape->head_size;
    const Order by_size = reference_order(shape->head_size), by_key = reference_order(positions);
    for (int64_t i = 0; i < positions; i++, ds += positions, probabilities += positions) {
        for (int64_t j = 0; j < positions; j++)
            ds[j] = reference_dot(by_size, dy + i * width, 1, v + j * width, 1);
        const real mean = reference_dot(by_key, ds, 1, probabilities, 1);
        for (int64_t j = 0; j < positions; j++)
            ds[j] = rounded(rounded(shape->factor) * rounded(probabilities[j] * rounded(ds[j] - mean)));
    }
}

int64_t kernel_attention_backward_work(const AttentionShape *shape)
{
    return shape->positions * shape->positions;
}

void kernel_attention_backward(const AttentionShape *shape, const real *q, const real *k, const real *v,
                               const real *probabilities, const real *dy, real *dq, real *dk, real *dv,
                               real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size, width = shape->heads * size;
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++, probabilities += positions * positions) {
            const int64_t head = b * positions * width + a * size;
            scores_backward(shape, dy + head, v + head, probabilities, work);
            const Order order = reference_order(positions);
            for (int64_t i = 0; i < positions; i++)
                for (int64_t d = 0; d < size; d++) {
                    const int64_t at = head + i * width + d;
                    dq[at] = reference_dot(order, work + i * positions, 1, k + head + d, width);
                    dk[at] = reference_dot(order, work + i, positions, q + head + d, width);
                    dv[at] = reference_dot(order, probabilities + i, positions, dy + head + d, width);
                }
        }
}
