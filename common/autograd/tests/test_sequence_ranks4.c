/* The pairs along the sequence on the tape, and a block on shards of the positions, over 1, 2, 3
 * and 4 ranks. Ranks 0.._i-1 form one group and the others another, at the same time. */
#include "autograd/tests/fixture.h"
#include "comm/tests/ranks.h"
#include "model/sequence_block.h"

Suite *suite(void);

enum { B = 2, S = 12, H = 24, HEADS = 12, INNER = 36, ALL = B * S * H }; /* 1 to 4 divide S */

static Group *group;
static int size, rank;

static void group_up(int of_first)
{
    group = group_of_first(of_first);
    size = group_size(group), rank = group_rank(group);
    rank_up(rank, size);
    mesh.world = mesh.tp = group;
}

static Placement if_split(Placement placement)
{
    return size > 1 ? placement : whole();
}

/* This rank's positions of numbers [B,S,H]. */
static Tensor *own_positions(const real *all)
{
    const int each = S / size;
    real own[ALL];
    for (int i = 0; i < B * each * H; i++)
        own[i] = all[(i / (each * H) * S + rank * each) * H + i % (each * H)];
    return tape_reals(tape, SHAPE(B, each, H), if_split(shard(1)), own, true);
}

static void assert_own(const char *what, const Tensor *x, const real *all, double tolerance)
{
    const int each = S / size * H;
    ck_assert_int_eq(tensor_count(x), B * each);
    for (int b = 0; b < B; b++)
        assert_close(what, each, reals(x) + b * each, all + b * S * H + rank * each, tolerance);
}

/* Rank r's number at index i. */
static real number(int r, int i)
{
    return (real)((r + 1) * 1000 + i % 997);
}

static void numbers_of(int r, real *all)
{
    for (int i = 0; i < ALL; i++)
        all[i] = number(r, i);
}

static void sum_of_ranks(real *all)
{
    for (int i = 0; i < ALL; i++) {
        all[i] = 0;
        for (int r = 0; r < size; r++)
            all[i] += number(r, i);
    }
}

START_TEST(the_gather_joins_positions_and_adds_their_gradients)
{
    real all[ALL], own[ALL], sum[ALL];
    group_up(_i);
    fill_normal("x", ALL, all);
    Tensor *x = own_positions(all), *y = gather_sequence(x, &mesh);
    ck_assert(placement_equal(y->placement, if_split((Placement){COPIED, 0})));
    assert_close("y", ALL, reals(y), all, 0);
    numbers_of(rank, own);
    tape_backward(tape, y, tape_reals(tape, SHAPE(B, S, H), whole(), own, false));
    sum_of_ranks(sum);
    assert_own("dx", x->gradient, sum, 0);
    tape_down();
}
END_TEST

START_TEST(the_reduce_scatter_adds_terms_and_joins_their_gradients)
{
    real own[ALL], sum[ALL], all[ALL];
    group_up(_i);
    numbers_of(rank, own);
    sum_of_ranks(sum);
    Tensor *x = tape_reals(tape, SHAPE(B, S, H), if_split((Placement){PARTIAL, 0}), own, true);
    Tensor *y = reduce_scatter_sequence(x, &mesh);
    ck_assert(placement_equal(y->placement, if_split(shard(1))));
    assert_own("y", y, sum, 0);
    fill_normal("dy", ALL, all);
    tape_backward(tape, y, own_positions(all));
    assert_close("dx", ALL, reals(x->gradient), all, 0);
    tape_down();
}
END_TEST

static int64_t held(void)
{
    const MemoryUse use = memory_use();
    int64_t bytes = 0;
    for (int i = 0; i < CATEGORIES; i++)
        bytes += use.now[i];
    return bytes;
}

START_TEST(what_is_gathered_is_not_kept_but_gathered_again)
{
    real all[ALL], weights[H * H];
    group_up(_i);
    fill_normal("x", ALL, all);
    fill_normal("w", H * H, weights);
    Tensor *x = own_positions(all), *w = tape_reals(tape, SHAPE(H, H), whole(), weights, true);
    w->placement = if_split(shard(0)); /* each rank multiplies by the whole matrix */
    w->undivided = (int64_t)H * size;
    const int64_t before = held();
    const TapeMark mark = tape_mark(tape);
    Tensor *y = linear(gather_sequence(x, &mesh), w);
    tape_release_since(tape, mark, y);
    ck_assert_int_le(held() - before, ALL * (int64_t)sizeof(real) + 64);
    const Counter calls = group_total(group);
    tape_backward(tape, y, tape_reals(tape, SHAPE(B, S, H), y->placement, all, false));
    ck_assert_int_eq(group_total(group).calls - calls.calls, size > 1 ? 2 : 0);
    for (int i = 0; i < H * H; i++) { /* dw = dy^T x, with dy = x */
        double sum = 0;
        for (int row = 0; row < B * S; row++)
            sum += (double)all[row * H + i / H] * (double)all[row * H + i % H];
        ck_assert(fabs((double)reals(w->gradient)[i] - sum) <= 1e-4 * (1 + fabs(sum)));
    }
    tape_down();
}
END_TEST

/* ---- a block --------------------------------------------------------------------------------------------------- */

static int64_t copy_marked(const Model *model, Tensor *all, bool back)
{
    int64_t at = 0;
    for (const Parameter *p = model->parameters; p; p = p->next) {
        if (!(p->partial & OVER_TP))
            continue;
        real *own = reals(p->value->gradient), *there = all ? reals(all) + at : NULL;
        if (all)
            kernel_vector_copy(tensor_count(p->value), back ? there : own, back ? own : there);
        at += tensor_count(p->value);
    }
    return at;
}

static Model *run_block(Tensor *(*positions)(const real *all), Tensor **x, Tensor **y)
{
    real numbers[ALL], gradient[ALL];
    int32_t mask[B * S];
    fill_normal("x", ALL, numbers);
    fill_normal("dy", ALL, gradient);
    for (int i = 0; i < B * S; i++)
        mask[i] = i % S < S - 3 * (i / S);
    Model *model = model_new(pool, &mesh, 5);
    const SequenceBlock *block =
        sequence_block_new(within(model->builder, "block"), H, HEADS, INNER,
                           (SequenceDropout){.residual = 0.25, .inner = 0.375});
    model_finish(model);
    model_use_tape(model, tape);
    model_clear_gradients(model);
    *x = positions(numbers);
    *y = sequence_block_forward(block, *x, tape_ints(tape, SHAPE(B, S), mask), &mesh);
    tape_backward(tape, *y, positions(gradient));
    const int64_t marked = copy_marked(model, NULL, false);
    ck_assert_int_eq(marked, size > 1 ? 4 * H : 0);
    if (marked > 0) {
        Tensor *all = tape_tensor(tape, REAL, SHAPE(marked), whole());
        copy_marked(model, all, false);
        sum_norm_gradients(all, &mesh);
        copy_marked(model, all, true);
    }
    return model;
}

static Tensor *all_positions(const real *all)
{
    return tape_reals(tape, SHAPE(B, S, H), whole(), all, true);
}

/* Compares each element of this rank's part of each gradient with the gradient on one rank. */
static void compare_gradients(const Model *model, const Model *on_one_rank)
{
    for (const Parameter *p = model->parameters, *q = on_one_rank->parameters; p;
         p = p->next, q = q->next)
        for (int64_t i = 0; i < tensor_count(p->value); i++) {
            const double is = (double)reals(p->value->gradient)[i],
                         right = (double)reals(q->value->gradient)[parameter_global_index(p, i)];
            ck_assert_msg(fabs(is - right) <= 1e-4 * (1 + fabs(right)), "%s: %g instead of %g",
                          p->name, is, right);
        }
}

START_TEST(a_block_on_shards_of_the_positions_is_the_block_on_one_rank)
{
    Tensor *x, *y;
    real right_y[ALL], right_dx[ALL];
    group_up(_i);
    const Mesh split = mesh;
    const int ranks = size;
    Group *alone = group_split(group, rank, 0);
    mesh = (Mesh){.world = alone, .tp = alone, .tp_degree = 1, .dp_degree = 1};
    size = 1;
    Model *whole_one = run_block(all_positions, &x, &y);
    memcpy(right_y, reals(y), sizeof right_y);
    memcpy(right_dx, reals(x->gradient), sizeof right_dx);
    mesh = split;
    size = ranks;
    next_step(1);
    Model *model = run_block(own_positions, &x, &y);
    assert_own("y", y, right_y, 1e-5);
    assert_own("dx", x->gradient, right_dx, 1e-4);
    compare_gradients(model, whole_one);
    model_free(model);
    model_free(whole_one);
    tape_down();
}
END_TEST

START_TEST(tensors_without_positions_are_refused)
{
    group_up(1);
    Tensor *flat = normal("x", SHAPE(B, H), whole());
    ASSERT_MISUSE(gather_sequence(flat, &mesh), "gather_sequence: x [2,24]");
    ASSERT_MISUSE(reduce_scatter_sequence(flat, &mesh), "reduce_scatter_sequence: x [2,24]");
    tape_down();
}
END_TEST

START_TEST(positions_that_the_ranks_cannot_share_are_refused)
{
    group_up(2);
    Tensor *x = normal("x", SHAPE(B, 5, H), (Placement){PARTIAL, 0});
    ASSERT_MISUSE(reduce_scatter_sequence(x, &mesh), "group_reduce_scatter", "[2,5,24]");
    tape_down();
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("sequence");
    TCase *tcase = tcase_create("sequence");
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_loop_test(tcase, the_gather_joins_positions_and_adds_their_gradients, 1, 5);
    tcase_add_loop_test(tcase, the_reduce_scatter_adds_terms_and_joins_their_gradients, 1, 5);
    tcase_add_loop_test(tcase, what_is_gathered_is_not_kept_but_gathered_again, 1, 5);
    tcase_add_loop_test(tcase, a_block_on_shards_of_the_positions_is_the_block_on_one_rank, 1, 5);
    tcase_add_test(tcase, tensors_without_positions_are_refused);
    tcase_add_test(tcase, positions_that_the_ranks_cannot_share_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
