/* GitHub Classroom: the result of one of its graders, as classroom-resources/autograding-grading-reporter reads it out
 * of a step's output (base64 of this file). */

#include "grader/judge/report/formats/formats.h"

static const char *outcome_of(Status status)
{
    return status == RIGHT ? "pass"
           : status == WRONG || status == HELD_BACK || status == NOT_BEGUN || status == UNDONE
               ? "fail"
               : "error";
}

static json_t *test_json(const Verdict *verdict, const LabResult *lab, Check check)
{
    char title[160], path[160], again[160], message[OUTPUT_SIZE];
    check_title(lab, check, title);
    lab_path(lab, path);
    repeat_check(verdict, lab, check, again);
    check_output(verdict, lab, check, message, sizeof message);
    return json_pack("{s:s, s:s, s:i, s:i, s:s?, s:s, s:s, s:i, s:f}", "name", title, "status",
                     outcome_of(check_status(lab, check)), "score", check_score(lab, check),
                     "max_score", lab_points(lab->lab, check), "message",
                     message[0] ? message : NULL, "test_code", again, "filename", path, "line_no",
                     0, "execution_time", lab->seconds);
}

char *github_text(const Verdict *verdict)
{
    const char *overall = "pass";
    char isolation[ISOLATION_SIZE];
    json_t *tests = json_array();
    for (int i = 0; i < verdict->count; i++)
        for (int check = -1; (check = next_check(&verdict->labs[i], check)) >= 0;) {
            const char *outcome = outcome_of(check_status(&verdict->labs[i], (Check)check));
            if (strcmp(overall, "fail"))
                overall = strcmp(outcome, "pass") ? outcome : overall;
            json_array_append_new(tests, test_json(verdict, &verdict->labs[i], (Check)check));
        }
    tell_isolation(verdict, isolation);
    return json_file(json_pack("{s:i, s:s, s:i, s:s, s:o}", "version", 1, "status", overall,
                               "max_score", verdict_of(verdict), "isolation", isolation, "tests",
                               tests));
}
