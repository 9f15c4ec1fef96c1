/* A model is read in Hugging Face's format, saved as a checkpoint, and written in that format
 * again, with the same tensors. A checkpoint whose index does not fit its tensors is rejected. */
#include <check.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pretrained/hugging_face.h"
#include "pretrained/pretrained.h"
#include "pretrained/tests/model_folder.h"
#include "tests/run_for_tests.h"

Suite *suite(void);

/* Writes a checkpoint of one rank with the weights of a model. */
static void save(const TransformerConfig *config, const Model *model)
{
    enum { MOST = 64 };
    Problem problem;
    SafeTensor tensors[MOST];
    SavedParameter parameters[MOST];
    CheckpointIndex index = {.tp = 1,
                             .pp = 1,
                             .optimizer = "sgd",
                             .data_key = "0123456789abcdef",
                             .parameters = parameters,
                             .epsilon = config->epsilon,
                             .rotary = config->rotary,
                             .fitting = {[FIT_LAYERS] = config->layers,
                                         [FIT_HIDDEN] = config->hidden,
                                         [FIT_HEADS] = config->heads,
                                         [FIT_VOCABULARY] = config->vocabulary,
                                         [FIT_CLASSES] = config->classes,
                                         [FIT_POSITIONS] = config->positions,
                                         [FIT_KV_HEADS] = config->kv_heads,
                                         [FIT_INNER] = config->inner,
                                         [FIT_OWN_HEAD] = config->own_head,
                                         [FIT_ROWS] = 1,
                                         [FIT_BATCH] = 1}};
    snprintf(index.architecture, sizeof index.architecture, "%s", config->architecture->name);
    for (const Parameter *p = model->parameters; p; p = p->next) {
        tensors[index.count] = (SafeTensor){.name = saved_name(0, p->name), .shape = p->shape};
        parameters[index.count++] = (SavedParameter){(char *)p->name, p->shape, whole(), 0};
    }
    ck_assert(checkpoint_index_write(&index, folder, &problem));
    SafetensorsWriter *writer =
        safetensors_begin(shard_path(folder, &index, 0, 0).text, tensors, index.count,
                          (const char *const[]){"step", "0", NULL}, NULL, &problem);
    int i = 0;
    for (const Parameter *p = model->parameters; p; p = p->next) {
        safetensors_put(writer, reals(p->value), tensor_count(p->value));
        free((char *)tensors[i++].name);
    }
    ck_assert(safetensors_end(writer, &problem));
}

static Pretrained *opened(const char *name)
{
    Problem problem;
    Path path = model_path(name, "config.json");
    *strrchr(path.text, '/') = 0;
    Pretrained *from = pretrained_open(path.text, &problem);
    ck_assert_msg(from != NULL, "%s", problem.what);
    return from;
}

static void save_as_checkpoint(const char *name)
{
    Problem problem;
    const Mesh mesh = {.tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    Pool *pool = pool_new(0, true);
    Model *model = model_new(pool, &mesh, 1);
    Pretrained *from = opened(name);
    const TransformerConfig *config = pretrained_config(from);
    transformer_new(model->builder, config, transformer_whole(config));
    model_finish(model);
    ck_assert(pretrained_load(from, model, &problem));
    save(config, model);
    pretrained_close(from);
    model_free(model);
    pool_free(pool);
}

/* Fails unless both files have the same tensors. */
static void assert_equal_tensors(const char *a, const char *b)
{
    Problem problem;
    Safetensors *x = safetensors_open(a, &problem), *y = safetensors_open(b, &problem);
    ck_assert_int_eq(x->count, y->count);
    for (int i = 0; i < x->count; i++) {
        const SafeTensor *tensor = &x->tensors[i], *other = safetensors_find(y, tensor->name);
        const size_t bytes = (size_t)shape_count(tensor->shape) * sizeof(real);
        real *p = malloc(bytes), *q = malloc(bytes);
        ck_assert_msg(other && shape_equal(other->shape, tensor->shape), "%s", tensor->name);
        ck_assert(safetensors_read(x, tensor, p, &problem));
        ck_assert(safetensors_read(y, other, q, &problem));
        ck_assert_msg(!memcmp(p, q, bytes), "%s", tensor->name);
        free(p);
        free(q);
    }
    safetensors_close(x);
    safetensors_close(y);
}

START_TEST(a_checkpoint_is_written_with_the_tensors_that_it_was_read_from)
{
    const char *const models[] = {"bert", "masked_bert", "gpt2", "llama", "llama3", "qwen2"};
    Problem problem = {0};
    const Path tensors = model_path(models[_i], "model.safetensors");
    save_as_checkpoint(models[_i]);
    SavedModel *saved = saved_model_open(folder, &problem);
    ck_assert_msg(saved != NULL, "%s", problem.what);
    const Path shard = shard_path(folder, &saved->index, 0, 0);
    ck_assert_msg(hugging_face_write(saved, folder, &problem), "%s", problem.what);
    saved_model_close(saved);
    unlink(path_in(folder, "index.json").text);
    unlink(shard.text);
    assert_equal_tensors(tensors.text, path_in(folder, "model.safetensors").text);
    Pretrained *again = pretrained_open(folder, &problem);
    ck_assert_msg(again != NULL, "%s", problem.what);
    Pretrained *from = opened(models[_i]);
    ck_assert_mem_eq(pretrained_config(again), pretrained_config(from), sizeof(TransformerConfig));
    pretrained_close(from);
    pretrained_close(again);
}
END_TEST

/* Indices without a checksum, whose sizes do not match the tensors. */
static const struct {
    const char *key;
    json_int_t size;
    bool is_possible; /* some model has it, so only the writer can detect the error */
} wrong_sizes[] = {{"heads", 0, false},
                   {"heads", 3, false},
                   {"hidden", -8, false},
                   {"layers", 1 << 20, false},
                   {"layers", INT64_MAX, false},
                   {"vocabulary", 0, false},
                   {"inner", -1, false},
                   {"hidden", INT64_C(1) << 40, false},
                   {"inner", 4, true}};

static void set_size(const char *key, json_int_t size)
{
    const Path path = path_in(folder, "index.json");
    json_t *index = json_load_file(path.text, 0, NULL);
    ck_assert_int_eq(json_object_del(index, "xxh3"), 0);
    json_object_set_new(json_object_get(index, "model"), key, json_integer(size));
    ck_assert_int_eq(json_dump_file(index, path.text, 0), 0);
    json_decref(index);
}

START_TEST(a_checkpoint_whose_sizes_do_not_match_its_tensors_is_refused)
{
    Problem problem = {0};
    save_as_checkpoint("gpt2");
    set_size(wrong_sizes[_i].key, wrong_sizes[_i].size);
    SavedModel *saved = saved_model_open(folder, &problem);
    ck_assert_msg(saved != NULL, "%s", problem.what);
    const Path shard = shard_path(folder, &saved->index, 0, 0);
    Pretrained *from = pretrained_open(folder, &problem);
    ck_assert((from != NULL) == wrong_sizes[_i].is_possible);
    pretrained_close(from);
    const Path out = path_in(folder, "out");
    ck_assert(!hugging_face_write(saved, out.text, &problem));
    assert_says(&problem, (const char *const[]){"the checkpoint", NULL});
    ck_assert_int_ne(access(out.text, F_OK), 0);
    saved_model_close(saved);
    unlink(path_in(folder, "index.json").text);
    unlink(shard.text);
}
END_TEST

/* Loads the checkpoint in the folder into a new model with these sizes. */
static bool load_as(const TransformerConfig *config, Problem *problem)
{
    const Mesh mesh = {.tp_degree = 1, .dp_degree = 1, .pp_degree = 1};
    Pool *pool = pool_new(0, true);
    Model *model = model_new(pool, &mesh, 1);
    Pretrained *from = pretrained_open(folder, problem);
    ck_assert_msg(from != NULL, "%s", problem->what);
    transformer_new(model->builder, config, transformer_whole(config));
    model_finish(model);
    const bool good = pretrained_load(from, model, problem);
    pretrained_close(from);
    model_free(model);
    pool_free(pool);
    return good;
}

/* The two tasks of a BERT, each with a model that was trained for it. */
static const struct {
    const char *model;
    const Architecture *architecture;
} tasks[] = {{"bert", &architecture_real_bert}, {"masked_bert", &architecture_masked_real_bert}};

START_TEST(a_bert_of_the_other_task_may_lack_the_head_and_nothing_else)
{
    Problem problem = {0};
    save_as_checkpoint(tasks[_i].model);
    Pretrained *from = pretrained_open(folder, &problem);
    TransformerConfig config = *pretrained_config(from);
    pretrained_close(from);
    ck_assert_ptr_eq(config.architecture, tasks[_i].architecture);
    config.architecture = tasks[1 - _i].architecture;
    config.classes = 2;
    ck_assert_msg(load_as(&config, &problem), "%s", problem.what);
    config.layers++;
    ck_assert(!load_as(&config, &problem));
    assert_says(&problem, (const char *const[]){"no parameter blocks.2.", NULL});
    unlink(path_in(folder, "index.json").text);
    unlink(path_in(folder, "rank-0-of-1.safetensors").text);
}
END_TEST

START_TEST(the_files_of_another_model_are_not_replaced)
{
    const char *const names[] = {"config.json", "model.safetensors"},
                      *const kinds[] = {"is not the config.json of a merged", "is not a merged"};
    Problem problem = {0};
    save_as_checkpoint("gpt2");
    SavedModel *saved = saved_model_open(folder, &problem);
    const Path out = path_in(folder, "out"), theirs = path_in(out.text, names[_i]);
    ck_assert_int_eq(mkdir(out.text, 0777), 0);
    FILE *file = fopen(theirs.text, "w");
    ck_assert(fputs("{}", file) >= 0 && !fclose(file));
    ck_assert(!hugging_face_write(saved, out.text, &problem));
    assert_says(&problem, (const char *const[]){kinds[_i], NULL});
    unlink(theirs.text);
    ck_assert_int_eq(rmdir(out.text), 0); /* it holds nothing else */
    unlink(path_in(folder, "index.json").text);
    unlink(shard_path(folder, &saved->index, 0, 0).text);
    saved_model_close(saved);
}
END_TEST

START_TEST(the_labs_bert_is_refused_in_hugging_faces_form)
{
    Problem problem = {0};
    SavedModel saved = {.index = {.architecture = "BERT"}, .folder = "DIR"};
    ck_assert(!hugging_face_write(&saved, folder, &problem));
    assert_says(&problem, (const char *const[]){"no model like this BERT", NULL});
    ck_assert_ptr_nonnull(strstr(problem.hint, "MODEL=bert"));
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("hugging face, written");
    TCase *cases = tcase_create("folders");
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_loop_test(cases, a_checkpoint_is_written_with_the_tensors_that_it_was_read_from, 0,
                        6);
    tcase_add_loop_test(cases, a_checkpoint_whose_sizes_do_not_match_its_tensors_is_refused, 0,
                        (int)(sizeof wrong_sizes / sizeof *wrong_sizes));
    tcase_add_loop_test(cases, a_bert_of_the_other_task_may_lack_the_head_and_nothing_else, 0, 2);
    tcase_add_loop_test(cases, the_files_of_another_model_are_not_replaced, 0, 2);
    tcase_add_test(cases, the_labs_bert_is_refused_in_hugging_faces_form);
    suite_add_tcase(suite, cases);
    return suite;
}
