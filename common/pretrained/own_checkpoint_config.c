/* The sizes of the model in a checkpoint of the kit. They are in a file of their own because
 * build/checkpoint links no model. */
#include "base/language.h"
#include "pretrained/internal.h"

/* An index without a checksum may hold any numbers. */
static bool has_possible_sizes(const CheckpointIndex *index)
{
    static const Fitting of_the_model[] = {FIT_LAYERS,     FIT_HIDDEN,  FIT_HEADS,
                                           FIT_VOCABULARY, FIT_CLASSES, FIT_POSITIONS,
                                           FIT_KV_HEADS,   FIT_INNER,   FIT_SEQ};
    const int64_t *sizes = index->fitting;
    for (size_t i = 0; i < sizeof of_the_model / sizeof *of_the_model; i++)
        if (sizes[of_the_model[i]] < 0 || sizes[of_the_model[i]] > 1 << 24)
            return false;
    return sizes[FIT_LAYERS] > 0 && sizes[FIT_LAYERS] <= index->count && sizes[FIT_HEADS] > 0 &&
           sizes[FIT_HIDDEN] > 0 && sizes[FIT_HIDDEN] % sizes[FIT_HEADS] == 0 &&
           sizes[FIT_VOCABULARY] > 0 && index->dropout < 1;
}

bool own_checkpoint_config(const SavedModel *saved, TransformerConfig *config, Problem *problem)
{
    const CheckpointIndex *index = &saved->index;
    const int64_t *sizes = index->fitting;
    const SavedParameter *types = checkpoint_index_find(index, "token_types.weight"),
                         *query = checkpoint_index_find(index, "blocks.0.attention.query.bias"),
                         *output = checkpoint_index_find(index, "blocks.0.attention.output.bias");
    if (!has_possible_sizes(index))
        return problem_set(problem, saved->folder, N_("use another copy of the checkpoint"),
                           "the checkpoint's index gives invalid sizes for the model");
    *config = (TransformerConfig){.vocabulary = (int)sizes[FIT_VOCABULARY],
                                  .hidden = (int)sizes[FIT_HIDDEN],
                                  .layers = (int)sizes[FIT_LAYERS],
                                  .heads = (int)sizes[FIT_HEADS],
                                  .classes = (int)sizes[FIT_CLASSES],
                                  .positions = (int)sizes[FIT_POSITIONS],
                                  .kv_heads = (int)sizes[FIT_KV_HEADS],
                                  .inner = (int)sizes[FIT_INNER],
                                  .own_head = sizes[FIT_OWN_HEAD] != 0,
                                  .qkv_bias = query,
                                  .output_bias = query && output,
                                  .token_types = types ? (int)types->shape.size[0] : 0,
                                  .dropout = index->dropout < 0 ? -1 : index->dropout,
                                  .epsilon = index->epsilon,
                                  .rotary = index->rotary};
    return true;
}
