/** @file
 * Runs a kernel and its definition on the same numbers, and compares them. The tolerance is
 * measured on the case itself: 8 times the largest error of three emulations in single precision,
 * each with its own order of summation, plus half a unit in the last place of the largest result.
 */
#pragma once

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/tests/twin.h"

/** Memory that kernels and the host can access; every call waits for its kernel. */
static inline void *tensor_memory(size_t bytes)
{
    backend_wait_always(true);
    void *memory = backend_memory((int64_t)bytes, HOST_MEMORY);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static inline void tensor_memory_free(void *memory)
{
    backend_memory_free(memory, HOST_MEMORY);
}

/** Do this backend's kernels run on the host? */
static inline bool kernels_run_on_the_host(void)
{
    return backend_looks_for_zeros();
}

/** A tensor that a kernel reads or writes, in both versions. */
typedef struct Twin {
    int64_t count;
    float *start;   /**< contents before each run */
    float *single;  /**< the backend's result */
    double *number; /**< the reference's result in the current run */
    double *exact;  /**< the reference's result in double precision */
} Twin;

enum { TWINS = 10, NORMAL, UNIFORM, JUNK };

typedef struct Comparison {
    const char *kernel;
    int64_t rows, columns, inner; /**< the sizes of the current kernel */
    bool accumulate;
    double bound; /**< added to the tolerance: the error of elementary functions */
    const int32_t *ids;
    const uint32_t *kept; /**< the bits of dropout */
    const AttentionShape *shape;
    const Rotary *rotary;
    Twin twins[TWINS];
    int twin_count;
} Comparison;

/** Adds a tensor. `content` is NORMAL, UNIFORM (in [0, 1)) or JUNK (NaN, for a result). */
static inline Twin *add_twin(Comparison *comparison, int64_t count, int content)
{
    ck_assert_int_lt(comparison->twin_count, TWINS);
    const PhiloxKey key = philox_key(7, comparison->kernel, (uint64_t)comparison->twin_count);
    Twin *twin = &comparison->twins[comparison->twin_count++];
    const size_t n = (size_t)(count > 0 ? count : 1);
    *twin = (Twin){count, malloc(n * sizeof(float)), tensor_memory(n * sizeof(float)),
                   malloc(n * sizeof(double)), malloc(n * sizeof(double))};
    for (int64_t i = 0; i < count; i++)
        twin->start[i] = content == NORMAL    ? (float)philox_normal_at(key, (uint64_t)i)
                         : content == UNIFORM ? (float)philox_uniform_at(key, (uint64_t)i)
                                              : NAN;
    return twin;
}

static inline void free_twins(Comparison *comparison)
{
    for (int t = 0; t < comparison->twin_count; t++) {
        free(comparison->twins[t].start);
        tensor_memory_free(comparison->twins[t].single);
        free(comparison->twins[t].number);
        free(comparison->twins[t].exact);
    }
}

/** Calls the kernel of the reference backend on `number`, or the tested kernel on `single`. */
typedef void Call(const Comparison *comparison, bool reference);

static inline void run(Comparison *comparison, Call *call, bool reference)
{
    for (int t = 0; t < comparison->twin_count; t++) {
        Twin *twin = &comparison->twins[t];
        for (int64_t i = 0; i < twin->count; i++)
            twin->number[i] = twin->single[i] = twin->start[i];
    }
    call(comparison, reference);
}

/** The largest error of the emulations for one tensor, ignoring NaN in the exact result. */
static inline double emulation_error(const Twin *twin)
{
    double error = 0;
    for (int64_t i = 0; i < twin->count; i++)
        if (!isnan(twin->exact[i]))
            error = fmax(error, fabs(twin->number[i] - twin->exact[i]));
    return error;
}

static inline void compare_twin(const Comparison *comparison, int t, const float *single,
                                double error)
{
    const Twin *twin = &comparison->twins[t];
    double highest = 0;
    for (int64_t i = 0; i < twin->count; i++)
        highest = isfinite(twin->exact[i]) ? fmax(highest, fabs(twin->exact[i])) : highest;
    const double tolerance = 8 * error + 0x1p-24 * highest + comparison->bound;
    for (int64_t i = 0; i < twin->count; i++) {
        const bool both_nan = isnan(twin->exact[i]) && isnan(single[i]);
        const bool equal = (double)single[i] == twin->exact[i]; /* infinities too */
        if (!both_nan && !equal && !(fabs(single[i] - twin->exact[i]) <= tolerance))
            ck_abort_msg(
                "%s, rows %ld, columns %ld, inner %ld: tensor %d, number %ld is %.9g instead of %.9g "
                "(tolerance %.3g)",
                comparison->kernel, (long)comparison->rows, (long)comparison->columns,
                (long)comparison->inner, t, (long)i, (double)single[i], twin->exact[i], tolerance);
    }
}

/** Runs both kernels and compares every tensor, including arguments, which must not change; then
 *  frees the tensors. */
static inline void compare(Comparison *comparison, Call *call)
{
    float *single[TWINS];
    double error[TWINS] = {0};
    run(comparison, call, false);
    for (int t = 0; t < comparison->twin_count; t++) {
        const size_t bytes = (size_t)comparison->twins[t].count * sizeof(float);
        single[t] = malloc(bytes + 1);
        memcpy(single[t], comparison->twins[t].single, bytes);
    }
    for (uint64_t seed = 0; seed <= 3; seed++) {
        reference_round_like_fp32(seed);
        run(comparison, call, true);
        for (int t = 0; t < comparison->twin_count; t++) {
            Twin *twin = &comparison->twins[t];
            if (seed == 0)
                memcpy(twin->exact, twin->number, (size_t)twin->count * sizeof(double));
            error[t] = fmax(error[t], emulation_error(twin));
        }
    }
    reference_round_like_fp32(0);
    for (int t = 0; t < comparison->twin_count; t++) {
        compare_twin(comparison, t, single[t], error[t]);
        free(single[t]);
    }
    free_twins(comparison);
}

/** The sizes with which every kernel is tested: odd ones, sizes of the model, and one that is split
 *  over several threads. */
static const int64_t ROWS[] = {1, 3, 17, 301};
static const int64_t COLUMNS[] = {5, 1, 24, 36, 127, 128, 768};
enum { ROW_SIZES = 4, COLUMN_SIZES = 7, SIZES = ROW_SIZES * COLUMN_SIZES };

/** Patterns of nonzero rows: the first position of each text, texts followed by padding, none,
 *  every other position, only the last row. */
enum { ZERO_PATTERNS = 5 };
static inline bool is_in_use(int pattern, int64_t rows, int64_t positions, int64_t row)
{
    const int64_t position = row % positions;
    return pattern == 0   ? position == 0
           : pattern == 1 ? 3 * position < positions + row / positions
           : pattern == 2 ? false
           : pattern == 3 ? position % 2 == 0
                          : row == rows - 1;
}

/** Sets the rows of a tensor that are not in use to zero, and some of their numbers to -0. */
static inline void make_zeros(Twin *twin, int pattern, int64_t rows, int64_t positions)
{
    const int64_t columns = twin->count / rows;
    for (int64_t i = 0; i < twin->count; i++)
        if (!is_in_use(pattern, rows, positions, i / columns))
            twin->start[i] = i % 3 == 1 ? -0.0f : 0.0f;
}

static inline Comparison comparison_of(const char *kernel, int size)
{
    return (Comparison){.kernel = kernel,
                        .rows = ROWS[size / COLUMN_SIZES],
                        .columns = COLUMNS[size % COLUMN_SIZES]};
}

/* Fixtures: every kernel is tested with one thread and with two. */
static inline void one_thread(void)
{
    backend_set_threads(1);
}

static inline void two_threads(void)
{
    backend_set_threads(2);
}

/** Products as in a wide model: an unchecked fixture, which loads the library once. */
static inline void wide_model(void)
{
    Problem problem;
    ck_assert(backend_set_products(FP32, 768, &problem));
}

static inline void back_to_fp32(void)
{
    Problem problem;
    backend_set_products(FP32, 0, &problem);
}
