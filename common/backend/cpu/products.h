/** @file
 * Selects the library that multiplies: a CBLAS, oneDNN in bf16, or oneDNN in single precision for
 * large matrices.
 */
#pragma once

#include "backend/onednn/onednn.h"
#include "base/problem.h"
#include "base/real.h"

/** Returns oneDNN if products are in BF16, otherwise NULL. */
const OneDnn *products_in_bf16(void);

/** c = factor · a · b in FP32 by the faster library: see OneDnn.multiply_single. */
SingleMultiply multiply_single;

/** Returns false with `problem`, a warning, if bf16 was chosen and this processor only emulates
 *  it. */
bool products_check(Problem *problem);

/** ", AMP=bf16 by oneDNN 2.6.3", ", oneDNN 2.6.3 for large products", or an empty text. */
const char *products_description(void);

/** The products of a linear layer: y = x W^T and its gradients. */
typedef enum LinearProduct {
    LINEAR_Y,      /**< y = x W^T */
    LINEAR_DX,     /**< dx = dy W */
    LINEAR_DWEIGHT /**< dW = dy^T x */
} LinearProduct;

/** The shapes of a product's factors: see the kernels in backend.h. */
static inline Product linear_product(LinearProduct of, int64_t rows, int64_t in, int64_t out,
                                     bool accumulate)
{
    Product product = (Product[]){
        [LINEAR_Y] = {.b_transposed = true, .rows = rows, .columns = out, .inner = in},
        [LINEAR_DX] = {.rows = rows, .columns = in, .inner = out},
        [LINEAR_DWEIGHT] = {.a_transposed = true, .rows = out, .columns = in, .inner = rows},
    }[of];
    product.accumulate = accumulate;
    return product;
}

/* ---- bf16.c ---- */

/** kernel_round() and kernel_widen() on the calling thread. */
void bf16_round(int64_t count, const real *x, uint16_t *y);
void bf16_widen(int64_t count, const uint16_t *x, real *y); /**< the inverse */

/** c = a · b in bf16, added to c if the product accumulates, or to `bias` in each row if `bias` is
 *  not NULL. */
void bf16_multiply(Product product, const uint16_t *a, const uint16_t *b, const real *bias,
                   Numbers c);

/** A matrix that may be part of a larger one: its stored rows are `stride` numbers apart. */
typedef struct MatrixPart {
    Numbers numbers; /**< a product in bf16 rounds reals: they must be a whole matrix */
    int64_t stride;  /**< from a stored row to the next, in numbers */
} MatrixPart;

/** c = factor · a · b in bf16, added to c if the product accumulates, on the calling thread. Stored
 *  rows of c are `c_stride` numbers apart. */
void bf16_multiply_parts(Product product, real factor, MatrixPart a, MatrixPart b, real *c,
                         int64_t c_stride);

/* ---- OpenBLAS only, as weak symbols: NULL with another CBLAS ---- */

/** The machine for which OpenBLAS has chosen its kernels: "SkylakeX". Belongs to OpenBLAS. */
extern char *openblas_get_corename(void) __attribute__((weak));
/** OpenBLAS's version and how it was built. Belongs to OpenBLAS. */
extern char *openblas_get_config(void) __attribute__((weak));
/** Sets the number of threads that products use. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
