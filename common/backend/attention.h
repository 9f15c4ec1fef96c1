/** @file
 * The kernels of attention: a part of backend.h, whose rules hold here too.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cxx.h"
#include "base/real.h"

BEGIN_C

/* ---- rotary positions (Su et al., arXiv:2104.09864) ------------------------------------------------------ */

/** How fast the pairs turn; see rotary_speed(). In config.json, rope_scaling has these names. */
typedef struct RotaryAngles {
    double theta;  /**< the base; usually 10000 */
    double factor; /**< divides speeds, for longer texts than before; 0: there is no scaling */
    /** 0 with "linear" (Chen et al., arXiv:2306.15595), which divides all speeds. With "llama3"
     *  (arXiv:2407.21783, section 3.4.2): the positions of the model before scaling. */
    int64_t original;
    /** With "llama3": a pair that turns fewer than `low` times within the original positions is
     *  divided by factor; one that turns more than `high` times is not; those between, in part */
    double low, high;
} RotaryAngles;

/** The sizes of rotary positions on this rank. */
typedef struct Rotary {
    int64_t batch, positions; /**< B and S */
    int64_t heads, head_size; /**< A and D (even), of the heads of this rank */
    int64_t first;            /**< the position of row 0 of each sample */
    RotaryAngles angles;      /**< how fast the pairs turn */
} Rotary;

/** The angle in radians by which pair k of each head turns from one position to the next: without
 *  scaling, \f$ \theta^{-2k/D} \f$. */
HOST_AND_DEVICE static inline double rotary_speed(const Rotary *rotary, int64_t k)
{
    const RotaryAngles *a = &rotary->angles;
    const double speed = pow(a->theta, -2 * (double)k / (double)rotary->head_size),
                 turns = (double)a->original * speed / (2 * M_PI);
    if (a->factor == 0)
        return speed;
    /* 0.0 and 1.0: C++ has fmax(double, int) only on the host */
    const double kept =
        a->original ? fmin(fmax((turns - a->low) / (a->high - a->low), 0.0), 1.0) : 0;
    return kept * speed + (1 - kept) * speed / a->factor;
}

/** Rotates each pair (k, k + D/2) of each head of x [B,S,A·D] by the angle of its position:
 *  \f[ y_k = x_k \cos\alpha - x_{k+D/2} \sin\alpha, \qquad
 *      y_{k+D/2} = x_{k+D/2} \cos\alpha + x_k \sin\alpha, \qquad
 *      \alpha = (\mathrm{first} + s)\,\mathrm{speed}_k \f]
 *  Computes the angle, its cosine and its sine in double precision. If `back`, the angle is -α: the
 *  inverse rotation, which computes dx from dy. y may be x. */
void kernel_rotary(const Rotary *rotary, bool back, Numbers x, Numbers y);

/* ---- attention ----------------------------------------------------------------------------------------- */

/** The sizes of attention on this rank. Each sample has past + positions keys. */
typedef struct AttentionShape {
    int64_t batch, positions, heads, head_size; /**< B, S, and A and D of this rank's heads */
    double factor;                              /**< scores are factor · q · k; usually 1/√D */
    bool causal;                                /**< does query s see only keys 0..past + s? */
    int64_t past; /**< cached keys before the first query's own; 0 in backward, and if not causal */
} AttentionShape;

/** T, the number of keys of each sample. */
HOST_AND_DEVICE static inline int64_t attention_keys(const AttentionShape *shape)
{
    return shape->past + shape->positions;
}

/** For each sample and head (Vaswani et al., arXiv:1706.03762, equation 1)
 *  \f[ y = \mathrm{softmax} \left( \mathrm{factor} \cdot q\,k^T \right) v \f]
 *  q, y [B,S,A·D]; k, v [B,T,A·D]; mask [B,T] is 0 where a key is hidden: its probability is
 *  exactly zero. If mask is NULL, no key is hidden. A query that sees no key, such as a causal one
 *  in padding on the left, has y = 0. For each row of scores [B,A,S], keeps the largest visible
 *  score and the sum of exp(score - highest) for backward (0 and 1 if no key is visible). `work`
 *  has room for kernel_attention_work() numbers. */
void kernel_attention_forward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                              const int32_t *mask, Numbers y, real *highest, real *sums,
                              real *work);

/** Computes dq, dk and dv from forward's arguments and kept numbers; recomputes the scores. With
 *  forward's probabilities p, and ∘ for element-wise products:
 *  \f[ dv = p^T dy, \qquad ds = p \circ \left( dy\,v^T - \mathrm{rowsum}(dy \circ y) \right), \qquad
 *      dq = \mathrm{factor} \cdot ds\,k, \qquad dk = \mathrm{factor} \cdot ds^T q \f] */
void kernel_attention_backward(const AttentionShape *shape, Numbers q, Numbers k, Numbers v,
                               const int32_t *mask, const real *highest, const real *sums,
                               Numbers dy, Numbers dq, Numbers dk, Numbers dv, real *work);

enum { LARGEST_HEAD_16 = 128 /**< of attention that a GPU multiplies in 16 bits */ };

/** Does attention of this shape multiply in 16 bits? If so, all matrices of the kernels above must be
 *  in 16 bits, otherwise reals. Probabilities and the gradients of scores are then rounded before
 *  they are multiplied; scores, softmax and sums stay in single precision. Only the precision of
 *  products and the shape decide, so the answer is the same in both passes and in every layout. The
 *  reference backend is exact: its attention is always in `real`. */
#ifdef BALISE_DOUBLE
#define kernel_attention_is_in_16_bits(shape) false
#else
bool kernel_attention_is_in_16_bits(const AttentionShape *shape);
#endif

/** The size of the work space that forward and backward need, in numbers. */
int64_t kernel_attention_work(const AttentionShape *shape);

END_C
