/* index.json: writing, reading, and whether a run can resume from it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/language.h"
#include "checkpoint/checkpoint.h"

enum { VERSION = 1 };
static const char format[] = "balise checkpoint";
static const char index_name[] = "index.json";

/* The key of an integer in index.json, and its name in messages. */
static const struct {
    const char *section, *key, *title;
} fitting[FITTINGS] = {
    [FIT_LAYERS] = {"model", "layers", "LAYERS"},
    [FIT_HIDDEN] = {"model", "hidden", "HIDDEN_DIM"},
    [FIT_HEADS] = {"model", "heads", "HEADS"},
    [FIT_VOCABULARY] = {"model", "vocabulary", N_("a vocabulary size of ")},
    [FIT_CLASSES] = {"model", "classes", N_("a class count of ")},
    [FIT_POSITIONS] = {"model", "positions", N_("a learned position count of ")},
    [FIT_KV_HEADS] = {"model", "kv_heads", N_("a key-value head count of ")},
    [FIT_INNER] = {"model", "inner", N_("a feed-forward width of ")},
    [FIT_OWN_HEAD] = {"model", "own_head", N_("an output head weight count of ")},
    [FIT_ROWS] = {"sampler", "rows", N_("a data row count of ")},
    [FIT_BATCH] = {"sampler", "batch", "BATCH_SIZE"},
    [FIT_SEQ] = {"sampler", "seq", "SEQ"},
    [FIT_SEED] = {"sampler", "seed", "SEED"},
};

/* The index's checksum covers everything in it except itself. */
static const char checksum_key[] = "xxh3";
static Checksum checksum_of_index(const json_t *all)
{
    char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    const Checksum sum = checksum_of(text, strlen(text));
    free(text);
    return sum;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

static json_t *parameters_of(const CheckpointIndex *index)
{
    json_t *all = json_object();
    for (int i = 0; i < index->count; i++) {
        const SavedParameter *p = &index->parameters[i];
        char placement[32];
        json_object_set_new(all, p->name,
                            json_pack("{s:o, s:s, s:i}", "shape", shape_to_json(p->shape),
                                      "placement", placement_text(p->placement, placement), "stage",
                                      p->stage));
    }
    return all;
}

static json_t *json_of(const CheckpointIndex *index)
{
    const int64_t an_epoch = index->fitting[FIT_ROWS] / index->fitting[FIT_BATCH];
    json_t *scaler = index->loss_scale > 0 ? json_pack("{s:f, s:I}", "scale", index->loss_scale,
                                                       "good_steps", (json_int_t)index->good_steps)
                                           : NULL;
    const RotaryAngles *r = &index->rotary;
    json_t *rotary = r->factor > 0
                         ? json_pack("{s:f, s:I, s:f, s:f}", "factor", r->factor, "original",
                                     (json_int_t)r->original, "low", r->low, "high", r->high)
                         : NULL;
    json_t *all = json_pack(
        "{s:s, s:i, s:I, s:i, s:i, s:{s:s, s:f, s:f, s:o*, s:f, s:s*}, s:{s:s, s:I, s:I}, "
        "s:{s:s, s:I}, s:{s:f, s:f, s:f}, s:o*, s:o}",
        "format", format, "version", VERSION, "step", (json_int_t)index->step, "tp", index->tp,
        "pp", index->pp, "model", "architecture", index->architecture, "epsilon", index->epsilon,
        "theta", r->theta, "rope_scaling", rotary, "dropout", index->dropout, "tokenizer",
        index->tokenizer, "sampler", "data", index->data_key, "epoch",
        (json_int_t)(index->step / an_epoch), "step_in_epoch", (json_int_t)(index->step % an_epoch),
        "optimizer", "kind", index->optimizer, "steps", (json_int_t)index->optimizer_steps, "epoch",
        "loss_sum", index->loss_sum, "correct", index->correct, "seen", index->seen, "scaler",
        scaler, "parameters", parameters_of(index));
    for (int i = 0; i < FITTINGS; i++)
        json_object_set_new(json_object_get(all, fitting[i].section), fitting[i].key,
                            json_integer(index->fitting[i]));
    return all;
}

Checksum checkpoint_index_checksum(const CheckpointIndex *index)
{
    json_t *all = json_of(index);
    const Checksum sum = checksum_of_index(all);
    json_decref(all);
    return sum;
}

bool checkpoint_index_write(const CheckpointIndex *index, const char *folder, Problem *problem)
{
    const char *hint = N_("free some space; the earlier checkpoints are intact"),
               *what = N_("the checkpoint's index cannot be written: %s");
    Replacement *file =
        replacement_begin(path_in(folder, index_name).text, NULL, hint, what, problem);
    json_t *all = json_of(index);
    json_object_set_new(all, checksum_key, json_string(checksum_of_index(all).digits));
    if (file) {
        json_dumpf(all, file->stream, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
        putc('\n', file->stream);
    }
    json_decref(all);
    return file && replacement_end(file, hint, what, problem);
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static bool read_placement(const json_t *entry, SavedParameter *p)
{
    const char *text = json_string_value(json_object_get(entry, "placement"));
    char again[32];
    p->placement = whole();
    if (!text || !strcmp(text, "whole"))
        return text != NULL;
    p->placement = shard(0);
    return sscanf(text, "shard(%d)", &p->placement.dim) == 1 &&
           !strcmp(text, placement_text(p->placement, again)) && p->placement.dim >= 0 &&
           p->placement.dim < p->shape.rank;
}

/* A checkpoint of an older kit has no stages. */
static bool read_parameter(const char *name, const json_t *entry, int stages, SavedParameter *p)
{
    p->name = strdup(name);
    p->stage = 0;
    return !strcmp(name, clean_name(name).text) &&
           json_unpack((json_t *)entry, "{s?i}", "stage", &p->stage) == 0 && p->stage >= 0 &&
           p->stage < stages && shape_from_json(json_object_get(entry, "shape"), &p->shape) > 0 &&
           p->shape.rank > 0 && read_placement(entry, p);
}

static bool read_parameters(const json_t *all, CheckpointIndex *index)
{
    json_t *parameters = json_object_get(all, "parameters"), *entry;
    const char *name;
    index->parameters = calloc(json_object_size(parameters) + 1, sizeof *index->parameters);
    json_object_foreach(parameters, name, entry)
    {
        if (!read_parameter(name, entry, index->pp, &index->parameters[index->count++]))
            return false;
    }
    return index->count > 0;
}

/* Does the index match its checksum? Moves the checksum from `all` to `sum`. An index of an older
 * kit has none, and counts as intact. */
static bool is_intact(json_t *all, Checksum *sum)
{
    json_t *written = json_incref(json_object_get(all, checksum_key));
    json_object_del(all, checksum_key);
    bool good = !written || (json_is_string(written) &&
                             !strcmp(json_string_value(written), checksum_of_index(all).digits));
    if (good && written)
        *sum = checksum_of_index(all);
    json_decref(written);
    return good;
}

/* Older kits had only the BERT, and wrote no architecture. A model whose rotary positions are not
 * scaled has no rope_scaling. */
static bool read_model(const json_t *all, CheckpointIndex *index)
{
    const char *architecture = "BERT", *tokenizer = NULL;
    RotaryAngles *r = &index->rotary;
    json_int_t original = 0;
    index->dropout = -1;
    if (json_unpack(json_object_get(all, "model"),
                    "{s?s, s?F, s?F, s?{s:F, s:I, s:F, s:F}, s?F, s?s}", "architecture",
                    &architecture, "epsilon", &index->epsilon, "theta", &r->theta, "rope_scaling",
                    "factor", &r->factor, "original", &original, "low", &r->low, "high", &r->high,
                    "dropout", &index->dropout, "tokenizer", &tokenizer))
        return false;
    r->original = original;
    snprintf(index->architecture, sizeof index->architecture, "%s", architecture);
    clean_line(index->architecture);
    index->tokenizer = tokenizer ? strdup(tokenizer) : NULL;
    return true;
}

static bool read_fitting(const json_t *all, CheckpointIndex *index)
{
    for (int i = 0; i < FITTINGS; i++) {
        const json_t *number =
            json_object_get(json_object_get(all, fitting[i].section), fitting[i].key);
        const bool may_be_missing = i == FIT_KV_HEADS || i == FIT_INNER || i == FIT_OWN_HEAD;
        index->fitting[i] = json_integer_value(number);
        if (!json_is_integer(number) && (number || !may_be_missing))
            return false;
    }
    return true;
}

static bool read_all(json_t *all, CheckpointIndex *index)
{
    const char *found, *optimizer, *data;
    int version;
    json_int_t step, optimizer_steps, good_steps = 0;
    index->pp = 1;
    double loss_scale = 1; /* only a run in fp16 writes it */
    if (json_unpack(
            all,
            "{s:s, s:i, s:I, s:i, s?i, s:{s:s}, s:{s:s, s:I}, s:{s:F, s:F, s:F}, s?{s:F, s:I}}",
            "format", &found, "version", &version, "step", &step, "tp", &index->tp, "pp",
            &index->pp, "sampler", "data", &data, "optimizer", "kind", &optimizer, "steps",
            &optimizer_steps, "epoch", "loss_sum", &index->loss_sum, "correct", &index->correct,
            "seen", &index->seen, "scaler", "scale", &loss_scale, "good_steps", &good_steps))
        return false;
    index->loss_scale = json_object_get(all, "scaler") ? loss_scale : 0;
    index->good_steps = good_steps;
    if (!read_model(all, index) || !read_fitting(all, index))
        return false;
    index->step = step;
    index->optimizer_steps = optimizer_steps;
    snprintf(index->optimizer, sizeof index->optimizer, "%s", optimizer);
    clean_line(index->optimizer);
    snprintf(index->data_key, sizeof index->data_key, "%s", data);
    clean_line(index->data_key);
    return !strcmp(found, format) && version == VERSION && step >= 0 && optimizer_steps >= 0 &&
           optimizer_steps <= step && index->tp >= 1 && index->tp <= 1 << 20 && index->pp >= 1 &&
           index->pp <= 1 << 10 && loss_scale >= 1 && good_steps >= 0 && index->loss_sum >= 0 &&
           index->correct >= 0 && index->correct <= index->seen && index->dropout < 1 &&
           index->epsilon >= 0 && index->rotary.theta >= 0 && read_parameters(all, index);
}

bool checkpoint_index_read(CheckpointIndex *index, const char *folder, Problem *problem)
{
    const char *hint =
        N_("use another copy of the checkpoint, or an older one: RESUME=DIR/step-...");
    const Path path = path_in(folder, index_name);
    char reason[REASON_SIZE];
    *index = (CheckpointIndex){0};
    json_t *all = json_from_file(path.text, reason);
    if (!all)
        return problem_set(problem, path.text, hint, "the checkpoint's index cannot be read: %s",
                           reason);
    bool intact = is_intact(all, &index->read_checksum), good = intact && read_all(all, index);
    json_decref(all);
    if (good)
        return true;
    checkpoint_index_clear(index);
    if (!intact)
        return problem_set(problem, path.text, hint,
                           "the checkpoint's index is damaged: it does not match its checksum");
    return problem_set(problem, path.text, hint, "this is not the index of a version %d checkpoint",
                       VERSION);
}

void checkpoint_index_clear(CheckpointIndex *index)
{
    for (int i = 0; i < index->count; i++)
        free(index->parameters[i].name);
    free(index->parameters);
    free(index->tokenizer);
}

const SavedParameter *checkpoint_index_find(const CheckpointIndex *index, const char *name)
{
    for (int i = 0; i < index->count; i++)
        if (!strcmp(index->parameters[i].name, name))
            return &index->parameters[i];
    return NULL;
}

/* ---- can a run resume from it? ------------------------------------------------------------------------ */

static bool are_same(const RotaryAngles *a, const RotaryAngles *b)
{
    return a->theta == b->theta && a->factor == b->factor && a->original == b->original &&
           a->low == b->low && a->high == b->high;
}

bool checkpoint_index_fits(const CheckpointIndex *saved, const CheckpointIndex *run,
                           const char *folder, Problem *problem)
{
    const char *hint =
        N_("resume with the settings of the checkpoint, or name another RESUME folder");
    if (strcmp(saved->architecture, run->architecture))
        return problem_set(
            problem, folder,
            "resume with the MODEL and TASK of the checkpoint; a new run starts from "
            "its weights with MODEL=hf:DIR",
            "the checkpoint is of a %s model, but this run trains a %s model", saved->architecture,
            run->architecture);
    for (int i = 0; i < FITTINGS; i++) {
        const char *title = _(fitting[i].title), *equals = strchr(title, ' ') ? "" : "=";
        if (saved->fitting[i] != run->fitting[i])
            return problem_set(problem, folder, hint,
                               "the checkpoint comes from a run with %s%s%" PRId64
                               ", but this run has %s%s%" PRId64,
                               title, equals, saved->fitting[i], title, equals, run->fitting[i]);
    }
    if (!are_same(&saved->rotary, &run->rotary))
        return problem_set(problem, folder, hint,
                           "the checkpoint comes from a run with other rotary positions than those "
                           "of this run");
    if (strcmp(saved->optimizer, run->optimizer))
        return problem_set(
            problem, folder, hint,
            "the checkpoint comes from a run with OPTIMIZER=%s, but this run has OPTIMIZER=%s",
            saved->optimizer, run->optimizer);
    if (strcmp(saved->data_key, run->data_key))
        return problem_set(
            problem, folder, hint,
            "the checkpoint comes from a run on other data: the key of their contents is %s, "
            "but that of this run is %s",
            saved->data_key, run->data_key);
    return true;
}
