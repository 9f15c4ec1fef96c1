#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grader/judge/judge.h"

typedef struct Paint {
    const char *good, *bad, *quiet, *off;
} Paint;

static Paint paint_of(bool colour)
{
    return colour ? (Paint){"\033[32m", "\033[31m", "\033[2m", "\033[0m"} : (Paint){"", "", "", ""};
}

/* A text of several lines, each one behind `indent`, broken at blanks before column 100. */
static void print_indented(const char *text, const char *indent)
{
    enum { WIDTH = 96 };
    while (*text) {
        size_t line = strcspn(text, "\n"), take = line;
        if (line > WIDTH) {
            for (take = WIDTH; take > 40 && text[take] != ' ';)
                take--;
        }
        printf("%s%.*s\n", indent, (int)take, text);
        text += take;
        while (*text == ' ')
            text++;
        if (*text == '\n')
            text++;
    }
}

static void report_check(const LabResult *result, Check check, Paint paint, const char *repeat)
{
    const CheckResult *r = &result->check[check];
    int points = lab_points(result->lab, check);
    if (!points)
        return;
    bool good = result->state == GRADED && r->looked_at && !r->failed;
    printf("  %s%s%s %-16s %d/%d\n", good ? paint.good : paint.bad, good ? "✓" : "✗", paint.off,
           check_names[check], good ? points : 0, points);
    if (r->failed) {
        print_indented(r->reason, "      ");
        printf("      %sagain: %s", paint.quiet, repeat);
        if (!r->repeated || r->alone)
            printf(" CASE=%d", r->case_index);
        printf("%s\n", paint.off);
    }
}

void report_lab(const LabResult *result, bool colour, const char *repeat)
{
    Paint paint = paint_of(colour);
    const Lab *lab = result->lab;
    printf("Lab %d  %s", lab->number, lab->title);
    const char *stack = result->stack;
    if (result->state == NOT_STARTED_YET) {
        printf(": not started  0/%d\n", result->of);
        print_indented(result->remark, "      ");
        printf("      next: read labs/%s/README.md, then edit labs/%s/%s\n", lab->folder, lab->folder,
               lab->file);
    } else if (result->state == DOES_NOT_BUILD) {
        printf(": %sdoes not build%s  0/%d\n", paint.bad, paint.off, result->of);
        print_indented(result->remark, "      ");
        print_indented(stack, "  ");
    } else {
        printf("  %s(%d cases on up to %d ranks, %.1f s)%s\n", paint.quiet, result->cases,
               lab_largest_world(lab), result->seconds, paint.off);
        print_indented(stack, "  ");
        for (int check = 0; check < CHECKS; check++)
            report_check(result, (Check)check, paint, repeat);
    }
}

void report_margins(const LabResult *result)
{
    for (int check = 0; check < CHECKS; check++)
        if (result->state == GRADED && lab_points(result->lab, (Check)check) && check <= STEP)
            printf("  margin %-16s %.3g\n", check_names[check], fmin(result->check[check].margin, 1e9));
}

void report_total(const LabResult *results, int count, bool colour)
{
    Paint paint = paint_of(colour);
    int points = 0, of = 0;
    if (count > 1)
        printf("\n  lab                              points\n");
    for (int i = 0; i < count; i++) {
        const LabResult *r = &results[i];
        points += r->points;
        of += r->of;
        if (count > 1)
            printf("  %2d  %-28s %3d/%-3d %s%s%s%s\n", r->lab->number, r->lab->title, r->points, r->of,
                   r->points == r->of ? paint.good : paint.bad, r->points == r->of ? "✓" : "✗", paint.off,
                   r->state == NOT_STARTED_YET  ? " not started"
                   : r->state == DOES_NOT_BUILD ? " does not build"
                                                : "");
    }
    printf("\nScore: %d/%d\n", points, of);
}
