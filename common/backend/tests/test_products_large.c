/* Products of large matrices in single precision, for which oneDNN may replace the CBLAS, against
 * their definition. */
#include <signal.h>
#include <sys/time.h>

#include "backend/tests/products.h"

/* rows and columns of the result, inner size: on both sides of the limits for oneDNN. The CBLAS
 * computes the fourth product if that is the gradient of a weight, and always the last one. */
static const int64_t PRODUCTS[][3] = {
    {64, 64, 32}, {401, 387, 385}, {1023, 515, 38}, {1024, 511, 37}, {63, 64, 32}};
enum { EACH_TWICE = 2 * sizeof PRODUCTS / sizeof *PRODUCTS };

static Comparison product_of(const char *kernel, int test)
{
    const int64_t *size = PRODUCTS[test / 2];
    return (Comparison){.kernel = kernel,
                        .rows = size[0],
                        .columns = size[1],
                        .inner = size[2],
                        .accumulate = test % 2 == 1};
}

START_TEST(forward_matches_its_definition_with_and_without_bias)
{
    compare_linear_forward(product_of("linear_forward", _i), call_linear_forward);
}
END_TEST

START_TEST(backward_input_matches_its_definition_written_or_added)
{
    compare_linear_backward_input(product_of("linear_backward_input", _i),
                                  call_linear_backward_input);
}
END_TEST

START_TEST(backward_weight_matches_its_definition_written_or_added)
{
    compare_backward_weight(product_of("linear_backward_weight", _i), call_backward_weight);
}
END_TEST

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    signals++;
}

/* In oneDNN 2.6, a signal handler on the stack of this product overwrote the product's numbers and
 * the heap. */
START_TEST(signals_during_a_product_change_nothing)
{
    enum { OUT = 1024, IN = 512, INNER = 1024, LEAST = 20 };
    static real dy[INNER * OUT], x[INNER * IN], undisturbed[OUT * IN], disturbed[OUT * IN];
    const struct itimerval often = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};
    for (int64_t i = 0; i < INNER * OUT; i++)
        dy[i] = (real)(i % 17 - 8);
    for (int64_t i = 0; i < INNER * IN; i++)
        x[i] = (real)(i % 13 - 6);
    kernel_linear_backward_weight(INNER, IN, OUT, in_full(dy), in_full(x), undisturbed, false);
    sigaction(SIGALRM,
              &(struct sigaction){.sa_handler = count_signal, .sa_flags = SA_RESTART | SA_ONSTACK},
              NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    while (signals < LEAST) {
        kernel_linear_backward_weight(INNER, IN, OUT, in_full(dy), in_full(x), disturbed, false);
        ck_assert_mem_eq(disturbed, undisturbed, sizeof undisturbed);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0}}, NULL);
}
END_TEST

static bool says_large(void)
{
    return strstr(backend_description(), "for large products") != NULL;
}

START_TEST(only_wide_models_load_another_library)
{
    Problem problem;
    backend_set_products(FP32, 255, &problem);
    ck_assert(!says_large());
    backend_set_products(FP32, 256, &problem);
    if (!says_large())
        printf("skip - large products: no oneDNN here, or no AVX-512\n");
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("large products");
    TCase *products = tcase_create("products");
    tcase_set_timeout(products, 120);
    tcase_add_unchecked_fixture(products, wide_model, back_to_fp32);
    tcase_add_loop_test(products, forward_matches_its_definition_with_and_without_bias, 0,
                        EACH_TWICE);
    tcase_add_loop_test(products, backward_input_matches_its_definition_written_or_added, 0,
                        EACH_TWICE);
    tcase_add_loop_test(products, backward_weight_matches_its_definition_written_or_added, 0,
                        EACH_TWICE);
    tcase_add_test(products, signals_during_a_product_change_nothing);
    tcase_add_test(products, only_wide_models_load_another_library);
    suite_add_tcase(s, products);
    return s;
}
