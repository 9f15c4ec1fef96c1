/* The comparison of weights finds parameters that differ between ranks. */
#include <check.h>
#include <string.h>

#include "comm/tests/ranks.h"
#include "mesh/mesh.h"
#include "train/trainer.h"

static Model *model_of_two(const Mesh *mesh, Pool *pool)
{
    Model *model = model_new(pool, mesh, 5);
    Builder *b = model->builder;
    parameter(within(b, "first"), "weight", SHAPE(4, 6), whole());
    parameter(within(b, "cut"), "weight", SHAPE(4, 6), shard(0));
    parameter(within(b, "last"), "weight", SHAPE(3), whole());
    model_finish(model);
    return model;
}

START_TEST(whole_weights_are_compared_and_shards_are_not)
{
    Mesh mesh;
    Problem problem = {0};
    Pool *pool = pool_new(0, true);
    mesh_open(&mesh, world, 2, 1);
    Model *model = model_of_two(&mesh, pool);
    ck_assert(weights_are_equal(model, 1, &problem));
    if (group_rank(world) == 1)
        reals(model_parameter(model, "cut.weight")->value)[0] += 1;
    ck_assert(weights_are_equal(model, 2, &problem));
    if (group_rank(world) == 1)
        reals(model_parameter(model, "last.weight")->value)[2] += 1e-6f;
    ck_assert(!weights_are_equal(model, 3, &problem));
    ck_assert_msg(strstr(problem.what, "last.weight") && strstr(problem.what, "step 3"), "%s",
                  problem.what);
    model_free(model);
    pool_free(pool);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *suite = suite_create("equal weights");
    TCase *tests = tcase_create("equal");
    tcase_add_unchecked_fixture(tests, ranks_up, ranks_down);
    tcase_add_test(tests, whole_weights_are_compared_and_shards_are_not);
    suite_add_tcase(suite, tests);
    return suite;
}
