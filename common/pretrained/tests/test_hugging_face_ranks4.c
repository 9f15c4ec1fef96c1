/* Small models made by make_models.py give the results of Hugging Face's library, split over 1, 2
 * and 4 ranks. */
#include "tests/run_for_tests.h"
#include "comm/tests/ranks.h"
#include "pretrained/tests/comparison.h"

Suite *suite(void);

static const char *const MODELS[] = {"bert", "masked_bert", "gpt2", "llama", "llama3", "qwen2"};
enum { MODELS_COUNT = 6, LAYOUTS = 3 };

static Path folder_of(const char *model)
{
    const char *root = getenv("ROOT");
    return path_in(path_in(root ? root : ".", "common/pretrained/tests/models").text, model);
}

START_TEST(a_model_computes_what_it_computed_there)
{
    const int tp = 1 << _i % LAYOUTS;
    const char *name = MODELS[_i / LAYOUTS];
    Group *group = group_split(world, group_rank(world) / tp, group_rank(world));
    const Comparison result = compare_folder(folder_of(name).text, group);
    ck_assert_msg(result.results <= 2e-6, "%s: a result is off by %g: %s", name, result.results,
                  result.problem.what);
    ck_assert_msg(result.gradients <= 2e-5, "%s: a gradient is off by %g: %s", name,
                  result.gradients, result.problem.what);
    ck_assert_msg(result.stepped <= 2e-6, "%s: a weight is off by %g after a step: %s", name,
                  result.stepped, result.problem.what);
}
END_TEST

Suite *suite(void)
{
    Suite *suite = suite_create("hugging face");
    TCase *tcase = tcase_create("models");
    tcase_add_unchecked_fixture(tcase, ranks_up, ranks_down);
    tcase_add_loop_test(tcase, a_model_computes_what_it_computed_there, 0, MODELS_COUNT * LAYOUTS);
    suite_add_tcase(suite, tcase);
    return suite;
}
