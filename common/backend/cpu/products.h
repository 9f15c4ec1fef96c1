/** @file
 * Which library multiplies: a CBLAS, or oneDNN in bf16, or oneDNN in single precision where matrices are large.
 */
#pragma once

#include "backend/onednn/onednn.h"
#include "base/problem.h"

/** oneDNN where products are BF16, or NULL. */
const OneDnn *products_in_bf16(void);

/** What multiplies FP32 matrices of these sizes better than cblas_sgemm, or NULL. */
SingleMultiply *products_of_large(int64_t rows, int64_t columns, int64_t inner);

/** False with `problem`, a warning, where bf16 was chosen and this processor only imitates it. */
bool products_check(Problem *problem);

/** ", AMP=bf16 by oneDNN 2.6.3", ", oneDNN 2.6.3 for large products", or an empty text. */
const char *products_description(void);
