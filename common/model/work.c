/* The floating-point operations that a step needs. */
#include <math.h>

#include "data/data.h"
#include "model/transformer.h"

double transformer_work(const TransformerConfig *config, int64_t rows, int64_t seq)
{
    const Architecture *is = config->architecture;
    const bool is_llama = config->kv_heads > 0;
    const double tokens = (double)rows * (double)seq, layers = config->layers;
    const double hidden = config->hidden, inner = config->inner ? config->inner : 4 * hidden;
    const double shared = is_llama ? (double)config->kv_heads / config->heads : 1;
    /* multiplications per token: with a block's weights, and in the two products of attention */
    const double keys_and_values = 2 * hidden * hidden * shared;
    const double weights =
        2 * hidden * hidden + keys_and_values + (is_llama ? 3 : 2) * hidden * inner;
    const double block = weights + 2 * (double)seq * hidden;
    if (!is->is_language)
        return 2 * tokens * (block * (3 * layers - 2) + 2 * keys_and_values);
    const double most = config->max_predictions ? config->max_predictions / (double)seq : 1,
                 share = is->is_masked ? fmin(MASKED_SHARE, most) : 1;
    const double transform = is->is_masked && config->token_types > 0 ? hidden * hidden : 0;
    const double head = (config->vocabulary * hidden + transform) * share;
    return 6 * tokens * (layers * block + head);
}
