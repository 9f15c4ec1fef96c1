/* The commonest causes per lab: topics for the next lecture. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/verdict.h"

enum { MOST_CAUSES = 512, SHOWN = 3, SENTENCE = 320 };

typedef struct Cause {
    char pattern[SENTENCE]; /* the sentence, with every number replaced by one character */
    char example[SENTENCE];
    int students, last; /* the last student counted */
} Cause;

typedef struct Causes {
    Cause cause[MOST_CAUSES];
    int count;
} Causes;

static void pattern_of(const char *sentence, char pattern[SENTENCE])
{
    size_t used = 0;
    for (; *sentence && used < SENTENCE - 1; sentence++)
        if (!isdigit((unsigned char)*sentence))
            pattern[used++] = *sentence;
        else if (used == 0 || pattern[used - 1] != '#')
            pattern[used++] = '#';
    pattern[used] = '\0';
}

static void count_cause(Causes *causes, const char *reason, int student)
{
    char sentence[SENTENCE], pattern[SENTENCE];
    int i = 0;
    snprintf(sentence, sizeof sentence, "%.*s", (int)strcspn(reason, "\n"), reason);
    pattern_of(sentence, pattern);
    while (i < causes->count && strcmp(causes->cause[i].pattern, pattern))
        i++;
    if (i == MOST_CAUSES)
        return;
    Cause *cause = &causes->cause[i];
    if (i == causes->count) {
        *cause = (Cause){.last = -1};
        memcpy(cause->pattern, pattern, sizeof pattern);
        memcpy(cause->example, sentence, sizeof sentence);
        causes->count++;
    }
    cause->students += cause->last != student;
    cause->last = student;
}

static bool is_held_back(const json_t *check)
{
    const char *status = json_string_value(json_object_get(check, "status"));
    return status && !strcmp(status, status_names[HELD_BACK]);
}

/* Counts the reasons of the checks that are held back, or of the others. @return how many it found */
static int count_checks(Causes *causes, const json_t *verdict, int student, bool held_back)
{
    int found = 0;
    size_t i;
    const json_t *check;
    json_array_foreach(json_object_get(verdict, "checks"), i, check)
    {
        const char *reason = json_string_value(json_object_get(check, "reason"));
        if (!reason || is_held_back(check) != held_back)
            continue;
        count_cause(causes, reason, student);
        found++;
    }
    return found;
}

/* Points are held back because of another mistake, if there is one; that mistake is the cause. */
static void count_lab(Causes *causes, const json_t *verdict, int student)
{
    const char *state = json_string_value(json_object_get(verdict, "state"));
    if (state && (!strcmp(state, "does not build") || !strcmp(state, "refused")))
        count_cause(causes, _(state), student);
    if (!count_checks(causes, verdict, student, false))
        count_checks(causes, verdict, student, true);
}

static int commonest_first(const void *a, const void *b)
{
    const Cause *first = a, *second = b;
    return first->students != second->students ? second->students - first->students
                                               : strcmp(first->pattern, second->pattern);
}

/* Prints the count before the sentence's first line. */
static void put_cause(FILE *out, const Cause *cause)
{
    static const Page page = {.columns = 80};
    char *text = NULL, number[16];
    size_t size = 0;
    FILE *lines = open_memstream(&text, &size);
    print_indented(lines, page, cause->example, "       ");
    fclose(lines);
    snprintf(number, sizeof number, "  %3d  ", cause->students);
    fprintf(out, "%s%s", number, size > strlen(number) ? text + strlen(number) : "\n");
    free(text);
}

static bool is_started_by_anybody(const Book *book, int lab)
{
    for (int i = 0; i < book->count; i++) {
        const int unit = book->submissions[i].unit[lab];
        const json_t *verdict = unit < 0 ? NULL : book->units[unit].lab_verdict;
        const char *state = json_string_value(json_object_get(verdict, "state"));
        if (unit >= 0 && !(state && !strcmp(state, "not started")))
            return true;
    }
    return false;
}

static void put_lab(const Book *book, FILE *out, int lab)
{
    static Causes causes;
    int full = 0, some = 0, not_started = 0, not_handed_in = 0, none = 0;
    causes.count = 0;
    for (int i = 0; i < book->count; i++) {
        int unit = book->submissions[i].unit[lab];
        const json_t *verdict = unit < 0 ? NULL : book->units[unit].lab_verdict;
        const char *state = json_string_value(json_object_get(verdict, "state"));
        if (unit < 0 && !book->submissions[i].refused)
            not_handed_in++;
        else if (!verdict)
            none++;
        else if (state && !strcmp(state, "not started"))
            not_started++;
        else if (json_integer_value(json_object_get(verdict, "points")) ==
                 json_integer_value(json_object_get(verdict, "of")))
            full++;
        else
            some++;
        count_lab(&causes, verdict, i);
    }
    qsort(causes.cause, (size_t)causes.count, sizeof *causes.cause, commonest_first);
    fprintf(
        out,
        _("Lab %d  %s\n  %d full marks, %d less, %d not started, %d not handed in, %d without a "
          "result\n"),
        lab_at(lab)->number, _(lab_at(lab)->title), full, some, not_started, not_handed_in, none);
    for (int i = 0; i < causes.count && i < SHOWN; i++)
        put_cause(out, &causes.cause[i]);
}

/* Prints each sentence about the isolation of ranks once, with the number of units that have it. */
static void put_isolation(const Book *book, FILE *out)
{
    for (int i = 0; i < book->unit_count; i++) {
        const char *sentence = book->units[i].isolation;
        int labs = 0, first = i;
        for (int k = 0; k < book->unit_count; k++)
            if (book->units[k].lab_verdict && !strcmp(book->units[k].isolation, sentence)) {
                labs++;
                first = k < first ? k : first;
            }
        if (labs > 0 && first == i && *sentence)
            fprintf(out, labs == 1 ? _("%s: %d lab\n") : _("%s: %d labs\n"), sentence, labs);
    }
}

static void put_copies(const Book *book, FILE *out)
{
    int identical = 0, alike = 0;
    for (int i = 0; i < book->count; i++) {
        char text[REMARK_SIZE];
        tell_identical(book, i, text);
        identical += *text != '\0';
        tell_alike(book, i, text);
        alike += *text != '\0';
    }
    if (identical > 0)
        fprintf(out,
                _("%d submissions have files identical to another's: see the column "
                  "\"identical\"\n"),
                identical);
    if (alike > 0)
        fprintf(out,
                _("%d submissions have labs like another's, apart from comments, white\n"
                  "space and names: see the column \"alike\"; compare them before you judge\n"),
                alike);
}

void write_summary(const Book *book)
{
    char *text = NULL, place[PLACE_SIZE], labs[LABS_SIZE];
    size_t size = 0;
    bool listed[MOST_LABS] = {false}, any = false;
    FILE *out = open_memstream(&text, &size);
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++)
        if (is_started_by_anybody(book, lab))
            put_lab(book, out, lab);
        else
            any = listed[lab] = true;
    if (any) {
        tell_labs(book, listed, labs);
        fprintf(out, _("Not started by anybody: %s\n"), labs);
    }
    put_copies(book, out);
    put_isolation(book, out);
    fclose(out);
    snprintf(place, sizeof place, "%.3000s/summary", book->reports);
    write_or_give_up(place, NULL, text);
    printf("\n%s", text);
    free(text);
}
