/** @file
 * Matrix products by oneDNN, in bf16 and in single precision, in a shared object of their own. The
 * cpu backend opens it only for AMP=bf16 or a wide model, because loading oneDNN takes 26 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/real.h"

/** c [rows,columns] = a [rows,inner] · b [inner,columns], row-major; a transposed factor is stored
 *  as its transpose. */
typedef struct Product {
    bool a_transposed, b_transposed; /**< stored as its transpose */
    bool bias;                       /**< bias [columns] is added to each row */
    bool accumulate;                 /**< the product is added to c */
    bool in_16_bits;                 /**< c is in bf16 */
    int64_t rows, columns, inner;    /**< of c; the product sums over inner */
    int threads;                     /**< that the product may use */
} Product;

/** How well the processor supports bf16. */
typedef enum Bf16Support {
    BF16_NONE, /**< oneDNN cannot multiply in bf16 here */
    BF16_SLOW, /**< no instructions for it: oneDNN emulates them */
    BF16_FAST, /**< it has instructions, such as AVX-512 BF16 or AMX */
} Bf16Support;

/** c = factor · a · b in single precision, on the calling thread; added to c if `accumulate`. Ignores
 *  the product's bias and threads. Steps are distances between stored rows. */
typedef void SingleMultiply(const Product *product, float factor, const float *a, int64_t a_step,
                            const float *b, int64_t b_step, float *c, int64_t c_step);

/** The functions of the shared object. */
typedef struct OneDnn {
    char version[16]; /**< "2.6.3" */
    /** Call this first. Returns how well this processor supports bf16. */
    Bf16Support (*start)(void);
    /** a and b are in bf16, and the bias in single precision. Keeps what oneDNN prepares for each kind
     *  of product on this thread. */
    void (*multiply)(const Product *product, const uint16_t *a, const uint16_t *b,
                     const float *bias, Numbers c);
    /** Does this processor have AVX-512? With it, oneDNN multiplies most large matrices in
     *  single precision faster than OpenBLAS (see backend/cpu/products.c). */
    bool (*has_avx512)(void);
    SingleMultiply *multiply_single; /**< products in single precision */
} OneDnn;

/** The name of the OneDnn in the shared object ONEDNN_FILE (see the Makefile). */
#define ONEDNN_SYMBOL "balise_onednn"
