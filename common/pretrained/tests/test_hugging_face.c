/* A folder in Hugging Face's format that is damaged, or needs an operation that the kit lacks, is
 * rejected with one error; other ways to write the same model are accepted. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pretrained/hugging_face.h"
#include "pretrained/pretrained.h"
#include "pretrained/tests/model_folder.h"
#include "tests/run_for_tests.h"

Suite *suite(void);

static void put_text(const char *name, const char *text)
{
    FILE *file = fopen(path_in(folder, name).text, "w");
    fputs(text, file);
    fclose(file);
}

/* Writes config.json of the model, with the members of `changes` in place of its own. */
static void put_config(const char *model, const char *changes)
{
    json_t *config = json_load_file(model_path(model, "config.json").text, 0, NULL),
           *changed = json_loads(changes, 0, NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_msg(changed != NULL, "%s", changes);
    json_object_update(config, changed);
    ck_assert_int_eq(json_dump_file(config, path_in(folder, "config.json").text, 0), 0);
    json_decref(config);
    json_decref(changed);
}

/* Writes the model's tensors, with `to` in place of `from` at the beginning of names. If `to` is
 * NULL, leaves out the tensors whose names begin with `from`. */
static void put_tensors(const char *model, const char *from, const char *to)
{
    enum { MOST = 64 };
    Problem problem;
    SafeTensor tensors[MOST];
    real *numbers[MOST];
    int count = 0;
    Safetensors *file = safetensors_open(model_path(model, "model.safetensors").text, &problem);
    for (int i = 0; i < file->count; i++) {
        const SafeTensor *tensor = &file->tensors[i];
        const bool renamed = from && !strncmp(tensor->name, from, strlen(from));
        if (renamed && !to)
            continue;
        char *name;
        if (asprintf(&name, "%s%s", renamed ? to : "",
                     tensor->name + (renamed ? strlen(from) : 0)) < 0)
            abort();
        tensors[count] = (SafeTensor){.name = name, .shape = tensor->shape};
        numbers[count] = malloc((size_t)shape_count(tensor->shape) * sizeof(real));
        ck_assert(safetensors_read(file, tensor, numbers[count++], &problem));
    }
    SafetensorsWriter *writer =
        safetensors_begin(path_in(folder, "model.safetensors").text, tensors, count,
                          (const char *const[]){NULL}, NULL, &problem);
    for (int i = 0; i < count; i++) {
        safetensors_put(writer, numbers[i], shape_count(tensors[i].shape));
        free(numbers[i]);
        free((char *)tensors[i].name);
    }
    ck_assert(safetensors_end(writer, &problem));
    safetensors_close(file);
}

static void assert_refused(const char *what)
{
    Problem problem = {0};
    Pretrained *from = pretrained_open(folder, &problem);
    ck_assert_ptr_null(from);
    assert_says(&problem, (const char *const[]){what, NULL});
    ck_assert_ptr_nonnull(strstr(problem.where, folder));
}

static void assert_accepted(void)
{
    Problem problem = {0};
    Pretrained *from = pretrained_open(folder, &problem);
    ck_assert_msg(from != NULL, "%s", problem.what);
    pretrained_close(from);
}

#define LLAMA3(low, original)                                                                      \
    "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": " low                         \
    ", \"high_freq_factor\": 4, \"original_max_position_embeddings\": " original "}"

static const struct {
    const char *model, *changes, *says;
} wrong_configs[] = {
    {"bert", "{\"model_type\": \"t5\"}", "model_type t5"},
    {"bert", "{\"model_type\": null}", "model_type ?"},
    {"bert", "{\"model_type\": 3}", "model_type ?"},
    {"bert", "{\"model_type\": \"\\u001b[2J\"}", "model_type ?[2J"},
    {"bert", "{\"hidden_size\": null}", "no hidden_size"},
    {"bert", "{\"hidden_size\": \"8\"}", "no hidden_size"},
    {"bert", "{\"hidden_size\": 0}", "no hidden_size"},
    {"bert", "{\"vocab_size\": -17}", "no vocab_size"},
    {"bert", "{\"vocab_size\": 4294967313}", "no vocab_size"},
    {"bert", "{\"num_hidden_layers\": 16000000}", "no num_hidden_layers"},
    {"bert", "{\"num_attention_heads\": 3}", "3 heads do not divide a hidden size of 8"},
    {"bert", "{\"layer_norm_eps\": 0}", "no layer_norm_eps"},
    {"bert", "{\"layer_norm_eps\": \"small\"}", "no layer_norm_eps"},
    {"bert", "{\"hidden_act\": \"relu\"}", "hidden_act=relu"},
    {"bert", "{\"hidden_act\": {}}", "hidden_act=?"},
    {"bert", "{\"position_embedding_type\": \"relative_key\"}", "relative_key"},
    {"bert", "{\"is_decoder\": true}", "is_decoder"},
    {"bert", "{\"num_hidden_layers\": 3}", "16 missing"},
    {"bert", "{\"num_hidden_layers\": 1}", "16 left over\n    left over: bert.encoder.layer.1."},
    {"bert", "{\"vocab_size\": 18}", "1 of a different shape"},
    {"bert", "{\"vocab_size\": 18}",
     "    of a different shape: bert.embeddings.word_embeddings.weight [17,8], not [18,8]"},
    {"bert", "{\"tie_word_embeddings\": \"yes\"}", "no tie_word_embeddings"},
    {"bert", "{\"hidden_dropout_prob\": 1}", "no hidden_dropout_prob"},
    {"bert", "{\"classifier_dropout\": -0.1}", "no classifier_dropout"},
    {"gpt2", "{\"resid_pdrop\": \"0.1\"}", "no resid_pdrop"},
    {"gpt2", "{\"activation_function\": \"gelu\"}", "activation_function=gelu"},
    {"gpt2", "{\"n_head\": 5}", "5 heads do not divide"},
    {"gpt2", "{\"n_inner\": 9}", "6 of a different shape"},
    {"gpt2", "{\"scale_attn_weights\": false}", "scale_attn_weights"},
    {"gpt2", "{\"scale_attn_by_inverse_layer_idx\": true}", "inverse_layer_idx"},
    {"gpt2", "{\"tie_word_embeddings\": false}", "missing: lm_head.weight"},
    {"gpt2", "{\"tie_word_embeddings\": \"yes\"}", "no tie_word_embeddings"},
    {"llama", "{\"tie_word_embeddings\": 1}", "no tie_word_embeddings"},
    {"llama", "{\"mlp_bias\": \"false\"}", "no mlp_bias"},
    {"llama", "{\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}}", "of type dynamic"},
    {"llama", "{\"rope_scaling\": {\"rope_type\": \"longrope\"}}", "of type longrope"},
    {"llama", "{\"rope_scaling\": {\"type\": \"linear\"}}", "no factor"},
    {"llama", "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": -2}}", "no factor"},
    {"llama", "{\"rope_scaling\": " LLAMA3("\"4\"", "32") "}", "no low_freq_factor"},
    {"llama", "{\"rope_scaling\": " LLAMA3("4", "32") "}", "no high_freq_factor"},
    {"llama", "{\"rope_scaling\": " LLAMA3("1", "0") "}", "no original_max_position_embeddings"},
    {"llama", "{\"rope_parameters\": {\"rope_type\": \"yarn\"}}", "of type yarn"},
    {"llama", "{\"rope_scaling\": 2}", "rope_scaling of type ?"},
    {"llama", "{\"num_key_value_heads\": 3}", "key-value heads"},
    {"llama", "{\"head_dim\": 4}", "8 heads of 4 numbers"},
    {"llama", "{\"hidden_act\": \"gelu\"}", "hidden_act=gelu"},
    {"llama", "{\"attention_bias\": true}", "8 missing"},
    {"llama", "{\"attention_bias\": 1}", "no attention_bias"},
    {"llama", "{\"mlp_bias\": true}", "mlp_bias"},
    {"llama", "{\"model_type\": \"qwen2\"}", "missing: model.layers.0.self_attn.q_proj.bias"},
    {"llama3", "{\"attention_bias\": false}", "left over: model.layers.0.self_attn."},
    {"llama3", "{\"model_type\": \"qwen2\"}", "2 left over"},
    {"qwen2", "{\"model_type\": \"llama\"}", "6 left over"},
    {"qwen2", "{\"use_sliding_window\": true}", "use_sliding_window"},
    {"qwen2", "{\"tie_word_embeddings\": false}", "missing: lm_head.weight"},
    {"llama", "{\"model_type\": \"mistral\", \"sliding_window\": 7}", "sliding_window of 7 for 8"},
    {"llama", "{\"model_type\": \"mistral\", \"sliding_window\": 0}", "no sliding_window"},
    {"llama", "{\"model_type\": \"mistral\", \"max_position_embeddings\": 8192}",
     "sliding_window of 4096 for 8192"},
    {"llama", "{\"rms_norm_eps\": -1}", "no rms_norm_eps"},
    {"llama", "{\"intermediate_size\": 9}", "6 of a different shape"},
};

START_TEST(a_config_that_cannot_be_right_is_refused)
{
    put_config(wrong_configs[_i].model, wrong_configs[_i].changes);
    put_tensors(wrong_configs[_i].model, NULL, NULL);
    assert_refused(wrong_configs[_i].says);
}
END_TEST

START_TEST(the_hint_names_the_ways_of_scaling_that_the_kit_has)
{
    put_config("llama", "{\"rope_parameters\": {\"rope_type\": \"yarn\", \"factor\": 2}}");
    put_tensors("llama", NULL, NULL);
    Problem problem = {0};
    ck_assert_ptr_null(pretrained_open(folder, &problem));
    ck_assert_str_eq(problem.hint, "use a model with the type default, linear or llama3");
}
END_TEST

START_TEST(rotary_positions_are_scaled_as_the_config_says)
{
    const char *const changes[] = {
        "{\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5}}",
        "{\"rope_scaling\": {\"rope_type\": \"linear\", \"type\": \"linear\", \"factor\": 2.5}}",
        "{\"rope_theta\": 500, \"rope_scaling\": " LLAMA3("1", "32") "}",
        "{\"rope_parameters\": {\"rope_theta\": 500, \"rope_type\": \"linear\", \"factor\": 8}}"};
    const RotaryAngles angles[] = {
        {10000, 2.5, 0, 0, 0}, {10000, 2.5, 0, 0, 0}, {500, 8, 32, 1, 4}, {500, 8, 0, 0, 0}};
    put_tensors("llama", NULL, NULL);
    for (int i = 0; i < 4; i++) {
        Problem problem = {0};
        put_config("llama", changes[i]);
        Pretrained *from = pretrained_open(folder, &problem);
        ck_assert_msg(from != NULL, "%s", problem.what);
        const RotaryAngles *r = &pretrained_config(from)->rotary, *right = &angles[i];
        ck_assert(r->theta == right->theta && r->factor == right->factor &&
                  r->original == right->original && r->low == right->low && r->high == right->high);
        pretrained_close(from);
    }
}
END_TEST

START_TEST(a_config_that_is_no_json_is_refused)
{
    const char *const texts[] = {"", "{", "[1]", "\"bert\"", "{\"a\": 1, \"a\": 2}"};
    put_tensors("bert", NULL, NULL);
    for (int i = 0; i < 5; i++) {
        put_text("config.json", texts[i]);
        assert_refused(i == 2 ? "model_type" : "config.json cannot be read");
    }
    unlink(path_in(folder, "config.json").text);
    assert_refused("");
}
END_TEST

START_TEST(a_byte_order_mark_in_the_config_changes_nothing)
{
    Problem problem = {0};
    char marked[4096] = "\xEF\xBB\xBF";
    FILE *config = fopen(model_path("gpt2", "config.json").text, "r");
    ck_assert_ptr_nonnull(config);
    ck_assert_uint_gt(fread(marked + 3, 1, sizeof marked - 4, config), 100);
    fclose(config);
    put_text("config.json", marked);
    put_tensors("gpt2", NULL, NULL);
    Pretrained *from = pretrained_open(folder, &problem);
    ck_assert_msg(from != NULL, "%s", problem.what);
    pretrained_close(from);
}
END_TEST

/* The kit has one probability for all places; NAN stands for several. */
static const struct {
    const char *model, *changes;
    double dropout;
} dropouts[] = {
    {"bert", "{}", 0},
    {"bert", "{\"hidden_dropout_prob\": 0.25}", 0.25},
    {"bert", "{\"hidden_dropout_prob\": null}", 0.1},
    {"bert", "{\"hidden_dropout_prob\": 0.25, \"classifier_dropout\": 0.5}", NAN},
    {"gpt2", "{\"resid_pdrop\": 0.25, \"embd_pdrop\": 0.25, \"attn_pdrop\": 0.5}", 0.25},
    {"gpt2", "{\"resid_pdrop\": 0.25, \"embd_pdrop\": 0}", NAN},
    {"gpt2", "{\"resid_pdrop\": null, \"embd_pdrop\": 0.1}", 0.1},
    {"llama", "{\"attention_dropout\": 0.5}", 0},
};

START_TEST(the_dropout_of_a_model_is_that_of_its_config)
{
    Problem problem = {0};
    put_config(dropouts[_i].model, dropouts[_i].changes);
    put_tensors(dropouts[_i].model, NULL, NULL);
    Pretrained *from = pretrained_open(folder, &problem);
    ck_assert_msg(from != NULL, "%s", problem.what);
    const double found = pretrained_config(from)->dropout, expected = dropouts[_i].dropout;
    ck_assert_msg(found == expected || (isnan(found) && isnan(expected)), "%g, not %g", found,
                  expected);
    pretrained_close(from);
}
END_TEST

START_TEST(tensors_that_are_missing_or_renamed_are_refused)
{
    put_config("gpt2", "{}");
    put_tensors("gpt2", "transformer.h.1.ln_1", NULL);
    assert_refused("2 missing, 0 of a different shape, 0 left over\n"
                   "    missing: transformer.h.1.ln_1.weight\n"
                   "    missing: transformer.h.1.ln_1.bias");
    put_tensors("gpt2", "transformer.h.1.ln_1", "transformer.h.1.norm");
    assert_refused("2 missing, 0 of a different shape, 2 left over");
    assert_refused("transformer.h.1.ln_1.bias\n    left over: transformer.h.1.norm");
    put_tensors("gpt2", "transformer.h.1.ln_1", "transformer.h.1.norm\n\x1b[31m");
    assert_refused("    left over: transformer.h.1.norm??[31m.");
    put_tensors("gpt2", "transformer.h.1.", NULL);
    assert_refused("    missing: transformer.h.1.attn.c_proj.weight\n    and 7 more");
    put_tensors("gpt2", "transformer.", "model.");
    assert_refused("missing");
    unlink(path_in(folder, "model.safetensors").text);
    assert_refused("there is no model.safetensors");
    put_text("model.safetensors", "12345678{}");
    assert_refused("header");
}
END_TEST

START_TEST(many_tensors_are_checked_in_seconds)
{
    enum { COUNT = 200000 };
    uint64_t length;
    FILE *file = fopen(path_in(folder, "model.safetensors").text, "w");
    fwrite((char[8]){0}, 8, 1, file);
    for (int i = 0; i < COUNT; i++)
        fprintf(file,
                "%c\"transformer.h.%d.x%d\":{\"dtype\":\"F32\",\"shape\":[0],"
                "\"data_offsets\":[0,0]}",
                i ? ',' : '{', i % 2, i);
    fputc('}', file);
    length = (uint64_t)ftell(file) - 8;
    rewind(file);
    fwrite(&length, sizeof length, 1, file);
    fclose(file);
    put_config("gpt2", "{}");
    assert_refused("200000 left over");
    assert_refused("\n    and 199995 more");
}
END_TEST

START_TEST(names_without_the_prefix_or_of_older_versions_are_accepted)
{
    put_config("gpt2", "{}");
    put_tensors("gpt2", "transformer.", "");
    assert_accepted();
    put_config("bert", "{}");
    put_tensors("bert", "bert.", "");
    assert_accepted();
    put_tensors("bert", "bert.embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma");
    assert_accepted();
    put_tensors("bert", "classifier.", NULL); /* as if trained for another task */
    assert_accepted();
    put_tensors("bert", "classifier.", "cls.seq_relationship."); /* as if pretrained */
    assert_accepted();
    put_config("llama", "{\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 500}}");
    put_tensors("llama", NULL, NULL);
    assert_accepted();
    const char *const windows[] = {"null, \"max_position_embeddings\": 32768", "8", "4096"};
    for (int i = 0; i < 3; i++) {
        char changes[120];
        snprintf(changes, sizeof changes, "{\"model_type\": \"mistral\", \"sliding_window\": %s}",
                 windows[i]);
        put_config("llama", changes);
        assert_accepted();
    }
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("hugging face");
    TCase *cases = tcase_create("folders");
    tcase_set_timeout(cases, 60); /* seconds; the large header needs 2 on a quiet machine */
    tcase_add_checked_fixture(cases, begin, end);
    tcase_add_loop_test(cases, a_config_that_cannot_be_right_is_refused, 0,
                        (int)(sizeof wrong_configs / sizeof *wrong_configs));
    tcase_add_loop_test(cases, the_dropout_of_a_model_is_that_of_its_config, 0,
                        (int)(sizeof dropouts / sizeof *dropouts));
    tcase_add_test(cases, the_hint_names_the_ways_of_scaling_that_the_kit_has);
    tcase_add_test(cases, rotary_positions_are_scaled_as_the_config_says);
    tcase_add_test(cases, a_byte_order_mark_in_the_config_changes_nothing);
    tcase_add_test(cases, a_config_that_is_no_json_is_refused);
    tcase_add_test(cases, tensors_that_are_missing_or_renamed_are_refused);
    tcase_add_test(cases, many_tensors_are_checked_in_seconds);
    tcase_add_test(cases, names_without_the_prefix_or_of_older_versions_are_accepted);
    suite_add_tcase(suite, cases);
    return suite;
}
