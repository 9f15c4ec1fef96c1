#include <cblas.h>
#include <math.h>

#include "backend/backend.h"
#include "backend/cpu/kernel.h"
#include "backend/cpu/vector_math.h"

/** The softmax of each row of scores [S,S] over the keys that `mask` [S] does not hide, in place. */
KERNEL static void masked_softmax(int64_t positions, const int32_t *mask, real *scores)
{
    for (int64_t i = 0; i < positions; i++, scores += positions) {
#pragma omp simd
        for (int64_t j = 0; j < positions; j++)
            scores[j] = mask[j] ? scores[j] : -INFINITY;
        const real highest = highest_of(positions, scores);
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < positions; j++) {
            scores[j] = exp_nonpositive(scores[j] - highest); /* 0 for -∞ */
            sum += scores[j];
        }
        const real inverse = 1 / sum;
#pragma omp simd
        for (int64_t j = 0; j < positions; j++)
            scores[j] = mask[j] ? scores[j] * inverse : 0; /* not 0 · NaN */
    }
}

/** dp becomes ds = p (dp - sum of dp p over the row). */
KERNEL static void softmax_backward(int64_t positions, const real *p, real *dp)
{
    for (int64_t i = 0; i < positions; i++, p += positions, dp += positions) {
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t j = 0; j < positions; j++)
            sum += p[j] * dp[j];
#pragma omp simd
        for (int64_t j = 0; j < positions; j++)
            dp[j] = p[j] * (dp[j] - sum);
    }
}

/** One thread takes one head of one sample at a time. */
static int threads_for_heads(const AttentionShape *shape)
{
    const int64_t heads = shape->batch * shape->heads;
    const int threads = threads_for(heads * shape->positions * (shape->positions + shape->head_size));
    return heads < threads ? (int)heads : threads;
}

/** c [rows,columns] = factor · a · b of one head; each may be transposed by its flag. */
static void multiply(CBLAS_TRANSPOSE a_flag, CBLAS_TRANSPOSE b_flag, int64_t rows, int64_t columns,
                     int64_t inner, real factor, const real *a, int64_t a_stride, const real *b,
                     int64_t b_stride, real *c, int64_t c_stride)
{
    cblas_sgemm(CblasRowMajor, a_flag, b_flag, (int)rows, (int)columns, (int)inner, factor, a, (int)a_stride,
                b, (int)b_stride, 0, c, (int)c_stride);
}

void kernel_attention_forward(const AttentionShape *shape, const real *q, const real *k, const real *v,
                              const int32_t *mask, real *y, real *probabilities)
{
    const int64_t positions = shape->positions, size = shape->head_size, width = shape->heads * size;
    const int threads = threads_for_heads(shape);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const int64_t b = n / shape->heads, head = b * positions * width + n % shape->heads * size;
        real *p = probabilities + n * positions * positions;
        multiply(CblasNoTrans, CblasTrans, positions, positions, size, (real)shape->factor, q + head, width,
                 k + head, width, p, positions);
        masked_softmax(positions, mask + b * positions, p);
        multiply(CblasNoTrans, CblasNoTrans, positions, size, positions, 1, p, positions, v + head, width,
                 y + head, width);
    }
}

int64_t kernel_attention_backward_work(const AttentionShape *shape)
{
    return omp_get_max_threads() * shape->positions * shape->positions;
}

void kernel_attention_backward(const AttentionShape *shape, const real *q, const real *k, const real *v,
                               const real *probabilities, const real *dy, real *dq, real *dk, real *dv,
                               real *work)
{
    const int64_t positions = shape->positions, size = shape->head_size, width = shape->heads * size;
    const int threads = threads_for_heads(shape);
    const real factor = (real)shape->factor;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t n = 0; n < shape->batch * shape->heads; n++) {
        const int64_t head = n / shape->heads * positions * width + n % shape->heads * size;
        const real *p = probabilities + n * positions * positions;
        real *ds = work + omp_get_thread_num() * positions * positions;
        multiply(CblasNoTrans, CblasTrans, positions, positions, size, 1, dy + head, width, v + head, width,
                 ds, positions);
        softmax_backward(positions, p, ds);
        multiply(CblasNoTrans, CblasNoTrans, positions, size, positions, factor, ds, positions, k + head,
                 width, dq + head, width);
        multiply(CblasTrans, CblasNoTrans, positions, size, positions, factor, ds, positions, q + head, width,
                 dk + head, width);
        multiply(CblasTrans, CblasNoTrans, positions, size, positions, 1, p, positions, dy + head, width,
                 dv + head, width);
    }
}
