/* The order of the rows in an epoch. */
#include "balise.h"
#include "base/philox.h"

/* An unbiased number in [0, count): draws again if a draw is not below the largest multiple of
 * count that is at most 2^64. */
static uint64_t draw_below(PhiloxKey key, uint64_t index, uint64_t count)
{
    uint64_t reject = (UINT64_MAX % count + 1) % count; /* 2^64 mod count */
    for (uint32_t attempt = 0;; attempt++) {
        Philox4 r = philox(key, (uint32_t)index, (uint32_t)(index >> 32), attempt, 0);
        uint64_t x = (uint64_t)r.word[1] << 32 | r.word[0];
        if (x <= UINT64_MAX - reject)
            return x % count;
    }
}

/* Fisher-Yates. */
void permutation(int64_t *order, int64_t rows, uint64_t seed, int64_t epoch)
{
    PhiloxKey key = philox_key(seed, "permutation", (uint64_t)epoch);
    for (int64_t i = 0; i < rows; i++)
        order[i] = i;
    for (int64_t i = rows - 1; i > 0; i--) {
        int64_t j = (int64_t)draw_below(key, (uint64_t)i, (uint64_t)i + 1);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
