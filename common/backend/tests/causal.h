/** @file
 * Tests that causal attention must pass in every backend. The test programs in single precision
 * include this file, and so does the reference backend's, in double precision.
 */
#pragma once

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"

enum { Q, K, V, DY, Y, DQ, DK, DV, MATRICES };
enum { CAUSAL_SHAPES = 6, CUTS = 2, PADDINGS = 3 };

/** Attention with its arguments and results, which kernels and the host can access. */
typedef struct Causal {
    AttentionShape shape;
    int64_t width, count[MATRICES]; /**< A·D; numbers of each matrix */
    real *x[MATRICES], *kept, *work;
    int32_t *mask; /**< or NULL */
} Causal;

static inline void *shared_memory(int64_t bytes)
{
    void *memory = backend_memory(bytes, HOST_MEMORY);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

/** Set by a test case that cannot run here. */
static bool causal_skipped;

/** Shape i. The fifth takes several tiles of queries on each backend; the heads of the last one are
 *  too large for tensor cores. */
static inline AttentionShape causal_shape(int i)
{
    static const int64_t batch[] = {1, 2, 3, 1, 2, 1}, positions[] = {1, 5, 33, 64, 150, 40},
                         heads[] = {1, 2, 2, 1, 1, 1}, sizes[] = {1, 5, 16, 64, 6, 130};
    return (AttentionShape){
        batch[i], positions[i], heads[i], sizes[i], 1 / sqrt((double)sizes[i]), true, 0};
}

static inline void fill_matrix(Causal *c, int matrix, const char *name)
{
    const PhiloxKey key = philox_key(7, name, (uint64_t)matrix);
    for (int64_t i = 0; i < c->count[matrix]; i++)
        c->x[matrix][i] = (real)philox_normal_at(key, (uint64_t)i);
}

/** Fills the mask. `padding` is 0 (none, no mask), 1 (on the left, so some queries see no key) or 2
 *  (on the right). */
static inline void fill_padding(Causal *c, int padding)
{
    const int64_t keys = attention_keys(&c->shape);
    for (int64_t i = 0; padding > 0 && i < c->shape.batch * keys; i++) {
        const int64_t key = i % keys, sample = i / keys;
        c->mask[i] = padding == 1 ? key > sample || key == keys - 1
                                  : key == 0 || 4 * key < 3 * keys - sample;
    }
}

static inline Causal causal_of(AttentionShape shape, int padding)
{
    Causal c = {.shape = shape, .width = shape.heads * shape.head_size};
    const int64_t rows = shape.batch * shape.heads * shape.positions,
                  keys = shape.batch * attention_keys(&shape);
    for (int i = 0; i < MATRICES; i++) {
        const bool of_keys = i == K || i == V || i == DK || i == DV;
        c.count[i] = (of_keys ? keys : shape.batch * shape.positions) * c.width;
        c.x[i] = shared_memory(c.count[i] * (int64_t)sizeof(real));
        fill_matrix(&c, i, "causal");
    }
    c.kept = shared_memory(2 * rows * (int64_t)sizeof(real));
    c.work = shared_memory(kernel_attention_work(&shape) * (int64_t)sizeof(real));
    c.mask = padding ? shared_memory(keys * (int64_t)sizeof(int32_t)) : NULL;
    fill_padding(&c, padding);
    return c;
}

static inline void causal_free(Causal *c)
{
    for (int i = 0; i < MATRICES; i++)
        backend_memory_free(c->x[i], HOST_MEMORY);
    backend_memory_free(c->kept, HOST_MEMORY);
    backend_memory_free(c->work, HOST_MEMORY);
    backend_memory_free(c->mask, HOST_MEMORY);
}

static inline void causal_run(Causal *c)
{
    real *sums = c->kept + c->shape.batch * c->shape.heads * c->shape.positions;
    backend_wait_always(true);
    kernel_attention_forward(&c->shape, in_full(c->x[Q]), in_full(c->x[K]), in_full(c->x[V]),
                             c->mask, in_full(c->x[Y]), c->kept, sums, c->work);
    if (c->shape.past == 0)
        kernel_attention_backward(&c->shape, in_full(c->x[Q]), in_full(c->x[K]), in_full(c->x[V]),
                                  c->mask, c->kept, sums, in_full(c->x[DY]), in_full(c->x[DQ]),
                                  in_full(c->x[DK]), in_full(c->x[DV]), c->work);
}

/** Fails if any bit of the results at positions 0..s differs. */
static inline void must_be_the_same_before(const Causal *a, const Causal *b, int64_t s)
{
    const int64_t positions = a->shape.positions, past = (s + 1) * a->width;
    for (int i = Y; i < MATRICES; i++)
        for (int64_t sample = 0; sample < a->shape.batch; sample++) {
            const int64_t at = sample * positions * a->width;
            ck_assert_msg(memcmp(a->x[i] + at, b->x[i] + at, (size_t)past * sizeof(real)) == 0,
                          "matrix %d of sample %ld depends on what comes after position %ld", i,
                          (long)sample, (long)s);
        }
}

/** Replaces the contents of q, k, v and the mask after position s. */
static inline void change_future(Causal *c, int64_t s)
{
    const int64_t positions = c->shape.positions;
    for (int i = Q; i <= V; i++)
        for (int64_t n = 0; n < c->count[i]; n++)
            if (n / c->width % positions > s)
                c->x[i][n] = (real)(n % 7 - 3) * 1000;
    for (int64_t n = 0; c->mask && n < c->shape.batch * positions; n++)
        if (n % positions > s)
            c->mask[n] = !c->mask[n];
}

static inline void clear_gradient_after(Causal *c, int64_t s)
{
    for (int64_t n = 0; n < c->count[DY]; n++)
        if (n / c->width % c->shape.positions > s)
            c->x[DY][n] = 0;
}

START_TEST(the_future_changes_no_result_and_no_gradient_of_the_past)
{
    const AttentionShape shape = causal_shape(_i / PADDINGS);
    if (causal_skipped)
        return;
    for (int cut = 0; cut < CUTS; cut++) {
        const int64_t s = (shape.positions - 1) * cut / CUTS;
        Causal a = causal_of(shape, _i % PADDINGS), b = causal_of(shape, _i % PADDINGS);
        clear_gradient_after(&a, s);
        clear_gradient_after(&b, s);
        change_future(&b, s);
        causal_run(&a);
        causal_run(&b);
        must_be_the_same_before(&a, &b, s);
        for (int i = DQ; i <= DV; i++)
            for (int64_t n = 0; n < a.count[i]; n++)
                ck_assert(n / a.width % shape.positions <= s || a.x[i][n] == 0);
        causal_free(&a);
        causal_free(&b);
    }
}
END_TEST

START_TEST(queries_that_see_no_key_have_zeros_and_no_gradient)
{
    if (causal_skipped)
        return;
    Causal c = causal_of(causal_shape(_i), 1);
    const int64_t positions = c.shape.positions;
    causal_run(&c);
    for (int64_t n = 0; n < c.count[Y]; n++) {
        const int64_t sample = n / c.width / positions, s = n / c.width % positions;
        const bool sees_a_key = s > sample || s == positions - 1;
        ck_assert(isfinite(c.x[Y][n]) && isfinite(c.x[DQ][n]));
        ck_assert((c.x[Y][n] != 0) == sees_a_key);
        ck_assert(sees_a_key || (c.x[DQ][n] == 0 && c.x[DK][n] == 0 && c.x[DV][n] == 0));
    }
    causal_free(&c);
}
END_TEST

/** Copies rows first.. of each sample. */
static inline void copy_rows_from(const Causal *from, Causal *to, int matrix, int64_t first)
{
    const int64_t rows = to->count[matrix] / to->width / to->shape.batch,
                  all = from->count[matrix] / from->width / from->shape.batch;
    for (int64_t b = 0; b < to->shape.batch; b++)
        memcpy(to->x[matrix] + b * rows * to->width,
               from->x[matrix] + (b * all + first) * from->width,
               (size_t)(rows * to->width) * sizeof(real));
}

START_TEST(queries_with_past_keys_have_the_rows_of_the_whole)
{
    const AttentionShape shape = causal_shape(_i / PADDINGS);
    if (causal_skipped)
        return;
    Causal all = causal_of(shape, _i % PADDINGS);
    causal_run(&all);
    for (int64_t past = shape.positions - 1; past > 0; past /= 3) {
        AttentionShape last = shape;
        last.positions = shape.positions - past;
        last.past = past;
        Causal some = causal_of(last, _i % PADDINGS);
        copy_rows_from(&all, &some, Q, past);
        copy_rows_from(&all, &some, K, 0);
        copy_rows_from(&all, &some, V, 0);
        causal_run(&some);
        for (int64_t b = 0; b < shape.batch; b++)
            for (int64_t n = 0; n < last.positions * all.width; n++) {
                const double y = (double)some.x[Y][b * last.positions * all.width + n],
                             row = (double)all.x[Y][(b * shape.positions + past) * all.width + n];
                ck_assert_msg(fabs(y - row) <= 2e-6, "past %ld: %.9g instead of %.9g", (long)past,
                              y, row);
            }
        causal_free(&some);
    }
    causal_free(&all);
}
END_TEST

static inline TCase *causal_tests(const char *name, void (*up)(void), void (*down)(void))
{
    TCase *tests = tcase_create(name);
    tcase_add_checked_fixture(tests, up, down);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_future_changes_no_result_and_no_gradient_of_the_past, 0,
                        CAUSAL_SHAPES * PADDINGS);
    tcase_add_loop_test(tests, queries_that_see_no_key_have_zeros_and_no_gradient, 0,
                        CAUSAL_SHAPES);
    tcase_add_loop_test(tests, queries_with_past_keys_have_the_rows_of_the_whole, 0,
                        CAUSAL_SHAPES * PADDINGS);
    return tests;
}
