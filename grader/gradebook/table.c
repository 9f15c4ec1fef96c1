/* What came out: the table, and a report a student. */
#include <csv.h>
#include <stdlib.h>
#include <string.h>

#include "grader/gradebook/book.h"
#include "grader/judge/judge.h"
#include "grader/judge/output.h"
#include "grader/judge/verdict.h"

static int number_of(const json_t *json, const char *key)
{
    return (int)json_integer_value(json_object_get(json, key));
}

static void append_lab(char *list, size_t size, int lab)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%d", used ? ", " : "", lab_at(lab)->number);
}

static void remark_labs(Submission *submission, const char *what, const char *list)
{
    if (*list)
        add_remark(submission, "%s: lab %s", what, list);
}

void add_up(Book *book, Submission *submission)
{
    char missing[64] = "", not_started[64] = "", broken[64] = "", refused[64] = "";
    submission->points = 0;
    for (int lab = 0; lab < lab_count(); lab++) {
        const Unit *unit = submission->unit[lab] < 0 ? NULL : &book->units[submission->unit[lab]];
        const json_t *verdict = unit ? unit->lab_verdict : NULL;
        const char *state = json_string_value(json_object_get(verdict, "state"));
        if (!unit)
            append_lab(missing, sizeof missing, lab);
        else if (!verdict)
            add_remark(submission, "lab %d could not be graded (%s)", lab_at(lab)->number, unit->trouble);
        else if (state && !strcmp(state, "not started"))
            append_lab(not_started, sizeof not_started, lab);
        else if (state && !strcmp(state, "does not build"))
            append_lab(broken, sizeof broken, lab);
        else if (state && !strcmp(state, "refused"))
            append_lab(refused, sizeof refused, lab);
        submission->points += number_of(verdict, "points");
    }
    if (submission->refused)
        return;
    remark_labs(submission, "does not build", broken);
    remark_labs(submission, "refused", refused);
    remark_labs(submission, "not started", not_started);
    remark_labs(submission, "not handed in", missing);
}

void put_cell(FILE *out, const char *text)
{
    char safe[2 * REMARK_SIZE];
    bool formula = *text && strchr("=+-@\t\r'", *text);
    snprintf(safe, sizeof safe, "%s%s", formula ? "'" : "", text);
    csv_fwrite(out, safe, strlen(safe));
}

static void put_row(const Book *book, FILE *out, const Submission *submission, int of)
{
    char entry[PATH_SIZE];
    snprintf(entry, sizeof entry, "%s", submission->entry);
    make_line(entry);
    put_cell(out, submission->student);
    fputc(',', out);
    put_cell(out, entry);
    for (int lab = 0; lab < lab_count(); lab++) {
        const Unit *unit = submission->unit[lab] < 0 ? NULL : &book->units[submission->unit[lab]];
        if (unit && !unit->lab_verdict)
            fprintf(out, ","); /* nobody knows */
        else
            fprintf(out, ",%d", unit ? number_of(unit->lab_verdict, "points") : 0);
    }
    fprintf(out, ",%d,%d,", submission->points, of);
    put_cell(out, submission->remark);
    fputs("\r\n", out);
}

static void write_or_give_up(const char *path, const char *text)
{
    Problem problem;
    if (!write_file(path, text, &problem))
        give_up(&problem);
}

void write_table(const Book *book)
{
    char *text = NULL;
    size_t size = 0;
    int of = 0;
    FILE *out = open_memstream(&text, &size);
    fprintf(out, "student,submission");
    for (int lab = 0; lab < lab_count(); lab++) {
        for (int check = 0; check < CHECKS; check++)
            of += lab_is_bonus(lab_at(lab)) ? 0 : lab_points(lab_at(lab), (Check)check);
        fprintf(out, ",lab %d", lab_at(lab)->number);
    }
    fprintf(out, ",total,of,remark\r\n");
    for (int i = 0; i < book->count; i++)
        put_row(book, out, &book->submissions[i], of);
    fclose(out);
    write_or_give_up(book->out, text);
    free(text);
}

/* The grader's report of a lab, without the lines that follow its last check. */
static void put_lab_report(const Book *book, FILE *out, const Unit *unit)
{
    char place[PLACE_SIZE], line[1024];
    place_in(book->state, place, "verdicts/%s.txt", unit->key);
    FILE *report = fopen(place, "r");
    while (report && fgets(line, sizeof line, report) && strncmp(line, "seed ", 5))
        fputs(line, out);
    if (report)
        fclose(report);
}

/* A file of the submission's name, whatever that is. */
static void report_place(const Book *book, int number, char place[PLACE_SIZE])
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
    snprintf(place, PLACE_SIZE, "%.3000s/%s%s%.8s.txt", book->reports, name, same ? "" : "-",
             same ? "" : checksum);
}

void write_report(const Book *book, int number)
{
    const Submission *submission = &book->submissions[number];
    char *text = NULL, place[PLACE_SIZE], entry[PATH_SIZE];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    snprintf(entry, sizeof entry, "%s", submission->entry);
    make_line(entry);
    fprintf(out, "%s (%s)\n%d points, seed %llu\n%s%s\n", submission->student, entry, submission->points,
            (unsigned long long)book->seed, submission->remark, *submission->remark ? "\n" : "");
    fprintf(out,
            "Each lab was graded on the reference solutions of the others; at home it may stand on your own\n"
            "(STACK=mine, and always in what was handed out), and fail for what fails in them.\n\n");
    for (int lab = 0; lab < lab_count(); lab++) {
        const Unit *unit = submission->unit[lab] < 0 ? NULL : &book->units[submission->unit[lab]];
        if (unit && unit->lab_verdict)
            put_lab_report(book, out, unit);
        else
            fprintf(out, "Lab %d  %s: %s%s\n", lab_at(lab)->number, lab_at(lab)->title,
                    unit ? "could not be graded: " : "not handed in", unit ? unit->trouble : "");
    }
    fclose(out);
    report_place(book, number, place);
    write_or_give_up(place, text);
    free(text);
}
