#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "grader/judge/verdict.h"

typedef struct Paint {
    const char *good, *bad, *quiet, *strong, *off;
} Paint;

static Paint paint_of(bool colour)
{
    return colour ? (Paint){"\033[32m", "\033[31m", "\033[2m", "\033[1m", "\033[0m"}
                  : (Paint){"", "", "", "", ""};
}

enum { NARROWEST = 40, WIDEST = 100 };
const Page plain_page = {.columns = WIDEST};

Page page_of(FILE *out)
{
    Page page = plain_page;
    struct winsize size = {0};
    if (!isatty(fileno(out)))
        return page;
    page.colour = !getenv("NO_COLOR");
    if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 &&
        size.ws_col > 0) /* NOLINT(cppcoreguidelines-pro-type-vararg) */
        page.columns = size.ws_col < NARROWEST ? NARROWEST : size.ws_col > WIDEST ? WIDEST : size.ws_col;
    return page;
}

/* The bytes of the first `columns` characters of a line, or of the whole line. */
static size_t bytes_of(const char *line, int columns)
{
    size_t bytes = 0;
    for (; line[bytes] && line[bytes] != '\n'; bytes++)
        if ((line[bytes] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return bytes;
}

void print_indented(FILE *out, Page page, const char *text, const char *indent)
{
    const int width = page.columns - (int)strlen(indent);
    while (*text) {
        size_t fits = bytes_of(text, width), take = fits;
        if (text[take] && text[take] != '\n') {
            while (take > fits / 2 && text[take] != ' ')
                take--;
            if (text[take] != ' ') /* no blank */
                take = fits;
        }
        fprintf(out, "%s%.*s\n", indent, (int)take, text);
        text += take;
        while (*text == ' ')
            text++;
        if (*text == '\n')
            text++;
    }
}

/* The compiler's words stand above carets that point at them: they keep their lines. */
static void print_lines(FILE *out, const char *text, const char *indent)
{
    while (*text) {
        int line = (int)strcspn(text, "\n");
        fprintf(out, "%s%.*s\n", indent, line, text);
        text += line + (text[line] == '\n');
    }
}

/* The bytes of the whole lines that two texts have in common at their beginning. */
static size_t common_lines(const char *a, const char *b)
{
    size_t common = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n')
            common = i + 1;
    return !a[i] && !b[i] ? i : common;
}

/* One mistake fails several checks: what has been said of an earlier one is not said again. */
static void print_reason(FILE *out, Page page, const LabResult *lab, Check check)
{
    const char *reason = lab->check[check].reason;
    for (int earlier = 0; earlier < (int)check; earlier++) {
        if (!lab->check[earlier].failed || !lab_points(lab->lab, (Check)earlier))
            continue;
        size_t common = common_lines(reason, lab->check[earlier].reason);
        if (common == 0)
            continue;
        fprintf(out, "      the same cause as above, of %s\n", check_names[earlier]);
        reason += common;
        break;
    }
    print_indented(out, page, reason, "      ");
}

static void print_mark(FILE *out, Status status, Paint paint)
{
    const char *colour = paint.bad, *mark = "✗";
    if (status == RIGHT)
        colour = paint.good, mark = "✓";
    else if (status == HELD_BACK)
        colour = paint.good, mark = "○";
    else if (status == UNDONE)
        colour = paint.quiet, mark = "·";
    fprintf(out, "%s%s%s", colour, mark, paint.off);
}

static void report_check(FILE *out, const Verdict *verdict, const LabResult *lab, Check check, Page page)
{
    Paint paint = paint_of(page.colour);
    char again[160];
    int points = lab_points(lab->lab, check);
    if (!points)
        return;
    Status status = check_status(lab, check);
    bool good = status == RIGHT || status == HELD_BACK;
    fprintf(out, "  ");
    print_mark(out, status, paint);
    fprintf(out, " %-21s %d/%d%s\n", check_names[check], check_score(lab, check), points,
            status == UNDONE      ? "  to do"
            : status == HELD_BACK ? "  held back"
                                  : "");
    if (status == HELD_BACK && !why_numbers_are_held_back(lab))
        print_indented(out, page, why_held_back(lab, check), "      ");
    if (good && lab->check[check].note[0])
        print_indented(out, page, lab->check[check].note, "      ");
    if (lab->check[check].failed) {
        print_reason(out, page, lab, check);
        repeat_check(verdict, lab, check, again);
        fprintf(out, "      %sagain: %s%s\n", paint.quiet, again, paint.off);
        if (lab->check[check].in_calls)
            fprintf(out, "      %scalls: make trace%s%s\n", paint.quiet, again + strlen("make grade"),
                    paint.off);
    }
}

/* A lab that is being written: where it goes on, and whether what is there so far is worth going on from. */
static void report_to_do(FILE *out, Page page, const LabResult *result)
{
    bool to_do = false, failed = false;
    for (int check = 0; check < CHECKS; check++) {
        to_do = to_do || check_status(result, (Check)check) == UNDONE;
        failed = failed || result->check[check].failed;
    }
    if (!to_do)
        return;
    print_indented(out, page, result->remark, "  next: ");
    print_indented(out, page,
                   failed ? "what comes before it is judged already, below"
                          : "what comes before it is right so far",
                   "        ");
}

void report_lab(FILE *out, const Verdict *verdict, const LabResult *result, Page page)
{
    Paint paint = paint_of(page.colour);
    const Lab *lab = result->lab;
    fprintf(out, "%sLab %d  %s%s", paint.strong, lab->number, lab->title, paint.off);
    if (result->state == NOT_GRADED_YET) {
        fprintf(out, ": not run  0/%d\n", result->of);
        print_lines(out, result->remark, "      ");
    } else if (result->state == NOT_STARTED_YET) {
        fprintf(out, ": not started  0/%d\n", result->of);
        print_indented(out, page, result->remark, "      ");
        char next[300];
        snprintf(next, sizeof next, "next: read labs/%s/README.md, then edit labs/%s/%s", lab->folder,
                 lab->folder, lab->file);
        print_indented(out, page, next, "      ");
    } else if (result->state == DOES_NOT_BUILD || result->state == IS_REFUSED) {
        fprintf(out, ": %s%s%s  0/%d\n", paint.bad, state_names[result->state], paint.off, result->of);
        print_lines(out, result->remark, "      ");
        print_indented(out, page, result->stack, "  ");
    } else {
        fprintf(out, "  %s(%d cases on up to %d ranks, %.1f s)%s\n", paint.quiet, result->cases,
                lab_largest_world(lab), result->seconds, paint.off);
        print_indented(out, page, result->stack, "  ");
        report_to_do(out, page, result);
        for (int check = 0; check < CHECKS; check++)
            report_check(out, verdict, result, (Check)check, page);
        print_indented(out, page, result->printed, "  ");
        if (why_numbers_are_held_back(result))
            print_indented(out, page, why_numbers_are_held_back(result), "      ");
    }
}

void report_margins(FILE *out, const LabResult *lab)
{
    for (int check = 0; check < CHECKS; check++)
        if (lab->state == GRADED && lab_points(lab->lab, (Check)check) && check <= STEP)
            fprintf(out, "  margin %-16s %.3g\n", check_names[check], fmin(lab->check[check].margin, 1e9));
}

void report_times(FILE *out, const Verdict *verdict, double built)
{
    Times all = {0};
    double seconds = 0;
    for (int i = 0; i < verdict->count; i++) {
        seconds += verdict->labs[i].seconds;
        all.launch += verdict->labs[i].times.launch;
        all.play += verdict->labs[i].times.play;
    }
    fprintf(out, "time %.2f s: make and compiler %.2f, launch %.2f, ranks %.2f, judge %.2f\n",
            built + seconds, built, all.launch, all.play, seconds - all.launch - all.play);
}

void report_total(FILE *out, const Verdict *verdict, Page page)
{
    Paint paint = paint_of(page.colour);
    char isolation[ISOLATION_SIZE];
    tell_isolation(verdict, isolation);
    print_indented(out, page, isolation, "");
    if (verdict->count > 1)
        fprintf(out, "\n  lab                              points\n");
    for (int i = 0; i < verdict->count && verdict->count > 1; i++) {
        const LabResult *r = &verdict->labs[i];
        Status status = r->points == r->of ? RIGHT : r->state == NOT_STARTED_YET ? UNDONE : WRONG;
        fprintf(out, "  %2d  %-28s %3d/%-3d ", r->lab->number, r->lab->title, r->points, r->of);
        print_mark(out, status, paint);
        fprintf(out, "%s%s\n", r->state == GRADED ? "" : " ",
                r->state == GRADED ? "" : state_names[r->state]);
    }
    fprintf(out, "\nScore: %d/%d\n", verdict_points(verdict), verdict_of(verdict));
}
