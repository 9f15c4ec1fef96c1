/* make board: trains with the labs of submissions that have full marks, and writes what its page
 * shows. */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "grader/gradebook/book.h"
#include "grader/labs/replicas.h"

/* ---- training runs -------------------------------------------------------------------------------------------------- */

static const Lab *training_lab(void)
{
    return lab_of(TRAINING_LAB);
}

bool is_trained(int lab)
{
    char needs[256], number[16];
    snprintf(needs, sizeof needs, " %.200s %d ", training_lab()->needs, TRAINING_LAB);
    snprintf(number, sizeof number, " %d ", lab_at(lab)->number);
    return strstr(needs, number);
}

static bool has_full_marks(const Book *book, const Submission *submission, int lab)
{
    const json_t *verdict =
        submission->unit[lab] < 0 ? NULL : book->units[submission->unit[lab]].lab_verdict;
    const json_t *points = json_object_get(verdict, "points");
    return points && json_equal(points, json_object_get(verdict, "of"));
}

static bool can_train(const Book *book, const Submission *submission)
{
    for (int lab = 0; lab < lab_count(); lab++)
        if (is_trained(lab) && !has_full_marks(book, submission, lab))
            return false;
    return true;
}

/* The key is a checksum of the kit, the seed and the sources of all trained labs. */
static void key_of_training(const Book *book, Unit *unit)
{
    char place[PLACE_SIZE], *text = NULL;
    size_t size = 0;
    FILE *all = open_memstream(&text, &size);
    fprintf(all, "training|%s|%llu", book->kit, (unsigned long long)book->seed);
    for (int lab = 0; lab < lab_count(); lab++)
        if (is_trained(lab)) {
            source_place(book, unit->submission, lab, place);
            fprintf(all, "|%d|", lab_at(lab)->number);
            put_contents(all, place);
        }
    fclose(all);
    checksum_of(text, size, unit->key);
    free(text);
}

/* Adds a training run, unless there is one with the same key. Returns the index of its unit. */
static int add_training_run(Book *book, int submission, int first)
{
    Unit *unit = &book->units[book->unit_count];
    *unit = (Unit){.submission = submission, .trains = true};
    while (lab_at(unit->lab) != training_lab())
        unit->lab++;
    key_of_training(book, unit);
    for (int i = first; i < book->unit_count; i++)
        if (!strcmp(book->units[i].key, unit->key))
            return i;
    find_verdict(book, unit);
    return book->unit_count++;
}

void make_training_runs(Book *book)
{
    const int first = book->unit_count;
    for (int i = 0; i < book->count; i++) {
        if (!can_train(book, &book->submissions[i]))
            continue;
        if (book->unit_count == first)
            add_training_run(book, -1, first);
        book->submissions[i].training = add_training_run(book, i, first);
    }
}

/* ---- aliases -------------------------------------------------------------------------------------------------------- */

enum { LEAST_ALIAS = 1000, ALIASES = 9000, MANY_ALIASES = 900000 };

static bool is_taken(json_t *aliases, json_int_t alias)
{
    const char *entry;
    json_t *other;
    json_object_foreach(aliases, entry, other)
    {
        if (json_integer_value(other) == alias)
            return true;
    }
    return false;
}

/* A number that no other submission has, drawn at random, so that it does not reveal the name. */
static json_t *new_alias(json_t *aliases)
{
    const size_t among = json_object_size(aliases) < ALIASES / 2 ? ALIASES : MANY_ALIASES;
    uint32_t drawn;
    do {
        if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
            give_up_at(NULL, "", N_("no random numbers could be drawn"));
        drawn = LEAST_ALIAS + drawn % (uint32_t)among;
    } while (is_taken(aliases, drawn));
    return json_integer(drawn);
}

/* The aliases by a checksum of the name in the folder. A file keeps them, so that a submission has the
 * same alias in each run. */
static json_t *aliases_of(const Book *book)
{
    char place[PLACE_SIZE];
    place_in(book->state, place, "aliases.json");
    json_t *aliases = json_load_file(place, 0, NULL);
    if (!json_is_object(aliases))
        aliases = json_object();
    for (int i = 0; i < book->count; i++) {
        char entry[CHECKSUM_SIZE]; /* a name need not be valid UTF-8 */
        checksum_of(book->submissions[i].entry, strlen(book->submissions[i].entry), entry);
        if (!json_object_get(aliases, entry))
            json_object_set_new(aliases, entry, new_alias(aliases));
        book->submissions[i].alias = (int)json_integer_value(json_object_get(aliases, entry));
    }
    return aliases;
}

static void set_aliases(Book *book)
{
    char place[PLACE_SIZE];
    json_t *aliases = aliases_of(book);
    char *text = json_dumps(aliases, JSON_INDENT(1));
    place_in(book->state, place, "aliases.json");
    write_or_give_up(place, NULL, text);
    free(text);
    json_decref(aliases);
}

/* ---- what the page shows -------------------------------------------------------------------------------------------- */

static json_t *lab_of_submission(const Book *book, const Submission *submission, int lab)
{
    static const char *const keys[] = {"state", "points", "of", "sent", "kept"};
    if (submission->unit[lab] < 0)
        return json_pack("{s:s}", "state", "not handed in");
    const json_t *verdict = book->units[submission->unit[lab]].lab_verdict;
    json_t *json = json_pack("{s:s}", "state", "no result");
    for (size_t i = 0; verdict && i < sizeof keys / sizeof *keys; i++)
        json_object_set(json, keys[i], json_object_get(verdict, keys[i]));
    return json;
}

/* What was measured, or why nothing was; null without a training run. */
static json_t *training_of(const Book *book, int unit)
{
    if (unit < 0)
        return json_null();
    const Unit *training = &book->units[unit];
    return training->lab_verdict ? json_incref(training->lab_verdict)
                                 : json_pack("{s:s}", "reason", training->trouble);
}

static json_t *submission_json(const Book *book, const Submission *submission)
{
    json_t *labs = json_array();
    for (int lab = 0; lab < lab_count(); lab++)
        json_array_append_new(labs, lab_of_submission(book, submission, lab));
    return json_pack("{s:i, s:s, s:s?, s:o, s:o}", "alias", submission->alias, "student",
                     submission->student, "refused",
                     submission->refused ? submission->remark : NULL, "labs", labs, "training",
                     training_of(book, submission->training));
}

static json_t *lab_json(int lab)
{
    int of = 0;
    for (int check = 0; check < CHECKS; check++)
        of += lab_points(lab_at(lab), (Check)check);
    return json_pack("{s:i, s:s, s:i, s:b}", "number", lab_at(lab)->number, "title",
                     lab_at(lab)->title, "of", of, "trained", is_trained(lab));
}

void write_board(Book *book)
{
    json_t *labs = json_array(), *submissions = json_array();
    int reference = -1;
    set_aliases(book);
    for (int lab = 0; lab < lab_count(); lab++)
        json_array_append_new(labs, lab_json(lab));
    for (int i = 0; i < book->count; i++)
        json_array_append_new(submissions, submission_json(book, &book->submissions[i]));
    for (int i = 0; i < book->unit_count; i++)
        if (book->units[i].submission < 0)
            reference = i;
    json_t *board = json_pack("{s:o, s:o, s:o}", "labs", labs, "submissions", submissions,
                              "reference", training_of(book, reference));
    char *text = json_dumps(board, JSON_INDENT(1));
    write_or_give_up(book->out, NULL, text);
    free(text);
    json_decref(board);
}
