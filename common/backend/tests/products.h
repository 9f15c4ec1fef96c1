/** @file
 * Calls of a linear layer's products, for tests that compare them in each precision: weight
 * [inner,columns] or its transpose, and a bias if `accumulate`. In 16 bits, both factors are rounded
 * first.
 */
#pragma once

#include "backend/tests/comparison.h"

/** Numbers in 16 bits, which the caller releases. */
static inline uint16_t *rounded_of(int64_t count, const float *x)
{
    uint16_t *y = tensor_memory((size_t)(count + 1) * sizeof *y);
    kernel_round(count, x, y);
    return y;
}

static inline uint16_t *reference_rounded_of(int64_t count, const double *x)
{
    uint16_t *y = malloc((size_t)(count + 1) * sizeof *y);
    reference_round(count, x, y);
    return y;
}

/** The numbers of the first two twins, in 16 bits. */
typedef struct Factors {
    uint16_t *a, *b;
    bool reference;
} Factors;

static inline Factors factors_of(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        return (Factors){reference_rounded_of(t[0].count, t[0].number),
                         reference_rounded_of(t[1].count, t[1].number), true};
    return (Factors){rounded_of(t[0].count, t[0].single), rounded_of(t[1].count, t[1].single),
                     false};
}

static inline void free_factors(Factors f)
{
    void (*const release)(void *) = f.reference ? free : tensor_memory_free;
    backend_wait();
    release(f.a);
    release(f.b);
}

static inline void call_linear_forward(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    const bool bias = c->accumulate;
    if (reference)
        reference_linear_forward(c->rows, c->inner, c->columns, t[0].number, t[1].number,
                                 bias ? t[2].number : NULL, t[3].number);
    else
        kernel_linear_forward(c->rows, c->inner, c->columns, t[0].single, t[1].single,
                              bias ? t[2].single : NULL, t[3].single);
}

static inline void call_linear_forward_16(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    const bool bias = c->accumulate;
    const Factors f = factors_of(c, reference);
    if (reference)
        reference_linear_forward_16(c->rows, c->inner, c->columns, f.a, f.b,
                                    bias ? t[2].number : NULL, in_double(t[3].number));
    else
        kernel_linear_forward_16(c->rows, c->inner, c->columns, f.a, f.b, bias ? t[2].single : NULL,
                                 in_full(t[3].single));
    free_factors(f);
}

static inline void call_linear_backward_input(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_linear_backward_input(c->rows, c->columns, c->inner, t[0].number, t[1].number,
                                        t[2].number, c->accumulate);
    else
        kernel_linear_backward_input(c->rows, c->columns, c->inner, t[0].single, t[1].single,
                                     t[2].single, c->accumulate);
}

static inline void call_linear_backward_input_16(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    const Factors f = factors_of(c, reference);
    if (reference)
        reference_linear_backward_input_16(c->rows, c->columns, c->inner, f.a, f.b, t[2].number,
                                           c->accumulate);
    else
        kernel_linear_backward_input_16(c->rows, c->columns, c->inner, f.a, f.b, t[2].single,
                                        c->accumulate);
    free_factors(f);
}

/** The sizes describe the result. */
static inline void call_backward_weight(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    if (reference)
        reference_linear_backward_weight(c->inner, c->columns, c->rows, t[0].number, t[1].number,
                                         t[2].number, c->accumulate);
    else
        kernel_linear_backward_weight(c->inner, c->columns, c->rows, t[0].single, t[1].single,
                                      t[2].single, c->accumulate);
}

static inline void call_backward_weight_16(const Comparison *c, bool reference)
{
    const Twin *t = c->twins;
    const Factors f = factors_of(c, reference);
    if (reference)
        reference_linear_backward_weight_16(c->inner, c->columns, c->rows, f.a, f.b, t[2].number,
                                            c->accumulate);
    else
        kernel_linear_backward_weight_16(c->inner, c->columns, c->rows, f.a, f.b, t[2].single,
                                         c->accumulate);
    free_factors(f);
}

/* The arguments of each product: random numbers; a result that is written, not added to, starts as
 * junk. */

static inline void compare_linear_forward(Comparison c, Call *call)
{
    add_twin(&c, c.rows * c.inner, NORMAL);
    add_twin(&c, c.columns * c.inner, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    compare(&c, call);
}

static inline void compare_linear_backward_input(Comparison c, Call *call)
{
    add_twin(&c, c.rows * c.inner, NORMAL);
    add_twin(&c, c.inner * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    compare(&c, call);
}

static inline void compare_backward_weight(Comparison c, Call *call)
{
    add_twin(&c, c.inner * c.rows, NORMAL);
    add_twin(&c, c.inner * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    compare(&c, call);
}
