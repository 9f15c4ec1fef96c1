/* Stages of a pipeline, run one after another on one rank: their results, and misuse. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/stage.h"
#include "model/tests/fixture.h"

Suite *suite(void);

enum { LAYERS = 5, STAGES = 3, B = 4, S = 5, MICROS = 2 };
static const TransformerConfig SMALL = {.architecture = &architecture_bert,
                                        .vocabulary = 30,
                                        .hidden = 8,
                                        .layers = LAYERS,
                                        .heads = 2,
                                        .classes = 2,
                                        .dropout = 0.1};

static Range wrong_blocks; /* returned by stage_blocks(), unless end is 0 */

Range stage_blocks(int blocks, const Mesh *of)
{
    return wrong_blocks.end != 0 ? wrong_blocks
                                 : (Range){blocks * of->pp_rank / of->pp_degree,
                                           blocks * (of->pp_rank + 1) / of->pp_degree};
}

/* Fills a micro-batch with rows first to first + count - 1 of a batch of B. */
static void fill(Stage *stage, int micro, int first, int count)
{
    static int64_t samples[B] = {3, 1, 4, 2};
    Tape *tape = stage_begin(
        stage, micro,
        (TapeBatch){
            .seed = 1, .step = 0, .count = count, .samples = samples + first, .training = true});
    int32_t ids[B * S], mask[B * S], labels[B];
    for (int i = 0; i < B * S; i++) {
        ids[i] = (7 * i + 3) % 30;
        mask[i] = i % S < 3 + i / S % 3;
        labels[i % B] = i % B % 2;
    }
    stage_fill(stage, micro, tape_ints(tape, SHAPE(count, S), ids + first * S),
               tape_ints(tape, SHAPE(count, S), mask + first * S),
               tape_ints(tape, SHAPE(count), labels + first), B);
}

static Tensor *handed_over(Stage *to, int micro, const Tensor *x, bool input)
{
    Tensor *copy = tape_reals(to->micro[micro].tape, x->shape, whole(), reals(x), input);
    if (input)
        to->micro[micro].input = copy;
    return copy;
}

static void forward(Stage *const line[], int stages, int micro)
{
    Tensor *x = stage_embed(line[0], micro);
    for (int i = 0; i < stages; i++)
        x = stage_run(line[i], micro, i == 0 ? x : handed_over(line[i], micro, x, true));
}

static void backward(Stage *const line[], int stages, int micro)
{
    Tensor *dy = NULL;
    for (int i = stages - 1; i >= 0; i--)
        dy = stage_run_backward(line[i], micro, dy ? handed_over(line[i], micro, dy, false) : NULL);
}

/* Runs a batch in `micros` parts: all forward passes, then all backward passes. Returns the loss,
 * and writes the gradients of all parameters. */
static double step_of(int stages, int micros, real *gradients)
{
    Mesh place[STAGES];
    Stage *line[STAGES];
    double loss = 0;
    Model *model = model_of_rank(0, 1);
    for (int i = 0; i < stages; i++) {
        place[i] = mesh;
        place[i].pp_rank = i;
        place[i].pp_degree = stages;
        model->mesh = &place[i];
        line[i] = stage_new(model, &SMALL, micros);
    }
    model_finish(model);
    model_clear_gradients(model);
    for (int m = 0; m < micros; m++) {
        for (int i = 0; i < stages; i++)
            fill(line[i], m, m * B / micros, B / micros);
        forward(line, stages, m);
        loss += (double)reals(line[stages - 1]->micro[m].loss)[0];
    }
    for (int m = 0; m < micros; m++)
        backward(line, stages, m);
    model_complete_gradients(model);
    memcpy(gradients, model_gradients(model), (size_t)model->arena_size * sizeof(real));
    for (int i = 0; i < stages; i++)
        stage_free(line[i]);
    model_free(model);
    return loss;
}

static int64_t arena_of_whole(void)
{
    Model *model = model_of_rank(0, 1);
    transformer_new(model->builder, &SMALL, transformer_whole(&SMALL));
    model_finish(model);
    int64_t size = model->arena_size;
    model_free(model);
    return size;
}

static void same_numbers(int stages, int micros)
{
    int64_t size = arena_of_whole();
    real *alone = calloc((size_t)size, sizeof *alone), *line = calloc((size_t)size, sizeof *line);
    double loss = step_of(1, 1, alone), other = step_of(stages, micros, line), largest = 0;
    ck_assert_double_eq_tol(loss, other, 1e-6);
    for (int64_t i = 0; i < size; i++)
        largest = fmax(largest, fabs((double)alone[i]));
    ck_assert_double_gt(largest, 0);
    for (int64_t i = 0; i < size; i++)
        ck_assert_double_eq_tol((double)line[i], (double)alone[i], 1e-5 * largest);
    free(alone);
    free(line);
}

START_TEST(three_stages_give_the_loss_and_the_gradients_of_one)
{
    same_numbers(STAGES, 1);
}
END_TEST

START_TEST(two_micro_batches_give_the_loss_and_the_gradients_of_one_batch)
{
    same_numbers(1, MICROS);
    same_numbers(STAGES, MICROS);
}
END_TEST

/* ---- misuse -------------------------------------------------------------------------------------------------- */

static Model *model;
static Stage *stage;

static void stage_up(int rank, int degree)
{
    model = model_of_rank(0, 1);
    mesh.pp_rank = rank;
    mesh.pp_degree = degree;
    stage = stage_new(model, &SMALL, 1);
    model_finish(model);
    fill(stage, 0, 0, B);
}

static void stage_down(void)
{
    stage_free(stage);
    model_free(model);
}

static Tensor *activation(void)
{
    static real zeros[B * S * 8];
    return stage->micro[0].input =
               tape_reals(stage->micro[0].tape, SHAPE(B, S, 8), whole(), zeros, true);
}

START_TEST(layers_of_another_stage_are_refused)
{
    stage_up(1, 3);
    ASSERT_MISUSE(stage_embed(stage, 0), "stage 1", "does not hold the embedding");
    ASSERT_MISUSE(stage_embed(NULL, 0), "the stage is NULL");
    ASSERT_MISUSE(stage_embed(stage, 1), "no micro-batch 1");
    stage_down();
}
END_TEST

START_TEST(passes_in_a_wrong_order_are_refused)
{
    stage_up(1, 3);
    ASSERT_MISUSE(stage_run_backward(stage, 0, NULL), "has not run forward");
    Tensor *x = activation(), *y = stage_run(stage, 0, x);
    ASSERT_MISUSE(stage_run(stage, 0, x), "has run forward already");
    ASSERT_MISUSE(stage_run_backward(stage, 0, NULL), "dy is NULL in stage 1 of 3");
    stage_run_backward(stage, 0, handed_over(stage, 0, y, false));
    ASSERT_MISUSE(stage_run_backward(stage, 0, y), "has run backward already");
    ASSERT_MISUSE(stage_send(stage, y, 2), "x was released by stage_run_backward");
    stage_down();
}
END_TEST

START_TEST(a_tensor_that_is_not_the_input_is_refused)
{
    stage_up(2, 3);
    ASSERT_MISUSE(stage_run(stage, 0, NULL), "stage_run: x is NULL");
    Tensor *x = activation();
    ASSERT_MISUSE(stage_run(stage, 0, first_token(x)), "x is", "expected");
    stage_run(stage, 0, tensor_copy(x));
    ASSERT_MISUSE(stage_run_backward(stage, 0, x), "dy must be NULL on the last stage");
    ASSERT_MISUSE(stage_run_backward(stage, 0, NULL), "no gradient reached");
    stage_down();
}
END_TEST

START_TEST(a_stage_that_does_not_exist_is_refused)
{
    stage_up(0, 2);
    Tensor *x = stage_embed(stage, 0);
    ASSERT_MISUSE(stage_send(stage, x, 2), "there is no stage 2, only 0 to 1");
    ASSERT_MISUSE(stage_send(stage, x, 0), "cannot exchange with itself");
    ASSERT_MISUSE(stage_send(stage, NULL, 1), "stage_send: x is NULL");
    ASSERT_MISUSE(stage_send_blocking(stage, NULL, 1), "stage_send_blocking: x is NULL");
    ASSERT_MISUSE(stage_send_start(stage, x, 2),
                  "stage_send_start was called by stage 0: there is no stage 2");
    ASSERT_MISUSE(stage_sends_finish(NULL), "the stage is NULL");
    ASSERT_MISUSE(stage_micros(NULL), "the stage is NULL");
    ck_assert_int_eq(stage_micros(stage), 1);
    stage_sends_finish(stage); /* nothing was started */
    stage_must_have_sent(stage, "a step");
    ASSERT_MISUSE(stage_embed(stage, 0), "has been embedded already");
    ASSERT_MISUSE(stage_receive(stage, 0, 1), "has its input already");
    ASSERT_MISUSE(stage_receive_gradient(stage, 0, 1), "has not run forward");
    stage_run(stage, 0, x);
    ASSERT_MISUSE(stage_receive_gradient(stage, 0, 3), "there is no stage 3");
    fill(stage, 0, 0, B);
    ASSERT_MISUSE(stage_receive(stage, 0, -1),
                  "stage_receive was called by stage 0: there is no stage -1");
    stage_down();
    stage_up(0, 1);
    ASSERT_MISUSE(stage_send(stage, stage_embed(stage, 0), 1), "there is only one stage");
    stage_down();
}
END_TEST

static void refuses(Range blocks)
{
    model = model_of_rank(0, 1);
    mesh.pp_degree = 2;
    wrong_blocks = blocks;
    ASSERT_MISUSE(stage_new(model, &SMALL, 1), "stage_blocks(", "<= 5");
    wrong_blocks = (Range){0, 0};
    model_free(model);
}

START_TEST(blocks_that_do_not_exist_are_refused)
{
    refuses((Range){-1, 2});
    refuses((Range){3, 2});
    refuses((Range){4, LAYERS + 1});
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("stage");
    TCase *tcase = tcase_create("stage");
    tcase_add_checked_fixture(tcase, pool_up, pool_down);
    tcase_add_test(tcase, three_stages_give_the_loss_and_the_gradients_of_one);
    tcase_add_test(tcase, two_micro_batches_give_the_loss_and_the_gradients_of_one_batch);
    tcase_add_test(tcase, layers_of_another_stage_are_refused);
    tcase_add_test(tcase, passes_in_a_wrong_order_are_refused);
    tcase_add_test(tcase, a_tensor_that_is_not_the_input_is_refused);
    tcase_add_test(tcase, a_stage_that_does_not_exist_is_refused);
    tcase_add_test(tcase, blocks_that_do_not_exist_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
