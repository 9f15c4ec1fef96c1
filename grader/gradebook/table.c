/* The results: the table, and a report per student. */
#include <csv.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/verdict.h"

static int number_of(const json_t *json, const char *key)
{
    return (int)json_integer_value(json_object_get(json, key));
}

static bool has_check_that_is(const json_t *verdict, const char *status)
{
    size_t i;
    const json_t *check;
    json_array_foreach(json_object_get(verdict, "checks"), i, check)
    {
        const char *found = json_string_value(json_object_get(check, "status"));
        if (found && !strcmp(found, status))
            return true;
    }
    return false;
}

static const Unit *unit_of_lab(const Book *book, const Submission *submission, int lab)
{
    return submission->unit[lab] < 0 ? NULL : &book->units[submission->unit[lab]];
}

void tell_labs(const Book *book, const bool listed[MOST_LABS], char text[LABS_SIZE])
{
    char numbers[LABS_SIZE] = "";
    int count = 0;
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        int last = lab;
        if (!listed[lab])
            continue;
        while (last + 1 < book->labs.end && listed[last + 1])
            last++;
        append(numbers, LABS_SIZE, "%s%d", count++ ? ", " : "", lab_at(lab)->number);
        if (last < lab + 2)
            continue;
        append(numbers, LABS_SIZE, "-%d", lab_at(last)->number);
        lab = last;
        count++;
    }
    snprintf(text, LABS_SIZE, count == 1 ? _("lab %s") : _("labs %s"), numbers);
}

void add_up(Book *book, Submission *submission)
{
    static const struct {
        const char *status, *remark;
    } endings[] = {{"does not build", N_("does not build")},
                   {"refused", N_("refused")},
                   {"crash", N_("crashes")},
                   {"hang", N_("hangs")},
                   {"not started", N_("not started")},
                   {NULL, N_("not handed in")}};
    submission->points = 0;
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const Unit *unit = unit_of_lab(book, submission, lab);
        if (unit && !unit->lab_verdict)
            add_remark(submission, _("lab %d could not be graded (%s)"), lab_at(lab)->number,
                       unit->trouble);
        submission->points += unit ? number_of(unit->lab_verdict, "points") : 0;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !submission->refused; i++) {
        bool listed[MOST_LABS] = {false}, any = false;
        char labs[LABS_SIZE];
        for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
            const Unit *unit = unit_of_lab(book, submission, lab);
            listed[lab] = endings[i].status
                              ? unit && has_check_that_is(unit->lab_verdict, endings[i].status)
                              : !unit;
            any |= listed[lab];
        }
        if (!any)
            continue;
        tell_labs(book, listed, labs);
        add_remark(submission, _("%s: %s"), _(endings[i].remark), labs);
    }
}

/* The text of a cell, written so that no spreadsheet takes it for a formula: not after blanks, nor in
 * full-width characters, either. */
static void put_cell(FILE *out, const char *text)
{
    char safe[2 * REMARK_SIZE];
    const char *first = text + strspn(text, " ");
    bool formula = *first && (strchr("=+-@\t\r'", *first) || !strncmp(first, "\xEF\xBC", 2));
    snprintf(safe, sizeof safe, "%s%s", formula ? "'" : "", text);
    csv_fwrite(out, safe, strlen(safe));
}

static void put_row(const Book *book, FILE *out, const Submission *submission, int of)
{
    char entry[PATH_SIZE], others[REMARK_SIZE];
    const int number = (int)(submission - book->submissions);
    snprintf(entry, sizeof entry, "%s", submission->entry);
    make_line(entry);
    put_cell(out, submission->student);
    fputc(',', out);
    put_cell(out, entry);
    fputc(',', out);
    put_cell(out, submission->created);
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const Unit *unit = unit_of_lab(book, submission, lab);
        if (submission->refused || (unit && !unit->lab_verdict))
            fprintf(out, ","); /* no result */
        else
            fprintf(out, ",%d", unit ? number_of(unit->lab_verdict, "points") : 0);
    }
    if (submission->refused)
        fprintf(out, ",,%d,", of);
    else
        fprintf(out, ",%d,%d,", submission->points, of);
    put_cell(out, submission->remark);
    fputc(',', out);
    put_cell(out, submission->predictions);
    fputc(',', out);
    tell_identical(book, number, others);
    put_cell(out, others);
    fputc(',', out);
    tell_alike(book, number, others);
    put_cell(out, others);
    fputs("\r\n", out);
}

#define FIRST_COLUMNS "student,submission,created"
const OutputKind table_kind = {.name = N_("a table of grades"), .mark = FIRST_COLUMNS};

void write_table(const Book *book)
{
    char *text = NULL;
    size_t size = 0;
    int of = 0;
    FILE *out = open_memstream(&text, &size);
    fputs(FIRST_COLUMNS, out);
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        for (int check = 0; check < CHECKS; check++)
            of += lab_points(lab_at(lab), (Check)check);
        fprintf(out, ",lab %d", lab_at(lab)->number);
    }
    fprintf(out, ",total,of,remark,predictions,identical,alike\r\n");
    for (int i = 0; i < book->count; i++)
        put_row(book, out, &book->submissions[i], of);
    fclose(out);
    write_or_give_up(book->out, &table_kind, text);
    free(text);
}

/* "seed 4711", alone or before a comma, in the language of the stored report. */
static bool is_of_seed(const char *line)
{
    int end = 0;
    sscanf(line, "%*[^ 0-9] %*[0-9]%n", &end);
    return end > 0 && strchr(",\n", line[end]);
}

/* The grader's report of a lab, without the lines after its last check. */
static void put_lab_report(const Book *book, FILE *out, const Unit *unit)
{
    char place[PLACE_SIZE], line[1024];
    place_in(book->state, place, "verdicts/%s.txt", unit->key);
    FILE *report = fopen(place, "r");
    while (report && fgets(line, sizeof line, report) && !is_of_seed(line))
        fputs(line, out);
    if (report)
        fclose(report);
}

/* The file name of a submission's report; `entry` may contain any characters. */
static void report_name(const Book *book, int number, char file[PATH_SIZE])
{
    char name[PATH_SIZE], checksum[CHECKSUM_SIZE];
    const char *entry = book->submissions[number].entry;
    snprintf(name, sizeof name, "%.200s", entry);
    make_line(name);
    for (char *at = name; *at; at++)
        if (strchr("\\:*\"<>|?", *at))
            *at = '_';
    checksum_of(entry, strlen(entry), checksum);
    bool same = !strcmp(name, entry);
    snprintf(file, PATH_SIZE, "%.220s%s%.8s.txt", name, same ? "" : "-", same ? "" : checksum);
}

static void put_labs(const Book *book, FILE *out, const Submission *submission)
{
    fprintf(out, _("%d points, seed %llu\n"), submission->points, (unsigned long long)book->seed);
    fprintf(out, "%s%s\n", submission->remark, *submission->remark ? "\n" : "");
    if (*submission->predictions)
        fprintf(out, _("Predicted/measured, by lab (*: predicted after measuring): %s\n\n"),
                submission->predictions);
    fputs(_("Each lab was graded on the reference solutions of the others. At home it may build on "
            "your own\n(STACK=mine, which the handout always uses), and then fail because of "
            "them.\n\n"),
          out);
    for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
        const Unit *unit = unit_of_lab(book, submission, lab);
        if (unit && unit->lab_verdict)
            put_lab_report(book, out, unit);
        else
            fprintf(out, _("Lab %d  %s: %s%s\n"), lab_at(lab)->number, _(lab_at(lab)->title),
                    unit ? _("could not be graded: ") : _("not handed in"),
                    unit ? unit->trouble : "");
    }
}

void write_report(const Book *book, int number)
{
    const Submission *submission = &book->submissions[number];
    char *text = NULL, place[PLACE_SIZE], file[PATH_SIZE], entry[PATH_SIZE];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    snprintf(entry, sizeof entry, "%s", submission->entry);
    make_line(entry);
    fprintf(out, "%s (%s)\n", submission->student, entry);
    if (submission->refused)
        fprintf(out, _("not graded: %s\n"), submission->remark);
    else
        put_labs(book, out, submission);
    fclose(out);
    report_name(book, number, file);
    snprintf(place, sizeof place, "%.3000s/%s", book->reports, file);
    write_or_give_up(place, NULL, text);
    free(text);
}

static bool is_report_of(const Book *book, const char *file)
{
    char name[PATH_SIZE];
    for (int i = 0; i < book->count; i++) {
        report_name(book, i, name);
        if (!strcmp(name, file))
            return true;
    }
    return false;
}

/* Removes only reports that an earlier run wrote, according to its list of names. */
void remove_old_reports(const Book *book)
{
    char list[PLACE_SIZE], place[PLACE_SIZE], name[PATH_SIZE], *text = NULL;
    size_t size = 0;
    place_in(book->state, list, "reports");
    FILE *file = fopen(list, "r"), *out = open_memstream(&text, &size);
    while (file && fgets(name, sizeof name, file)) {
        name[strcspn(name, "\n")] = '\0';
        snprintf(place, sizeof place, "%.3000s/%s", book->reports, name);
        if (!strchr(name, '/') && !is_report_of(book, name))
            remove(place);
    }
    if (file)
        fclose(file);
    for (int i = 0; i < book->count; i++) {
        report_name(book, i, name);
        fprintf(out, "%s\n", name);
    }
    fclose(out);
    write_or_give_up(list, NULL, text);
    free(text);
}
