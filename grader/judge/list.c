/* build/grade --list, --may-send: prints data of the labs' records for slides, tests and the
 * student's commands. */

#include "grader/judge/commands.h"
#include <jansson.h>

/* The number of cases and the points are the same with every seed. */
static json_t *lab_json(const Lab *lab)
{
    static Case cases[MAX_CASES];
    json_t *points = json_object();
    for (int check = 0; check < CHECKS; check++)
        if (lab->points[check])
            json_object_set_new(points, check_keys[check], json_integer(lab->points[check]));
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:o, s:s?, s:s?, s:i, s:i}", "number",
                     lab->number, "folder", lab->folder, "file", lab->file, "title", lab->title,
                     "needs", lab->needs, "layouts", lab->layouts, "part", lab->part, "points",
                     points, "question", lab->predict.question, "unit", lab->predict.unit, "cases",
                     lab_cases(lab, 1, cases), "ranks", lab_largest_world(lab));
}

void list_labs(FILE *out)
{
    json_t *labs = json_array();
    for (int i = 0; i < lab_count(); i++)
        json_array_append_new(labs, lab_json(lab_at(i)));
    json_dumpf(labs, out, JSON_INDENT(1));
    fputc('\n', out);
    json_decref(labs);
}

bool list_sent(FILE *out, const Lab *lab, const char *sizes, Problem *problem)
{
    int64_t n = 1;
    Sizes at = {.tp = 1, .stages = 1, .micros = 1};
    const struct {
        const char *name;
        int64_t *value;
        int64_t least;
    } letters[] = {{"n", &n, 1},
                   {"B", &at.B, 0},
                   {"S", &at.S, 0},
                   {"H", &at.H, 0},
                   {"F", &at.F, 0},
                   {"OUT", &at.OUT, 0},
                   {"C", &at.C, 0},
                   {"N", &at.N, 0},
                   {"PART", &at.part, 0},
                   {"VOCABULARY", &at.vocabulary, 0},
                   {"TP", &at.tp, 1},
                   {"STAGES", &at.stages, 1},
                   {"MICROS", &at.micros, 1},
                   {"HELD", &at.held, 0}};
    enum { LETTERS = sizeof letters / sizeof *letters };
    char name[16];
    int used;
    for (long long value; sscanf(sizes, " %15[A-Za-z]=%lld%n", name, &value, &used) == 2;
         sizes += used) {
        int i = 0;
        while (i < LETTERS && strcmp(letters[i].name, name) != 0)
            i++;
        if (i == LETTERS || value < letters[i].least || value >= 1LL << 40)
            break;
        *letters[i].value = value;
    }
    if (*sizes || !lab->forward)
        return problem_set(problem, NULL, "n=4 B=8 S=128 H=768",
                           "lab %d: these sizes do not determine how much it may send: '%.60s'",
                           lab->number, sizes);
    fprintf(out, "%lld %lld\n", (long long)lab->forward(n, &at).numbers,
            (long long)lab->backward(n, &at).numbers);
    return true;
}
