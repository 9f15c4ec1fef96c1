#include "grader/judge/grade.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "grader/judge/lines.h"
#include "grader/judge/tokens.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* make leaves the compiler's or the linker's words beside the runner that it could not build. */
static bool failed_to_build(LabResult *result, const char *runner)
{
    char path[600];
    snprintf(path, sizeof path, "%s.failed", runner);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t length = fread(result->remark, 1, sizeof result->remark - 1, file);
    result->remark[length] = '\0';
    fclose(file);
    result->state = DOES_NOT_BUILD;
    return true;
}

static bool is_students(const Options *o)
{
    return !strcmp(o->author, "student") || !strcmp(o->author, "mine");
}

static bool is_untouched(LabResult *result, const Options *o)
{
    char start[600], file[600];
    const Lab *lab = result->lab, *from = lab->start == FROM_LAB_1 ? lab_of(1) : lab;
    if (lab->start == EMPTY || !is_students(o))
        return false;
    snprintf(start, sizeof start, "%s/%s/%s", from == lab ? o->start : o->labs, from->folder, from->file);
    snprintf(file, sizeof file, "%s/%s/%s", o->labs, lab->folder, lab->file);
    bool missing = from != lab && access(file, F_OK) != 0;
    if (!missing && !same_tokens(start, file))
        return false;
    result->state = NOT_STARTED_YET;
    snprintf(result->remark, sizeof result->remark, "%s",
             missing       ? "it begins from your own lab 1: make start LAB=9 copies it"
             : from != lab ? "it is your lab 1 as it was: the group is still to be exchanged"
                           : "the file is as it was at the start: it works, but nothing is split yet");
    return true;
}

static Runs *run_or_give_up(const char *runner, const Lab *lab, const Case *cases, int count,
                            const Options *o)
{
    Problem problem;
    Runs *runs = run_cases(runner, lab_largest_world(lab), cases, count, o->cpu_limit, &problem);
    if (!runs)
        give_up(&problem);
    return runs;
}

/* A failure must come again alone, or its case is not the cause: then something is kept between cases. */
static void repeat_alone(LabResult *result, const Options *o, const char *runner, const Case *cases,
                         Check check)
{
    static LabResult alone;
    CheckResult *failed = &result->check[check];
    alone = (LabResult){.lab = result->lab};
    Runs *runs = run_or_give_up(runner, result->lab, &cases[failed->case_index], 1, o);
    judge_case(&alone, &cases[failed->case_index], failed->case_index, run_outcome(runs, 0));
    runs_free(runs);
    for (int other = (int)check; other < CHECKS; other++) {
        CheckResult *same = &result->check[other];
        if (!same->failed || same->case_index != failed->case_index || same->repeated)
            continue;
        same->repeated = true;
        same->alone = alone.check[other].failed;
        if (same->alone)
            continue;
        size_t used = strlen(same->reason);
        snprintf(same->reason + used, sizeof same->reason - used,
                 "\nThis case passes alone: something is kept from one case to the next, in a static "
                 "variable perhaps");
    }
}

static void judge_lab(LabResult *result, const Options *o, const char *runner)
{
    Case cases[MAX_CASES];
    int count = lab_cases(result->lab, o->seed, cases), first = 0;
    if (o->only_case >= count) {
        Problem problem;
        problem_set(&problem, NULL, "leave CASE out to run them all", "lab %d has cases 0 to %d",
                    result->lab->number, count - 1);
        give_up(&problem);
    }
    if (o->only_case >= 0) {
        first = o->only_case;
        count = first + 1;
    }
    Runs *runs = run_or_give_up(runner, result->lab, cases + first, count - first, o);
    for (int i = first; i < count && result->state == GRADED; i++)
        judge_case(result, &cases[i], i, run_outcome(runs, i - first));
    for (int check = 0; check < CHECKS && result->state == GRADED && o->only_case < 0; check++) {
        const CheckResult *r = &result->check[check];
        if (r->failed && !r->repeated && run_outcome(runs, r->case_index)->ending != LOOPED)
            repeat_alone(result, o, runner, cases, (Check)check);
    }
    runs_free(runs);
    result->cases = count - first;
}

void grade_lab(LabResult *result, const Options *o)
{
    char runner[512];
    double begin = now();
    snprintf(runner, sizeof runner, "%s/%02d-%s", o->runners, result->lab->number, o->author);
    lines_of(runner);
    for (int check = 0; check < CHECKS; check++)
        result->of += lab_points(result->lab, (Check)check);
    if (!is_untouched(result, o) && !failed_to_build(result, runner))
        judge_lab(result, o, runner);
    for (int check = 0; check < CHECKS; check++)
        if (result->state == GRADED && result->check[check].looked_at && !result->check[check].failed)
            result->points += lab_points(result->lab, (Check)check);
    result->seconds = now() - begin;
}

/* ---- STACK=mine: a lab on the student's own earlier ones */

static bool lists(const char *numbers, int number)
{
    for (const char *at = numbers; *at;) {
        char *end;
        long value = strtol(at, &end, 10);
        if (end == at)
            return false;
        if (value == number)
            return true;
        at = end;
    }
    return false;
}

static bool passes(int number, const Options *o, const LabResult *before, int count)
{
    static LabResult own;
    Options alone = *o;
    for (int i = 0; i < count; i++)
        if (before[i].lab->number == number)
            return before[i].points == before[i].of;
    alone.author = "student";
    own = (LabResult){.lab = lab_of(number)};
    grade_lab(&own, &alone);
    return own.points == own.of;
}

static void append_number(char *list, size_t size, int number)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%d", used ? ", " : "", number);
}

void tell_what_it_stands_on(LabResult *result, const Options *o, const LabResult *before, int count)
{
    char own[64] = "", reference[64] = "", broken[64] = "";
    if (strcmp(o->author, "mine"))
        return;
    for (int i = 0; i < lab_count(); i++) {
        int number = lab_at(i)->number;
        if (!lists(result->lab->needs, number))
            continue;
        bool mine = lists(o->own, number);
        append_number(mine ? own : reference, sizeof own, number);
        if (mine && result->state != NOT_STARTED_YET && result->points < result->of &&
            !passes(number, o, before, count))
            append_number(broken, sizeof broken, number);
    }
    snprintf(result->stack, sizeof result->stack, "%s%s%s%s%s%s%s%s", own[0] ? "on your own lab " : "", own,
             own[0] && reference[0] ? "; " : "", reference[0] ? "on the reference for lab " : "", reference,
             reference[0] ? ", which you have not started" : "",
             broken[0] ? "\nan earlier lab of yours does not pass its own checks, so look there first: lab "
                       : "",
             broken);
}
