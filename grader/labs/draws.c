#include "grader/labs/draws.h"

#include <stdlib.h>
#include <string.h>

#include "base/run.h"

typedef struct Drawn {
    PhiloxKey key;
    int64_t count;
    struct Drawn *next;
    double number[];
} Drawn;

static Drawn *kept;
static uint64_t kept_of;

static void forget_those_of_other_cases(uint64_t of_case)
{
    while (kept && kept_of != of_case) {
        Drawn *next = kept->next;
        free(kept);
        kept = next;
    }
    kept_of = of_case;
}

const double *drawn(uint64_t of_case, PhiloxKey key, int64_t count)
{
    forget_those_of_other_cases(of_case);
    for (const Drawn *d = kept; d; d = d->next)
        if (d->count == count && !memcmp(&d->key, &key, sizeof key))
            return d->number;
    const int64_t blocks = (count + 3) / 4;
    Drawn *d = malloc(sizeof *d + (size_t)(4 * blocks) * sizeof *d->number);
    if (!d)
        misuse("close other programs", "there is no memory for %lld numbers", (long long)count);
    *d = (Drawn){key, count, kept};
    for (int64_t block = 0; block < blocks; block++) {
        const Philox4 four = philox(key, (uint32_t)block, (uint32_t)(block >> 32), 0, 0);
        for (int i = 0; i < 4; i++)
            d->number[4 * block + i] = philox_uniform(four.word[i]);
    }
    kept = d;
    return d->number;
}
