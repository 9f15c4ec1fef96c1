/* A lab's report, for people. */
#include <math.h>
#include <stdlib.h>

#include "grader/judge/report/verdict.h"

/* The last reported failed check before `check`, or -1. */
static int told_before(const LabResult *lab, int check)
{
    while (--check >= 0 && !(lab->check[check].failed && lab_points(lab->lab, (Check)check)))
        ;
    return check;
}

/* Prints a reason, with its HINT in bold. The compiler's messages, if there are any, begin with
 * blanks; they have carets below them, so their lines are not broken. */
static void print_own_reason(FILE *out, Page page, const char *reason, bool has_messages)
{
    const Paint paint = paint_of(page);
    char line[sizeof((LabResult *)NULL)->remark];
    while (*reason) {
        const int length = (int)strcspn(reason, "\n");
        const size_t blanks = has_messages ? strspn(reason, " ") : 0;
        const bool hint = !strncmp(reason + blanks, _("HINT: "), strlen(_("HINT: ")));
        snprintf(line, sizeof line, "%.*s", length, reason);
        fputs(hint ? paint.strong : "", out);
        if (blanks && !hint)
            fprintf(out, "      %s\n", line);
        else
            print_indented(out, page, line + blanks, "      ");
        fputs(hint ? paint.off : "", out);
        reason += length + (reason[length] == '\n');
    }
}

/* Prints why a check failed, and names the other checks that fail for the same reason, which have
 * one line each, so that the reason stays on a screen. */
static void print_reason(FILE *out, Page page, const LabResult *lab, Check check)
{
    char others[400] = "", text[500];
    for (int other = 0; other < CHECKS; other++)
        if (other != (int)check && lab->check[other].failed && lab_points(lab->lab, (Check)other) &&
            cause_of(lab, (Check)other) == check)
            append(others, sizeof others, "%s%s", others[0] ? ", " : "", _(check_names[other]));
    print_own_reason(out, page, own_reason(lab, check), false);
    if (!others[0])
        return;
    snprintf(text, sizeof text, _("also failing for this reason: %s"), others);
    print_indented(out, page, text, "      ");
}

static void print_mark(FILE *out, Status status, Paint paint)
{
    const char *colour = paint.bad, *mark = "✗";
    if (status == RIGHT)
        colour = paint.good, mark = "✓";
    else if (status == HELD_BACK)
        colour = paint.held, mark = "○";
    else if (status == UNDONE || status == NOT_JUDGED)
        colour = paint.quiet, mark = "·";
    fprintf(out, "%s%s%s", colour, mark, paint.off);
}

/* Prints how to repeat the failure, unless an earlier check printed the same commands. */
static void print_commands(FILE *out, const Verdict *verdict, const LabResult *lab, Check check,
                           Paint paint)
{
    char again[160], other[160];
    bool told = false, told_calls = false;
    repeat_check(verdict, lab, check, "grade", again);
    for (int earlier = (int)check; (earlier = told_before(lab, earlier)) >= 0;) {
        repeat_check(verdict, lab, (Check)earlier, "grade", other);
        bool same = !strcmp(again, other);
        told = told || same;
        told_calls = told_calls || (same && lab->check[earlier].in_calls);
    }
    if (!told)
        fprintf(out, "      %s%s%s%s\n", paint.quiet, _("again: "), again, paint.off);
    if (!lab->check[check].in_calls || told_calls)
        return;
    repeat_check(verdict, lab, check, "trace", again);
    fprintf(out, "      %s%s%s%s\n", paint.quiet, _("calls: "), again, paint.off);
}

/* The reason that holds back all numbers is printed once, below the last of these checks. */
static bool is_told_later(const LabResult *lab, Check check)
{
    const char *why = why_numbers_are_held_back(lab);
    if (!why || strcmp(why_held_back(lab, check), why))
        return false;
    for (int later = (int)check + 1; later < CHECKS; later++)
        if (lab_points(lab->lab, (Check)later) && check_status(lab, (Check)later) == HELD_BACK &&
            !strcmp(why_held_back(lab, (Check)later), why))
            return true;
    return false;
}

static void report_check(FILE *out, const Verdict *verdict, const LabResult *lab, Check check,
                         Page page)
{
    Paint paint = paint_of(page);
    int points = lab_points(lab->lab, check);
    if (!points)
        return;
    Status status = check_status(lab, check);
    bool good = status == RIGHT || status == HELD_BACK;
    fprintf(out, "  ");
    print_mark(out, status, paint);
    fprintf(out, " %-*s", padded_to(_(check_names[check]), 21), _(check_names[check]));
    if (status == NOT_JUDGED) {
        fprintf(out, "  -   %s\n", _("not in this case"));
        return;
    }
    if (!lab->one_case)
        fprintf(out, " %d/%d", check_score(lab, check), points);
    if (lab->one_case || status == UNDONE || status == HELD_BACK)
        fprintf(out, "%s%s%s%s", lab->one_case ? " " : "  ", status == HELD_BACK ? paint.held : "",
                _(status_names[status]), status == HELD_BACK ? paint.off : "");
    fprintf(out, "\n");
    if (status == HELD_BACK && !is_told_later(lab, check))
        print_indented(out, page, why_held_back(lab, check), "      ");
    if (good && lab->check[check].note[0])
        print_indented(out, page, lab->check[check].note, "      ");
    if (lab->check[check].failed && cause_of(lab, check) == check) {
        print_reason(out, page, lab, check);
        print_commands(out, verdict, lab, check, paint);
    }
}

/* For a lab in progress: prints where to continue, and whether everything before that is right. */
static void report_to_do(FILE *out, Page page, const LabResult *result)
{
    bool to_do = false, failed = false, judged = false;
    for (int check = 0; check < CHECKS; check++) {
        to_do = to_do || check_status(result, (Check)check) == UNDONE;
        failed = failed || result->check[check].failed;
        judged = judged || result->check[check].compared;
    }
    if (!to_do)
        return;
    char next[32], blank[32];
    snprintf(next, sizeof next, "  %s", _("next: "));
    snprintf(blank, sizeof blank, "%*s", characters_of(next), "");
    print_indented(out, page, result->remark, next);
    print_indented(out, page,
                   failed   ? _("everything before it has been judged (see below)")
                   : judged ? _("everything before it is right so far")
                            : _("nothing before it could be judged yet"),
                   blank);
}

static void report_checks(FILE *out, const Verdict *verdict, const LabResult *result, Page page)
{
    Paint paint = paint_of(page);
    char extent[160];
    if (result->cases == 1)
        snprintf(extent, sizeof extent, _("(1 case, %.1f s)"), result->seconds);
    else
        snprintf(extent, sizeof extent, _("(%d cases on up to %d ranks, %.1f s)"), result->cases,
                 lab_largest_world(result->lab), result->seconds);
    fprintf(out, "  %s%s%s\n", paint.quiet, extent, paint.off);
    if (result->not_run) {
        snprintf(extent, sizeof extent, _("not run: %d of %d cases, since %s"), result->not_run,
                 result->cases, why_cut_short(result));
        print_indented(out, page, extent, "  ");
    }
    print_indented(out, page, result->stack, "  ");
    report_to_do(out, page, result);
    for (int check = 0; check < CHECKS; check++)
        report_check(out, verdict, result, (Check)check, page);
    print_indented(out, page, result->printed, "  ");
}

static void print_next(FILE *out, Page page, const Lab *lab, const char *indent)
{
    char next[300];
    snprintf(next, sizeof next, _("next: read labs/%s/README.md, then edit labs/%s/%s"),
             lab->folder, lab->folder, lab->file);
    print_indented(out, page, next, indent);
}

/* After full marks in a lab that was graded by itself, names the next lab. */
static void report_next_lab(FILE *out, const Verdict *verdict, const LabResult *result, Page page)
{
    int i = 0;
    if (verdict->count != 1 || result->cases == 1 || result->points < result->of ||
        !strcmp(verdict->author, "solution"))
        return;
    while (lab_at(i) != result->lab)
        i++;
    if (i + 1 < lab_count())
        print_next(out, page, lab_at(i + 1), "  ");
    else
        print_indented(out, page, _("next: make progress shows what is left"), "  ");
}

void report_lab(FILE *out, const Verdict *verdict, const LabResult *result, Page page)
{
    Paint paint = paint_of(page);
    const Lab *lab = result->lab;
    const bool bad = result->state == DOES_NOT_BUILD || result->state == IS_REFUSED;
    char heading[160];
    snprintf(heading, sizeof heading, _("Lab %d  %s"), lab->number, _(lab->title));
    fprintf(out, "%s%s%s", paint.strong, heading, paint.off);
    if (result->state == GRADED) {
        report_checks(out, verdict, result, page);
        report_next_lab(out, verdict, result, page);
        return;
    }
    fprintf(out, "%s%s%s%s  0/%d\n", _(": "), bad ? paint.bad : "", _(state_names[result->state]),
            bad ? paint.off : "", result->of);
    if (result->state == NOT_STARTED_YET) {
        print_indented(out, page, result->remark, "      ");
        print_next(out, page, lab, "      ");
    } else {
        print_own_reason(out, page, result->remark, true);
        if (bad)
            print_indented(out, page, result->stack, "  ");
    }
}

/* Does rounding change the numbers of this check? Metrics are in double precision. */
static bool is_rounded(int check)
{
    return check <= STEP || check == GRADIENT || check == LAYOUT || check == RING_SUM ||
           check == RING_GATHER;
}

void report_margins(FILE *out, const LabResult *lab)
{
    int columns = 16;
    for (int check = 0; check < CHECKS; check++)
        if (is_rounded(check) && characters_of(_(check_names[check])) > columns)
            columns = characters_of(_(check_names[check]));
    for (int check = 0; check < CHECKS; check++)
        if (lab->state == GRADED && is_rounded(check) && lab_points(lab->lab, (Check)check)) {
            const char *name = _(check_names[check]);
            fprintf(out, "  %s %-*s %.3g\n", _("margin"), padded_to(name, columns), name,
                    fmin(lab->check[check].margin, 1e9));
        }
}

void report_times(FILE *out, const Verdict *verdict, double built)
{
    Times all = {0};
    double seconds = 0;
    for (int i = 0; i < verdict->count; i++) {
        seconds += verdict->labs[i].seconds;
        all.launch += verdict->labs[i].times.launch;
        all.running += verdict->labs[i].times.running;
    }
    fprintf(out, _("time %.2f s: make and compiler %.2f, launch %.2f, ranks %.2f, judge %.2f\n"),
            built + seconds, built, all.launch, all.running, seconds - all.launch - all.running);
}

void report_total(FILE *out, const Verdict *verdict, Page page)
{
    Paint paint = paint_of(page);
    char isolation[ISOLATION_SIZE];
    tell_isolation(verdict, isolation);
    print_indented(out, page, isolation, "");
    if (verdict->count > 1)
        fprintf(out, "\n%s\n", _("  lab                              points"));
    for (int i = 0; i < verdict->count && verdict->count > 1; i++) {
        const LabResult *r = &verdict->labs[i];
        Status status = r->points == r->of ? RIGHT : r->state == NOT_STARTED_YET ? UNDONE : WRONG;
        fprintf(out, "  %2d  %-*s %3d/%-3d ", r->lab->number, padded_to(_(r->lab->title), 28),
                _(r->lab->title), r->points, r->of);
        print_mark(out, status, paint);
        fprintf(out, "%s%s\n", r->state == GRADED ? "" : " ",
                r->state == GRADED ? "" : _(state_names[r->state]));
    }
    if (verdict->labs->one_case)
        print_indented(out, page, _("One case has results. A score needs all cases: omit CASE."),
                       "");
    else
        fprintf(out, "\nScore: %d/%d\n", verdict_points(verdict), verdict_of(verdict));
}
