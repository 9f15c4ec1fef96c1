/** @file
 * The factors of an AdamW step, with the bias corrections taken out of the loop over the weights.
 * Every backend with a single-precision kernel uses them.
 */
#pragma once

#include <math.h>

#include "backend/backend.h"

/** The factors of one AdamW step, each rounded once. */
typedef struct AdamWFactors {
    real beta1, rest1; /**< rest1 = 1 - beta1 */
    real beta2, rest2; /**< rest2 = 1 - beta2 */
    real kept;         /**< 1 - rate · weight_decay */
    real rate;         /**< rate / (1 - beta1^step) */
    real root;         /**< 1 / √(1 - beta2^step) */
    real epsilon;      /**< as in AdamW */
} AdamWFactors;

/** The factors of this step, computed in double precision. */
static inline AdamWFactors adamw_factors(const AdamW *adamw)
{
    AdamWFactors f;
    f.beta1 = (real)adamw->beta1;
    f.rest1 = (real)(1 - adamw->beta1);
    f.beta2 = (real)adamw->beta2;
    f.rest2 = (real)(1 - adamw->beta2);
    f.kept = (real)(1 - adamw->rate * adamw->weight_decay);
    f.rate = (real)(adamw->rate / (1 - pow(adamw->beta1, (double)adamw->step)));
    f.root = (real)(1 / sqrt(1 - pow(adamw->beta2, (double)adamw->step)));
    f.epsilon = (real)adamw->epsilon;
    return f;
}
