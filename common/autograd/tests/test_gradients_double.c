/* The gradients of every operation, and of small nets in which tensors have several consumers,
 * compared with central differences in double precision: error h^2 f'''/6 + u |f|/h, about 1e-9 for
 * h = 1e-6. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

enum { INPUTS = 3, MOST = 256 };

static const double step_width = 1e-6, tolerance = 2e-7;

/** A net of the operations: y = forward(x0, x1, x2). */
typedef struct Net {
    const char *name;
    Shape shape[INPUTS];
    Tensor *(*forward)(Tensor *const x[INPUTS]);
} Net;

static Tensor *ids(void)
{
    return tape_ints(tape, SHAPE(2, 3), (int32_t[]){2, NO_ID, 0, 2, 3, 2});
}

static Tensor *mask(void)
{
    return tape_ints(tape, SHAPE(2, 4), (int32_t[]){1, 1, 0, 1, 1, 1, 1, 0});
}

static Tensor *net_linear(Tensor *const x[])
{
    return linear(x[0], x[1]);
}

static Tensor *net_linear_with_bias(Tensor *const x[])
{
    return linear_with_bias(x[0], x[1], x[2]);
}

static Tensor *net_add_bias(Tensor *const x[])
{
    return add_bias(x[0], x[1]);
}

static Tensor *net_bias_twice(Tensor *const x[])
{
    return add_bias(tanh_of(add_bias(x[0], x[1])), x[1]);
}

static Tensor *net_tanh(Tensor *const x[])
{
    return tanh_of(x[0]);
}

/* Two positions that follow a cached one. */
static Tensor *net_later_positions(Tensor *const x[])
{
    tape->batch.past = 1;
    return add_positions(x[0], x[1]);
}

static Tensor *net_lookup(Tensor *const x[])
{
    return lookup(ids(), x[0]);
}

static Tensor *net_layer_norm(Tensor *const x[])
{
    return layer_norm_with(x[0], x[1], x[2], 1e-5);
}

static Tensor *net_gelu(Tensor *const x[])
{
    return gelu(x[0]);
}

static Tensor *net_dropout(Tensor *const x[])
{
    return dropout_with(x[0], "dropout", 0.3);
}

static Tensor *net_gelu_dropout(Tensor *const x[])
{
    return dropout_with(gelu(x[0]), "dropout", 0.3);
}

static Tensor *net_add(Tensor *const x[])
{
    return add(x[0], x[1]);
}

static Tensor *net_attention(Tensor *const x[])
{
    return attention(x[0], x[1], x[2], mask(), 3, 0.7f);
}

/* Causal: the first query of the second sample sees only padding. */
static Tensor *net_attention_causal(Tensor *const x[])
{
    Tensor *padded = tape_ints(tape, SHAPE(2, 4), (int32_t[]){1, 1, 0, 1, 0, 1, 1, 0});
    return attention_causal(x[0], x[1], x[2], padded, 3, 0.7f);
}

static Tensor *net_causal_without_mask(Tensor *const x[])
{
    return attention_causal(x[0], x[1], x[2], NULL, 3, 0.7f);
}

static Tensor *net_rms_norm(Tensor *const x[])
{
    return rms_norm(x[0], x[1], 1e-5);
}

static const RotaryAngles ANGLES = {.theta = 100, .factor = 8, .original = 64, .low = 1, .high = 4};

static Tensor *net_rotary(Tensor *const x[])
{
    return rotary(x[0], 3, 5, ANGLES);
}

static Tensor *net_repeat_heads(Tensor *const x[])
{
    return repeat_heads(x[0], 3, 4);
}

/* Here part() reads a tensor that another operation reads too. In net_slice(), take() reads
 * elements once, twice and never. */
static Tensor *net_part(Tensor *const x[])
{
    return add(part(x[0], LAST, 1, 3), part(gelu(x[0]), LAST, 2, 3));
}

static Tensor *net_slice(Tensor *const x[])
{
    return add(take(x[0], 1, 2), add(take(x[0], 1, 0), take(x[0], 1, 2)));
}

static Tensor *net_gelu_tanh(Tensor *const x[])
{
    return gelu_tanh(x[0]);
}

static Tensor *net_swiglu(Tensor *const x[])
{
    return swiglu(x[0], x[1]);
}

static Tensor *net_first_token(Tensor *const x[])
{
    return first_token(x[0]);
}

static Tensor *net_positions(Tensor *const x[])
{
    return add_positions(x[0], x[1]);
}

static Tensor *net_cross_entropy(Tensor *const x[])
{
    Tensor *labels = tape_ints(tape, SHAPE(4), (int32_t[]){2, 0, 1, 2});
    return cross_entropy_mean(x[0], labels, 6, NULL);
}

/* The maxima have no gradient, so they are constants here. Only the net of the whole loss computes
 * them, because the loss does not depend on them. */

static Tensor *maxima(void)
{
    return tape_reals(tape, SHAPE(2, 3), whole(), (double[]){2.5, 3, 2, 4, 2.5, 3}, false);
}

static Tensor *net_row_sum_exp(Tensor *const x[])
{
    return row_sum_exp(x[0], maxima());
}

static Tensor *net_row_pick(Tensor *const x[])
{
    return row_pick(x[0], maxima(), ids());
}

static Tensor *net_logarithm(Tensor *const x[])
{
    return logarithm(row_sum_exp(x[0], maxima()));
}

static Tensor *net_subtract(Tensor *const x[])
{
    return subtract(x[0], x[1]);
}

static Tensor *net_mean_over_tokens(Tensor *const x[])
{
    return mean_over_tokens(x[0], ids());
}

static Tensor *net_cross_entropy_of_rows(Tensor *const x[])
{
    Tensor *most = row_max(x[0]);
    Tensor *right = row_pick(x[0], most, own_ids(ids(), x[0]));
    return mean_over_tokens(subtract(logarithm(row_sum_exp(x[0], most)), right), ids());
}

/* ---- tensors with several consumers: each operation adds to an existing gradient ---------------------------- */

static Tensor *net_same_twice(Tensor *const x[])
{
    return add(x[0], x[0]);
}

static Tensor *net_difference_from_itself(Tensor *const x[])
{
    return subtract(gelu(x[0]), subtract(x[0], x[0]));
}

static Tensor *net_rows_three_times(Tensor *const x[])
{
    Tensor *most = maxima(), *sum = row_sum_exp(x[0], most);
    return add(add(sum, row_pick(x[0], most, ids())), logarithm(row_sum_exp(x[0], most)));
}

static Tensor *net_two_linears(Tensor *const x[])
{
    return add(linear(x[0], x[1]), linear_with_bias(x[0], x[1], x[2]));
}

static Tensor *net_weight_twice(Tensor *const x[])
{
    return linear(linear(x[0], x[1]), x[1]);
}

static Tensor *net_rows_with_targets(Tensor *const x[])
{
    Tensor *first = ids(), *second = ids();
    return add(rows_with_targets(x[0], &first), gelu(rows_with_targets(gelu(x[0]), &second)));
}

static Tensor *net_rows_without_targets(Tensor *const x[])
{
    Tensor *none = tape_ints(tape, SHAPE(1, 2), (int32_t[]){NO_ID, NO_ID});
    return gelu(rows_with_targets(x[0], &none));
}

static Tensor *net_two_lookups(Tensor *const x[])
{
    return add(lookup(ids(), x[0]), gelu(lookup(ids_between(ids(), 0, 3), x[0])));
}

static Tensor *net_norm_and_linear(Tensor *const x[])
{
    return add(layer_norm_with(x[0], x[1], x[2], 1e-5), gelu(x[0]));
}

static Tensor *net_linear_and_norm(Tensor *const x[])
{
    Tensor *y = gelu(x[0]);
    return add(y, layer_norm_with(x[0], x[1], x[2], 1e-5));
}

static Tensor *net_two_norms(Tensor *const x[])
{
    return layer_norm_with(layer_norm_with(x[0], x[1], x[2], 1e-5), x[1], x[2], 1e-3);
}

static Tensor *net_residual(Tensor *const x[])
{
    Tensor *y = linear(x[0], x[1]);
    y = add(y, gelu(linear(y, x[1])));
    return add(y, y);
}

/* The gradients of x0 and x1 share memory when gelu's gradient is added to one of them. */
static Tensor *net_shared_gradient(Tensor *const x[])
{
    Tensor *y = gelu(x[0]);
    return add(add(x[0], x[1]), y);
}

static Tensor *net_gelu_read_twice(Tensor *const x[])
{
    Tensor *y = gelu(x[0]);
    return add(dropout_with(y, "first", 0.3), add(y, dropout_with(y, "second", 0.5)));
}

static Tensor *net_self_attention(Tensor *const x[])
{
    return attention(x[0], x[0], x[0], mask(), 3, 0.7f);
}

static Tensor *net_attention_of_linears(Tensor *const x[])
{
    Tensor *q = linear(x[0], x[1]), *v = linear(x[0], x[2]);
    return add(attention(q, q, v, mask(), 2, 0.7f), x[0]);
}

/* Two query heads share a key head. */
static Tensor *net_grouped_attention(Tensor *const x[])
{
    Tensor *q = rotary(x[0], 4, 0, ANGLES), *k = repeat_heads(rotary(x[1], 2, 0, ANGLES), 2, 2);
    return attention_causal(q, k, repeat_heads(x[1], 2, 2), NULL, 4, 0.7f);
}

static Tensor *net_swiglu_of_itself(Tensor *const x[])
{
    return swiglu(gelu_tanh(x[0]), x[0]);
}

static Tensor *net_two_rms_norms(Tensor *const x[])
{
    return add(rms_norm(rms_norm(x[0], x[1], 1e-5), x[1], 1e-3), x[0]);
}

static Tensor *net_two_first_tokens(Tensor *const x[])
{
    return add(first_token(x[0]), first_token(gelu(x[0])));
}

static Tensor *net_positions_twice(Tensor *const x[])
{
    return add_positions(add_positions(x[0], x[1]), x[1]);
}

#define R3 SHAPE(2, 3, 5)
static const Net NETS[] = {
    {"linear", {R3, SHAPE(4, 5)}, net_linear},
    {"linear with bias", {R3, SHAPE(4, 5), SHAPE(4)}, net_linear_with_bias},
    {"linear with two weights in one", {R3, SHAPE(2, 4, 5)}, net_linear},
    {"linear with two weights and biases in one",
     {R3, SHAPE(2, 4, 5), SHAPE(2, 4)},
     net_linear_with_bias},
    {"part", {SHAPE(2, 3, 6)}, net_part},
    {"take", {SHAPE(2, 4, 3)}, net_slice},
    {"add_bias", {R3, SHAPE(5)}, net_add_bias},
    {"a bias used twice", {R3, SHAPE(5)}, net_bias_twice},
    {"tanh", {R3}, net_tanh},
    {"add_positions behind cached ones", {SHAPE(2, 2, 5), SHAPE(3, 5)}, net_later_positions},
    {"lookup", {SHAPE(4, 5)}, net_lookup},
    {"layer_norm", {R3, SHAPE(5), SHAPE(5)}, net_layer_norm},
    {"gelu", {R3}, net_gelu},
    {"dropout", {R3}, net_dropout},
    {"gelu and dropout", {R3}, net_gelu_dropout},
    {"add", {R3, R3}, net_add},
    {"attention", {SHAPE(2, 4, 6), SHAPE(2, 4, 6), SHAPE(2, 4, 6)}, net_attention},
    {"attention_causal", {SHAPE(2, 4, 6), SHAPE(2, 4, 6), SHAPE(2, 4, 6)}, net_attention_causal},
    {"attention_causal without a mask",
     {SHAPE(2, 4, 6), SHAPE(2, 4, 6), SHAPE(2, 4, 6)},
     net_causal_without_mask},
    {"rms_norm", {R3, SHAPE(5)}, net_rms_norm},
    {"rotary", {SHAPE(2, 3, 12)}, net_rotary},
    {"repeat_heads", {SHAPE(2, 2, 6)}, net_repeat_heads},
    {"gelu_tanh", {R3}, net_gelu_tanh},
    {"swiglu", {R3, R3}, net_swiglu},
    {"first_token", {R3}, net_first_token},
    {"add_positions", {R3, SHAPE(4, 5)}, net_positions},
    {"cross_entropy_mean", {SHAPE(4, 3)}, net_cross_entropy},
    {"row_sum_exp", {R3}, net_row_sum_exp},
    {"row_pick", {R3}, net_row_pick},
    {"logarithm", {R3}, net_logarithm},
    {"subtract", {R3, R3}, net_subtract},
    {"mean_over_tokens", {SHAPE(2, 3)}, net_mean_over_tokens},
    {"cross entropy of rows", {R3}, net_cross_entropy_of_rows},
    {"x + x", {R3}, net_same_twice},
    {"gelu(x) - (x - x)", {R3}, net_difference_from_itself},
    {"rows read three times", {R3}, net_rows_three_times},
    {"two linears of x", {R3, SHAPE(4, 5), SHAPE(4)}, net_two_linears},
    {"a weight used twice", {R3, SHAPE(5, 5)}, net_weight_twice},
    {"rows with targets", {SHAPE(2, 3, 5)}, net_rows_with_targets},
    {"rows without targets", {SHAPE(1, 2, 5)}, net_rows_without_targets},
    {"two lookups", {SHAPE(4, 5)}, net_two_lookups},
    {"layer_norm, then gelu", {R3, SHAPE(5), SHAPE(5)}, net_norm_and_linear},
    {"gelu, then layer_norm", {R3, SHAPE(5), SHAPE(5)}, net_linear_and_norm},
    {"two layer_norms", {R3, SHAPE(5), SHAPE(5)}, net_two_norms},
    {"residual", {R3, SHAPE(5, 5)}, net_residual},
    {"a shared gradient", {R3, R3}, net_shared_gradient},
    {"gelu read twice", {R3}, net_gelu_read_twice},
    {"attention of one tensor", {SHAPE(2, 4, 6)}, net_self_attention},
    {"attention of linears", {SHAPE(2, 4, 6), SHAPE(6, 6), SHAPE(6, 6)}, net_attention_of_linears},
    {"grouped attention", {SHAPE(2, 3, 16), SHAPE(2, 3, 8)}, net_grouped_attention},
    {"swiglu of one tensor", {R3}, net_swiglu_of_itself},
    {"two rms_norms", {R3, SHAPE(5)}, net_two_rms_norms},
    {"two first_tokens", {R3}, net_two_first_tokens},
    {"add_positions twice", {R3, SHAPE(4, 5)}, net_positions_twice},
};

static double numbers[INPUTS][MOST], upstream[MOST];

static Tensor *forward(const Net *net, Tensor *x[INPUTS])
{
    next_step(1);
    for (int i = 0; i < INPUTS; i++)
        x[i] =
            net->shape[i].rank ? tape_reals(tape, net->shape[i], whole(), numbers[i], true) : NULL;
    return ready(net->forward(x));
}

/* The function that is differentiated: the sum of y with a different weight for each number. */
static double weighted_sum(const Net *net)
{
    Tensor *x[INPUTS], *y = forward(net, x);
    double sum = 0;
    for (int64_t i = 0; i < tensor_count(y); i++)
        sum += upstream[i] * reals(y)[i];
    return sum;
}

static double difference(const Net *net, double *number)
{
    double at = *number;
    *number = at + step_width;
    double above = weighted_sum(net);
    *number = at - step_width;
    double below = weighted_sum(net);
    *number = at;
    return (above - below) / (2 * step_width);
}

static void set_numbers(const Net *net)
{
    for (int i = 0; i < INPUTS; i++) {
        ck_assert_int_le(shape_count(net->shape[i]), MOST);
        fill_normal((const char *[]){"x0", "x1", "x2"}[i], shape_count(net->shape[i]), numbers[i]);
    }
    fill_normal("upstream", MOST, upstream);
}

START_TEST(the_gradient_equals_central_differences)
{
    const Net *net = &NETS[_i];
    double gradient[INPUTS][MOST];
    set_numbers(net);
    Tensor *x[INPUTS], *y = forward(net, x);
    tape_backward(tape, y, tape_reals(tape, y->shape, whole(), upstream, false));
    for (int i = 0; i < INPUTS && x[i]; i++) {
        ck_assert_msg(x[i]->gradient != NULL, "%s: no gradient of input %d", net->name, i);
        ck_assert(shape_equal(x[i]->gradient->shape, x[i]->shape));
        memcpy(gradient[i], reals(x[i]->gradient), (size_t)tensor_count(x[i]) * sizeof(double));
    }
    for (int i = 0; i < INPUTS && net->shape[i].rank; i++)
        for (int64_t k = 0; k < shape_count(net->shape[i]); k++) {
            double expected = difference(net, &numbers[i][k]);
            if (!(fabs(gradient[i][k] - expected) <= tolerance))
                ck_abort_msg(
                    "%s: the gradient of number %ld of input %d is %.12g, by differences %.12g",
                    net->name, (long)k, i, gradient[i][k], expected);
        }
}
END_TEST

START_TEST(only_inputs_that_need_a_gradient_get_one)
{
    const Net *net = &NETS[_i];
    set_numbers(net);
    for (int missing = 0; missing < INPUTS && net->shape[missing].rank; missing++) {
        next_step(1);
        Tensor *x[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            x[i] = net->shape[i].rank
                       ? tape_reals(tape, net->shape[i], whole(), numbers[i], i != missing)
                       : NULL;
        Tensor *y = net->forward(x);
        if (y->producer)
            tape_backward(tape, y, tape_reals(tape, y->shape, whole(), upstream, false));
        for (int i = 0; i < INPUTS && x[i]; i++)
            ck_assert_msg(!x[i]->gradient == (i == missing), "%s: input %d without a gradient",
                          net->name, missing);
    }
}
END_TEST

START_TEST(micro_batches_have_the_mean_of_the_batch)
{
    real logits[12];
    fill_normal("logits", 12, logits);
    const int32_t labels[] = {0, 2, 1, 1};
    Tensor *x = tape_reals(tape, SHAPE(4, 3), whole(), logits, true);
    Tensor *mean = cross_entropy_mean(x, tape_ints(tape, SHAPE(4), labels), 4, NULL);
    tape_backward(tape, mean, NULL);
    double sum = 0;
    for (int k = 0; k < 2; k++) {
        real losses[2];
        Tensor *half = tape_reals(tape, SHAPE(2, 3), whole(), logits + 6 * k, true);
        Tensor *part_of_mean =
            cross_entropy_mean(half, tape_ints(tape, SHAPE(2), labels + 2 * k), 4, losses);
        tape_backward(tape, part_of_mean, NULL);
        assert_close("logits", 6, reals(half->gradient), reals(x->gradient) + 6 * k, 1e-16);
        ck_assert_double_eq_tol(reals(part_of_mean)[0], (losses[0] + losses[1]) / 4, 1e-15);
        sum += reals(part_of_mean)[0];
    }
    ck_assert_double_eq_tol(sum, reals(mean)[0], 1e-15);
}
END_TEST

Suite *suite(void)
{
    enum { COUNT = sizeof NETS / sizeof *NETS };
    Suite *suite = suite_create("gradients");
    TCase *tcase = tcase_create("gradients");
    tcase_add_checked_fixture(tcase, tape_up, tape_down);
    tcase_add_loop_test(tcase, the_gradient_equals_central_differences, 0, COUNT);
    tcase_add_loop_test(tcase, only_inputs_that_need_a_gradient_get_one, 0, COUNT);
    tcase_add_test(tcase, micro_batches_have_the_mean_of_the_batch);
    suite_add_tcase(suite, tcase);
    return suite;
}
