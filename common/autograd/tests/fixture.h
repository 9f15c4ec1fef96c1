/** @file
 * A tape for testing operations: on one rank, or on one of several that never communicate.
 * Uninitialised memory is NaN.
 */
#pragma once

#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "autograd/operations.h"
#include "tests/run_for_tests.h"
#include "model/model.h"

enum { MOST_SAMPLES = 8 };

static Pool *pool;
static Mesh mesh;
static Tape *tape;
static const int64_t SAMPLES[MOST_SAMPLES] = {11, 3, 70000000000, 4, 0, 8, 12, 1};

static inline void next_step(int64_t step)
{
    tape_reset(
        tape,
        (TapeBatch){.seed = 7, .step = step, .count = 64, .samples = SAMPLES, .training = true});
}

/** Acts as rank `rank` of `ranks`. Do not call anything that communicates. */
static inline void rank_up(int rank, int ranks)
{
    expect_nothing();
    mesh = (Mesh){.tp_rank = rank, .tp_degree = ranks, .dp_degree = 1};
    pool = pool_new(0, true);
    tape = tape_new(pool, &mesh);
    next_step(1);
}

static inline void tape_up(void)
{
    rank_up(0, 1);
}

static inline void tape_down(void)
{
    tape_free(tape);
    for (int i = 0; i < CATEGORIES; i++)
        ck_assert_int_eq(memory_use().now[i], 0); /* whatever a test did, everything is freed */
    pool_free(pool);
}

static inline void fill_normal(const char *name, int64_t count, real *numbers)
{
    PhiloxKey key = philox_key(3, name, 0);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (real)philox_normal_at(key, (uint64_t)i);
}

/** A tensor of normal numbers that depend on its name. */
static inline Tensor *normal(const char *name, Shape shape, Placement placement)
{
    real numbers[4096];
    ck_assert_int_le(shape_count(shape), 4096);
    fill_normal(name, shape_count(shape), numbers);
    return tape_reals(tape, shape, placement, numbers, true);
}

/** Fails unless x holds `expected` up to `tolerance`; NaN fails. */
static inline void assert_close(const char *what, int64_t count, const real *x,
                                const real *expected, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)x[i] - (double)expected[i]) <= tolerance))
            ck_abort_msg("%s: number %ld is %.12g instead of %.12g", what, (long)i, (double)x[i],
                         (double)expected[i]);
}
