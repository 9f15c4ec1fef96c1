/** @file
 * Calls of a linear layer's products, for tests that compare them in each precision: weight
 * [inner,columns] or its transpose, and a bias if `accumulate`.
 */
#pragma once

#include "backend/tests/comparison.h"

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

/* The arguments of each product: random numbers; a result that is written, not added to, starts as
 * junk. */

static inline void compare_linear_forward(Comparison c)
{
    add_twin(&c, c.rows * c.inner, NORMAL);
    add_twin(&c, c.columns * c.inner, NORMAL);
    add_twin(&c, c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, JUNK);
    compare(&c, call_linear_forward);
}

static inline void compare_linear_backward_input(Comparison c)
{
    add_twin(&c, c.rows * c.inner, NORMAL);
    add_twin(&c, c.inner * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    compare(&c, call_linear_backward_input);
}

static inline void compare_backward_weight(Comparison c)
{
    add_twin(&c, c.inner * c.rows, NORMAL);
    add_twin(&c, c.inner * c.columns, NORMAL);
    add_twin(&c, c.rows * c.columns, c.accumulate ? NORMAL : JUNK);
    compare(&c, call_backward_weight);
}
