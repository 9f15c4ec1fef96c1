/** @file
 * Generates a text with a trained language model, token by token.
 */
#pragma once

#include "data/data.h"
#include "model/stage.h"
#include "pretrained/pretrained.h"
#include "train/config.h"

/** The options of build/story. Strings belong to the arguments. */
typedef struct StoryConfig {
    TrainConfig run;       /**< the ranks, the grid, threads and the seed; the rest is unused */
    const char *model;     /**< file or folder of the weights, without hf:; see pretrained.h */
    const char *tokenizer; /**< file or folder; NULL: the recorded one, or beside the weights */
    const char *prompt;    /**< how the text begins; may be "" */
    int64_t steps;         /**< tokens of the text, including those of the prompt; 0: the default */
    double temperature;    /**< divides the logits; 0: always the most probable token */
    double top_p;          /**< samples from the fewest tokens whose probabilities reach this sum */
} StoryConfig;

/** Fills `config` from the arguments. Returns false with `problem` on an invalid option. */
bool story_config(StoryConfig *config, int argc, char **argv, Problem *problem);

/** Generates the text and writes it to stdout on rank 0, token by token. Collective.
 *  @return true; or false with `problem`, on every rank, on bad input */
bool story_write(const StoryConfig *config, Group *world, Problem *problem);

/** Draws the next token of a text from `logits` [vocabulary]; seed and position determine the draw.
 *  (Nucleus sampling: Holtzman et al., arXiv:1904.09751.)
 *  @return the token, or -1 if a logit is not finite */
int32_t story_sample(const StoryConfig *config, const real *logits, int vocabulary,
                     int64_t position);
