/* Products in 16 bits: an operation keeps the copy that it has multiplied, and not x itself; what is
 * multiplied next has no other numbers. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

enum { ROWS = 128, IN = 64, OUT = 64 }; /* just large enough for 16 bits */
enum { X = ROWS * IN, Y = ROWS * OUT, W = IN * OUT };

/* On a CPU without oneDNN, there is nothing to test. */
static bool choose(void)
{
    Problem problem;
    const bool good = backend_set_products(BF16, 0, &problem);
    if (!good)
        printf("skip - copies in 16 bits: %s\n", problem.what);
    return good;
}

static void up(void)
{
    backend_set_threads(1);
    tape_up();
}

static void down(void)
{
    Problem problem;
    tape_down();
    backend_set_products(FP32, 0, &problem);
}

static Tensor *numbers(const char *name, int64_t rows, int64_t columns)
{
    static real all[X];
    fill_normal(name, rows * columns, all);
    return tape_reals(tape, SHAPE(1, rows, columns), whole(), all, true);
}

static Tensor *weight_of(const char *name)
{
    static real all[W];
    fill_normal(name, W, all);
    return tape_reals(tape, SHAPE(OUT, IN), whole(), all, true);
}

static int64_t held(void)
{
    return memory_use().now[ACTIVATIONS];
}

/* A number in bf16. */
static double widened(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float number;
    memcpy(&number, &bits, sizeof number);
    return (double)number;
}

/* y = (x + x) W^T. Releases the sum. */
static Tensor *product(Tensor *x, Tensor *w, Tensor **sum)
{
    const TapeMark mark = tape_mark(tape);
    *sum = add(x, x);
    Tensor *y = linear(*sum, w);
    tape_release_since(tape, mark, y);
    return y;
}

START_TEST(a_linear_layer_keeps_x_in_16_bits)
{
    if (!choose())
        return;
    Tensor *x = numbers("x", ROWS, IN), *w = weight_of("w"), *dy = numbers("dy", ROWS, OUT), *sum;
    static uint16_t narrow_x[X], narrow_dy[Y];
    const int64_t before = held();
    Tensor *y = product(x, w, &sum);
    const int64_t weight = W * (int64_t)sizeof(uint16_t); /* no model keeps its copy */
    ck_assert_int_eq(held() - before - weight,
                     Y * (int64_t)sizeof(real) + X * (int64_t)sizeof(uint16_t));
    ck_assert(!sum->buffer);
    const uint16_t *rounded_dy = halves(rounded_copy(tape, dy));
    backend_wait();
    memcpy(narrow_x, halves(y->producer->saved[0]), sizeof narrow_x);
    memcpy(narrow_dy, rounded_dy, sizeof narrow_dy);
    for (int i = 0; i < X; i++)
        ck_assert(fabs(widened(narrow_x[i]) - 2 * (double)reals(x)[i]) <=
                  0x1p-7 * fabs((double)reals(x)[i]));
    tape_backward(tape, y, dy);
    backend_wait();
    for (int o = 0; o < OUT; o++) {
        double exact = 0, size = 0;
        for (int r = 0; r < ROWS; r++) {
            const double one = widened(narrow_dy[r * OUT + o]) * widened(narrow_x[r * IN + o % IN]);
            exact += one;
            size += fabs(one);
        }
        ck_assert_double_le(fabs((double)reals(w->gradient)[o * IN + o % IN] - exact), 1e-6 * size);
    }
}
END_TEST

START_TEST(the_products_of_a_tensor_share_its_copy)
{
    if (!choose())
        return;
    Tensor *x = numbers("x", ROWS, IN), *q = linear(x, weight_of("q")),
           *k = linear(x, weight_of("k"));
    ck_assert(q->producer->saved[0]->buffer == k->producer->saved[0]->buffer);
    scale(x, 2);
    Tensor *v = linear(x, weight_of("q"));
    ck_assert(v->producer->saved[0]->buffer != k->producer->saved[0]->buffer);
    backend_wait();
    for (int i = 0; i < Y; i++)
        ck_assert(reals(v)[i] == 2 * reals(q)[i]);
    real *own = tensor_data(x);
    linear(x, weight_of("q"));
    own[0] = 100; /* the kit cannot observe this */
    Tensor *last = linear(x, weight_of("q"));
    backend_wait();
    ck_assert(reals(last)[0] != reals(v)[0]);
}
END_TEST

START_TEST(what_can_be_computed_again_is_not_kept_in_16_bits_either)
{
    if (!choose())
        return;
    static const real ones[IN] = {1};
    Tensor *x = numbers("x", ROWS, IN), *w = weight_of("w");
    Tensor *scales = tape_reals(tape, SHAPE(IN), whole(), ones, true);
    const int64_t before = held();
    const TapeMark mark = tape_mark(tape);
    Tensor *y = linear(rms_norm(x, scales, 1e-5), w);
    tape_release_since(tape, mark, y);
    const int64_t weight = W * (int64_t)sizeof(uint16_t); /* no model keeps its copy */
    ck_assert_int_eq(held() - before - weight, (Y + ROWS) * (int64_t)sizeof(real));
    tape_backward(tape, y, numbers("dy", ROWS, OUT));
    backend_wait();
    ck_assert(isfinite(reals(x->gradient)[X - 1]));
}
END_TEST

START_TEST(attention_and_its_arguments_are_in_16_bits)
{
    if (!choose())
        return;
    enum { SIZE = 64 };
    const AttentionShape shape = {.batch = 1, .positions = ROWS, .heads = 1, .head_size = SIZE};
    ck_assert(kernel_attention_is_in_16_bits(&shape));
    static int32_t shown[ROWS];
    for (int i = 0; i < ROWS; i++)
        shown[i] = 1;
    Tensor *q = numbers("q", ROWS, SIZE), *k = numbers("k", ROWS, SIZE),
           *v = numbers("v", ROWS, SIZE), *mask = tape_ints(tape, SHAPE(1, ROWS), shown);
    const TapeMark mark = tape_mark(tape);
    const int64_t before = held();
    Tensor *y = attention(add(q, q), add(k, k), add(v, v), mask, 1, 0.125F);
    tape_release_since(tape, mark, y);
    const int64_t kept = 2 * ROWS * (int64_t)sizeof(real) + 4 * X * (int64_t)sizeof(uint16_t);
    ck_assert_int_eq(y->dtype, HALF);
    ck_assert_int_eq(held() - before, kept);
    tape_backward(tape, y, numbers("dy", ROWS, SIZE));
    backend_wait();
    ck_assert(isfinite(reals(k->gradient)[X - 1]));
}
END_TEST

START_TEST(a_parameter_is_rounded_once_until_the_model_says_that_it_has_changed)
{
    if (!choose())
        return;
    Model *model = model_new(pool, &mesh, 1);
    Tensor *w = parameter(model->builder, "weight", SHAPE(OUT, IN), whole());
    model_finish(model);
    model_keep_rounded(model);
    model_use_tape(model, tape);
    kernel_vector_fill(W, 1, reals(w));
    Tensor *x = numbers("x", ROWS, IN), *one = linear(x, w);
    kernel_vector_fill(W, 2, reals(w));
    Tensor *same = linear(x, w);
    model_weights_changed(model);
    Tensor *twice = linear(x, w);
    const real *first = reals(ready(one)), *second = reals(ready(same)),
               *last = reals(ready(twice));
    backend_wait();
    for (int i = 0; i < Y; i++)
        ck_assert(second[i] == first[i] && last[i] == 2 * first[i]);
    next_step(2);
    model_free(model);
}
END_TEST

/* ---- results in 16 bits ---- */

/* A model with two layers, the second of which is split along its inputs. */
static Model *inner_layer(Tensor **up, Tensor **down)
{
    Model *model = model_new(pool, &mesh, 1);
    *up = parameter(model->builder, "up", SHAPE(OUT, IN), shard(0));
    *down = parameter(model->builder, "down", SHAPE(IN, OUT), shard(1));
    model_finish(model);
    model_keep_rounded(model);
    model_use_tape(model, tape);
    fill_normal("up", W, reals(*up));
    fill_normal("down", W, reals(*down));
    return model;
}

START_TEST(what_a_layer_writes_is_kept_in_16_bits)
{
    if (!choose())
        return;
    static real exact[X];
    Tensor *up, *down;
    Model *model = inner_layer(&up, &down);
    for (int in_16_bits = 0; in_16_bits < 2; in_16_bits++) {
        Problem problem;
        backend_set_products(in_16_bits ? BF16 : FP32, 0, &problem);
        Tensor *x = numbers("x", ROWS, IN), *dy = numbers("dy", ROWS, IN);
        const TapeMark mark = tape_mark(tape);
        Tensor *inner = linear(x, up), *y = linear(gelu(inner), down);
        ck_assert_int_eq(inner->dtype, in_16_bits ? HALF : REAL);
        ck_assert_int_eq(y->dtype, inner->dtype);
        ck_assert_int_eq(y->producer->saved[0]->dtype, inner->dtype);
        tape_release_since(tape, mark, y);
        tape_backward(tape, y, dy);
        backend_wait();
        for (int i = 0; i < X && in_16_bits; i++)
            ck_assert_double_le(fabs((double)(reals(x->gradient)[i] - exact[i])),
                                0.05 * (64 + fabs((double)exact[i])));
        memcpy(exact, reals(x->gradient), sizeof exact);
        next_step(1);
    }
    model_free(model);
}
END_TEST

START_TEST(a_norm_has_the_type_that_its_reader_takes)
{
    if (!choose())
        return;
    static const real ones[IN] = {1, 2, 3};
    static real exact[X];
    Problem problem;
    backend_set_products(FP32, 0, &problem);
    Tensor *x = numbers("x", ROWS, IN), *scales = tape_reals(tape, SHAPE(IN), whole(), ones, true),
           *norms[] = {layer_norm_with(x, scales, scales, 1e-5), rms_norm(x, scales, 1e-5)};
    for (int i = 0; i < 2; i++) {
        ck_assert(norms[i]->buffer); /* computed at once */
        backend_wait();
        memcpy(exact, reals(norms[i]), sizeof exact);
        backend_set_products(BF16, 0, &problem);
        Tensor *norm = i ? rms_norm(x, scales, 1e-5) : layer_norm_with(x, scales, scales, 1e-5);
        ck_assert(!norm->buffer);
        Tensor *y = linear(norm, weight_of("w"));
        ck_assert_int_eq(norm->dtype, HALF);
        backend_wait();
        for (int k = 0; k < X; k++)
            ck_assert_double_le(fabs(widened(halves(norm)[k]) - (double)exact[k]),
                                0x1p-8 * fabs((double)exact[k]));
        ready(norm);
        backend_wait();
        ck_assert_mem_eq(reals(norm), exact, sizeof exact); /* not widened */
        tape_backward(tape, y, numbers("dy", ROWS, OUT));
        backend_wait();
        ck_assert(isfinite(reals(x->gradient)[X - 1]));
        backend_set_products(FP32, 0, &problem);
    }
}
END_TEST

START_TEST(a_sum_takes_one_argument_in_16_bits)
{
    if (!choose())
        return;
    Tensor *up, *down;
    Model *model = inner_layer(&up, &down);
    Tensor *x = numbers("x", ROWS, IN), *y = linear(linear(x, up), down);
    for (int turn = 0; turn < 2; turn++) {
        const Tensor *sum = turn ? add(x, y) : add(y, x);
        ck_assert_int_eq(y->dtype, HALF);
        backend_wait();
        for (int i = 0; i < X; i++)
            ck_assert(reals(sum)[i] == reals(x)[i] + (real)widened(halves(y)[i]));
    }
    const Tensor *twice = add(y, y);
    backend_wait();
    for (int i = 0; i < X; i++)
        ck_assert(reals(twice)[i] == 2 * reals(y)[i]);
    next_step(1);
    model_free(model);
}
END_TEST

static Tensor *gradient_in_16_bits(const Tensor *x)
{
    Tensor *d = tape_tensor(tape, HALF, x->shape, x->placement);
    kernel_round(tensor_count(x), reals(numbers("d", ROWS, OUT)), halves(d));
    return d;
}

START_TEST(a_gradient_stays_in_16_bits_where_it_is_alone_and_read_so)
{
    if (!choose())
        return;
    Tensor *up, *down;
    Model *model = inner_layer(&up, &down);
    Tensor *x = numbers("x", ROWS, IN), *inner = linear(x, up), *sum = add(x, x);
    Tensor *one = gradient_in_16_bits(inner);
    gradient_add(inner, one);
    ck_assert_int_eq(inner->gradient->dtype, HALF);
    gradient_add(inner, gradient_in_16_bits(inner));
    ck_assert_int_eq(inner->gradient->dtype, REAL);
    gradient_add(sum, gradient_in_16_bits(sum));
    ck_assert_int_eq(sum->gradient->dtype, REAL);
    backend_wait();
    for (int i = 0; i < Y; i++)
        ck_assert((double)reals(inner->gradient)[i] == 2 * widened(halves(one)[i]) &&
                  (double)reals(sum->gradient)[i] == widened(halves(one)[i]));
    next_step(1);
    model_free(model);
}
END_TEST

START_TEST(logits_are_reals_on_the_stage_that_has_only_a_copy_of_the_table)
{
    if (!choose())
        return;
    Tensor *table, *down;
    Model *model = inner_layer(&table, &down);
    table->parameter->twin = 0;
    ck_assert_int_eq(linear(numbers("x", ROWS, IN), table)->dtype, REAL);
    next_step(1);
    model_free(model);
}
END_TEST

START_TEST(numbers_in_16_bits_become_reals_where_an_operation_needs_them)
{
    if (!choose())
        return;
    static uint16_t narrow[Y];
    Tensor *up, *down;
    Model *model = inner_layer(&up, &down);
    Tensor *x = numbers("x", ROWS, IN), *inner = linear(x, up), *after = gelu(inner);
    backend_wait();
    memcpy(narrow, halves(inner), sizeof narrow);
    Tensor *twice = add(inner, inner);
    ck_assert_int_eq(inner->dtype, REAL);
    backend_wait();
    for (int i = 0; i < Y; i++)
        ck_assert((double)reals(twice)[i] == 2 * widened(narrow[i]));
    const real *own = tensor_data(after);
    ck_assert_int_eq(after->dtype, REAL);
    ck_assert(isfinite(own[Y - 1]));
    tape_backward(tape, add(twice, after), numbers("dy", ROWS, OUT));
    backend_wait();
    ck_assert(isfinite(reals(x->gradient)[X - 1]));
    next_step(1);
    model_free(model);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("copies in 16 bits");
    TCase *tests = tcase_create("products");
    tcase_add_checked_fixture(tests, up, down);
    tcase_add_test(tests, a_linear_layer_keeps_x_in_16_bits);
    tcase_add_test(tests, the_products_of_a_tensor_share_its_copy);
    tcase_add_test(tests, what_can_be_computed_again_is_not_kept_in_16_bits_either);
    tcase_add_test(tests, attention_and_its_arguments_are_in_16_bits);
    tcase_add_test(tests, a_parameter_is_rounded_once_until_the_model_says_that_it_has_changed);
    tcase_add_test(tests, what_a_layer_writes_is_kept_in_16_bits);
    tcase_add_test(tests, a_norm_has_the_type_that_its_reader_takes);
    tcase_add_test(tests, a_sum_takes_one_argument_in_16_bits);
    tcase_add_test(tests, a_gradient_stays_in_16_bits_where_it_is_alone_and_read_so);
    tcase_add_test(tests, logits_are_reals_on_the_stage_that_has_only_a_copy_of_the_table);
    tcase_add_test(tests, numbers_in_16_bits_become_reals_where_an_operation_needs_them);
    suite_add_tcase(s, tests);
    return s;
}
