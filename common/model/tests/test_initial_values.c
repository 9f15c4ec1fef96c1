/* Parameters start from the same numbers in every layout. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "model/tests/fixture.h"

Suite *suite(void);

typedef struct Cut {
    Shape shape;
    int dim;
} Cut;

/* Even and uneven splits of tensors with one to three dimensions; some parts are empty. */
static const Cut CUTS[] = {{SHAPE(12, 5), 0},   {SHAPE(5, 12), 1},   {SHAPE(13, 3), 0},
                           {SHAPE(3, 13), 1},   {SHAPE(2, 7), 0},    {SHAPE(7, 2), 1},
                           {SHAPE(3, 5, 7), 1}, {SHAPE(3, 5, 7), 2}, {SHAPE(10), 0},
                           {SHAPE(30522, 4), 0}};

static Tensor *only_parameter(Model *model, const Cut *cut, Placement placement, Initial initial)
{
    Tensor *x = parameter_with(model->builder, "weight", cut->shape, placement, initial);
    model_finish(model);
    return x;
}

/* The element of `all` that corresponds to element `i` of the part, by counting coordinates.
 */
static real in_whole(const Tensor *all, const Tensor *part_held, int dim, int64_t begin, int64_t i)
{
    int64_t index = 0, stride = 1;
    for (int d = part_held->shape.rank - 1; d >= 0; d--) {
        int64_t at = i % part_held->shape.size[d] + (d == dim ? begin : 0);
        i /= part_held->shape.size[d];
        index += at * stride;
        stride *= all->shape.size[d];
    }
    return reals(all)[index];
}

START_TEST(a_shard_starts_as_its_slice_of_the_whole)
{
    const Cut *cut = &CUTS[_i];
    for (int initial = LINEAR_WEIGHT; initial <= EMBEDDING_WEIGHT; initial++) {
        Model *plain = model_of_rank(0, 1);
        Tensor *all = only_parameter(plain, cut, shard(cut->dim), initial);
        ck_assert(shape_equal(all->shape, cut->shape) && all->placement.kind == WHOLE);
        for (int ranks = 2; ranks <= 4; ranks++) {
            int64_t held = 0;
            for (int rank = 0; rank < ranks; rank++) {
                Model *split = model_of_rank(rank, ranks);
                Tensor *mine =
                    only_parameter(split, cut, shard(cut->dim - cut->shape.rank), initial);
                ck_assert_int_eq(shard_begin(mine), held);
                ck_assert(placement_equal(mine->placement, shard(cut->dim)));
                for (int64_t i = 0; i < tensor_count(mine); i++)
                    ck_assert_float_eq(reals(mine)[i], in_whole(all, mine, cut->dim, held, i));
                held += mine->shape.size[cut->dim];
                model_free(split);
            }
            ck_assert_int_eq(held, cut->shape.size[cut->dim]);
        }
        model_free(plain);
    }
}
END_TEST

static void moments(const Tensor *x, double *mean, double *variance, double *largest)
{
    double sum = 0, squares = 0;
    *largest = 0;
    for (int64_t i = 0; i < tensor_count(x); i++) {
        double v = (double)reals(x)[i];
        sum += v;
        squares += v * v;
        *largest = fmax(*largest, fabs(v));
    }
    *mean = sum / (double)tensor_count(x);
    *variance = squares / (double)tensor_count(x) - *mean * *mean;
}

START_TEST(a_linear_weight_is_uniform_as_in_pytorch)
{
    Model *model = model_of_rank(0, 1);
    Tensor *w = only_parameter(model, &(Cut){SHAPE(300, 100), 0}, whole(), LINEAR_WEIGHT);
    double mean, variance, largest, count = 30000, bound = 0.1; /* 1/sqrt(100) */
    moments(w, &mean, &variance, &largest);
    ck_assert_double_le(largest, bound);
    ck_assert_double_gt(largest, bound * 0.999);
    ck_assert_double_eq_tol(mean, 0, 5 * bound / sqrt(3 * count));
    ck_assert_double_eq_tol(variance, bound * bound / 3,
                            5 * bound * bound * sqrt(4 / 45.0 / count));
    model_free(model);
}
END_TEST

START_TEST(an_embedding_is_normal_as_in_bert)
{
    Model *model = model_of_rank(0, 1);
    Tensor *w = only_parameter(model, &(Cut){SHAPE(300, 100), 0}, whole(), EMBEDDING_WEIGHT);
    double mean, variance, largest, count = 30000;
    moments(w, &mean, &variance, &largest);
    ck_assert_double_eq_tol(mean, 0, 5 * 0.02 / sqrt(count));
    ck_assert_double_eq_tol(variance, 0.0004, 5 * 0.0004 * sqrt(2 / count));
    ck_assert_double_gt(largest, 3.5 * 0.02); /* 14 of 30000 normal numbers should exceed it */
    model_free(model);
}
END_TEST

static double variance_in(Model *model, const char *name)
{
    double mean, variance, largest;
    moments(model_parameter(model, name)->value, &mean, &variance, &largest);
    return variance;
}

START_TEST(weights_whose_result_is_added_to_x_start_smaller_in_gpt2)
{
    const TransformerConfig config = {.architecture = &architecture_gpt2,
                                      .vocabulary = 50,
                                      .hidden = 64,
                                      .layers = 8,
                                      .heads = 4,
                                      .positions = 6,
                                      .inner = 64};
    const char *const smaller[] = {"blocks.0.attention.output.weight",
                                   "blocks.7.feed_forward.down.weight"},
                      *const others[] = {"blocks.0.attention.query_key_value.weight",
                                         "blocks.7.feed_forward.up.weight", "embedding.weight"};
    const double square = 0.02 * 0.02, tolerance = 5 * sqrt(2 / 3200.0); /* 3200 numbers or more */
    Model *model = model_of_rank(0, 1);
    transformer_new(model->builder, &config, transformer_whole(&config));
    model_finish(model);
    for (int i = 0; i < 2; i++)
        ck_assert_double_eq_tol(variance_in(model, smaller[i]) * 16 / square, 1, tolerance);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq_tol(variance_in(model, others[i]) / square, 1, tolerance);
    model_free(model);
}
END_TEST

START_TEST(vectors_of_a_masked_bert_start_with_a_length_near_1_at_any_width)
{
    for (int hidden = 32; hidden <= 128; hidden *= 2) {
        const TransformerConfig config = {.architecture = &architecture_masked_bert,
                                          .vocabulary = 200,
                                          .hidden = hidden,
                                          .layers = 1,
                                          .heads = 4,
                                          .positions = 100};
        const double tolerance = 5 * sqrt(2 / 3200.0);
        Model *model = model_of_rank(0, 1);
        transformer_new(model->builder, &config, transformer_whole(&config));
        model_finish(model);
        ck_assert_double_eq_tol(variance_in(model, "embedding.weight") * hidden, 1, tolerance);
        ck_assert_double_eq_tol(variance_in(model, "positions.weight") * hidden, 1, tolerance);
        model_free(model);
    }
}
END_TEST

START_TEST(a_layer_norm_starts_as_the_identity)
{
    Model *model = model_of_rank(1, 3);
    layer_norm_new(within(model->builder, "norm"), 5);
    model_finish(model);
    for (int i = 0; i < 5; i++) {
        ck_assert_float_eq(reals(model_parameter(model, "norm.weight")->value)[i], 1);
        ck_assert_float_eq(reals(model_parameter(model, "norm.bias")->value)[i], 0);
    }
    model_free(model);
}
END_TEST

START_TEST(name_and_seed_determine_the_values_and_the_order_does_not)
{
    Model *model = model_of_rank(0, 1), *other = model_new(pool, &mesh, 43),
          *turned = model_of_rank(0, 1);
    Tensor *a = parameter(model->builder, "a", SHAPE(4, 8), whole());
    Tensor *b = parameter(model->builder, "b", SHAPE(4, 8), whole());
    Tensor *c = parameter(other->builder, "a", SHAPE(4, 8), whole());
    Tensor *d = parameter(turned->builder, "b", SHAPE(4, 8), whole());
    Tensor *e = parameter(within(turned->builder, "x"), "a", SHAPE(4, 8), whole());
    Tensor *f = parameter(turned->builder, "a", SHAPE(4, 8), whole());
    model_finish(model);
    model_finish(other);
    model_finish(turned);
    const size_t bytes = 32 * sizeof(real);
    ck_assert(memcmp(a->data, b->data, bytes) && memcmp(a->data, c->data, bytes) &&
              memcmp(a->data, e->data, bytes));
    ck_assert(!memcmp(a->data, f->data, bytes) && !memcmp(b->data, d->data, bytes));
    model_free(model);
    model_free(other);
    model_free(turned);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("initial values");
    TCase *tcase = tcase_create("initial values");
    tcase_add_checked_fixture(tcase, pool_up, pool_down);
    tcase_add_loop_test(tcase, a_shard_starts_as_its_slice_of_the_whole, 0,
                        sizeof CUTS / sizeof *CUTS);
    tcase_add_test(tcase, a_linear_weight_is_uniform_as_in_pytorch);
    tcase_add_test(tcase, an_embedding_is_normal_as_in_bert);
    tcase_add_test(tcase, weights_whose_result_is_added_to_x_start_smaller_in_gpt2);
    tcase_add_test(tcase, vectors_of_a_masked_bert_start_with_a_length_near_1_at_any_width);
    tcase_add_test(tcase, a_layer_norm_starts_as_the_identity);
    tcase_add_test(tcase, name_and_seed_determine_the_values_and_the_order_does_not);
    suite_add_tcase(suite, tcase);
    return suite;
}
