/* Gradescope's results.json (gradescope-autograders.readthedocs.io, "Autograder Specifications"). */
#include "grader/judge/report/formats/formats.h"

static json_t *test_json(const Verdict *verdict, const LabResult *lab, Check check)
{
    char title[160], number[16], output[OUTPUT_SIZE];
    check_title(lab, check, title);
    snprintf(number, sizeof number, "%d.%d", lab->lab->number, (int)check + 1);
    check_output(verdict, lab, check, output, sizeof output);
    return json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "score", check_score(lab, check),
                     "max_score", lab_points(lab->lab, check), "status",
                     check_status(lab, check) == RIGHT ? "passed" : "failed", "name", title,
                     "number", number, "output", output, "output_format", "text", "visibility",
                     "visible");
}

char *gradescope_text(const Verdict *verdict)
{
    char isolation[ISOLATION_SIZE], output[ISOLATION_SIZE + 96];
    json_t *tests = json_array();
    for (int i = 0; i < verdict->count; i++)
        for (int check = -1; (check = next_check(&verdict->labs[i], check)) >= 0;)
            json_array_append_new(tests, test_json(verdict, &verdict->labs[i], (Check)check));
    tell_isolation(verdict, isolation);
    snprintf(output, sizeof output, "%s %llu%s\n%s", _("seed"), (unsigned long long)verdict->seed,
             verdict_is_complete(verdict)
                 ? ""
                 : _("; the grader was interrupted, some labs were not run"),
             isolation);
    return json_file(json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:o}", "score",
                               verdict_points(verdict), "execution_time", (int)verdict->seconds,
                               "output", output, "output_format", "text", "visibility", "visible",
                               "stdout_visibility", "hidden", "tests", tests));
}
