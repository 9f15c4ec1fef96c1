#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"

static bool hash_file(XXH3_state_t *hash, const char *path)
{
    static char buffer[1 << 16];
    size_t length;
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while ((length = fread(buffer, 1, sizeof buffer, file)) > 0)
        XXH3_128bits_update(hash, buffer, length);
    XXH3_128bits_update(hash, "|", 1);
    fclose(file);
    return true;
}

/* All that a verdict depends on. Lab 9 begins from the student's own lab 1. */
static bool key_of(const Book *book, int submission, int lab, char key[CHECKSUM_SIZE])
{
    char place[PLACE_SIZE], head[256];
    XXH3_state_t *hash = XXH3_createState();
    XXH3_128bits_reset(hash);
    snprintf(head, sizeof head, "%s|%llu|%d|", book->kit, (unsigned long long)book->seed,
             lab_at(lab)->number);
    XXH3_128bits_update(hash, head, strlen(head));
    source_place(book, submission, lab, place);
    bool found = hash_file(hash, place);
    for (int from = 0; from < lab_count(); from++)
        if (lab_at(from)->number == lab_at(lab)->starts_from) {
            source_place(book, submission, from, place);
            hash_file(hash, place);
        }
    if (book->cases)
        hash_file(hash, book->cases);
    XXH128_hash_t sum = XXH3_128bits_digest(hash);
    XXH3_freeState(hash);
    snprintf(key, CHECKSUM_SIZE, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
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
