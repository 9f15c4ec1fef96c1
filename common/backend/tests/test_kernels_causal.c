/* Causal attention: the future does not leak, in any precision that attention has. */
#include "backend/tests/causal.h"
#include "backend/tests/precisions.h"

static void in_fp32(void)
{
    backend_set_threads(1);
}

static void in_bf16(void)
{
    precision = BF16;
    causal_skipped = !choose();
}

static void in_fp16(void)
{
    precision = FP16;
    causal_skipped = !choose();
}

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("kernels: causal attention");
    suite_add_tcase(s, causal_tests("fp32", in_fp32, NULL));
    if (kernels_run_on_the_host()) {
        TCase *wide = causal_tests("wide model", one_thread, NULL);
        tcase_add_unchecked_fixture(wide, wide_model, back_to_fp32);
        suite_add_tcase(s, wide);
        suite_add_tcase(s, causal_tests("two threads", two_threads, NULL));
        return s;
    }
    suite_add_tcase(s, causal_tests("bf16", in_bf16, back_to_fp32));
    suite_add_tcase(s, causal_tests("fp16", in_fp16, back_to_fp32));
    return s;
}
