/* Hides tokens of a text that a model must predict. */
#include <stdlib.h>

#include "balise.h"
#include "data/internal.h"

static bool can_be_chosen(const TokenSet *set, int32_t id)
{
    const int32_t *special = set->special;
    return id != special[BEGIN_TOKEN] && id != special[END_TOKEN] && id != set->pad;
}

/* The token that the model sees in place of a chosen one. Some chosen tokens stay or become other
 * tokens, because inputs have no mask token after pretraining. */
static int32_t hidden(const TokenSet *set, int32_t id, uint32_t which, uint32_t other)
{
    const double uniform = philox_uniform(which);
    return uniform < 0.8   ? set->special[MASK_TOKEN]
           : uniform < 0.9 ? (int32_t)((uint64_t)other * (uint64_t)set->vocabulary >> 32)
                           : id;
}

static Philox4 draw_of(const Batch *batch, int64_t row, int64_t position, PhiloxKey key)
{
    const uint64_t sample = (uint64_t)batch->samples[row];
    return philox(key, (uint32_t)sample, (uint32_t)(sample >> 32), (uint32_t)position, 0);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A token of the row is chosen if its draw is below this number: MASKED_SHARE or, if that chooses
 * more than `most` tokens, a smaller one. `draws` is work space [seq]. */
static double limit_of(const Batch *batch, int64_t row, const TokenSet *set, PhiloxKey key,
                       int64_t most, double *draws)
{
    int64_t count = 0;
    for (int64_t s = 0; s < batch->seq; s++) {
        const double draw = philox_uniform(draw_of(batch, row, s, key).word[0]);
        if (can_be_chosen(set, batch->ids[row * batch->seq + s]) && draw < MASKED_SHARE)
            draws[count++] = draw;
    }
    if (count <= most)
        return MASKED_SHARE;
    qsort(draws, (size_t)count, sizeof *draws, by_size);
    return draws[most];
}

void batch_mask_tokens(Batch *batch, const TokenSet *set, PhiloxKey key, int64_t most)
{
    double *draws = malloc((size_t)batch->seq * sizeof *draws);
    for (int64_t row = 0; row < batch->count; row++) {
        const double limit = most ? limit_of(batch, row, set, key, most, draws) : MASKED_SHARE;
        for (int64_t s = 0; s < batch->seq; s++) {
            const Philox4 draw = draw_of(batch, row, s, key);
            const int64_t i = row * batch->seq + s;
            const int32_t id = batch->ids[i];
            const bool chosen = can_be_chosen(set, id) && philox_uniform(draw.word[0]) < limit;
            batch->targets[i] = chosen ? id : NO_ID;
            if (chosen)
                batch->ids[i] = hidden(set, id, draw.word[1], draw.word[2]);
        }
    }
    free(draws);
}

int64_t batch_targets(const Batch *batch)
{
    int64_t targets = 0;
    for (int64_t i = 0; i < batch->count * batch->seq; i++)
        targets += batch->targets[i] != NO_ID;
    return targets;
}
