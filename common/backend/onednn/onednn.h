/** @file
 * Matrix products by oneDNN, in bf16 and of large matrices: a shared object of its own, which the cpu backend opens where AMP=bf16 or
 * a wide model asks for it. To load oneDNN takes 26 ms, which no other run and no verdict shall pay for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/** c [rows,columns] = a [rows,inner] · b [inner,columns], row-major; a transposed matrix lies there as its transpose does. */
typedef struct Product {
    bool a_transposed, b_transposed; /**< what lies there is the transpose */
    bool bias;                       /**< [columns], added to each row */
    bool accumulate;                 /**< added to c */
    int64_t rows, columns, inner;    /**< of c; inner is what is summed over */
    int threads;                     /**< that the product may use */
} Product;

/** What the processor has for bf16. */
typedef enum Bf16Support {
    BF16_NONE, /**< oneDNN cannot multiply it here */
    BF16_SLOW, /**< no instructions for it: oneDNN imitates them */
    BF16_FAST, /**< AVX-512 BF16, AMX or the like */
} Bf16Support;

/** c [rows,columns] = a · b + factor · c, row-major, in single precision. Flags 'T': what lies there is the transpose; 'N'. Steps
 *  lead from row to row of what lies there. With as many threads as OpenMP would take; one in a parallel region. */
typedef void SingleMultiply(char a_flag, char b_flag, int64_t rows, int64_t columns, int64_t inner,
                            const float *a, int64_t a_step, const float *b, int64_t b_step,
                            float factor, float *c, int64_t c_step);

/** What the shared object gives. */
typedef struct OneDnn {
    char version[16]; /**< "2.6.3" */
    /** Has this processor instructions for bf16 (FAST), others that oneDNN imitates them with (SLOW), or neither? To be called first. */
    Bf16Support (*start)(void);
    /** a and b hold bf16 numbers, bias and c single precision. What oneDNN prepares is kept for products of other sizes. */
    void (*multiply)(const Product *product, const uint16_t *a, const uint16_t *b,
                     const float *bias, float *c);
    /** Is oneDNN's single precision better than a BLAS for large matrices here? */
    bool (*has_avx512)(void);
    SingleMultiply *multiply_single; /**< products in single precision */
} OneDnn;

/** The name of the OneDnn in the shared object, which is ONEDNN_FILE (see the Makefile). */
#define ONEDNN_SYMBOL "balise_onednn"
