/* y = x W^T and its gradients. */
#include <stdlib.h>

#include "backend/backend.h"
#include "backend/reference/arithmetic.h"

/** x [rows,columns] as a factor. Numbers in 16 bits are decoded; `room` then holds them. */
static Factor decoded(Numbers x, int64_t rows, int64_t columns, real **room)
{
    *room = x.halves ? malloc((size_t)(rows * columns + 1) * sizeof **room) : NULL;
    for (int64_t i = 0; x.halves && i < rows * columns; i++)
        (*room)[i] = reference_number(x, i);
    return (Factor){x.halves ? *room : x.reals, rows, columns, 1};
}

static Factor transposed(Factor x)
{
    return (Factor){x.at, x.next, 1, x.next};
}

/** The product, with `bias` added to each row if it is not NULL, in y; or added to y. */
static void multiply(Factor a, Factor b, int64_t inner, const real *bias, Numbers y,
                     bool accumulate)
{
    real *product = malloc((size_t)(a.rows * b.rows + 1) * sizeof *product);
    reference_product(reference_order(inner), a, b, product, b.rows);
    for (int64_t i = 0; i < a.rows * b.rows; i++) {
        const real more = bias ? bias[i % b.rows] : accumulate ? reference_number(y, i) : 0;
        reference_put(y, i, bias || accumulate ? rounded(product[i] + more) : product[i]);
    }
    free(product);
}

void kernel_linear_forward(int64_t rows, int64_t in, int64_t out, Numbers x, Numbers weight,
                           const real *bias, Numbers y)
{
    real *room[2];
    multiply(decoded(x, rows, in, &room[0]), decoded(weight, out, in, &room[1]), in, bias, y,
             false);
    free(room[0]);
    free(room[1]);
}

void kernel_linear_backward_input(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers weight,
                                  Numbers dx, bool accumulate)
{
    real *room[2];
    multiply(decoded(dy, rows, out, &room[0]), transposed(decoded(weight, out, in, &room[1])), out,
             NULL, dx, accumulate);
    free(room[0]);
    free(room[1]);
}

void kernel_linear_backward_weight(int64_t rows, int64_t in, int64_t out, Numbers dy, Numbers x,
                                   real *dweight, bool accumulate)
{
    real *room[2];
    multiply(transposed(decoded(dy, rows, out, &room[0])),
             transposed(decoded(x, rows, in, &room[1])), rows, NULL, in_full(dweight), accumulate);
    free(room[0]);
    free(room[1]);
}

void kernel_linear_backward_bias(int64_t rows, int64_t out, Numbers dy, real *dbias)
{
    const Order order = reference_order(rows);
    for (int64_t o = 0; o < out; o++) {
        real sum = 0;
        for (int64_t n = 0, r = order.first; n < rows; n++, r = order_next(order, r))
            sum = rounded(sum + reference_number(dy, r * out + o));
        dbias[o] = rounded(dbias[o] + sum);
    }
}
