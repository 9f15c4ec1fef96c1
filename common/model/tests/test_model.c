/* Parameters by name and in arenas, and the complete model. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/tests/fixture.h"

Suite *suite(void);

/* ---- names and arenas ---------------------------------------------------------------------------------- */

static const TransformerConfig SMALL = {.architecture = &architecture_bert,
                                        .vocabulary = 30,
                                        .hidden = 8,
                                        .layers = 2,
                                        .heads = 4,
                                        .classes = 2,
                                        .positions = 6,
                                        .dropout = 0.1};

static const char *const NAMES[] = {
    "embedding.weight",
    "positions.weight",
    "blocks.0.norm1.weight",
    "blocks.0.norm1.bias",
    "blocks.0.attention.query",
    "blocks.0.attention.key",
    "blocks.0.attention.value",
    "blocks.0.attention.output",
    "blocks.0.norm2.weight",
    "blocks.0.norm2.bias",
    "blocks.0.feed_forward.up.weight",
    "blocks.0.feed_forward.down.weight",
    "blocks.1.norm1.weight",
    "blocks.1.norm1.bias",
    "blocks.1.attention.query",
    "blocks.1.attention.key",
    "blocks.1.attention.value",
    "blocks.1.attention.output",
    "blocks.1.norm2.weight",
    "blocks.1.norm2.bias",
    "blocks.1.feed_forward.up.weight",
    "blocks.1.feed_forward.down.weight",
    "classifier.head.up.weight",
    "classifier.head.down.weight",
};

START_TEST(the_names_of_the_bert_are_fixed)
{
    Model *model = model_of_rank(0, 1);
    transformer_new(model->builder, &SMALL, transformer_whole(&SMALL));
    model_finish(model);
    size_t count = 0;
    for (Parameter *p = model->parameters; p; p = p->next) {
        ck_assert_uint_lt(count, sizeof NAMES / sizeof *NAMES);
        ck_assert_str_eq(p->name, NAMES[count++]);
        ck_assert_ptr_eq(model_parameter(model, p->name), p);
    }
    ck_assert_uint_eq(count, sizeof NAMES / sizeof *NAMES);
    ck_assert_ptr_null(model_parameter(model, "blocks.2.norm1.weight"));
    model_free(model);
}
END_TEST

START_TEST(the_bert_has_the_parameters_of_its_sizes)
{
    Model *model = model_of_rank(0, 1);
    transformer_new(model->builder, &SMALL, transformer_whole(&SMALL));
    model_finish(model);
    const int64_t h = 8, block = 4 * h + 4 * h * h + 8 * h * h;
    ck_assert_int_eq(model_full(model), 30 * h + 6 * h + 2 * block + h * h + 2 * h);
    ck_assert_int_eq(model_held(model), model_full(model));
    ck_assert_int_eq(memory_use().now[WEIGHTS], model->arena_size * (int64_t)sizeof(real));
    ck_assert_int_eq(memory_use().now[GRADIENTS], memory_use().now[WEIGHTS]);
    model_free(model);
    ck_assert_int_eq(memory_use().now[WEIGHTS] + memory_use().now[GRADIENTS], 0);
}
END_TEST

START_TEST(arenas_hold_one_parameter_after_the_other)
{
    Model *model = model_of_rank(0, 1);
    Builder *b = model->builder;
    const int64_t counts[] = {3, 16, 17, 1};
    Tensor *x[4];
    for (int i = 0; i < 4; i++)
        x[i] = parameter(b, (const char *[]){"a", "b", "c", "d"}[i], SHAPE(counts[i]), whole());
    model_finish(model);
    ck_assert_int_eq(model->arena_size, 16 + 16 + 32 + 16);
    const int64_t begins[] = {0, 16, 32, 64};
    for (int i = 0; i < 4; i++) {
        ck_assert_ptr_eq(reals(x[i]), model_weights(model) + begins[i]);
        ck_assert_ptr_eq(reals(x[i]->gradient), model_gradients(model) + begins[i]);
        for (int64_t k = begins[i] + counts[i]; k < (i < 3 ? begins[i + 1] : 80); k++)
            ck_assert(model_weights(model)[k] == 0 && model_gradients(model)[k] == 0);
    }
    model_free(model);
}
END_TEST

static double its_index(void *context, const Parameter *p, int64_t index)
{
    return (double)index + *(double *)context;
}

START_TEST(a_fill_uses_the_index_in_the_full_parameter)
{
    Model *model = model_of_rank(2, 3); /* rows 8 and 9 of 10; column 4 of 5: chunk gives 2, 2, 1 */
    Tensor *rows = parameter(model->builder, "rows", SHAPE(10, 3), shard(0));
    Tensor *columns = parameter(model->builder, "columns", SHAPE(2, 5), shard(1));
    Tensor *all = parameter(model->builder, "all", SHAPE(7), whole());
    model_finish(model);
    double offset = 0.5;
    model_fill(model, NULL, its_index, &offset);
    ck_assert_int_eq(tensor_count(rows), 6);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(reals(rows)[i], (real)(24 + i + 0.5));
    ck_assert_int_eq(tensor_count(columns), 2);
    ck_assert_float_eq(reals(columns)[0], 4.5f);
    ck_assert_float_eq(reals(columns)[1], 9.5f);
    for (int i = 0; i < 7; i++)
        ck_assert_float_eq(reals(all)[i], (real)(i + 0.5));
    model_free(model);
}
END_TEST

START_TEST(unset_gradients_become_zeros)
{
    Model *model = model_of_rank(0, 1);
    Tensor *used = parameter(model->builder, "used", SHAPE(3, 2), whole());
    Tensor *unused = parameter(model->builder, "unused", SHAPE(3, 2), whole());
    model_finish(model);
    for (int i = 0; i < 6; i++)
        reals(used->gradient)[i] = reals(unused->gradient)[i] = 5; /* as in the previous step */
    model_clear_gradients(model);
    used->parameter->gradient_set = true;
    model_complete_gradients(model);
    ck_assert_float_eq(reals(used->gradient)[3], 5);
    ck_assert_float_eq(reals(unused->gradient)[3], 0);
    model_free(model);
}
END_TEST

/* ---- misuse -------------------------------------------------------------------------------------------- */

START_TEST(two_parameters_of_one_name_are_refused)
{
    Model *model = model_of_rank(0, 1);
    Builder *b = model->builder;
    linear_new(within(b, "up"), 4, 5);
    linear_new(within(b, "down"), 5, 4);
    ASSERT_MISUSE(linear_new(within(b, "up"), 4, 5), "two parameters named up.weight");
    model_free(model);
}
END_TEST

START_TEST(a_parameter_is_whole_or_a_shard_and_is_created_before_use)
{
    Model *model = model_of_rank(0, 2);
    Builder *b = model->builder;
    ASSERT_MISUSE(parameter(b, "w", SHAPE(4, 4), (Placement){PARTIAL, 0}), "parameter w",
                  "cannot have this placement");
    ASSERT_MISUSE(parameter(b, "w", SHAPE(4, 0), whole()), "parameter w", "[4,0]");
    ASSERT_MISUSE(parameter(b, "w", SHAPE(4, 4), shard(2)), "dimension 2", "[4,4]");
    ASSERT_TODO(parameter(b, "w", SHAPE(4, 4), undecided(3)), 3);
    ASSERT_MISUSE(new_layer(b, -1), "new_layer", "-1 bytes");
    ASSERT_MISUSE(new_layer(b, INT64_C(1) << 60), "new_layer", "1152921504606846976 bytes");
    model_free(model);
    model = model_of_rank(0, 2);
    parameter(model->builder, "w", SHAPE(4, 4), whole());
    model_finish(model);
    ASSERT_MISUSE(parameter(model->builder, "late", SHAPE(4, 4), whole()), "parameter late",
                  "already in use");
    ASSERT_MISUSE(new_layer(model->builder, 8), "new_layer", "already in use");
    ASSERT_MISUSE(within(model->builder, "late"), "within late", "already in use");
    Tensor x = {.shape = SHAPE(2)};
    ASSERT_MISUSE(shard_begin(&x), "shard_begin");
    model_free(model);
}
END_TEST

/* Counted by hand for H=8, 4 heads, F=12, V=30, 2 rows of 6 tokens and 3 blocks. For each token,
   each weight of the blocks and the head takes 6 operations, and so does each of the 2 S H = 96
   multiplications of attention. */
START_TEST(grouped_heads_have_fewer_operations_and_recomputation_adds_none)
{
    TransformerConfig llama = {.architecture = &architecture_llama,
                               .vocabulary = 30,
                               .hidden = 8,
                               .layers = 3,
                               .heads = 4,
                               .kv_heads = 4,
                               .inner = 12};
    ck_assert_double_eq(transformer_work(&llama, 2, 6),
                        6 * 12 * (3 * (4 * 64 + 3 * 96 + 96) + 240));
    llama.recompute = RECOMPUTE_BLOCKS;
    llama.own_head = true;
    llama.kv_heads = 1; /* keys and values have 8 x 2 weights each */
    ck_assert_double_eq(transformer_work(&llama, 2, 6),
                        6 * 12 * (3 * (2 * 64 + 2 * 16 + 3 * 96 + 96) + 240));
}
END_TEST

/* Counted as above. The head of the published BERT multiplies each chosen token by its transform,
   too, and its classifier's as little as that of the labs' BERT. */
START_TEST(the_published_bert_has_the_operations_of_the_labs_and_those_of_its_transform)
{
    TransformerConfig bert = {.vocabulary = 30, .hidden = 8, .layers = 3, .heads = 4},
                      published = bert;
    published.inner = 32;
    published.token_types = 2;
    bert.architecture = &architecture_bert;
    published.architecture = &architecture_real_bert;
    ck_assert_double_eq(transformer_work(&published, 2, 6), transformer_work(&bert, 2, 6));
    bert.architecture = &architecture_masked_bert;
    published.architecture = &architecture_masked_real_bert;
    ck_assert_double_eq_tol(transformer_work(&published, 2, 6),
                            transformer_work(&bert, 2, 6) + 6 * 12 * 0.15 * 64, 1e-6);
}
END_TEST

START_TEST(sizes_that_do_not_divide_are_refused)
{
    Problem problem;
    TransformerConfig config = SMALL;
    ck_assert(transformer_check(&config, 1, &problem) && transformer_check(&config, 2, &problem) &&
              transformer_check(&config, 4, &problem));
    ck_assert(!transformer_check(&config, 3, &problem));
    assert_says(&problem, (const char *const[]){"4 heads", "3 ranks", NULL});
    ck_assert_ptr_nonnull(strstr(problem.hint, "choose a TP"));
    config.hidden = 10;
    ck_assert(!transformer_check(&config, 1, &problem));
    assert_says(&problem, (const char *const[]){"HIDDEN_DIM=10", "HEADS=4", NULL});
}
END_TEST

/* ---- the whole model ----------------------------------------------------------------------------------- */

static double loss_of(Model *model, Transformer *bert, Tape *tape, int64_t step, bool training)
{
    tape_reset(tape, (TapeBatch){.seed = 1,
                                 .step = step,
                                 .count = 2,
                                 .samples = (int64_t[]){3, 1},
                                 .training = training});
    model_use_tape(model, tape);
    model_clear_gradients(model);
    Tensor *ids = tape_ints(tape, SHAPE(2, 5), (int32_t[]){2, 9, 9, 29, 3, 2, 7, 3, 0, 0});
    Tensor *mask = tape_ints(tape, SHAPE(2, 5), (int32_t[]){1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
    Tensor *logits = transformer_forward(bert, ids, mask, model->mesh);
    Tensor *loss =
        cross_entropy_mean(logits, tape_ints(tape, SHAPE(2), (int32_t[]){1, 0}), 2, NULL);
    tape_backward(tape, loss, NULL);
    model_complete_gradients(model);
    return (double)reals(loss)[0];
}

START_TEST(a_step_against_the_gradient_lowers_the_loss_and_allocates_once)
{
    Model *model = model_of_rank(0, 1);
    Transformer *bert = transformer_new(model->builder, &SMALL, transformer_whole(&SMALL));
    model_finish(model);
    Tape *tape = tape_new(pool, &mesh);
    double first = loss_of(model, bert, tape, 1, false), last = first;
    int64_t allocations = pool_allocations(pool), arena = model->arena_size;
    for (int step = 2; step <= 10; step++) {
        kernel_sgd_step(arena, model_weights(model), model_gradients(model), 0.05, 0);
        double loss = loss_of(model, bert, tape, step, false);
        ck_assert_double_lt(loss, last);
        last = loss;
        ck_assert_int_eq(pool_allocations(pool), allocations);
    }
    tape_free(tape);
    model_free(model);
}
END_TEST

START_TEST(the_same_step_gives_the_same_numbers)
{
    Model *model = model_of_rank(0, 1);
    Transformer *bert = transformer_new(model->builder, &SMALL, transformer_whole(&SMALL));
    model_finish(model);
    Tape *tape = tape_new(pool, &mesh);
    size_t bytes = (size_t)model->arena_size * sizeof(real);
    real *gradients = malloc(bytes);
    double loss = loss_of(model, bert, tape, 5, true);
    memcpy(gradients, model_gradients(model), bytes);
    ck_assert(loss_of(model, bert, tape, 6, true) != loss);
    ck_assert(loss_of(model, bert, tape, 5, true) == loss);
    ck_assert(memcmp(gradients, model_gradients(model), bytes) == 0);
    free(gradients);
    tape_free(tape);
    model_free(model);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");
    tcase_add_checked_fixture(tcase, pool_up, pool_down);
    tcase_add_test(tcase, the_names_of_the_bert_are_fixed);
    tcase_add_test(tcase, the_bert_has_the_parameters_of_its_sizes);
    tcase_add_test(tcase, arenas_hold_one_parameter_after_the_other);
    tcase_add_test(tcase, a_fill_uses_the_index_in_the_full_parameter);
    tcase_add_test(tcase, unset_gradients_become_zeros);
    tcase_add_test(tcase, two_parameters_of_one_name_are_refused);
    tcase_add_test(tcase, a_parameter_is_whole_or_a_shard_and_is_created_before_use);
    tcase_add_test(tcase, grouped_heads_have_fewer_operations_and_recomputation_adds_none);
    tcase_add_test(tcase,
                   the_published_bert_has_the_operations_of_the_labs_and_those_of_its_transform);
    tcase_add_test(tcase, sizes_that_do_not_divide_are_refused);
    tcase_add_test(tcase, a_step_against_the_gradient_lowers_the_loss_and_allocates_once);
    tcase_add_test(tcase, the_same_step_gives_the_same_numbers);
    suite_add_tcase(suite, tcase);
    return suite;
}