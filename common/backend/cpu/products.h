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

/* ---- bf16.c ---- */

/** Is a product of this size multiplied in bf16? */
bool bf16_multiplies(int64_t rows, int64_t columns, int64_t inner);

/** Multiplies matrices that it rounds to bf16 first; chooses the product's `threads` itself. */
void bf16_multiply(Product product, const real *a, const real *b, const real *bias, real *c);

/** c = factor · a · b, added to c if the product accumulates, on the calling thread. Each matrix is
 *  part of a larger one: its stored rows are `stride` numbers apart. */
void bf16_multiply_parts(Product product, real factor, const real *a, int64_t a_stride,
                         const real *b, int64_t b_stride, real *c, int64_t c_stride);

/* ---- OpenBLAS only, as weak symbols: NULL with another CBLAS ---- */

/** The machine for which OpenBLAS has chosen its kernels: "SkylakeX". Belongs to OpenBLAS. */
extern char *openblas_get_corename(void) __attribute__((weak));
/** Its version and how it was built. Belongs to OpenBLAS. */
extern char *openblas_get_config(void) __attribute__((weak));
/** Sets the number of threads that products use. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
