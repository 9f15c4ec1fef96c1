/* Autolab: what a student shall read, and then the scores as the last line (docs.autolabproject.com, "Guide for Lab
 * Authors"). The problems are called lab1, lab2, ... there. */
#include <stdlib.h>

#include "grader/judge/report/formats/formats.h"

char *autolab_text(const Verdict *verdict)
{
    char *text = NULL, name[16];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    json_t *scores = json_object();
    for (int i = 0; i < verdict->count; i++) {
        report_lab(out, verdict, &verdict->labs[i], plain_page);
        snprintf(name, sizeof name, "lab%d", verdict->labs[i].lab->number);
        json_object_set_new(scores, name, json_integer(verdict->labs[i].points));
    }
    fprintf(out, "\nseed %llu\n", (unsigned long long)verdict->seed);
    report_total(out, verdict, plain_page);
    json_t *line = json_pack("{s:o}", "scores", scores);
    char *last = json_dumps(line, 0);
    fprintf(out, "%s\n", last);
    free(last);
    json_decref(line);
    fclose(out);
    return text;
}
