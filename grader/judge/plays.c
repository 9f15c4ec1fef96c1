#include "grader/judge/plays.h"

#include "grader/plays/lab11.h"

enum { LAB_NUMBERS = 32 }; /* more than there are */

PlayFunction play_case_2, play_case_3, play_case_4, play_case_5, play_case_6, play_case_7;

PlayFunction *play_of_case(const Case *c)
{
    static PlayFunction *const plays[LAB_NUMBERS] = {
        [2] = play_case_2, [3] = play_case_3, [4] = play_case_4, [5] = play_case_5,
        [6] = play_case_6, [7] = play_case_7, [11] = play_model};
    return c->lab == 11 && c->kind != WHOLE_MODEL ? NULL : plays[c->lab];
}

ExpectFunction *expectation_of_case(const Case *c)
{
    static ExpectFunction *const expectations[LAB_NUMBERS] = {[1] = expect_collectives,
                                                              [8] = expect_groups,
                                                              [9] = expect_collectives,
                                                              [10] = expect_groups,
                                                              [11] = expect_replicas};
    return play_of_case(c) ? NULL : expectations[c->lab];
}
