/* What several formats share, and the list of formats. */
#include "grader/judge/report/formats/formats.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "grader/judge/mpi/recorded.h"

#define OF(mark) N_("a result in this format"), mark, NULL
static const Format formats[] = {
    {"json", json_text, {OF("\"format\": \"balise verdict\"")}},
    {"junit", junit_text, {OF("<testsuites name=\"Balise\"")}},
    {"tap", tap_text, {OF("TAP version 14\n1..")}},
    {"gradescope", gradescope_text, {OF("{\n  \"score\": ")}},
    {"autolab", autolab_text, {OF("Balise, seed ")}},
    {"github", github_text, {OF("{\n  \"version\": 1,\n  \"status\": ")}}};

const Format *format_of(const char *name, Problem *problem)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(name, formats[i].name))
            return &formats[i];
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
    repeat_check(verdict, lab, check, "grade", again);
    append(text, size, "\n%s%s", _("again: "), again);
}

/* Returns the line number after the next "FILE:" in the text, and sets *at to it; 0 at the end. */
static int next_line(const char *file, const char **at)
{
    const size_t length = strlen(file);
    for (const char *found = *at; (found = strstr(found, file)); found += length)
        if (found[length] == ':' && isdigit((unsigned char)found[length + 1])) {
            *at = found + length + 1;
            return atoi(*at);
        }
    return 0;
}

int line_named(const LabResult *lab, const char *text)
{
    int first = 0, line;
    while ((line = next_line(lab->lab->file, &text))) {
        if (!strncmp(text + strspn(text, "0123456789:"), " error:", 7))
            return line;
        first = first ? first : line;
    }
    return first;
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
