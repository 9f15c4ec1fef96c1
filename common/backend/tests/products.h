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

/** A twin's numbers as a factor, in 16 bits if `in_16_bits`. */
static inline Numbers factor_of(const Twin *t, bool in_16_bits)
{
    if (!in_16_bits)
        return in_full(t->single);
    return (Numbers){.halves = rounded_of(t->count, t->single)};
}

static inline DoubleNumbers reference_factor_of(const Twin *t, bool in_16_bits)
{
    if (!in_16_bits)
        return in_double(t->number);
    return (DoubleNumbers){.halves = reference_rounded_of(t->count, t->number)};
}

/** The kernel with this result. */
typedef enum LinearResult { OF_Y, OF_DX, OF_DWEIGHT } LinearResult;

/** The sizes of a Comparison describe the result. */
static inline void call_linear(const Comparison *c, bool reference, LinearResult of,
                               bool in_16_bits)
{
    const Twin *t = c->twins;
    if (reference) {
        const DoubleNumbers a = reference_factor_of(&t[0], in_16_bits),
                            b = reference_factor_of(&t[1], in_16_bits);
        if (of == OF_Y)
            reference_linear_forward(c->rows, c->inner, c->columns, a, b,
                                     c->accumulate ? t[2].number : NULL, in_double(t[3].number));
        else if (of == OF_DX)
            reference_linear_backward_input(c->rows, c->columns, c->inner, a, b,
                                            in_double(t[2].number), c->accumulate);
        else
            reference_linear_backward_weight(c->inner, c->columns, c->rows, a, b, t[2].number,
                                             c->accumulate);
        free(a.halves);
        free(b.halves);
        return;
    }
    const Numbers a = factor_of(&t[0], in_16_bits), b = factor_of(&t[1], in_16_bits);
    if (of == OF_Y)
        kernel_linear_forward(c->rows, c->inner, c->columns, a, b,
                              c->accumulate ? t[2].single : NULL, in_full(t[3].single));
    else if (of == OF_DX)
        kernel_linear_backward_input(c->rows, c->columns, c->inner, a, b, in_full(t[2].single),
                                     c->accumulate);
    else
        kernel_linear_backward_weight(c->inner, c->columns, c->rows, a, b, t[2].single,
                                      c->accumulate);
    backend_wait();
    tensor_memory_free(a.halves);
    tensor_memory_free(b.halves);
}

static inline void call_linear_forward(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_Y, false);
}

static inline void call_linear_forward_16(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_Y, true);
}

static inline void call_linear_backward_input(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_DX, false);
}

static inline void call_linear_backward_input_16(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_DX, true);
}

static inline void call_backward_weight(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_DWEIGHT, false);
}

static inline void call_backward_weight_16(const Comparison *c, bool reference)
{
    call_linear(c, reference, OF_DWEIGHT, true);
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
