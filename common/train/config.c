/* The options of a run, parsed. */
#include "train/config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"

typedef enum Kind {
    TEXT,
    INTEGER,
    LONG,
    SEED,
    REAL_NUMBER,
    BYTES,
    OPTIMIZER,
    MODEL,
    AMP,
    SCHEDULE
} Kind;

/* One option: --name VALUE, make's NAME=VALUE. */
typedef struct Known {
    const char *name;
    Kind kind;
    void *target;
    double low, high; /* the allowed range of a number */
} Known;

static bool refuse(Problem *problem, const char *name, const char *value, const char *expected)
{
    char hint[256], setting[64]; /* make train HIDDEN_DIM=... means --hidden-dim */
    size_t length = 0;
    for (; name[length] && length < sizeof setting - 1; length++)
        setting[length] = name[length] == '-' ? '_' : (char)toupper((unsigned char)name[length]);
    setting[length] = '\0';
    snprintf(hint, sizeof hint, _("it takes %s"), expected);
    return problem_set(problem, NULL, hint, "%s cannot be '%.100s'", setting, value);
}

static bool read_number(const Known *option, const char *value, double *number, Problem *problem)
{
    char *end, expected[128];
    bool real_number = option->kind == REAL_NUMBER;
    errno = 0;
    *number = strtod(value, &end);
    bool good = *value && !*end && !errno && *number >= option->low && *number <= option->high &&
                (real_number || *number == floor(*number));
    snprintf(expected, sizeof expected,
             real_number ? _("a number from %.10g to %.10g")
                         : _("a whole number from %.10g to %.10g"),
             option->low, option->high);
    return good || refuse(problem, option->name, value, expected);
}

static bool read_bytes(const char *value, int64_t *bytes, Problem *problem)
{
    char *end;
    double number = strtod(value, &end);
    const char *units = "KMGT", *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    bool good =
        end != value && number > 0 && (!*end || (isalpha((unsigned char)*end) && unit && !end[1]));
    for (const char *u = units; good && unit && u <= unit; u++)
        number *= 1024;
    good = good && number >= 1 && number < 0x1p63;
    *bytes = good ? (int64_t)number : 0;
    return good || refuse(problem, "mem", value, _("a size such as 800M or 6G"));
}

static bool read_model(const char *value, TransformerConfig *model, Problem *problem)
{
    static const struct {
        const char *name;
        int layers, hidden, heads;
    } presets[] = {{"base", 12, 768, 12}, {"large", 24, 1024, 16}};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(value, presets[i].name)) {
            model->layers = presets[i].layers;
            model->hidden = presets[i].hidden;
            model->heads = presets[i].heads;
            return true;
        }
    return refuse(problem, "model", value,
                  _("base (BERT-Base: 12 layers, 768, 12 heads) or large (24, 1024, 16)"));
}

static bool read_amp(const char *value, Precision *amp, Problem *problem)
{
    for (Precision known = FP32; known <= TF32; known++)
        if (!strcmp(value, precision_name(known))) {
            *amp = known;
            return true;
        }
    return refuse(problem, "amp", value, _("off, bf16 or, on a GPU, fp16 or tf32"));
}

static bool read_option(TrainConfig *config, const Known *option, const char *value,
                        Problem *problem)
{
    double number = 0;
    switch (option->kind) {
    case TEXT:
        *(const char **)option->target = value;
        return true;
    case BYTES:
        return read_bytes(value, option->target, problem);
    case MODEL:
        return read_model(value, &config->model, problem);
    case AMP:
        return read_amp(value, &config->amp, problem);
    case OPTIMIZER:
        config->optimizer.kind = !strcmp(value, "sgd") ? SGD : ADAMW;
        return !strcmp(value, "sgd") || !strcmp(value, "adamw") ||
               refuse(problem, option->name, value, _("sgd or adamw"));
    case SCHEDULE:
        config->pipeline = !strcmp(value, "gpipe") ? GPIPE : ONE_F_ONE_B;
        return !strcmp(value, "gpipe") || !strcmp(value, "1f1b") ||
               refuse(problem, option->name, value, _("gpipe or 1f1b"));
    default:
        break;
    }
    if (!read_number(option, value, &number, problem))
        return false;
    if (option->kind == INTEGER)
        *(int *)option->target = (int)number;
    else if (option->kind == LONG)
        *(int64_t *)option->target = (int64_t)number;
    else if (option->kind == SEED)
        *(uint64_t *)option->target = (uint64_t)number;
    else
        *(double *)option->target = number;
    return true;
}

static const TrainConfig defaults = {
    .data = "data/reviews/train.csv",
    .test = "data/reviews/test.csv",
    .vocabulary = "data/reviews/vocab.txt",
    .cache = "build/cache",
    .threads = 1,
    .epochs = 1,
    .seq = 128,
    .seed = 1,
    .schedule = {.rate = 3e-4},
    .micro = 1,
    .check = 100,
    .optimizer =
        {.kind = ADAMW, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
    .model = {.architecture = &architecture_bert,
              .hidden = 128,
              .heads = 4,
              .classes = 2,
              .dropout = 0.1},
};

static const Known *find(const Known *known, const char *name)
{
    while (known->name && strcmp(known->name, name))
        known++;
    return known->name ? known : NULL;
}

bool train_config(TrainConfig *config, int argc, char **argv, Problem *problem)
{
    *config = defaults;
    TransformerConfig *model = &config->model;
    OptimizerConfig *optimizer = &config->optimizer;
    const Known known[] = {
        {"data", TEXT, &config->data, 0, 0},
        {"test", TEXT, &config->test, 0, 0},
        {"vocab", TEXT, &config->vocabulary, 0, 0},
        {"metrics", TEXT, &config->metrics, 0, 0},
        {"trace", TEXT, &config->trace, 0, 0},
        {"cache", TEXT, &config->cache, 0, 0},
        {"tp", INTEGER, &config->tp, 1, 1 << 20},
        {"dp", INTEGER, &config->dp, 1, 1 << 20},
        {"pp", INTEGER, &config->pp, 1, 1 << 20},
        {"epochs", INTEGER, &config->epochs, 1, 1 << 20},
        {"batch-size", INTEGER, &config->batch, 1, 1 << 20},
        {"seq", INTEGER, &config->seq, 2, 1 << 20},
        {"ranks", INTEGER, &config->ranks, 1, 1 << 20},
        {"dry", INTEGER, &config->dry, 0, 1},
        {"labs", INTEGER, &config->labs, 0, 99},
        {"threads", INTEGER, &config->threads, 1, 1024},
        {"samples", LONG, &config->samples, 1, 0x1p53},
        {"steps", LONG, &config->steps, 1, 0x1p53},
        {"seed", SEED, &config->seed, 0, 0x1p53},
        {"mem", BYTES, &config->memory, 0, 0},
        {"lr", REAL_NUMBER, &config->schedule.rate, 0, 1e6},
        {"warmup", LONG, &config->schedule.warmup, 0, 0x1p53},
        {"decay", LONG, &config->schedule.decay, 0, 0x1p53},
        {"clip", REAL_NUMBER, &config->clip, 0, 1e12},
        {"check", LONG, &config->check, 0, 0x1p53},
        {"map", INTEGER, &config->map, 0, 1},
        {"profile", INTEGER, &config->profile, 0, 1},
        {"schedule", SCHEDULE, NULL, 0, 0},
        {"micro", INTEGER, &config->micro, 1, 1 << 20},
        {"weight-decay", REAL_NUMBER, &optimizer->weight_decay, 0, 1e6},
        {"eps", REAL_NUMBER, &optimizer->epsilon, 0, 1},
        {"optimizer", OPTIMIZER, NULL, 0, 0},
        {"model", MODEL, NULL, 0, 0},
        {"amp", AMP, NULL, 0, 0},
        {"layers", INTEGER, &model->layers, 1, 10000},
        {"hidden-dim", INTEGER, &model->hidden, 1, 1 << 20},
        {"heads", INTEGER, &model->heads, 1, 1 << 20},
        {"dropout", REAL_NUMBER, &model->dropout, 0, 0.999},
        {"positions", INTEGER, &model->positions, 0, 1},
        {"save", TEXT, &config->save, 0, 0},
        {"every", LONG, &config->save_every, 1, 0x1p53},
        {"resume", TEXT, &config->resume, 0, 0},
        {"perturb", SEED, &config->perturb, 0, 0x1p53},
        {0},
    };
    for (int i = 1; i < argc; i += 2) {
        const Known *option = !strncmp(argv[i], "--", 2) ? find(known, argv[i] + 2) : NULL;
        if (!option)
            return problem_set(problem, NULL, "make help lists the variables of make train",
                               "unknown option '%.100s'", argv[i]);
        if (i + 1 == argc)
            return problem_set(problem, NULL, "write it after the option", "%s takes a value",
                               argv[i]);
        if (!read_option(config, option, argv[i + 1], problem))
            return false;
    }
    model->positions *= config->seq;
    if (!*config->test)
        config->test = NULL;
    return true;
}
