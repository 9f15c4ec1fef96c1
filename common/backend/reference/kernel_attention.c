/* Attention, one head at a time, by definition. */
#include <math.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/** scores [S,T] = factor q k^T of one head, whose rows are `width` numbers apart. */
static void scores_of(const AttentionShape *shape, const real *q, const real *k, real *scores)
{
    const int64_t positions = shape->positions, keys = attention_keys(shape),
                  width = shape->heads * shape->head_size;
    reference_product(reference_order(shape->head_size), (Factor){q, positions, width, 1},
                      (Factor){k, keys, width, 1}, scores, keys);
    for (int64_t i = 0; i < positions * keys; i++)
        scores[i] = rounded(rounded(shape->factor) * scores[i]);
}

/** The keys that a query sees. */
typedef struct View {
    int64_t end;         /**< no key from here on */
    const int32_t *mask; /**< of the sample, or NULL */
} View;

static View view_of(const AttentionShape *shape, const int32_t *mask, int64_t sample, int64_t query)
{
    const int64_t keys = attention_keys(shape);
    return (View){shape->causal ? shape->past + query + 1 : keys,
                  mask ? mask + sample * keys : NULL};
}

static bool sees(View view, int64_t key)
{
    return key < view.end && (!view.mask || view.mask[key]);
}

/** The largest of a row of scores over the keys that the query sees, and the sum of exp(score -
 *  highest); 0 and 1 if it sees none. */
static void measure_row(Order order, View view, const real *scores, real *highest, real *sum)
{
    bool any = false;
    *highest = -INFINITY;
    *sum = 0;
    for (int64_t j = 0; j < order.count; j++) {
        any = any || sees(view, j);
        if (sees(view, j) && !(scores[j] <= *highest || isnan(*highest))) /* NaN stays NaN */
            *highest = scores[j];
    }
    for (int64_t n = 0, j = order.first; n < order.count; n++, j = order_next(order, j))
        if (sees(view, j))
            *sum = rounded(*sum + reference_inexact(exp(rounded(scores[j] - *highest))));
    if (!any) {
        *highest = 0;
        *sum = 1;
    }
}

/** The softmax of the row of scores, in place. */
static void masked_softmax(int64_t keys, View view, real highest, real sum, real *scores)
{
    for (int64_t j = 0; j < keys; j++)
        scores[j] =
            sees(view, j) ? rounded(reference_inexact(exp(rounded(scores[j] - highest))) / sum) : 0;
}

int64_t kernel_attention_work(const AttentionShape *shape)
{
    return 2 * shape->positions * attention_keys(shape);
}

void kernel_attention_forward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                              const int32_t *mask, Numbers y, real *highest, real *sums, real *work)
{
    const int64_t positions = shape->positions, keys = attention_keys(shape),
                  size = shape->head_size, width = shape->heads * size;
    const Order by_key = reference_order(keys);
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++) {
            const int64_t queries_at = b * positions * width + a * size,
                          keys_at = b * keys * width + a * size;
            scores_of(shape, q.reals + queries_at, k.reals + keys_at, work);
            for (int64_t i = 0; i < positions; i++, highest++, sums++) {
                const View view = view_of(shape, mask, b, i);
                measure_row(by_key, view, work + i * keys, highest, sums);
                masked_softmax(keys, view, *highest, *sums, work + i * keys);
            }
            reference_product(by_key, (Factor){work, positions, keys, 1},
                              (Factor){v.reals + keys_at, size, 1, width}, y.reals + queries_at,
                              width);
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

void kernel_attention_backward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                               const int32_t *mask, const real *highest, const real *sums,
                               Numbers dy, Numbers dq, Numbers dk, Numbers dv, real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size,
                  width = shape->heads * size;
    real *probabilities = work, *ds = work + positions * positions;
    for (int64_t b = 0; b < shape->batch; b++)
        for (int64_t a = 0; a < shape->heads; a++) {
            const int64_t head = b * positions * width + a * size;
            scores_of(shape, q.reals + head, k.reals + head, probabilities);
            for (int64_t i = 0; i < positions; i++, highest++, sums++)
                masked_softmax(positions, view_of(shape, mask, b, i), *highest, *sums,
                               probabilities + i * positions);
            scores_backward(shape, dy.reals + head, v.reals + head, probabilities, ds);
            const Order order = reference_order(positions);
            const Factor keys = {k.reals + head, size, 1, width},
                         queries = {q.reals + head, size, 1, width},
                         gradients = {dy.reals + head, size, 1, width};
            reference_product(order, (Factor){ds, positions, positions, 1}, keys, dq.reals + head,
                              width);
            reference_product(order, (Factor){ds, positions, 1, positions}, queries,
                              dk.reals + head, width);
            reference_product(order, (Factor){probabilities, positions, 1, positions}, gradients,
                              dv.reals + head, width);
        }
}
