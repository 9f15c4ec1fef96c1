/* Every placement rule, on rank 1 of 2: the placements that an operation accepts, the placement of
 * its result, and its message about other placements. The tests call only the rules of f, g and the
 * other pairs, so the ranks do not communicate. */
#include "autograd/tests/fixture.h"

#include "autograd/placement.h"

Suite *suite(void);

enum { B = 2, S = 3, H = 4 };

/* Placements: whole, copied, shard of dimension 0 to 2, partial sum, unknown. */
typedef struct Rule {
    const char *operation;
    const char *x, *y; /**< placements of the arguments: W, C, S0, S1, S2, P or U; y may be NULL */
    const char *result;
    const char *says; /**< part of the message; NULL if the rule is kept */
} Rule;

static const Rule RULES[] = {
    {"linear", "W", "W", "W", NULL},
    {"linear", "U", "W", "W", NULL},
    {"linear", "C", "W", "C", "the weight's gradient would be a partial sum"},
    {"linear", "S2", "W", "S2", "do not fit"},
    {"linear", "S1", "W", "S1", "do not fit"},
    {"linear", "P", "W", "P", "do not fit"},
    {"linear", "C", "S0", "S2", NULL},
    {"linear", "U", "S0", "S2", NULL},
    {"linear", "W", "S0", "S2", "whole and the weight"},
    {"linear", "S2", "S0", "S2", "do not fit"},
    {"linear", "P", "S0", "S2", "do not fit"},
    {"linear", "S2", "S1", "P", NULL},
    {"linear", "U", "S1", "P", NULL},
    {"linear", "W", "S1", "P", "do not fit"},
    {"linear", "C", "S1", "P", "do not fit"},
    {"linear", "S1", "S1", "P", "do not fit"},
    {"linear", "P", "S1", "P", "do not fit"},
    {"add_bias", "W", "W", "W", NULL},
    {"add_bias", "U", "W", "W", NULL},
    {"add_bias", "S2", "S0", "S2", NULL},
    {"add_bias", "S1", "W", "S1", NULL},
    {"add_bias", "U", "S0", "S2", NULL},
    {"add_bias", "P", "W", "P", "each rank would add the bias"},
    {"add_bias", "C", "W", "C", "the bias's gradient would be a partial sum"},
    {"add_bias", "C", "S0", "C", "do not fit"},
    {"add_bias", "S2", "W", "S2", "do not fit"},
    {"add_bias", "W", "S0", "W", "do not fit"},
    {"lookup", "W", "W", "W", NULL},
    {"lookup", "W", "S0", "P", NULL},
    {"lookup", "W", "S1", "S2", NULL},
    {"gelu", "W", NULL, "W", NULL},
    {"gelu", "C", NULL, "C", NULL},
    {"gelu", "S2", NULL, "S2", NULL},
    {"gelu", "U", NULL, "U", NULL},
    {"gelu", "P", NULL, "P", "applying this to each term is not the same as applying it"},
    {"dropout", "W", NULL, "W", NULL},
    {"dropout", "C", NULL, "C", NULL},
    {"dropout", "S2", NULL, "S2", NULL},
    {"dropout", "S1", NULL, "S1", NULL},
    {"dropout", "P", NULL, "P", NULL},
    {"dropout", "U", NULL, "U", NULL},
    {"add", "W", "W", "W", NULL},
    {"add", "C", "C", "C", NULL},
    {"add", "S2", "S2", "S2", NULL},
    {"add", "P", "P", "P", NULL},
    {"add", "U", "S2", "S2", NULL},
    {"add", "P", "U", "P", NULL},
    {"add", "W", "P", "P", "do not match"},
    {"add", "S2", "W", "S2", "do not match"},
    {"add", "S1", "S2", "S1", "do not match"},
    {"add", "W", "C", "C", "do not match"},
    {"attention", "W", "W", "W", NULL},
    {"attention", "C", "C", "C", NULL},
    {"attention", "S2", "S2", "S2", NULL},
    {"attention", "U", "S2", "S2", NULL},
    {"attention", "S2", "W", "S2", "do not match"},
    {"attention", "P", "P", "P", "applying this to each term"},
    {"first_token", "W", NULL, "W", NULL},
    {"first_token", "C", NULL, "C", NULL},
    {"first_token", "P", NULL, "P", NULL},
    {"first_token", "S2", NULL, "S1", NULL},
    {"first_token", "S1", NULL, "U", "on one rank only"},
    {"first_token", "S0", NULL, "S0", NULL},
    {"first_token", "U", NULL, "U", NULL},
    {"scale", "W", NULL, "W", NULL},
    {"scale", "P", NULL, "P", NULL},
    {"scale", "S2", NULL, "S2", NULL},
    {"layer_norm", "W", NULL, "W", NULL},
    {"layer_norm", "U", NULL, "W", NULL},
    {"layer_norm", "C", NULL, "W", "is not whole"},
    {"layer_norm", "S2", NULL, "W", "is not whole"},
    {"layer_norm", "P", NULL, "W", "is not whole"},
    {"layer_norm", "S1", NULL, "S1", NULL},
    {"add_positions", "W", NULL, "W", NULL},
    {"add_positions", "U", NULL, "W", NULL},
    {"add_positions", "P", NULL, "W", "is not whole"},
    {"add_positions", "S2", NULL, "W", "is not whole"},
    {"cross entropy", "W", NULL, "W", NULL},
    {"cross entropy", "U", NULL, "W", NULL},
    {"cross entropy", "P", NULL, "W", "is not whole"},
    {"cross entropy", "S1", NULL, "W", "is not whole"},
    {"cross entropy", "C", NULL, "W", "is not whole"},
    {"duplication", "W", NULL, "C", NULL},
    {"duplication", "U", NULL, "C", NULL},
    {"duplication", "C", NULL, "C", "is not whole"},
    {"duplication", "S2", NULL, "C", "is not whole"},
    {"duplication", "P", NULL, "C", "is not whole"},
    {"all_reduce", "P", NULL, "W", NULL},
    {"all_reduce", "U", NULL, "W", NULL},
    {"all_reduce", "W", NULL, "W", "is not a partial sum"},
    {"all_reduce", "C", NULL, "W", "is not a partial sum"},
    {"all_reduce", "S2", NULL, "W", "is not a partial sum"},
    {"all_gather", "S2", NULL, "W", NULL},
    {"all_gather", "U", NULL, "W", NULL},
    {"all_gather", "S1", NULL, "W", "all_gather along dimension 2"},
    {"all_gather", "P", NULL, "W", "is not a shard"},
    {"all_gather", "W", NULL, "W", "is not a shard"},
    {"all_gather", "C", NULL, "W", "is not a shard"},
    {"row_max", "W", NULL, "W", NULL},
    {"row_max", "C", NULL, "C", NULL},
    {"row_max", "S2", NULL, "U", NULL},
    {"row_max", "S1", NULL, "S1", NULL},
    {"row_max", "U", NULL, "U", NULL},
    {"row_max", "P", NULL, "P", "applying this to each term"},
    {"row_sum_exp", "W", NULL, "W", NULL},
    {"row_sum_exp", "C", NULL, "C", NULL},
    {"row_sum_exp", "S2", NULL, "P", NULL},
    {"row_sum_exp", "S1", NULL, "S1", NULL},
    {"row_sum_exp", "U", NULL, "U", NULL},
    {"row_sum_exp", "P", NULL, "P", "applying this to each term"},
    {"row_pick", "W", NULL, "W", NULL},
    {"row_pick", "S2", NULL, "P", NULL},
    {"row_pick", "U", NULL, "U", NULL},
    {"row_pick", "P", NULL, "P", "applying this to each term"},
    {"logarithm", "W", NULL, "W", NULL},
    {"logarithm", "S1", NULL, "S1", NULL},
    {"logarithm", "P", NULL, "P", "applying this to each term"},
    {"subtract", "W", "W", "W", NULL},
    {"subtract", "P", "P", "P", NULL},
    {"subtract", "U", "W", "W", NULL},
    {"subtract", "W", "P", "P", "do not match"},
    {"subtract", "P", "W", "P", "do not match"},
    {"mean_over_tokens", "W", NULL, "W", NULL},
    {"mean_over_tokens", "U", NULL, "W", NULL},
    {"mean_over_tokens", "P", NULL, "W", "is not whole"},
    {"mean_over_tokens", "C", NULL, "W", "is not whole"},
    {"attention_causal", "W", "W", "W", NULL},
    {"attention_causal", "S2", "S2", "S2", NULL},
    {"attention_causal", "U", "S2", "S2", NULL},
    {"attention_causal", "S2", "W", "S2", "do not match"},
    {"attention_causal", "S1", "S1", "S1", "is not split by heads"},
    {"attention_causal", "P", "P", "P", "applying this to each term"},
    {"swiglu", "W", "W", "W", NULL},
    {"swiglu", "C", "C", "C", NULL},
    {"swiglu", "S2", "S2", "S2", NULL},
    {"swiglu", "S2", "W", "S2", "do not match"},
    {"swiglu", "P", "P", "P", "applying this to each term"},
    {"gelu_tanh", "C", NULL, "C", NULL},
    {"gelu_tanh", "S2", NULL, "S2", NULL},
    {"gelu_tanh", "P", NULL, "P", "applying this to each term"},
    {"rotary", "W", NULL, "W", NULL},
    {"rotary", "C", NULL, "C", NULL},
    {"rotary", "S2", NULL, "S2", NULL},
    {"rotary", "S1", NULL, "U", "is not split by heads"},
    {"rotary", "P", NULL, "P", "applying this to each term"},
    {"repeat_heads", "W", NULL, "W", NULL},
    {"repeat_heads", "S2", NULL, "S2", NULL},
    {"repeat_heads", "S1", NULL, "U", "is not split by heads"},
    {"scatter", "W", NULL, "S2", NULL},
    {"scatter", "U", NULL, "S2", NULL},
    {"scatter", "C", NULL, "S2", "copied is not whole"},
    {"scatter", "S2", NULL, "S2", "is not whole"},
    {"scatter", "P", NULL, "S2", "is not whole"},
    {"take", "W", NULL, "W", NULL},
    {"take", "C", NULL, "C", NULL},
    {"take", "P", NULL, "P", NULL},
    {"take", "S2", NULL, "S1", NULL},
    {"take", "S0", NULL, "S0", NULL},
    {"take", "S1", NULL, "U", "other ranks hold the rest"},
    {"part", "W", NULL, "U", NULL},
    {"part", "S1", NULL, "U", NULL},
    {"part", "S2", NULL, "U", "is not this rank's share of part k of x"},
    {"linear of three", "C", "S1", "S3", NULL},
    {"linear of three", "C", "S0", "S2", NULL},
    {"linear of three", "S2", "S2", "P", NULL},
    {"linear of three", "W", "S1", "S3", "whole and the weight"},
    {"linear of three", "W", "W", "W", NULL},
    {"rms_norm", "W", NULL, "W", NULL},
    {"rms_norm", "U", NULL, "W", NULL},
    {"rms_norm", "C", NULL, "W", "is not whole"},
    {"rms_norm", "S2", NULL, "W", "is not whole"},
    {"rms_norm", "P", NULL, "W", "is not whole"},
    {"rms_norm", "S1", NULL, "S1", NULL},
    {"gather_sequence", "S1", NULL, "C", NULL},
    {"gather_sequence", "U", NULL, "C", NULL},
    {"gather_sequence", "S2", NULL, "C", "is not a shard of the positions"},
    {"gather_sequence", "P", NULL, "C", "is not a shard of the positions"},
    {"gather_sequence", "W", NULL, "C", "is not a shard of the positions"},
    {"gather_sequence", "C", NULL, "C", "is not a shard of the positions"},
    {"reduce_scatter_sequence", "P", NULL, "S1", NULL},
    {"reduce_scatter_sequence", "U", NULL, "S1", NULL},
    {"reduce_scatter_sequence", "S1", NULL, "S1", "is not a partial sum"},
    {"reduce_scatter_sequence", "W", NULL, "S1", "is not a partial sum"},
    {"reduce_scatter_sequence", "C", NULL, "S1", "is not a partial sum"},
};

static Placement placement_of(const char *name)
{
    if (*name == 'S')
        return shard(name[1] - '0');
    return (Placement){*name == 'W'   ? WHOLE
                       : *name == 'C' ? COPIED
                       : *name == 'P' ? PARTIAL
                                      : UNKNOWN,
                       0};
}

static Placement placement_of_pair(const char *operation, Tensor *x)
{
    static const struct {
        const char *name;
        Law law;
        int dim;
    } pairs[] = {{"duplication", PLACE_DUPLICATION, LAST},
                 {"all_reduce", PLACE_ALL_REDUCE, LAST},
                 {"all_gather", PLACE_ALL_GATHER, LAST},
                 {"scatter", PLACE_SCATTER, LAST},
                 {"gather_sequence", PLACE_GATHER_SEQUENCE, 1},
                 {"reduce_scatter_sequence", PLACE_REDUCE_SCATTER_SEQUENCE, 1}};
    int i = 0;
    while (strcmp(pairs[i].name, operation) != 0)
        i++;
    return place_result(tape, pairs[i].law, operation, x, NULL, pairs[i].dim);
}

static Tensor *two_arguments(const char *operation, const Rule *rule, Tensor *x)
{
    if (strcmp(operation, "linear") == 0)
        return linear(x, normal("w", SHAPE(5, H), placement_of(rule->y)));
    if (strcmp(operation, "linear of three") == 0)
        return linear(x, normal("w", SHAPE(3, 5, H), placement_of(rule->y)));
    if (strcmp(operation, "add_bias") == 0)
        return add_bias(x, normal("b", SHAPE(H), placement_of(rule->y)));
    if (strcmp(operation, "lookup") == 0)
        return lookup(tape_ints(tape, SHAPE(B, S), (int32_t[]){0, 1, 2, 2, 1, 0}),
                      normal("w", SHAPE(3, H), placement_of(rule->y)));
    Tensor *y = normal("y", SHAPE(B, S, H), placement_of(rule->y));
    if (strcmp(operation, "add") == 0)
        return add(x, y);
    if (strcmp(operation, "subtract") == 0)
        return subtract(x, y);
    if (strcmp(operation, "swiglu") == 0)
        return swiglu(x, y);
    if (strcmp(operation, "attention_causal") == 0)
        return attention_causal(x, y, y, NULL, 2, 1);
    return attention(x, y, y, tape_ints(tape, SHAPE(B, S), (int32_t[]){1, 1, 1, 1, 1, 0}), 2, 1);
}

static Tensor *along_rows(const char *operation, const Rule *rule, Tensor *x)
{
    Tensor *ids = tape_ints(tape, SHAPE(B, S), (int32_t[]){0, 1, 2, NO_ID, 1, 0});
    if (strcmp(operation, "mean_over_tokens") == 0)
        return mean_over_tokens(normal("x", SHAPE(B, S), placement_of(rule->x)), ids);
    if (strcmp(operation, "row_max") == 0)
        return row_max(x);
    Tensor *most = normal("most", SHAPE(B, S), placement_of("U"));
    return strcmp(operation, "row_pick") == 0 ? row_pick(x, most, ids) : row_sum_exp(x, most);
}

static Tensor *one_argument(const char *operation, const Rule *rule, Tensor *x)
{
    if (strncmp(operation, "row_", 4) == 0 || strcmp(operation, "mean_over_tokens") == 0)
        return along_rows(operation, rule, x);
    if (strcmp(operation, "logarithm") == 0)
        return logarithm(x);
    if (strcmp(operation, "gelu") == 0)
        return gelu(x);
    if (strcmp(operation, "gelu_tanh") == 0)
        return gelu_tanh(x);
    if (strcmp(operation, "rotary") == 0)
        return rotary(x, 2, 0, (RotaryAngles){.theta = 100});
    if (strcmp(operation, "repeat_heads") == 0)
        return repeat_heads(x, 2, 3);
    if (strcmp(operation, "take") == 0)
        return take(x, 1, 1);
    if (strcmp(operation, "part") == 0)
        return part(x, LAST, 1, 2);
    if (strcmp(operation, "rms_norm") == 0)
        return rms_norm(x, normal("w", SHAPE(H), whole()), 1e-5);
    if (strcmp(operation, "dropout") == 0)
        return dropout_with(x, "dropout", 0.1);
    if (strcmp(operation, "first_token") == 0)
        return first_token(x);
    if (strcmp(operation, "layer_norm") == 0)
        return layer_norm_with(x, normal("w", SHAPE(H), whole()), normal("b", SHAPE(H), whole()),
                               1e-5);
    if (strcmp(operation, "add_positions") == 0)
        return add_positions(x, normal("table", SHAPE(S, H), whole()));
    if (strcmp(operation, "cross entropy") == 0)
        return cross_entropy_mean(normal("x", SHAPE(B, H), placement_of(rule->x)),
                                  tape_ints(tape, SHAPE(B), (int32_t[]){1, 3}), B, NULL);
    ck_assert_str_eq(operation, "scale");
    scale(x, 0.5f);
    return x;
}

static Placement result_of(const Rule *rule)
{
    Tensor *x = normal("x", SHAPE(B, S, H), placement_of(rule->x));
    if (strcmp(rule->operation, "duplication") == 0 || strcmp(rule->operation, "scatter") == 0 ||
        strncmp(rule->operation, "all_", 4) == 0 || strstr(rule->operation, "_sequence"))
        return placement_of_pair(rule->operation, x);
    if (rule->y)
        return two_arguments(rule->operation, rule, x)->placement;
    return one_argument(rule->operation, rule, x)->placement;
}

static const char *name_of(const Rule *rule)
{
    static char text[128];
    char x[32], y[32] = "";
    if (rule->y)
        placement_text(placement_of(rule->y), y);
    snprintf(text, sizeof text, "%s of %s %s", rule->operation,
             placement_text(placement_of(rule->x), x), y);
    return text;
}

START_TEST(an_operation_accepts_placements_that_fit_and_reports_others)
{
    const Rule *rule = &RULES[_i];
    char result[32], expected[32];
    expect_notes();
    Placement placement = result_of(rule);
    if (!rule->says)
        ck_assert_msg(expectation.noted == 0, "%s: %s", name_of(rule), expectation.problem.what);
    else
        ck_assert_msg(expectation.noted == 1, "%s: %d notes", name_of(rule), expectation.noted);
    ck_assert_msg(placement_equal(placement, placement_of(rule->result)), "%s is %s instead of %s",
                  name_of(rule), placement_text(placement, result),
                  placement_text(placement_of(rule->result), expected));
    if (rule->says) { /* the sentence, with the operation and the argument's shape and placement */
        char shape[32];
        const char *named = strncmp(rule->operation, "linear", 6) ? rule->operation : "linear";
        assert_says(&expectation.problem, (const char *const[]){rule->says, named, NULL});
        snprintf(shape, sizeof shape, "%s %s",
                 strcmp(rule->operation, "cross entropy") == 0      ? "[2,4]"
                 : strcmp(rule->operation, "mean_over_tokens") == 0 ? "[2,3]"
                                                                    : "[2,3,4]",
                 placement_text(placement_of(rule->x), result));
        assert_says(&expectation.problem, (const char *const[]){shape, NULL});
    }
}
END_TEST

START_TEST(on_one_rank_everything_is_whole)
{
    const Rule *rule = &RULES[_i];
    mesh.tp_degree = 1;
    mesh.tp_rank = 0;
    if (strcmp(rule->operation, "dropout") == 0 || strcmp(rule->operation, "scale") == 0)
        return; /* these return x's placement */
    Placement placement = result_of(rule);
    ck_assert_msg(placement.kind == WHOLE, "%s is %s", name_of(rule),
                  placement_text(placement, (char[32]){0}));
}
END_TEST

START_TEST(notes_that_one_test_expects_fail_the_next)
{
    ck_assert(!expectation.notes);
}
END_TEST

static void second_of_two_up(void)
{
    rank_up(1, 2);
}

Suite *suite(void)
{
    enum { COUNT = sizeof RULES / sizeof *RULES };
    Suite *suite = suite_create("placement");
    TCase *tcase = tcase_create("placement");
    tcase_add_checked_fixture(tcase, second_of_two_up, tape_down);
    tcase_add_loop_test(tcase, an_operation_accepts_placements_that_fit_and_reports_others, 0,
                        COUNT);
    tcase_add_loop_test(tcase, on_one_rank_everything_is_whole, 0, COUNT);
    tcase_add_test(tcase, notes_that_one_test_expects_fail_the_next);
    suite_add_tcase(suite, tcase);
    return suite;
}
