/* The results of operations on heads; a cache of keys and values does not change them. */
#include "autograd/tests/fixture.h"

Suite *suite(void);

enum { B = 2, S = 5, HEADS = 2, TIMES = 3, D = 4, WIDTH = HEADS * D };
static const RotaryAngles ANGLES = {.theta = 100};

START_TEST(copies_of_a_head_are_side_by_side)
{
    Tensor *x = normal("x", SHAPE(B, S, WIDTH), whole()), *y = repeat_heads(x, HEADS, TIMES);
    ck_assert(shape_equal(y->shape, SHAPE(B, S, WIDTH * TIMES)));
    for (int i = 0; i < B * S * WIDTH * TIMES; i++) {
        const int head = i / D / TIMES, d = i % D;
        ck_assert_double_eq(reals(y)[i], reals(x)[head * D + d]);
    }
}
END_TEST

START_TEST(one_copy_per_head_is_the_tensor_itself)
{
    Tensor *x = normal("x", SHAPE(B, S, WIDTH), whole());
    ck_assert_ptr_eq(repeat_heads(x, HEADS, 1), x);
}
END_TEST

/* Positions first..end-1 of x [B,S,WIDTH]. */
static Tensor *positions_of(Tensor *x, int64_t first, int64_t end)
{
    const int64_t count = (end - first) * WIDTH;
    Tensor *y = tape_tensor(tape, REAL, SHAPE(B, end - first, WIDTH), whole());
    kernel_copy_rows(B, count, reals(x) + first * WIDTH, S * WIDTH, reals(y), count);
    return y;
}

/* Causal attention of the queries from position `first` on, with the keys and values of all
 * positions, as if the earlier ones came from a cache. The keys are rotated one position at a
 * time. */
static Tensor *attention_from(Tensor *q, Tensor *k, Tensor *v, int64_t first)
{
    Tensor *keys = tape_tensor(tape, REAL, k->shape, whole());
    for (int64_t s = 0; s < S; s++) {
        Tensor *key = rotary(positions_of(k, s, s + 1), HEADS, s, ANGLES);
        kernel_copy_rows(B, WIDTH, reals(key), WIDTH, reals(keys) + s * WIDTH, S * WIDTH);
    }
    return attention_causal(rotary(positions_of(q, first, S), HEADS, first, ANGLES), keys, v, NULL,
                            HEADS, 0.5f);
}

START_TEST(a_cache_of_keys_and_values_gives_the_rows_of_the_whole)
{
    tape_record(tape, false);
    Tensor *q = normal("q", SHAPE(B, S, WIDTH), whole()),
           *k = normal("k", SHAPE(B, S, WIDTH), whole()),
           *v = normal("v", SHAPE(B, S, WIDTH), whole());
    Tensor *all = attention_causal(rotary(q, HEADS, 0, ANGLES), rotary(k, HEADS, 0, ANGLES), v,
                                   NULL, HEADS, 0.5f);
    Tensor *last = attention_from(q, k, v, _i), *rows = positions_of(all, _i, S);
    assert_close("y", tensor_count(last), reals(last), reals(rows), 1e-14);
}
END_TEST

/* The product of a query and a key depends only on the distance between their positions. */
START_TEST(rotated_scores_depend_on_distances_alone)
{
    Tensor *q = normal("q", SHAPE(1, 1, D), whole()), *k = normal("k", SHAPE(1, 1, D), whole());
    double scores[2] = {0};
    for (int64_t i = 0; i < 2; i++) {
        const real *x = reals(rotary(q, 1, 7 + 1000 * i, ANGLES)),
                   *y = reals(rotary(k, 1, 3 + 1000 * i, ANGLES));
        for (int d = 0; d < D; d++)
            scores[i] += x[d] * y[d];
    }
    ck_assert_double_eq_tol(scores[0], scores[1], 1e-12);
}
END_TEST

Suite *suite(void)
{
    Suite *s = suite_create("heads");
    TCase *tcase = tcase_create("heads");
    tcase_add_checked_fixture(tcase, tape_up, tape_down);
    tcase_add_test(tcase, copies_of_a_head_are_side_by_side);
    tcase_add_test(tcase, one_copy_per_head_is_the_tensor_itself);
    tcase_add_loop_test(tcase, a_cache_of_keys_and_values_gives_the_rows_of_the_whole, 0, S);
    tcase_add_test(tcase, rotated_scores_depend_on_distances_alone);
    suite_add_tcase(s, tcase);
    return s;
}
