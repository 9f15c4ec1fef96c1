/* Formats of platforms: Gradescope, GitHub Classroom, Autolab. */
#include <stdlib.h>
#include <string.h>

#include "grader/judge/report/formats/formats.h"

/* ---- Gradescope's results.json (gradescope-autograders.readthedocs.io, "Autograder Specifications") */

static json_t *gradescope_test(const Verdict *verdict, const LabResult *lab, Check check)
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
            json_array_append_new(tests, gradescope_test(verdict, &verdict->labs[i], (Check)check));
    tell_isolation(verdict, isolation);
    snprintf(output, sizeof output, "%s %llu%s\n%s", _("seed"), (unsigned long long)verdict->seed,
             verdict_is_complete(verdict)
                 ? ""
                 : _("; the grader was interrupted, so some labs were not run"),
             isolation);
    return json_file(json_pack("{s:i, s:i, s:s, s:s, s:s, s:s, s:o}", "score",
                               verdict_points(verdict), "execution_time", (int)verdict->seconds,
                               "output", output, "output_format", "text", "visibility", "visible",
                               "stdout_visibility", "hidden", "tests", tests));
}

/* ---- GitHub Classroom: the result of one grader, which
 * classroom-resources/autograding-grading-reporter reads, base64-encoded, from a step's output */

static const char *outcome_of(Status status)
{
    return status == RIGHT ? "pass"
           : status == WRONG || status == HELD_BACK || status == NOT_BEGUN || status == UNDONE
               ? "fail"
               : "error";
}

static json_t *github_test(const Verdict *verdict, const LabResult *lab, Check check)
{
    char title[160], path[160], again[160], message[OUTPUT_SIZE];
    check_title(lab, check, title);
    lab_path(lab, path);
    repeat_check(verdict, lab, check, "grade", again);
    check_output(verdict, lab, check, message, sizeof message);
    return json_pack("{s:s, s:s, s:i, s:i, s:s?, s:s, s:s, s:i, s:f}", "name", title, "status",
                     outcome_of(check_status(lab, check)), "score", check_score(lab, check),
                     "max_score", lab_points(lab->lab, check), "message",
                     message[0] ? message : NULL, "test_code", again, "filename", path, "line_no",
                     line_named(lab, message), "execution_time", lab->seconds);
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
            json_array_append_new(tests, github_test(verdict, &verdict->labs[i], (Check)check));
        }
    tell_isolation(verdict, isolation);
    return json_file(json_pack("{s:i, s:s, s:i, s:s, s:o}", "version", 1, "status", overall,
                               "max_score", verdict_of(verdict), "isolation", isolation, "tests",
                               tests));
}

/* ---- Autolab: the report for the student, then the scores as the last line, with problems called
 * lab1, lab2, ... (docs.autolabproject.com, "Guide for Lab Authors") */

char *autolab_text(const Verdict *verdict)
{
    char *text = NULL, name[16];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *scores = json_object();
    fprintf(out, "Balise, seed %llu\n\n", (unsigned long long)verdict->seed);
    for (int i = 0; i < verdict->count; i++) {
        report_lab(out, verdict, &verdict->labs[i], plain_page);
        snprintf(name, sizeof name, "lab%d", verdict->labs[i].lab->number);
        json_object_set_new(scores, name, json_integer(verdict->labs[i].points));
    }
    putc('\n', out);
    report_total(out, verdict, plain_page);
    json_t *line = json_pack("{s:o}", "scores", scores);
    char *last = json_dumps(line, 0);
    fprintf(out, "%s\n", last);
    free(last);
    json_decref(line);
    fclose(out);
    return text;
}
