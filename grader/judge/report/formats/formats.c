/* What several formats share, and the list of formats. */
#include "grader/judge/report/formats/formats.h"

#include <stdlib.h>

#include "grader/judge/mpi/recorded.h"

static const struct {
    const char *name;
    FormatWriter *writer;
} formats[] = {{"json", json_text},       {"junit", junit_text},
               {"tap", tap_text},         {"gradescope", gradescope_text},
               {"autolab", autolab_text}, {"github", github_text}};

FormatWriter *format_of(const char *name, Problem *problem)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(name, formats[i].name))
            return formats[i].writer;
    problem_set(problem, NULL, "FORMAT is one of json, junit, tap, gradescope, autolab, github",
                "there is no format '%.60s'", name);
    return NULL;
}

void check_title(const LabResult *lab, Check check, char title[160])
{
    snprintf(title, 160, "Lab %d %s: %s", lab->lab->number, lab->lab->title, check_names[check]);
}

void lab_path(const LabResult *lab, char path[160])
{
    snprintf(path, 160, "labs/%s/%s", lab->lab->folder, lab->lab->file);
}

void check_output(const Verdict *verdict, const LabResult *lab, Check check, char *text,
                  size_t size)
{
    check_reason(lab, check, text, size);
    if (!lab->check[check].failed)
        return;
    char again[160];
    repeat_check(verdict, lab, check, again);
    append(text, size, "\n%s%s", _("again: "), again);
}

int next_check(const LabResult *lab, int check)
{
    while (++check < CHECKS)
        if (lab_points(lab->lab, (Check)check))
            return check;
    return -1;
}

char *json_file(json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    size_t length = strlen(text);
    text = realloc(text, length + 2);
    memcpy(text + length, "\n", 2);
    json_decref(json);
    return text;
}
