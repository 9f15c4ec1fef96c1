/* TAP 14 (testanything.org): a subtest per lab, a test point per check, a YAML block for each
 * failure. */
#include <stdlib.h>

#include "grader/judge/report/formats/formats.h"

/* In a description, '#' begins a directive. */
static void put_description(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '#' || *text == '\\')
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

/* A JSON string is also a YAML string. */
static void put_yaml(FILE *out, const char *key, const char *value)
{
    json_t *json = json_string(value);
    char *text = json_dumps(json, JSON_ENCODE_ANY);
    fprintf(out, "      %s: %s\n", key, text);
    free(text);
    json_decref(json);
}

static void put_check(FILE *out, const Verdict *verdict, const LabResult *lab, Check check,
                      int number)
{
    char diagnosis[REASON_SIZE], again[160];
    Status status = check_status(lab, check);
    fprintf(out, "    %sok %d - ", status == RIGHT ? "" : "not ", number);
    put_description(out, check_names[check]);
    fputc('\n', out);
    if (status == RIGHT)
        return;
    check_reason(lab, check, diagnosis, sizeof diagnosis);
    repeat_check(verdict, lab, check, "grade", again);
    fprintf(out, "      ---\n");
    put_yaml(out, "message", diagnosis);
    put_yaml(out, "severity",
             status == WRONG || status == HELD_BACK ? "fail" : status_names[status]);
    put_yaml(out, "again", again);
    fprintf(out, "      points: %d\n      of: %d\n      ...\n", check_score(lab, check),
            lab_points(lab->lab, check));
}

static void put_lab(FILE *out, const Verdict *verdict, const LabResult *lab, int number)
{
    char title[160];
    bool skipped = lab->state == NOT_STARTED_YET || lab->state == NOT_GRADED_YET;
    snprintf(title, sizeof title, "Lab %d %s", lab->lab->number, lab->lab->title);
    if (!skipped) {
        int checks = 0;
        fprintf(out, "# Subtest: %s\n", title);
        for (int check = -1; (check = next_check(lab, check)) >= 0;)
            put_check(out, verdict, lab, (Check)check, ++checks);
        fprintf(out, "    1..%d\n", checks);
    }
    fprintf(out, "%sok %d - ", skipped || lab->points == lab->of ? "" : "not ", number);
    put_description(out, title);
    if (skipped)
        fprintf(out, " # SKIP %s", lab->state == NOT_STARTED_YET ? "not started" : "not run");
    fputc('\n', out);
}

char *tap_text(const Verdict *verdict)
{
    char *text = NULL, isolation[ISOLATION_SIZE];
    size_t size = 0;
    tell_isolation(verdict, isolation);
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "TAP version 14\n1..%d\n# seed %llu\n# %s\n", verdict->count,
            (unsigned long long)verdict->seed, isolation);
    for (int i = 0; i < verdict->count; i++)
        put_lab(out, verdict, &verdict->labs[i], i + 1);
    if (!verdict_is_complete(verdict))
        fprintf(out, "Bail out! the grader was interrupted, some labs were not run\n");
    fclose(out);
    return text;
}
