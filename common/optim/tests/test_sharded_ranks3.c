/* An optimiser whose state is sharded over three replicas takes the same steps as one with the
 * whole state. Misuse of its functions. */
#include <string.h>

#include "autograd/operations.h"
#include "comm/tests/ranks.h"
#include "mesh/mesh.h"
#include "optim/optim.h"
#include "tests/run_for_tests.h"

Suite *suite(void);

enum { REPLICAS = 3, STEPS = 3, COUNT = 50 * 7 + 3 };

static Mesh mesh;
static Pool *pool;
static Tape *tape;
static Model *model[2]; /* with a whole, and with a sharded optimiser */
static Optimizer *optimizer[2];

static const OptimizerConfig configs[] = {
    {.kind = SGD, .weight_decay = 0.1},
    {.kind = ADAMW, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-3}};

static void start(int kind)
{
    const int rank = group_rank(world);
    mesh = (Mesh){.world = world, .tp_degree = 1, .pp_degree = 1};
    mesh.tp = group_split(world, rank, 0);
    mesh.dp = group_split(world, 0, rank);
    mesh.dp_rank = rank;
    mesh.dp_degree = REPLICAS;
    pool = pool_new(0, true);
    tape = tape_new(pool, &mesh);
    for (int i = 0; i < 2; i++) {
        model[i] = model_new(pool, &mesh, 1);
        parameter(model[i]->builder, "weight", SHAPE(50, 7), whole());
        parameter(model[i]->builder, "other", SHAPE(1, 3), whole());
        model_finish(model[i]);
        optimizer[i] = (i ? optimizer_new_sharded : optimizer_new)(model[i], &configs[kind]);
    }
}

static void stop(void)
{
    for (int i = 0; i < 2; i++) {
        optimizer_free(optimizer[i]);
        model_free(model[i]);
    }
    tape_free(tape);
    pool_free(pool);
}

static real gradient_of(int replica, int step, int64_t i)
{
    return (real)((replica + 1) * (step + 2) * (i % 11 - 4)) / 64;
}

/* Sets the gradients of all parameters. The padding between them stays zero. */
static void set_gradients(Model *of, int step, bool mean)
{
    for (Parameter *p = of->parameters; p; p = p->next) {
        p->gradient_set = true;
        for (int64_t i = 0; i < tensor_count(p->value); i++) {
            real sum = 0;
            for (int replica = 0; replica < REPLICAS && mean; replica++)
                sum += gradient_of(replica, step, i);
            reals(p->value->gradient)[i] =
                mean ? sum / REPLICAS : gradient_of(mesh.dp_rank, step, i);
        }
    }
}

static double largest_difference(void)
{
    double largest = 0;
    for (int64_t i = 0; i < model[0]->arena_size; i++) {
        const double apart =
            (double)model_weights(model[0])[i] - (double)model_weights(model[1])[i];
        largest = apart > largest ? apart : -apart > largest ? -apart : largest;
    }
    return largest;
}

START_TEST(steps_on_parts_are_steps_on_the_mean_gradient)
{
    double apart = 0, norm[2] = {0};
    start(_i);
    for (int step = 0; step < STEPS; step++) {
        set_gradients(model[0], step, true);
        set_gradients(model[1], step, false);
        sharded_reduce(model[1], tape);
        norm[0] = model_gradient_norm(model[0]);
        norm[1] = sharded_gradient_norm(optimizer[1]);
        for (int i = 0; i < 2; i++)
            clip_gradients(optimizer[i], norm[i], 0.5);
        optimizer_step(optimizer[0], 0.1);
        sharded_optimizer_step(optimizer[1], 0.1, tape);
        backend_wait();
        apart = largest_difference();
        ck_assert_double_le(apart, 1e-6);
        ck_assert_double_le(norm[1] - norm[0], 1e-6 * norm[0]);
        ck_assert_double_le(norm[0] - norm[1], 1e-6 * norm[0]);
    }
    stop();
}
END_TEST

START_TEST(a_replica_has_the_state_of_its_part_only)
{
    start(1);
    const int64_t size = model[1]->arena_size,
                  part = optimizer[1]->part.end - optimizer[1]->part.begin;
    double all = (double)part;
    group_sum(world, &all, 1);
    ck_assert_int_le(part, (size + REPLICAS - 1) / REPLICAS);
    ck_assert(all == (double)size);
    enum { ROUNDED_UP = 512 }; /* the pool rounds the sizes of buffers up */
    ck_assert_int_lt(optimizer[1]->m->bytes, part * (int64_t)sizeof(real) + ROUNDED_UP);
    ck_assert_int_lt(optimizer[1]->v->bytes, part * (int64_t)sizeof(real) + ROUNDED_UP);
    stop();
}
END_TEST

START_TEST(parts_of_any_count_follow_each_other_and_none_is_too_long)
{
    static const int64_t counts[] = {0, 1, 2, 48, 1000, 5000000033};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int n = 1; n < 50; n++) {
            int64_t end = 0, longest = (counts[i] + n - 1) / n;
            for (int k = 0; k < n; k++) {
                const Range part = optimizer_part(counts[i], k, n);
                ck_assert(part.begin == end && part.end >= end && part.end - end <= longest);
                end = part.end;
            }
            ck_assert(end == counts[i]);
        }
}
END_TEST

START_TEST(an_update_of_other_numbers_and_a_second_one_are_refused)
{
    start(1);
    Optimizer *of_part = optimizer[1];
    const Range own = of_part->part;
    static const real zeros[COUNT + 64];
    Tensor *x = tape_reals(tape, SHAPE(COUNT), whole(), zeros, false),
           *mine = tape_reals(tape, SHAPE(own.end - own.begin), whole(), zeros, false);
    optimizer_begin(of_part, 0.1);
    ASSERT_MISUSE((optimizer_update(of_part, x, x), 0), "optimizer_update", "this replica's part");
    ASSERT_MISUSE((optimizer_end(of_part), 0), "has not called optimizer_update");
    optimizer_update(of_part, mine, tape_reals(tape, mine->shape, whole(), zeros, false));
    ASSERT_MISUSE((optimizer_update(of_part, mine, mine), 0), "called twice in a step");
    optimizer_end(of_part);
    stop();
}
END_TEST

START_TEST(an_empty_part_needs_no_update)
{
    start(1);
    Optimizer *of_nothing = optimizer_of_part(pool, (Range){7, 7}, &configs[1]);
    optimizer_begin(of_nothing, 0.1);
    optimizer_end(of_nothing);
    optimizer_free(of_nothing);
    stop();
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("sharded optimiser");
    TCase *tests = tcase_create("three replicas");
    tcase_add_unchecked_fixture(tests, ranks_up, ranks_down);
    tcase_add_loop_test(tests, steps_on_parts_are_steps_on_the_mean_gradient, 0, 2);
    tcase_add_test(tests, a_replica_has_the_state_of_its_part_only);
    tcase_add_test(tests, parts_of_any_count_follow_each_other_and_none_is_too_long);
    tcase_add_test(tests, an_update_of_other_numbers_and_a_second_one_are_refused);
    tcase_add_test(tests, an_empty_part_needs_no_update);
    suite_add_tcase(suite, tests);
    return suite;
}
