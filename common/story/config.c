/* The options of build/story, parsed. */
#include <string.h>

#include "base/options.h"
#include "story/story.h"

static const StoryConfig defaults = {
    .run = {.threads = 1, .seed = 1, .micro = 1, .dp = 1},
    .prompt = "",
    .temperature = 0,
    .top_p = 1,
};

bool story_config(StoryConfig *config, int argc, char **argv, Problem *problem)
{
    *config = defaults;
    TrainConfig *run = &config->run;
    const Option known[] = {
        TEXT_OPTION("model", &config->model),
        TEXT_OPTION("tokenizer", &config->tokenizer),
        TEXT_OPTION("prompt", &config->prompt),
        NUMBER_OPTION("steps", &config->steps, 1, 1 << 20),
        NUMBER_OPTION("temperature", &config->temperature, 0, 100),
        NUMBER_OPTION("top-p", &config->top_p, 0, 1),
        NUMBER_OPTION("seed", &run->seed, 0, 0x1p53),
        NUMBER_OPTION("tp", &run->tp, 1, 1 << 20),
        NUMBER_OPTION("pp", &run->pp, 1, 1 << 20),
        NUMBER_OPTION("threads", &run->threads, 1, 1024),
        NUMBER_OPTION("ranks", &run->ranks, 1, 1 << 20),
        NUMBER_OPTION("labs", &run->labs, 0, 99),
        NUMBER_OPTION("dry", &run->dry, 0, 1),
        {0},
    };
    if (!options_read(known, argc, argv, options_hint, problem))
        return false;
    if (config->model && !strncmp(config->model, "hf:", 3)) /* as in make train */
        config->model += 3;
    return (config->model && *config->model) ||
           problem_set(
               problem, NULL,
               "MODEL= names a folder with config.json and model.safetensors, a SAVE folder, or "
               "a file of llama2.c such as stories260K.bin",
               "no model is given");
}
