/* The forward kernels of the reference backend, compared with PyTorch's numbers (1.13, double). */
#include <check.h>

#include "backend/backend.h"

static void check_numbers(int count, const double *number, const double *expected)
{
    for (int i = 0; i < count; i++)
        ck_assert_double_eq_tol(number[i], expected[i], 1e-14);
}

/* torch.nn.functional. */
START_TEST(forward_gives_the_numbers_of_pytorch)
{
    const double x[] = {1, 2, 4, 0.5, -1, 0.25};
    double y[9], mean[2], rstd[2];
    const double weight[] = {1, 2, -1}, bias[] = {0, 0.5, 1};
    const double normed[] = {-1.069041531450298, -0.03452076572514917, -0.3363019143128718,
                             0.8889905652998737, -2.2939703480853173,  0.492005391257215};
    kernel_layer_norm_forward(2, 3, x, weight, bias, 1e-5, in_full(y), mean, rstd);
    check_numbers(6, y, normed);

    const double points[] = {-3, -1, -0.5, 0, 0.5, 1, 3};
    const double gelus[] = {-0.00404969409489031, -0.15865525393145702, -0.15426876936299344, 0,
                            0.34573123063700656,  0.841344746068543,    2.99595030590511};
    kernel_gelu_forward(7, in_full(points), in_full(y));
    check_numbers(7, y, gelus);

    const int32_t labels[] = {2, 0};
    const double losses[] = {0.16984601955628567, 0.6941121864019144};
    const double dlogits[] = {0.04201006613406605, 0.11419519938459448, -0.15620526551866054,
                              -0.500482270186785,  0.11145747105020275, 0.38902479913658217};
    double each[2];
    kernel_cross_entropy(2, 3, x, labels, each, y);
    check_numbers(2, each, losses);
    check_numbers(6, y, dlogits);

    const double matrix[] = {1, 2, -1, 0.5, 0, 3}, shift[] = {0.25, -1},
                 products[] = {1.25, 11.5, -1.5, 0};
    kernel_linear_forward(2, 3, 2, in_full(x), in_full(matrix), shift, in_full(y));
    check_numbers(4, y, products);
}
END_TEST

/* The expected numbers come from torch.nn.functional and Hugging Face's modeling_llama.py. */
START_TEST(kernels_of_language_models_give_the_numbers_of_pytorch)
{
    const double x[] = {1, 2, 4, 0.5, -1, 0.25}, weight[] = {1, 2, -1};
    const double normed[] = {0.3779642030348929, 1.5118568121395717, -1.5118568121395717,
                             0.7559203069785975, -3.02368122791439,  -0.37796015348929873};
    double y[9], rstd[2];
    kernel_rms_norm_forward(2, 3, x, weight, 1e-5, in_full(y), rstd);
    check_numbers(6, y, normed);

    const double points[] = {-3, -1, -0.5, 0, 0.5, 1, 3}, up[] = {2, -1, 3, 5, 0.25, 1, -2};
    const double gelus[] = {-0.0036373920817729943, -0.15880800939172324, -0.15428599017485606, 0,
                            0.34571400982514394,    0.8411919906082768,   2.996362607918227};
    const double gated[] = {-0.2845552390654007, 0.2689414213699951, -0.566311003197218, 0,
                            0.07780741640023182, 0.7310585786300049, -5.7154447609345995};
    kernel_gelu_tanh_forward(7, in_full(points), in_full(y));
    check_numbers(7, y, gelus);
    kernel_swiglu_forward(7, in_full(points), in_full(up), in_full(y));
    check_numbers(7, y, gated);

    const Rotary rotary = {1, 2, 1, 4, 3, {.theta = 100}};
    const double heads[] = {1, 2, -1, 0.5, 0, 3, 1, -2};
    const double turned[] = {-0.8488724885405782, 1.7629128749205423, 1.1311125046603125,
                             1.068708657885482,   0.7568024953079282, 3.5420196666259565,
                             -0.6536436208636119, -0.6738669610798187};
    kernel_rotary(&rotary, false, in_full(heads), in_full(y));
    check_numbers(8, y, turned);
}
END_TEST

/* The expected numbers come from Hugging Face's modeling_rope_utils.py, in double precision. */
START_TEST(scaled_rotary_positions_have_the_speeds_of_the_library)
{
    const struct {
        RotaryAngles angles;
        double speed[4];
    } cases[] = {
        {{.theta = 100, .factor = 4}, {0.25, 0.07905694150420949, 0.025, 0.007905694150420948}},
        {{.theta = 100, .factor = 8, .original = 64, .low = 1, .high = 4},
         {1, 0.24438459943539836, 0.013042256043820465, 0.003952847075210474}},
    };
    for (int i = 0; i < 2; i++) {
        const Rotary rotary = {1, 1, 1, 8, 0, cases[i].angles};
        double speed[4];
        for (int k = 0; k < 4; k++)
            speed[k] = rotary_speed(&rotary, k);
        check_numbers(4, speed, cases[i].speed);
    }
}
END_TEST

START_TEST(causal_attention_gives_the_numbers_of_pytorch)
{
    const AttentionShape shape = {1, 3, 1, 2, 0.5, true, 0};
    const double q[] = {1, 0, 0.5, -1, 2, 1}, k[] = {0.5, 1, 2, -1, -1, 0.25},
                 v[] = {1, 2, 7, 7, -3, 4};
    const double values[] = {
        1, 2, 5.789120666437728, 5.990933888698106, 4.311440150161816, 5.051421718161946};
    double y[6], highest[3], sums[3], work[2 * 3 * 3];
    kernel_attention_forward(&shape, in_full(q), in_full(k), in_full(v), NULL, in_full(y), highest,
                             sums, work);
    check_numbers(6, y, values);
}
END_TEST

/* The hidden key scores far more than the others, which must still count. */
START_TEST(attention_gives_the_numbers_of_pytorch)
{
    const AttentionShape shape = {1, 3, 1, 2, 0.5, false, 0};
    const int32_t shown[] = {1, 0, 1};
    const double q[] = {1, 0, 0.5, -1, 2, 1}, k[] = {0.5, 1, 3e5, 3e5, -1, 0.25},
                 v[] = {1, 2, 7, 7, -3, 4};
    const double values[] = {-0.2832852032984281, 2.641642601649214, -1, 3,
                             0.46814303920868294, 2.265928480395658};
    double y[6], highest[3], sums[3], work[2 * 3 * 3];
    kernel_attention_forward(&shape, in_full(q), in_full(k), in_full(v), shown, in_full(y), highest,
                             sums, work);
    check_numbers(6, y, values);
}
END_TEST

Suite *suite(void);

Suite *suite(void)
{
    Suite *s = suite_create("reference backend: numbers of PyTorch");
    TCase *tests = tcase_create("reference");
    tcase_add_test(tests, forward_gives_the_numbers_of_pytorch);
    tcase_add_test(tests, attention_gives_the_numbers_of_pytorch);
    tcase_add_test(tests, kernels_of_language_models_give_the_numbers_of_pytorch);
    tcase_add_test(tests, scaled_rotary_positions_have_the_speeds_of_the_library);
    tcase_add_test(tests, causal_attention_gives_the_numbers_of_pytorch);
    suite_add_tcase(s, tests);
    return s;
}
