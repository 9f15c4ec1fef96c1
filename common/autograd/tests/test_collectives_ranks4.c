/* The collectives of balise.h on tensors, and f, g and the gather on the tape, over 1, 2, 3 and 4
 * ranks. The collectives take integers, so every sum is exact. Ranks 0.._i-1 form one group and the
 * others another, at the same time. */
#include "autograd/tape.h"
#include "autograd/tests/fixture.h"
#include "comm/tests/ranks.h"
#include "model/language.h"

Suite *suite(void);

enum { A = 12, B = 24, C = 36 }; /* divisible by every size of a group */
enum { MOST_NUMBERS = A * B * C };

static Group *group;
static int size, rank;

static void group_up(int of_first)
{
    group = group_of_first(of_first);
    size = group_size(group), rank = group_rank(group);
    rank_up(rank, size);
    mesh.world = group; /* as before lab 8 */
}

/* The number at index i of rank r's tensor. */
static real number(int r, int64_t i)
{
    return (real)((r + 1) * 1000 + i % 997);
}

static Tensor *tensor_of(int r, Shape shape, Placement placement)
{
    static real numbers[MOST_NUMBERS];
    ck_assert_int_le(shape_count(shape), MOST_NUMBERS);
    for (int64_t i = 0; i < shape_count(shape); i++)
        numbers[i] = number(r, i);
    return tape_reals(tape, shape, placement, numbers, true);
}

/* The sum of tensor_of() over the ranks. */
static real sum_at(int64_t i)
{
    real sum = 0;
    for (int r = 0; r < size; r++)
        sum += number(r, i);
    return sum;
}

/* The index of element i of block k along `dim`, in a tensor of `times` such blocks along `dim`. */
static int64_t index_in_larger(Shape shape, int dim, int k, int times, int64_t i)
{
    int64_t at[3] = {i / (shape.size[1] * shape.size[2]), i / shape.size[2] % shape.size[1],
                     i % shape.size[2]};
    Shape larger = shape_with(shape, dim, shape.size[dim] * times);
    at[dim] += k * shape.size[dim];
    return (at[0] * larger.size[1] + at[1]) * larger.size[2] + at[2];
}

static bool is_gathered(const Tensor *all, Shape shape, int dim)
{
    bool right = all->shape.size[dim] == shape.size[dim] * size &&
                 tensor_count(all) == shape_count(shape) * size;
    for (int r = 0; right && r < size; r++)
        for (int64_t i = 0; i < shape_count(shape); i++)
            right = right && reals(all)[index_in_larger(shape, dim, r, size, i)] == number(r, i);
    return right;
}

START_TEST(a_gather_joins_along_any_dimension)
{
    group_up(_i);
    const Shape shape = SHAPE(2, 3, 5);
    for (int dim = -1; dim < 3; dim++) {
        Tensor *all = group_all_gather(group, tensor_of(rank, shape, whole()), dim);
        ck_assert_msg(is_gathered(all, shape, dim < 0 ? 2 : dim), "along dimension %d", dim);
    }
    tape_down();
}
END_TEST

START_TEST(a_scatter_cuts_the_sum_along_any_dimension)
{
    group_up(_i);
    for (int dim = -1; dim < 3; dim++) {
        int along = dim < 0 ? 2 : dim;
        Tensor *mine = group_reduce_scatter(group, tensor_of(rank, SHAPE(A, B, C), whole()), dim);
        bool right = mine->shape.size[along] * size == (const int[]){A, B, C}[along];
        for (int64_t i = 0; i < tensor_count(mine); i++)
            right = right &&
                    reals(mine)[i] == sum_at(index_in_larger(mine->shape, along, rank, size, i));
        ck_assert_msg(right, "along dimension %d", dim);
    }
    tape_down();
}
END_TEST

START_TEST(a_sum_is_a_new_tensor)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole()), *sum = group_all_reduce(group, x);
    Tensor *first = group_broadcast(group, x, size - 1);
    for (int64_t i = 0; i < 30; i++) {
        ck_assert_float_eq(reals(sum)[i], sum_at(i));
        ck_assert_float_eq(reals(first)[i], number(size - 1, i));
        ck_assert_float_eq(reals(x)[i], number(rank, i));
    }
    tape_down();
}
END_TEST

static Tensor *narrow_tensor_of(int r, Shape shape)
{
    Tensor *x = tensor_of(r, shape, whole()), *y = tape_tensor(tape, HALF, shape, whole());
    for (int64_t i = 0; i < shape_count(shape); i++)
        reals(x)[i] = (real)((r + 1) * (i % 23)); /* 16 bits hold these and their sums */
    kernel_round(tensor_count(x), reals(x), halves(y));
    return y;
}

/* `uneven` cannot be cut into pairs for each rank, so its sum is in reals. */
START_TEST(numbers_in_16_bits_travel_as_such_and_have_the_same_sums)
{
    group_up(_i);
    const Shape shape = SHAPE(2, B, 6), uneven = SHAPE(1, 7, 5);
    group_reset_counters(group);
    Tensor *sum = group_all_reduce(group, narrow_tensor_of(rank, shape)),
           *other = group_all_reduce(group, narrow_tensor_of(rank, uneven)),
           *all = group_all_gather(group, narrow_tensor_of(rank, shape), 1),
           *mine = group_reduce_scatter(group, narrow_tensor_of(rank, shape), 1);
    ck_assert_int_eq(sum->dtype, HALF);
    ck_assert_int_eq(other->dtype, size > 1 ? REAL : HALF);
    ck_assert_int_eq(all->dtype, HALF);
    ck_assert_int_eq(mine->dtype, HALF);
    const int64_t count = shape_count(shape);
    ck_assert_int_eq(group_counter(group, ALL_GATHER).bytes, (size - 1) * count * 2);
    ck_assert_int_eq(group_counter(group, REDUCE_SCATTER).bytes, (size - 1) * count / size * 2);
    const int times = size * (size + 1) / 2;
    bool right = true;
    for (int64_t i = 0; i < count; i++)
        right = right && reals(ready(sum))[i] == (real)(times * (i % 23));
    for (int64_t i = 0; i < shape_count(uneven); i++)
        right = right && reals(ready(other))[i] == (real)(times * (i % 23));
    for (int64_t i = 0; i < tensor_count(mine); i++)
        right = right && reals(ready(mine))[i] ==
                             (real)(times * (index_in_larger(mine->shape, 1, rank, size, i) % 23));
    for (int r = 0; r < size; r++)
        for (int64_t i = 0; i < count; i++)
            right = right && reals(ready(all))[index_in_larger(shape, 1, r, size, i)] ==
                                 (real)((r + 1) * (i % 23));
    ck_assert(right);
    tape_down();
}
END_TEST

START_TEST(a_maximum_is_a_new_tensor)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    scale(x, -1);
    Tensor *most = group_all_max(group, x);
    for (int64_t i = 0; i < 30; i++) {
        ck_assert_float_eq(reals(most)[i], -number(0, i));
        ck_assert_float_eq(reals(x)[i], -number(rank, i));
    }
    tape_down();
}
END_TEST

/* This also holds in a group of one, where sum and argument share a buffer at first. */
START_TEST(a_sum_and_its_argument_may_each_be_written_without_changing_the_other)
{
    group_up(_i);
    for (int way = 0; way < 4; way++) {
        Tensor *x = tensor_of(rank, SHAPE(2, 3), whole());
        float *before = way == 0 ? tensor_data(x) : NULL;
        Tensor *sum = way == 1 ? group_all_gather(group, x, 0) : group_all_reduce(group, x);
        const real first = way == 1 ? number(0, 0) : sum_at(0);
        if (way == 0)
            before[0] = -1;
        else if (way == 1)
            scale(x, 2);
        else if (way == 2)
            tensor_data(sum)[0] = -1;
        else
            pending_wait(group_all_reduce_start(group, sum));
        ck_assert(reals(sum)[0] == (way == 2 ? -1 : way == 3 ? (real)size * first : first));
        ck_assert(reals(x)[0] == (way == 0   ? -1
                                  : way == 1 ? 2 * number(rank, 0)
                                             : number(rank, 0)));
    }
    tape_down();
}
END_TEST

START_TEST(a_started_sum_is_complete_after_the_wait)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    Pending *pending = group_all_reduce_start(group, x);
    pending_wait(pending);
    for (int64_t i = 0; i < 30; i++)
        ck_assert_float_eq(reals(x)[i], sum_at(i));
    tape_down();
}
END_TEST

START_TEST(a_started_sum_of_a_shared_gradient_leaves_the_other_tensor_unchanged)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3), whole()), *y = tensor_of(rank, SHAPE(2, 3), whole());
    Tensor *z = add(x, y);
    tape_backward(tape, z, tensor_of(rank, SHAPE(2, 3), whole()));
    x->gradient->may_be_shared = true; /* as when it is passed to a backward function */
    pending_wait(group_all_reduce_start(group, x->gradient));
    for (int64_t i = 0; i < 6; i++) {
        ck_assert_float_eq(reals(x->gradient)[i], sum_at(i));
        ck_assert_float_eq(reals(y->gradient)[i], number(rank, i));
    }
    tape_down();
}
END_TEST

START_TEST(releasing_a_tensor_before_the_wait_is_refused_and_its_buffer_is_not_reused)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    Buffer *summed = x->buffer;
    Pending *pending = group_all_reduce_start(group, x);
    ASSERT_MISUSE((tape_must_be_summed(tape), 0), "never waited for");
    ASSERT_MISUSE((tape_release_since(tape, (TapeMark){0}, NULL), 0), "never waited for");
    tape_release_value(x);
    ck_assert_ptr_ne(tensor_of(rank, SHAPE(2, 3, 5), whole())->buffer, summed);
    pending_wait(pending);
    tape_must_be_summed(tape);
    buffer_release(summed);
    tape_down();
}
END_TEST

START_TEST(using_a_tensor_before_the_wait_is_refused_and_so_is_a_second_wait)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    Pending *pending = group_all_reduce_start(group, x);
    ASSERT_MISUSE((scale(x, 2), 0), "still in progress");
    ASSERT_MISUSE(tensor_data(x), "still in progress");
    ASSERT_MISUSE(tensor_copy(x), "still in progress");
    ASSERT_MISUSE(group_all_reduce_start(group, x), "still in progress");
    pending_wait(pending);
    ASSERT_MISUSE((pending_wait(pending), 0), "already been waited for");
    scale(x, 2);
    for (int64_t i = 0; i < 30; i++)
        ck_assert_float_eq(reals(x)[i], 2 * sum_at(i));
    tape_down();
}
END_TEST

START_TEST(a_slice_shares_the_memory_of_its_tensor)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    Tensor *all = group_all_reduce(group, x); /* with one rank, `all` also shares x's buffer */
    Tensor *few = slice(slice(x, 4, 20), 3, 5), *none = slice(x, 30, 30);
    accumulate(few, slice(x, 0, 2));
    scale(x, 2);
    ck_assert_int_eq(tensor_count(none), 0);
    accumulate(none, slice(x, 7, 7));
    for (int64_t i = 0; i < 30; i++) {
        real right = number(rank, i) + (i == 7 || i == 8 ? number(rank, i - 7) : 0);
        ck_assert_float_eq(reals(x)[i], 2 * right);
        ck_assert_float_eq(reals(all)[i], sum_at(i));
    }
    ck_assert_float_eq(reals(few)[1], reals(x)[8]);
    tape_down();
}
END_TEST

/* Part k holds k numbers, except the last part, which holds the rest. */
static Range longer_and_longer(int64_t count, int k, int n)
{
    return (Range){k * (k - 1) / 2, k == n - 1 ? count : (k + 1) * k / 2};
}

static Range overlapping(int64_t count, int k, int n)
{
    return (Range){0, count};
}

/* Returns the right part when asked for the first time, and later one far outside the tensor. */
static int times_asked;
static Range moving(int64_t count, int k, int n)
{
    const Range right = longer_and_longer(count, k, n);
    return times_asked++ < n ? right : (Range){right.begin - (1 << 20), right.end + (1LL << 33)};
}

START_TEST(a_part_is_asked_for_once)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    times_asked = 0;
    group_reduce_scatter_parts(group, x, moving);
    ck_assert_int_eq(times_asked, size);
    tape_down();
}
END_TEST

START_TEST(parts_are_added_and_gathered_in_place)
{
    group_up(_i);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    const Range mine = longer_and_longer(30, rank, size);
    group_reduce_scatter_parts(group, x, longer_and_longer);
    scale(slice(x, mine.begin, mine.end), 2);
    group_all_gather_parts(group, x, longer_and_longer);
    for (int64_t i = 0; i < 30; i++)
        ck_assert_float_eq(reals(x)[i], 2 * sum_at(i));
    if (size > 1) {
        ASSERT_MISUSE((group_all_gather_parts(group, x, overlapping), 0), "part 1 (of", "0 to 30",
                      "end at 30");
        ASSERT_MISUSE((group_reduce_scatter_parts(group, x, overlapping), 0), "part 1 (of");
    }
    tape_down();
}
END_TEST

START_TEST(messages_carry_slices_and_a_started_send_leaves_its_tensor_readable)
{
    group_up(_i);
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    Tensor *room = tensor_copy(x);
    if (size > 1) {
        Pending *sent = group_send_start(group, slice(x, 0, 0), right);
        group_receive(group, slice(room, 1, 1), left);
        pending_wait(sent);
        sent = group_send_start(group, slice(x, 3, 5), right);
        accumulate(room, x);
        group_receive(group, slice(room, 10, 12), left);
        ASSERT_MISUSE((tape_must_be_summed(tape), 0), "never waited for");
        pending_wait(sent);
        for (int64_t i = 0; i < 30; i++)
            ck_assert_float_eq(reals(room)[i],
                               i == 10 || i == 11 ? number(left, i - 7) : 2 * number(rank, i));
    }
    tape_must_be_summed(tape);
    tape_down();
}
END_TEST

START_TEST(slices_and_messages_that_do_not_fit_are_refused)
{
    group_up(4);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    ASSERT_MISUSE(slice(x, 3, 31), "begin 3 and end 31", "end <= 30");
    ASSERT_MISUSE(slice(x, -1, 3), "begin -1");
    ASSERT_MISUSE(slice(x, 5, 4), "begin 5 and end 4");
    ASSERT_MISUSE((accumulate(slice(x, 0, 3), slice(x, 0, 2)), 0), "the sum is [3]",
                  "added is [2]");
    ASSERT_MISUSE((group_send(group, x, 4), 0), "no rank 4 in a group of 4");
    ASSERT_MISUSE(group_send_start(group, x, rank), "cannot exchange with itself");
    ASSERT_MISUSE((group_receive(group, x, -1), 0), "no rank -1");
    tape_down();
}
END_TEST

START_TEST(uneven_parts_and_missing_ranks_and_dimensions_are_refused)
{
    group_up(4);
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), whole());
    ASSERT_MISUSE(group_reduce_scatter(group, x, 1), "dimension 1", "[2,3,5]", "4 equal parts");
    ASSERT_MISUSE(group_broadcast(group, x, 4), "no rank 4 in a group of 4");
    ASSERT_MISUSE(group_all_gather(group, x, 3), "dimension 3");
    tape_down();
}
END_TEST

START_TEST(f_copies_forward_and_adds_backward)
{
    group_up(_i);
    Tensor *x = tensor_of(0, SHAPE(2, 3, 5), whole()), *y = duplication(x, &mesh);
    ck_assert_int_eq(y->placement.kind, size > 1 ? COPIED : WHOLE);
    tape_backward(tape, y, tensor_of(rank, SHAPE(2, 3, 5), whole()));
    for (int64_t i = 0; i < 30; i++) {
        ck_assert_float_eq(reals(y)[i], number(0, i));
        ck_assert_float_eq(reals(x->gradient)[i], sum_at(i));
    }
    tape_down();
}
END_TEST

START_TEST(g_adds_forward_and_copies_backward)
{
    group_up(_i);
    const Placement partial = {size > 1 ? PARTIAL : WHOLE, 0};
    Tensor *x = tensor_of(rank, SHAPE(2, 3, 5), partial), *y = all_reduce(x, &mesh);
    ck_assert_int_eq(y->placement.kind, WHOLE);
    tape_backward(tape, y, tensor_of(0, SHAPE(2, 3, 5), whole()));
    for (int64_t i = 0; i < 30; i++) {
        ck_assert_float_eq(reals(y)[i], sum_at(i));
        ck_assert_float_eq(reals(x->gradient)[i], number(0, i));
    }
    tape_down();
}
END_TEST

START_TEST(the_gather_joins_forward_and_cuts_backward)
{
    group_up(_i);
    const Shape shape = SHAPE(2, 3, 5);
    for (int dim = 0; dim < 3; dim++) {
        Tensor *x = tensor_of(rank, shape, size > 1 ? shard(dim) : whole()),
               *y = all_gather(x, dim, &mesh);
        ck_assert(is_gathered(y, shape, dim));
        tape_backward(tape, y, tensor_of(7, y->shape, whole()));
        for (int64_t i = 0; i < 30; i++)
            ck_assert_float_eq(reals(x->gradient)[i],
                               number(7, index_in_larger(shape, dim, rank, size, i)));
    }
    tape_down();
}
END_TEST

/* ---- two linear layers: whole on every rank, and split as in figure 3a of arXiv:1909.08053 ---------------- */

typedef struct Pass {
    real y[24], dx[24], dup[96], ddown[96]; /* [2,3,4], [24,4] and [4,24] */
} Pass;

/* A weight of normal numbers, or this rank's part of it. */
static Tensor *cut(const char *name, int64_t rows, int64_t columns, int dim, bool split)
{
    real all[96], mine[96];
    int parts = split ? size : 1, part_held = split ? rank : 0;
    fill_normal(name, 96, all);
    int64_t held_rows = dim == 0 ? rows / parts : rows,
            held_columns = dim == 1 ? columns / parts : columns;
    int64_t first = dim == 0 ? part_held * held_rows * columns : part_held * held_columns;
    for (int64_t r = 0; r < held_rows; r++)
        for (int64_t c = 0; c < held_columns; c++)
            mine[r * held_columns + c] = all[first + r * columns + c];
    return tape_reals(tape, SHAPE(held_rows, held_columns), parts > 1 ? shard(dim) : whole(), mine,
                      true);
}

static void feed_forward(Pass *pass, bool split)
{
    Tensor *x = normal("x", SHAPE(2, 3, 4), whole()), *h = split ? duplication(x, &mesh) : x;
    Tensor *up = cut("up", 24, 4, 0, split), *down = cut("down", 4, 24, 1, split);
    h = dropout_with(gelu(linear(h, up)), "dropout", 0.3);
    Tensor *y = add(x, split ? all_reduce(linear(h, down), &mesh) : linear(h, down));
    tape_backward(tape, y, normal("dy", SHAPE(2, 3, 4), whole()));
    memcpy(pass->y, reals(y), sizeof pass->y);
    memcpy(pass->dx, reals(x->gradient), sizeof pass->dx);
    memcpy(pass->dup, reals(up->gradient), (size_t)tensor_count(up) * sizeof(real));
    memcpy(pass->ddown, reals(down->gradient), (size_t)tensor_count(down) * sizeof(real));
}

START_TEST(a_split_pair_equals_the_whole_pair)
{
    Pass plain, split;
    group_up(_i);
    mesh.tp_degree = 1; /* the whole pair: nothing is split */
    feed_forward(&plain, false);
    next_step(1);
    mesh.tp_degree = size;
    feed_forward(&split, true);
    const double tolerance = 1e-5; /* sums of 24 numbers of about 1 in single precision */
    assert_close("y", 24, split.y, plain.y, tolerance);
    assert_close("dx", 24, split.dx, plain.dx, tolerance);
    int held = 24 / size;
    assert_close("dup", held * 4, split.dup, plain.dup + rank * held * 4, tolerance);
    for (int row = 0; row < 4; row++)
        assert_close("ddown", held, split.ddown + row * held, plain.ddown + row * 24 + rank * held,
                     tolerance);
    tape_down();
}
END_TEST

/* ---- the cross entropy of logits split by columns, compared with the kernel for whole rows --------------- */

enum { TEXTS = 2, LENGTH = 5, TOKENS = TEXTS * LENGTH, MOST_COLUMNS = 11 };
enum { VOCABULARIES = 2, SPREADS = 3, DIVISORS = 2 };

static const int32_t TARGETS[TOKENS] = {0, 4, NO_ID, 2, 4, 1, NO_ID, 3, 0, 2};

typedef struct Loss {
    double loss;
    real dlogits[TOKENS * MOST_COLUMNS];
} Loss;

static const real *all_logits(int64_t columns, float spread)
{
    static real all[TOKENS * MOST_COLUMNS];
    fill_normal("logits", TOKENS * columns, all);
    for (int64_t i = 0; i < TOKENS * columns; i++)
        all[i] *= spread;
    return all;
}

static Loss loss_of_whole_rows(const real *all, int64_t columns, int64_t divisor)
{
    Loss expected = {0};
    int32_t labels[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        labels[i] = TARGETS[i] == NO_ID ? 0 : TARGETS[i];
    Tensor *logits = tape_reals(tape, SHAPE(TOKENS, columns), whole(), all, false);
    Tensor *each = tape_reals(tape, SHAPE(TOKENS), whole(), all, false);
    Tensor *dlogits = tape_reals(tape, logits->shape, whole(), all, false);
    kernel_cross_entropy(TOKENS, columns, reals(logits),
                         ints(tape_ints(tape, SHAPE(TOKENS), labels)), reals(each), reals(dlogits));
    for (int i = 0; i < TOKENS; i++) {
        if (TARGETS[i] == NO_ID)
            continue;
        expected.loss += (double)reals(each)[i] / (double)divisor;
        for (int64_t c = 0; c < columns; c++)
            expected.dlogits[i * columns + c] = reals(dlogits)[i * columns + c] / (real)divisor;
    }
    return expected;
}

/* This rank's logits. Some ranks hold fewer columns than others, or none. */
static Tensor *own_logits(const real *all, int64_t columns, Range *held)
{
    real mine[TOKENS * MOST_COLUMNS];
    *held = chunk(columns, rank, size);
    const int64_t width = held->end - held->begin;
    for (int64_t i = 0; i < TOKENS * width; i++)
        mine[i] = all[i / width * columns + held->begin + i % width];
    Tensor *logits =
        tape_reals(tape, SHAPE(TEXTS, LENGTH, width), size > 1 ? shard(2) : whole(), mine, true);
    logits->undivided = columns; /* as linear() sets it */
    return logits;
}

static void compare_losses(int64_t columns, float spread, int64_t divisor)
{
    Range held;
    const real *all = all_logits(columns, spread);
    const Loss expected = loss_of_whole_rows(all, columns, divisor);
    Tensor *logits = own_logits(all, columns, &held);
    Tensor *targets = tape_ints(tape, SHAPE(TEXTS, LENGTH), TARGETS);
    Tensor *loss = vocabulary_parallel_cross_entropy(logits, targets, &mesh);
    tape_backward(tape, loss, NULL);
    ck_assert_int_eq(loss->placement.kind, WHOLE);
    ck_assert_double_eq_tol((double)reals(loss)[0], expected.loss, 1e-6 * (1 + expected.loss));
    for (int64_t i = 0; i < TOKENS; i++)
        assert_close("dlogits", held.end - held.begin,
                     reals(logits->gradient) + i * (held.end - held.begin),
                     expected.dlogits + i * columns + held.begin, 1e-6);
}

START_TEST(a_split_vocabulary_gives_the_loss_of_whole_rows)
{
    static const int64_t columns[VOCABULARIES] = {MOST_COLUMNS, 5};
    static const float spread[SPREADS] = {1, 30, 1e4f};
    group_up(_i);
    for (int k = 0; k < VOCABULARIES * SPREADS * DIVISORS; k++) {
        const int64_t tokens = k % DIVISORS ? 17 : 0; /* of the step; 0: of this batch */
        next_step(1);
        tape->batch.tokens = tokens;
        compare_losses(columns[k / DIVISORS / SPREADS], spread[k / DIVISORS % SPREADS],
                       tokens ? tokens : TOKENS - 2);
    }
    tape_down();
}
END_TEST

START_TEST(a_batch_without_targets_has_no_loss)
{
    group_up(_i);
    Range held;
    int32_t none[TOKENS];
    for (int i = 0; i < TOKENS; i++)
        none[i] = NO_ID;
    Tensor *logits = own_logits(all_logits(MOST_COLUMNS, 1), MOST_COLUMNS, &held);
    Tensor *targets = tape_ints(tape, SHAPE(TEXTS, LENGTH), none);
    Tensor *loss = vocabulary_parallel_cross_entropy(logits, targets, &mesh);
    tape_backward(tape, loss, NULL);
    ck_assert(reals(loss)[0] == 0);
    for (int64_t i = 0; i < tensor_count(logits); i++)
        ck_assert(reals(logits->gradient)[i] == 0);
    tape_down();
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("collectives");
    TCase *tcase = tcase_create("collectives");
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_loop_test(tcase, a_gather_joins_along_any_dimension, 1, 5);
    tcase_add_loop_test(tcase, a_scatter_cuts_the_sum_along_any_dimension, 1, 5);
    tcase_add_loop_test(tcase, a_sum_is_a_new_tensor, 1, 5);
    tcase_add_loop_test(tcase, numbers_in_16_bits_travel_as_such_and_have_the_same_sums, 1, 5);
    tcase_add_loop_test(tcase, a_maximum_is_a_new_tensor, 1, 5);
    tcase_add_loop_test(
        tcase, a_sum_and_its_argument_may_each_be_written_without_changing_the_other, 1, 5);
    tcase_add_loop_test(tcase, a_started_sum_is_complete_after_the_wait, 1, 5);
    tcase_add_loop_test(tcase, a_started_sum_of_a_shared_gradient_leaves_the_other_tensor_unchanged,
                        1, 5);
    tcase_add_loop_test(
        tcase, releasing_a_tensor_before_the_wait_is_refused_and_its_buffer_is_not_reused, 1, 5);
    tcase_add_loop_test(tcase, using_a_tensor_before_the_wait_is_refused_and_so_is_a_second_wait, 1,
                        5);
    tcase_add_loop_test(tcase, a_slice_shares_the_memory_of_its_tensor, 1, 5);
    tcase_add_loop_test(tcase, a_part_is_asked_for_once, 1, 5);
    tcase_add_loop_test(tcase, parts_are_added_and_gathered_in_place, 1, 5);
    tcase_add_loop_test(tcase, messages_carry_slices_and_a_started_send_leaves_its_tensor_readable,
                        1, 5);
    tcase_add_test(tcase, slices_and_messages_that_do_not_fit_are_refused);
    tcase_add_test(tcase, uneven_parts_and_missing_ranks_and_dimensions_are_refused);
    tcase_add_loop_test(tcase, f_copies_forward_and_adds_backward, 1, 5);
    tcase_add_loop_test(tcase, g_adds_forward_and_copies_backward, 1, 5);
    tcase_add_loop_test(tcase, the_gather_joins_forward_and_cuts_backward, 1, 5);
    tcase_add_loop_test(tcase, a_split_pair_equals_the_whole_pair, 1, 5);
    tcase_add_loop_test(tcase, a_split_vocabulary_gives_the_loss_of_whole_rows, 1, 5);
    tcase_add_loop_test(tcase, a_batch_without_targets_has_no_loss, 1, 5);
    suite_add_tcase(suite, tcase);
    return suite;
}
