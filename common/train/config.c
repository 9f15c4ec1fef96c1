/* The options of a run, parsed. */
#include "train/config.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/language.h"
#include "base/options.h"
#include "data/data.h"
#include "pretrained/pretrained.h"

/* Models by name. 0 means the size of a run without MODEL. The LLaMA is that of lab 21. */
static const struct Preset {
    const char *name;
    const Architecture *architecture;
    int layers, hidden, heads, seq;
} presets[] = {{"base", &architecture_bert, 12, 768, 12, 0},
               {"large", &architecture_bert, 24, 1024, 16, 0},
               {"bert", &architecture_real_bert, 0, 0, 0, 0},
               {"gpt2", &architecture_gpt2, 0, 0, 0, 0},
               {"llama", &architecture_llama, 6, 288, 6, 256}};

static const struct Preset *preset_called(const char *name)
{
    for (const struct Preset *p = presets; p < presets + sizeof presets / sizeof *presets; p++)
        if (!strcmp(name, p->name))
            return p;
    return NULL;
}

static bool read_model(const char *value, void *target, Problem *problem)
{
    TrainConfig *config = target;
    config->chosen = value;
    if (preset_called(value))
        return true;
    if (!strncmp(value, "hf:", 3) && value[3]) {
        config->pretrained = value + 3;
        return true;
    }
    config->pretrained = value;
    return strchr(value, '/') || access(value, F_OK) == 0 ||
           option_refused(problem, "model", value,
                          _("base (BERT-Base: 12 layers, 768, 12 heads), large (24, 1024, 16), "
                            "bert, gpt2, llama (6, 288, 6), a SAVE folder, a .bin of llama2.c, or "
                            "a folder with config.json and model.safetensors (or hf:FOLDER)"));
}

static bool read_task(const char *value, void *target, Problem *problem)
{
    *(bool *)target = true;
    return !strcmp(value, "mlm") ||
           option_refused(problem, "task", value, _("mlm: BERT's pretraining on text"));
}

static const TrainConfig defaults = {
    .cache = "build/cache",
    .threads = 1,
    .rank = -1,
    .epochs = 1,
    .seed = 1,
    .schedule = {.rate = 3e-4},
    .micro = 1,
    .pack = 1,
    .check = 100,
    .optimizer =
        {.kind = ADAMW, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
    .model = {.architecture = &architecture_bert, .dropout = -1},
};

/* Takes the sizes of a named model that were not chosen. MODEL may come before or after them. */
static void take_preset(TrainConfig *config)
{
    TransformerConfig *model = &config->model;
    const struct Preset *p = config->chosen ? preset_called(config->chosen) : NULL;
    if (p) {
        model->architecture = p->architecture;
        model->layers = model->layers ? model->layers : p->layers;
        model->hidden = model->hidden ? model->hidden : p->hidden;
        model->heads = model->heads ? model->heads : p->heads;
    }
    if (!config->seq)
        config->seq = p && p->seq ? p->seq : 128;
}

/* Reads the sizes of a pretrained model. */
static bool take_pretrained(TrainConfig *config, Problem *problem)
{
    TransformerConfig *model = &config->model;
    if (model->layers || model->hidden || model->heads || model->positions)
        return problem_set(problem, NULL, "leave it out: the model's files have its sizes",
                           "MODEL=%.200s cannot be combined with %s", config->chosen,
                           model->layers   ? "LAYERS"
                           : model->hidden ? "HIDDEN_DIM"
                           : model->heads  ? "HEADS"
                                           : "POSITIONS");
    Pretrained *from = pretrained_open(config->pretrained, problem);
    if (!from)
        return false;
    const TransformerConfig given = *model;
    *model = *pretrained_config(from);
    if (given.dropout >= 0)
        model->dropout = given.dropout;
    model->recompute = given.recompute;
    model->max_predictions = given.max_predictions;
    snprintf(config->tokenizer.text, sizeof config->tokenizer.text, "%s",
             pretrained_tokenizer(from) ? pretrained_tokenizer(from) : config->pretrained);
    pretrained_close(from);
    if (isnan(model->dropout))
        return problem_set(problem, config->pretrained, "choose one for all places: DROPOUT=0.1",
                           "the model drops with different probabilities in different places");
    return !model->positions || config->seq <= model->positions ||
           problem_set(problem, config->pretrained, "choose a smaller SEQ",
                       "SEQ=%d, but the model has %d positions", config->seq, model->positions);
}

/* Sets the sizes of a published BERT, a GPT-2 or a LLaMA that have no option. */
static void complete_sizes(TrainConfig *config)
{
    enum { UNIT = 32 }; /* llama2.c rounds widths up to multiples of this */
    TransformerConfig *model = &config->model;
    const bool is_llama = model->architecture == &architecture_llama,
               is_bert = model->architecture->other_task;
    model->positions = config->seq;
    model->kv_heads = is_llama ? model->heads : 0;
    model->inner = is_llama ? (8 * model->hidden / 3 + UNIT - 1) / UNIT * UNIT : 4 * model->hidden;
    model->epsilon = is_bert ? 1e-12 : 1e-5;
    model->token_types = is_bert ? 2 : 0;
    model->rotary.theta = is_llama ? 10000 : 0;
}

/* Gives a BERT the head of the task: with TASK=mlm, that of its pretraining; otherwise a
 * classifier. */
static bool take_task(TrainConfig *config, Problem *problem)
{
    TransformerConfig *model = &config->model;
    const Architecture *is = model->architecture;
    if (model->max_predictions && !config->masked)
        return problem_set(problem, NULL, "add TASK=mlm, or leave out MAX_PREDICTIONS",
                           "MAX_PREDICTIONS=%d, but this run hides no tokens",
                           model->max_predictions);
    if (is->is_masked == config->masked)
        return true;
    if (!is->other_task)
        return problem_set(problem, NULL, N_("leave out MODEL, or name a BERT; or leave out TASK"),
                           "TASK=mlm pretrains a BERT, but MODEL=%.200s is a %s", config->chosen,
                           is->name);
    model->architecture = is->other_task;
    return true;
}

/* Sets the sizes that were not chosen. */
static bool complete_model(TrainConfig *config, Problem *problem)
{
    TransformerConfig *model = &config->model;
    if ((config->pretrained && !take_pretrained(config, problem)) || !take_task(config, problem))
        return false;
    const Architecture *is = model->architecture;
    const bool is_of_labs = is->sequence_block, is_causal = is->is_language && !is->is_masked;
    if (!config->pack && !is->is_language)
        return problem_set(problem, NULL,
                           "leave it out: a classifier has a row for each text; or choose "
                           "MODEL=gpt2, MODEL=llama or TASK=mlm",
                           "PACK=0 is for language models, and this model is a classifier");
    if ((is == &architecture_llama && model->dropout > 0) ||
        (!is_of_labs && !config->pretrained && model->positions > 0))
        return problem_set(problem, NULL, "leave it out", "MODEL=%.200s has no %s", config->chosen,
                           model->positions > 0 ? "POSITIONS" : "DROPOUT");
    if (model->dropout < 0)
        model->dropout = is_causal ? 0 : 0.1;
    model->hidden = model->hidden ? model->hidden : 128;
    model->heads = model->heads ? model->heads : 4;
    model->classes = is->is_language ? 0 : 2;
    if (!config->pretrained && is_of_labs)
        model->positions *= config->seq;
    if (!config->pretrained && !is_of_labs)
        complete_sizes(config);
    return true;
}

/* Uses the kit's files in place of those that were not named. With an empty TEST, or TEST=none, there is
 * no test set. */
static void complete_files(TrainConfig *config)
{
    const bool is_language = config->model.architecture->is_language;
    if (!config->data)
        config->data = is_language ? "data/stories/train.txt" : "data/reviews/train.csv";
    if (!config->test)
        config->test = is_language ? "data/stories/test.txt" : "data/reviews/test.csv";
    if (!config->vocabulary)
        config->vocabulary = config->pretrained ? config->tokenizer.text
                             : config->model.architecture == &architecture_gpt2
                                 ? "data/stories/gpt2"
                             : is_language && !config->masked ? "data/stories/llama"
                                                              : "data/reviews/vocab.txt";
    if (!*config->test || !strcmp(config->test, "none"))
        config->test = NULL;
}

bool train_config(TrainConfig *config, int argc, char **argv, Problem *problem)
{
    *config = defaults;
    TransformerConfig *model = &config->model;
    OptimizerConfig *optimizer = &config->optimizer;
    int sequence_parallel = 0;
    const Option known[] = {
        TEXT_OPTION("data", &config->data),
        TEXT_OPTION("test", &config->test),
        TEXT_OPTION("vocab", &config->vocabulary),
        TEXT_OPTION("metrics", &config->metrics),
        TEXT_OPTION("trace", &config->trace),
        TEXT_OPTION("cache", &config->cache),
        NUMBER_OPTION("tp", &config->tp, 1, 1 << 20),
        NUMBER_OPTION("dp", &config->dp, 1, 1 << 20),
        NUMBER_OPTION("pp", &config->pp, 1, 1 << 20),
        NUMBER_OPTION("epochs", &config->epochs, 1, 1 << 20),
        NUMBER_OPTION("batch-size", &config->batch, 1, 1 << 20),
        NUMBER_OPTION("seq", &config->seq, 2, 1 << 20),
        NUMBER_OPTION("ranks", &config->ranks, 1, 1 << 20),
        NUMBER_OPTION("dry", &config->dry, 0, 1),
        NUMBER_OPTION("rank", &config->rank, 0, 1 << 20),
        FLAG_OPTION("gpu", &config->gpu),
        TEXT_OPTION("counts", &config->counts),
        NUMBER_OPTION("vocab-size", &config->vocabulary_size, SPECIAL_TOKENS, 1 << 24),
        NUMBER_OPTION("labs", &config->labs, 0, 99),
        NUMBER_OPTION("threads", &config->threads, 1, 1024),
        NUMBER_OPTION("samples", &config->samples, 1, 0x1p53),
        NUMBER_OPTION("steps", &config->steps, 1, 0x1p53),
        NUMBER_OPTION("seed", &config->seed, 0, 0x1p53),
        BYTES_OPTION("mem", &config->memory),
        NUMBER_OPTION("lr", &config->schedule.rate, 0, 1e6),
        NUMBER_OPTION("warmup", &config->schedule.warmup, 0, 0x1p53),
        NUMBER_OPTION("decay", &config->schedule.decay, 0, 0x1p53),
        NUMBER_OPTION("clip", &config->clip, 0, 1e12),
        NUMBER_OPTION("print", &config->print, 1, 0x1p53),
        NUMBER_OPTION("check", &config->check, 0, 0x1p53),
        NUMBER_OPTION("average", &config->average, 1, 0x1p53),
        NUMBER_OPTION("zero", &config->zero, 0, 1),
        NUMBER_OPTION("map", &config->map, 0, 1),
        NUMBER_OPTION("profile", &config->profile, 0, 1),
        WORD_OPTION("schedule", &config->pipeline, "1f1b|gpipe"),
        WORD_OPTION("allreduce", &config->ring, "library|ring"),
        NUMBER_OPTION("sp", &sequence_parallel, 0, 1),
        WORD_OPTION("recompute", &model->recompute, "none|block|attention"),
        NUMBER_OPTION("micro", &config->micro, 1, 1 << 20),
        NUMBER_OPTION("weight-decay", &optimizer->weight_decay, 0, 1e6),
        NUMBER_OPTION("eps", &optimizer->epsilon, 0, 1),
        WORD_OPTION("optimizer", &optimizer->kind, "sgd|adamw"),
        READ_OPTION("model", config, read_model),
        NUMBER_OPTION("pack", &config->pack, 0, 1),
        READ_OPTION("task", &config->masked, read_task),
        NUMBER_OPTION("max-predictions", &model->max_predictions, 1, 1 << 20),
        WORD_OPTION("amp", &config->amp, "off|bf16|fp16|tf32"),
        NUMBER_OPTION("layers", &model->layers, 1, 10000),
        NUMBER_OPTION("hidden-dim", &model->hidden, 1, 1 << 20),
        NUMBER_OPTION("heads", &model->heads, 1, 1 << 20),
        NUMBER_OPTION("dropout", &model->dropout, 0, 0.999),
        NUMBER_OPTION("positions", &model->positions, 0, 1),
        TEXT_OPTION("save", &config->save),
        NUMBER_OPTION("every", &config->save_every, 1, 0x1p53),
        TEXT_OPTION("resume", &config->resume),
        NUMBER_OPTION("perturb", &config->perturb, 0, 0x1p53),
        {0},
    };
    if (!options_read(known, argc, argv, options_hint, problem))
        return false;
    take_preset(config);
    if (!complete_model(config, problem))
        return false;
    model->sequence_parallel = sequence_parallel;
    complete_files(config);
    return true;
}
