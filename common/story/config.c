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
        {"model", OPTION_TEXT, &config->model, 0, 0, NULL},
        {"tokenizer", OPTION_TEXT, &config->tokenizer, 0, 0, NULL},
        {"prompt", OPTION_TEXT, &config->prompt, 0, 0, NULL},
        {"steps", OPTION_LONG, &config->steps, 1, 1 << 20, NULL},
        {"temperature", OPTION_REAL, &config->temperature, 0, 100, NULL},
        {"top-p", OPTION_REAL, &config->top_p, 0, 1, NULL},
        {"seed", OPTION_SEED, &run->seed, 0, 0x1p53, NULL},
        {"tp", OPTION_INTEGER, &run->tp, 1, 1 << 20, NULL},
        {"pp", OPTION_INTEGER, &run->pp, 1, 1 << 20, NULL},
        {"threads", OPTION_INTEGER, &run->threads, 1, 1024, NULL},
        {"ranks", OPTION_INTEGER, &run->ranks, 1, 1 << 20, NULL},
        {"labs", OPTION_INTEGER, &run->labs, 0, 99, NULL},
        {"dry", OPTION_INTEGER, &run->dry, 0, 1, NULL},
        {0},
    };
    if (!options_read(known, argc, argv, problem))
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
