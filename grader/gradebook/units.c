/* The units of a book: which labs with which sources, and the verdicts that are there already. */
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"

/* All that a verdict depends on. Lab 9 begins from the student's own lab 1. */
static bool key_of(const Book *book, int submission, int lab, char key[CHECKSUM_SIZE])
{
    char place[PLACE_SIZE], *text = NULL;
    size_t size = 0;
    FILE *all = open_memstream(&text, &size);
    fprintf(all, "%s|%llu|%d|", book->kit, (unsigned long long)book->seed, lab_at(lab)->number);
    source_place(book, submission, lab, place);
    bool found = put_contents(all, place) >= 0;
    for (int from = 0; from < lab_count(); from++)
        if (lab_at(from)->number == lab_at(lab)->starts_from) {
            source_place(book, submission, from, place);
            fputc('|', all);
            put_contents(all, place);
        }
    fputc('|', all);
    if (book->cases)
        put_contents(all, book->cases);
    fclose(all);
    checksum_of(text, size, key);
    free(text);
    return found;
}

bool find_verdict(const Book *book, Unit *unit)
{
    char place[PLACE_SIZE];
    place_in(book->state, place, "verdicts/%s.json", unit->key);
    json_t *json = json_load_file(place, 0, NULL);
    const char *isolation = json_string_value(json_object_get(json, "isolation"));
    snprintf(unit->isolation, sizeof unit->isolation, "%s", isolation ? isolation : "");
    bool will_do = strcmp(book->sandbox, "on") != 0 || (!strstr(unit->isolation, "no sandbox") &&
                                                        !strstr(unit->isolation, _("no sandbox")));
    if (json_is_true(json_object_get(json, "complete")) && will_do)
        unit->lab_verdict = json_incref(json_array_get(json_object_get(json, "labs"), 0));
    json_decref(json);
    return unit->lab_verdict != NULL;
}

static int unit_of(Book *book, int submission, int lab)
{
    char key[CHECKSUM_SIZE];
    if (!key_of(book, submission, lab, key))
        return -1;
    for (int i = 0; i < book->unit_count; i++)
        if (!strcmp(book->units[i].key, key))
            return i;
    Unit *unit = &book->units[book->unit_count];
    *unit = (Unit){.lab = lab, .submission = submission};
    memcpy(unit->key, key, sizeof key);
    find_verdict(book, unit);
    return book->unit_count++;
}

void make_units(Book *book)
{
    book->units = calloc((size_t)book->count * (size_t)lab_count(), sizeof *book->units);
    for (int i = 0; i < book->count; i++) {
        Submission *submission = &book->submissions[i];
        for (int lab = 0; lab < lab_count(); lab++) {
            submission->unit[lab] = submission->refused ? -1 : unit_of(book, i, lab);
            submission->pending +=
                submission->unit[lab] >= 0 && !book->units[submission->unit[lab]].lab_verdict;
        }
    }
}
