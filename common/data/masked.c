/* Hides tokens of a text that a model must predict. */
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

void batch_mask_tokens(Batch *batch, const TokenSet *set, PhiloxKey key)
{
    for (int64_t i = 0; i < batch->count * batch->seq; i++) {
        const uint64_t sample = (uint64_t)batch->samples[i / batch->seq];
        const uint32_t position = (uint32_t)(i % batch->seq);
        const Philox4 draw = philox(key, (uint32_t)sample, (uint32_t)(sample >> 32), position, 0);
        const int32_t id = batch->ids[i];
        const bool chosen = can_be_chosen(set, id) && philox_uniform(draw.word[0]) < MASKED_SHARE;
        batch->targets[i] = chosen ? id : NO_ID;
        if (chosen)
            batch->ids[i] = hidden(set, id, draw.word[1], draw.word[2]);
    }
}

int64_t batch_targets(const Batch *batch)
{
    int64_t targets = 0;
    for (int64_t i = 0; i < batch->count * batch->seq; i++)
        targets += batch->targets[i] != NO_ID;
    return targets;
}
