/** @file
 * Runs the model in a folder in Hugging Face's format, and measures how far its results are from
 * those of another program. The folder holds both:
 *
 *     FOLDER/config.json, model.safetensors   the model
 *           /expected.safetensors             ids and mask [B,S]; logits, or hidden (after the last
 *                                             block); perhaps labels: [B], or the next tokens [B,S]
 *           /gradients/                       config.json, and each gradient under the name of its
 *                                             parameter; only if there are labels
 *           /stepped/                         likewise the weights after a step of AdamW
 */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/operations.h"
#include "checkpoint/checkpoint.h"
#include "comm/comm.h"
#include "pretrained/pretrained.h"

/** The largest differences; NaN if something could not be read. */
typedef struct Comparison {
    /** Of a logit, or a hidden number, divided by the largest one (at least 1); in a language model,
     *  of all tokens at once and one by one. */
    double results;
    double gradients; /**< of a gradient, divided by the largest one of any parameter */
    double stepped;   /**< of a weight after the step, divided by the largest weight */
    Problem problem;  /**< set if one of these is NaN */
} Comparison;

/** The settings of the step. With a smaller epsilon, a rounding error in a gradient near zero could
 *  change a weight by a whole step. */
static const AdamW comparison_step = {
    .rate = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-2, .weight_decay = 0.1, .step = 1};

/** The model of a folder, loaded on this rank. */
typedef struct Loaded {
    Pretrained *from;
    Model *model;
    Transformer *transformer;
} Loaded;

/** With caches of keys and values for `cached` positions, if it is not 0. */
static inline Loaded load(const char *folder, Pool *pool, const Mesh *mesh, int cached,
                          Problem *problem)
{
    Loaded loaded = {.from = pretrained_open(folder, problem)};
    if (!loaded.from)
        return loaded;
    TransformerConfig config = *pretrained_config(loaded.from);
    config.dropout = 0;
    config.cached = cached;
    Model *model = model_new(pool, mesh, 1);
    if (transformer_check(&config, mesh->tp_degree, problem)) {
        loaded.transformer = transformer_new(model->builder, &config, transformer_whole(&config));
        model_finish(model);
    }
    if (loaded.transformer && pretrained_load(loaded.from, model, problem))
        loaded.model = model;
    else
        model_free(model);
    return loaded;
}

static inline void unload(Loaded loaded)
{
    if (loaded.model)
        model_free(loaded.model);
    pretrained_close(loaded.from);
}

/** A tensor of expected.safetensors; the caller frees it. NULL if there is none. */
static inline real *expected(const Safetensors *file, const char *name, Shape *shape)
{
    Problem problem;
    const SafeTensor *tensor = safetensors_find(file, name);
    if (!tensor)
        return NULL;
    real *numbers = malloc((size_t)shape_count(tensor->shape) * sizeof *numbers + 1);
    *shape = tensor->shape;
    if (safetensors_read(file, tensor, numbers, &problem))
        return numbers;
    free(numbers);
    return NULL;
}

static inline Tensor *expected_ints(const Safetensors *file, const char *name, Tape *tape)
{
    Shape shape;
    real *numbers = expected(file, name, &shape);
    if (!numbers)
        return NULL;
    const int64_t count = shape_count(shape);
    int32_t *ids = malloc((size_t)count * sizeof *ids);
    for (int64_t i = 0; i < count; i++)
        ids[i] = numbers[i] < 0 ? NO_ID : (int32_t)numbers[i];
    Tensor *x = tape_ints(tape, shape, ids);
    free(ids);
    free(numbers);
    return x;
}

/** The largest difference of y from `right` at the tokens of the mask, relative as in
 *  Comparison.results. y holds only the columns `columns` of the last dimension. */
static inline double difference_at_tokens(const Tensor *y, const Tensor *mask, const real *right,
                                          Shape shape, Range columns)
{
    const int64_t width = shape_last(shape), rows = shape_count(shape) / width,
                  held = columns.end - columns.begin;
    double largest = shape_last(y->shape) == held ? 0 : NAN, scale = 1;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < held && (shape.rank < 3 || ints(mask)[r]); c++) {
            const double apart =
                fabs((double)reals(y)[r * held + c] - (double)right[r * width + columns.begin + c]);
            largest = apart <= largest ? largest : apart;
            scale = fmax(scale, fabs((double)right[r * width + columns.begin + c]));
        }
    return largest / scale;
}

/** The largest difference of the parameters' numbers, or of their gradients, from the folder's,
 *  divided by the largest of the folder's numbers. */
static inline double difference_from(const char *folder, Model *model, bool gradients, Pool *pool,
                                     Problem *problem)
{
    Loaded right = load(folder, pool, model->mesh, 0, problem);
    double most = 0, scale = 0;
    const Parameter *q = right.model ? right.model->parameters : NULL;
    for (const Parameter *p = model->parameters; q && p; p = p->next, q = q->next) {
        const real *x = reals(gradients ? p->value->gradient : p->value), *y = reals(q->value);
        for (int64_t i = 0; i < tensor_count(p->value); i++) {
            const double apart = fabs((double)x[i] - (double)y[i]);
            most = apart <= most ? most : apart;
            scale = fmax(scale, fabs((double)y[i]));
        }
    }
    unload(right);
    return most / scale; /* NaN if there is no such folder */
}

static inline void compare_backward(const char *folder, const Loaded *loaded, Tensor *logits,
                                    Tensor *labels, Pool *pool, Comparison *result)
{
    Model *model = loaded->model;
    const TransformerConfig *config = pretrained_config(loaded->from);
    Tensor *loss = config->architecture->loss(logits, labels, labels->shape.size[0], model->mesh);
    tape_backward(logits->tape, loss, NULL);
    model_complete_gradients(model);
    result->gradients =
        difference_from(path_in(folder, "gradients").text, model, true, pool, &result->problem);
    const size_t bytes = (size_t)model->arena_size * sizeof(real);
    real *m = calloc(1, bytes), *v = calloc(1, bytes);
    kernel_adamw_step(model->arena_size, model_weights(model), model_gradients(model), m, v,
                      &comparison_step);
    free(m);
    free(v);
    result->stepped =
        difference_from(path_in(folder, "stepped").text, model, false, pool, &result->problem);
}

static inline void compare_on_tape(const char *folder, const Loaded *loaded,
                                   const Safetensors *file, Tape *tape, Comparison *result)
{
    const Mesh *mesh = loaded->model->mesh;
    const TransformerConfig *config = pretrained_config(loaded->from);
    Shape shape = {0};
    Tensor *ids = expected_ints(file, "ids", tape), *mask = expected_ints(file, "mask", tape),
           *labels = expected_ints(file, "labels", tape);
    real *hidden = expected(file, "hidden", &shape), *logits = expected(file, "logits", &shape);
    Tensor *x = transformer_run_blocks(
        loaded->transformer, transformer_embed(loaded->transformer, ids, mesh), mask, mesh);
    const Range all = {0, shape_last(shape)};
    const bool is_split = !hidden && config->architecture->is_language;
    Tensor *y = hidden ? x : transformer_head(loaded->transformer, x, mesh);
    result->results =
        difference_at_tokens(ready(y), mask, hidden ? hidden : logits, shape,
                             is_split ? chunk(all.end, mesh->tp_rank, mesh->tp_degree) : all);
    if (labels)
        compare_backward(folder, loaded, y, labels, (Pool *)loaded->model->pool, result);
    free(hidden);
    free(logits);
}

/** The largest difference of a logit if the tokens of each text run one by one, as in make story,
 *  with the keys and values of the earlier ones in a cache. */
static inline double difference_one_by_one(const char *folder, const Safetensors *file, Tape *tape,
                                           Pool *pool, const Mesh *mesh, Problem *problem)
{
    Shape of_ids = {0}, shape = {0};
    real *ids = expected(file, "ids", &of_ids), *mask = expected(file, "mask", &of_ids),
         *logits = expected(file, "logits", &shape);
    const int64_t V = shape_last(shape), length = of_ids.size[1], sample = 0;
    const Range held = chunk(V, mesh->tp_rank, mesh->tp_degree);
    Loaded loaded = load(folder, pool, mesh, (int)length, problem);
    double most = loaded.model ? 0 : NAN;
    if (loaded.model)
        model_use_tape(loaded.model, tape);
    for (int64_t i = 0; loaded.model && i < shape_count(of_ids); i++) {
        const int32_t id = (int32_t)ids[i], is_token = (int32_t)mask[i];
        tape_reset(tape, (TapeBatch){.count = 1, .samples = &sample, .past = i % length});
        tape_record(tape, false);
        Tensor *y =
            transformer_forward(loaded.transformer, tape_ints(tape, SHAPE(1, 1), &id), NULL, mesh);
        const double apart = difference_at_tokens(ready(y), tape_ints(tape, SHAPE(1, 1), &is_token),
                                                  logits + i * V, SHAPE(1, 1, V), held);
        most = apart <= most ? most : apart;
    }
    unload(loaded);
    free(ids);
    free(mask);
    free(logits);
    return most;
}

/** The largest differences on this rank of `group`, over which the model is split. */
static inline Comparison compare_folder(const char *folder, Group *group)
{
    Comparison result = {.results = NAN, .gradients = 0, .stepped = 0};
    const Mesh mesh = {.world = group,
                       .tp = group,
                       .tp_rank = group_rank(group),
                       .tp_degree = group_size(group),
                       .dp_degree = 1,
                       .pp_degree = 1};
    Pool *pool = pool_new(0, true);
    Tape *tape = tape_new(pool, &mesh);
    Safetensors *file =
        safetensors_open(path_in(folder, "expected.safetensors").text, &result.problem);
    Loaded loaded = load(folder, pool, &mesh, 0, &result.problem);
    if (file && loaded.model) {
        tape_reset(tape, (TapeBatch){.training = true});
        model_use_tape(loaded.model, tape);
        model_clear_gradients(loaded.model);
        compare_on_tape(folder, &loaded, file, tape, &result);
        const Architecture *is = pretrained_config(loaded.from)->architecture;
        if (is->is_language && !is->is_masked) {
            const double apart =
                difference_one_by_one(folder, file, tape, pool, &mesh, &result.problem);
            result.results = apart <= result.results ? result.results : apart;
        }
    }
    tape_free(tape);
    unload(loaded);
    if (file)
        safetensors_close(file);
    pool_free(pool);
    return result;
}
