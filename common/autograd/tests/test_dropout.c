/* Dropout drops the same elements in a whole tensor and in shards, whatever else is in the
 * batch. */
#include "autograd/tests/fixture.h"
#include "autograd/placement.h"

Suite *suite(void);

enum { B = 3, S = 5, H = 12, COUNT = B * S * H };
static const double probability = 0.25;

/* Draws the mask of `samples` on rank `rank` of `ranks`, by dropout of ones. */
static void draw(int rank, int ranks, const int64_t *samples, int64_t step, const char *name,
                 real *kept)
{
    rank_up(rank, ranks);
    tape_reset(
        tape,
        (TapeBatch){.seed = 7, .step = step, .count = 64, .samples = samples, .training = true});
    real ones[COUNT];
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;
    Placement placement = ranks > 1 ? shard(2) : whole();
    Tensor *x = tape_reals(tape, SHAPE(B, S, H / ranks), placement, ones, true);
    Tensor *y = dropout_with(x, name, probability);
    ck_assert(placement_equal(y->placement, placement));
    memcpy(kept, reals(y), (size_t)(COUNT / ranks) * sizeof *kept);
    tape_down();
}

static const int64_t samples[] = {5, 9000000000, 2};

/* The columns are split over _i ranks. */
START_TEST(a_shard_drops_its_columns_of_the_whole)
{
    int ranks = _i, columns = H / ranks;
    real all[COUNT], mine[COUNT];
    draw(0, 1, samples, 4, "dropout", all);
    for (int rank = 0; rank < ranks; rank++) {
        draw(rank, ranks, samples, 4, "dropout", mine);
        for (int row = 0; row < B * S; row++)
            assert_close("row", columns, mine + row * columns, all + row * H + rank * columns, 0);
    }
}
END_TEST

/* Each of S ranks holds one position. */
START_TEST(a_shard_drops_its_positions_of_the_whole)
{
    enum { RANKS = 5, EACH = S / RANKS * H };
    real all[COUNT], ones[B * EACH];
    draw(0, 1, samples, 4, "dropout", all);
    for (int i = 0; i < B * EACH; i++)
        ones[i] = 1;
    for (int rank = 0; rank < RANKS; rank++) {
        rank_up(rank, RANKS);
        tape_reset(
            tape,
            (TapeBatch){.seed = 7, .step = 4, .count = 64, .samples = samples, .training = true});
        Tensor *x = tape_reals(tape, SHAPE(B, S / RANKS, H), shard(1), ones, true);
        const Tensor *y = dropout_with(x, "dropout", probability);
        ck_assert(placement_equal(y->placement, shard(1)));
        for (int b = 0; b < B; b++)
            assert_close("text", EACH, reals(y) + b * EACH, all + (b * RANKS + rank) * EACH, 0);
        tape_down();
    }
}
END_TEST

START_TEST(a_sample_is_dropped_alike_in_every_batch)
{
    real first[COUNT], second[COUNT];
    draw(0, 1, samples, 4, "dropout", first);
    draw(0, 1, (const int64_t[]){2, 77, 9000000000}, 4, "dropout", second);
    assert_close("sample 2", S * H, second, first + 2 * S * H, 0);
    assert_close("sample 9000000000", S * H, second + 2 * S * H, first + S * H, 0);
}
END_TEST

static double share_of_equal(const real *a, const real *b)
{
    int equal = 0;
    for (int i = 0; i < COUNT; i++)
        equal += a[i] == b[i];
    return (double)equal / COUNT;
}

START_TEST(a_different_step_name_or_sample_drops_different_elements)
{
    real kept[COUNT], other[COUNT];
    /* Independent masks agree in 1 - 2p(1-p) = 5/8 of the numbers; the bound is five standard
     * deviations above that. */
    const double most = 0.625 + 5 * 0.484 / 13.4;
    draw(0, 1, samples, 4, "dropout", kept);
    draw(0, 1, samples, 5, "dropout", other);
    ck_assert_double_lt(share_of_equal(kept, other), most);
    draw(0, 1, samples, 4, "blocks.1.dropout", other);
    ck_assert_double_lt(share_of_equal(kept, other), most);
    draw(0, 1, (const int64_t[]){6, 9000000001, 3}, 4, "dropout", other);
    ck_assert_double_lt(share_of_equal(kept, other), most);
    draw(0, 1, (const int64_t[]){5, 9000000000 - ((int64_t)2 << 32), 2}, 4, "dropout", other);
    ck_assert_double_lt(share_of_equal(kept, other), 1);
    int alike = 0; /* rows of 12 columns agree with probability 0.0036 */
    for (int i = 1; i < B * S; i++)
        alike += memcmp(kept, kept + i * H, H * sizeof *kept) == 0;
    ck_assert_int_le(alike, 1);
}
END_TEST

START_TEST(kept_elements_are_scaled_up)
{
    real kept[COUNT];
    int count = 0;
    for (int step = 0; step < 50; step++) {
        draw(0, 1, samples, step, "dropout", kept);
        for (int i = 0; i < COUNT; i++) {
            ck_assert(kept[i] == 0 || fabs((double)kept[i] - 4 / 3.0) < 1e-6);
            count += kept[i] != 0;
        }
    }
    double deviation = sqrt(probability * (1 - probability) / (50 * COUNT));
    ck_assert_double_eq_tol(count / (50.0 * COUNT), 1 - probability, 5 * deviation);
}
END_TEST

START_TEST(the_gradient_passes_where_the_value_did)
{
    tape_up();
    Tensor *x = normal("x", SHAPE(B, S, H), whole()), *y = dropout_with(x, "dropout", probability);
    Tensor *dy = normal("dy", SHAPE(B, S, H), whole());
    tape_backward(tape, y, dy);
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq_tol(reals(x->gradient)[i], reals(y)[i] == 0 ? 0 : reals(dy)[i] * 4 / 3,
                               1e-6);
    tape_down();
}
END_TEST

START_TEST(a_tensor_without_positions_is_position_zero)
{
    tape_up();
    real ones[S * H];
    for (int i = 0; i < S * H; i++)
        ones[i] = 1;
    Tensor *flat = dropout_with(tape_reals(tape, SHAPE(2, H), whole(), ones, true), "dropout", 0.5);
    Tensor *deep =
        dropout_with(tape_reals(tape, SHAPE(2, 1, H), whole(), ones, true), "dropout", 0.5);
    assert_close("[B,H]", 2 * H, reals(flat), reals(deep), 0);
    tape_down();
}
END_TEST

START_TEST(evaluation_drops_nothing)
{
    tape_up();
    tape_reset(tape, (TapeBatch){.seed = 7, .count = 64, .samples = SAMPLES, .training = false});
    Tensor *x = normal("x", SHAPE(B, S, H), whole());
    ck_assert_ptr_eq(dropout_with(x, "dropout", 0.5), x);
    next_step(1);
    x = normal("x", SHAPE(B, S, H), whole());
    ck_assert_ptr_eq(dropout_with(x, "dropout", 0), x);
    tape_down();
}
END_TEST

START_TEST(gelu_and_dropout_of_a_shard_use_its_columns)
{
    real all[COUNT], input[COUNT];
    fill_normal("x", COUNT, input);
    tape_up();
    Tensor *x = tape_reals(tape, SHAPE(B, S, H), whole(), input, true);
    memcpy(all, reals(dropout_with(gelu(x), "dropout", probability)), sizeof all);
    tape_down();
    rank_up(2, 3);
    real mine[COUNT / 3];
    for (int i = 0; i < COUNT / 3; i++)
        mine[i] = input[i / 4 * H + 8 + i % 4];
    x = tape_reals(tape, SHAPE(B, S, H / 3), shard(2), mine, true);
    Tensor *y = dropout_with(gelu(x), "dropout", probability);
    for (int row = 0; row < B * S; row++)
        assert_close("row", 4, reals(y) + row * 4, all + row * H + 8, 1e-6);
    tape_down();
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("dropout");
    TCase *tcase = tcase_create("dropout");
    tcase_add_loop_test(tcase, a_shard_drops_its_columns_of_the_whole, 2, 5);
    tcase_add_test(tcase, a_shard_drops_its_positions_of_the_whole);
    tcase_add_test(tcase, a_sample_is_dropped_alike_in_every_batch);
    tcase_add_test(tcase, a_different_step_name_or_sample_drops_different_elements);
    tcase_add_test(tcase, kept_elements_are_scaled_up);
    tcase_add_test(tcase, the_gradient_passes_where_the_value_did);
    tcase_add_test(tcase, a_tensor_without_positions_is_position_zero);
    tcase_add_test(tcase, evaluation_drops_nothing);
    tcase_add_test(tcase, gelu_and_dropout_of_a_shard_use_its_columns);
    suite_add_tcase(suite, tcase);
    return suite;
}
