/* Emulates single precision; draws the order of each sum. */
#include "backend/reference/rounding.h"

#include <string.h>

#include "backend/reference/arithmetic.h"

bool reference_rounds;
static uint64_t seed, calls;

void reference_round_like_fp32(uint64_t order_seed)
{
    reference_rounds = order_seed != 0;
    seed = order_seed;
    calls = 0;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

real reference_inexact(real y)
{
    uint64_t bits;
    if (!reference_rounds)
        return y;
    memcpy(&bits, &y, sizeof bits);
    bits = (bits ^ seed) * 0x9E3779B97F4A7C15u; /* mixes like a step of splitmix64 */
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    const double off = (double)(bits >> 11) * 0x1p-52 - 1; /* from -1 to 1 */
    return (real)(float)(y * (1 + off * 0x1p-23));
}

Order reference_order(int64_t count)
{
    if (!reference_rounds || count < 2)
        return (Order){count, 0, 1, false};
    const PhiloxKey key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    const Philox4 drawn = philox(key, (uint32_t)calls, (uint32_t)(calls >> 32), 0, 0);
    calls++;
    Order order = {count, drawn.word[0] % count, 1 + drawn.word[1] % (count - 1),
                   drawn.word[2] & 1};
    while (greatest_common_divisor(count, order.stride) != 1)
        order.stride++; /* ends at count - 1 at the latest, which is coprime to count */
    return order;
}

real reference_dot(Order order, const real *a, int64_t a_stride, const real *b, int64_t b_stride)
{
    real sum = 0;
    for (int64_t n = 0, i = order.first; n < order.count; n++, i = order_next(order, i))
        sum = plus_product(order, sum, a[i * a_stride], b[i * b_stride]);
    return sum;
}
