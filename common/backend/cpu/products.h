/** @file
 * Which library multiplies: a CBLAS, or oneDNN in bf16, or oneDNN in single precision where matrices are large.
 */
#pragma once

#include "backend/onednn/onednn.h"
#include "base/problem.h"
#include "base/real.h"

/** oneDNN where products are BF16, or NULL. */
const OneDnn *products_in_bf16(void);

/** What multiplies FP32 matrices of these sizes better than cblas_sgemm, or NULL. */
SingleMultiply *products_of_large(int64_t rows, int64_t columns, int64_t inner);

/** False with `problem`, a warning, where bf16 was chosen and this processor only imitates it. */
bool products_check(Problem *problem);

/** ", AMP=bf16 by oneDNN 2.6.3", ", oneDNN 2.6.3 for large products", or an empty text. */
const char *products_description(void);

/* ---- bf16.c ---- */

/** Is a product of this size multiplied in bf16? */
bool bf16_multiplies(int64_t rows, int64_t columns, int64_t inner);

/** The product (whose `threads` are chosen here) of matrices that are rounded to bf16 before. */
void bf16_multiply(Product product, const real *a, const real *b, const real *bias, real *c);

/* ---- what is peculiar to OpenBLAS, as weak symbols: with another CBLAS these are NULL ---- */

/** The machine that OpenBLAS takes this one for: "SkylakeX". Belongs to OpenBLAS. */
extern char *openblas_get_corename(void) __attribute__((weak));
/** Its version and how it was built. Belongs to OpenBLAS. */
extern char *openblas_get_config(void) __attribute__((weak));
/** How many threads products use from now on. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));
