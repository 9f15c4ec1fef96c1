/* build/grade: judges labs that make has built. Exit status: 0 full marks, 1 less, 2 it could not grade. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "grader/judge/judge.h"
#include "grader/judge/lines.h"
#include "grader/judge/tokens.h"

enum { CANNOT_GRADE = 2, MAX_LABS = 16 };

typedef struct Options {
    int lab, only_case;
    uint64_t seed;
    const char *author, *runners, *root;
} Options;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static _Noreturn void give_up(const Problem *problem)
{
    fflush(stdout);
    problem_print(stderr, problem);
    exit(CANNOT_GRADE);
}

static _Noreturn void usage(const char *what)
{
    Problem problem;
    problem_set(
        &problem, NULL,
        "grade [--lab N] [--author student|solution] [--seed N] [--case N] [--runners DIR] [--root DIR]",
        "%s", what);
    give_up(&problem);
}

static uint64_t number(const char *text, const char *option)
{
    char *end, what[128];
    unsigned long long value = strtoull(text, &end, 10);
    if (!*text || *end) {
        snprintf(what, sizeof what, "%s takes a number, not '%.60s'", option, text);
        usage(what);
    }
    return value;
}

static Options options_of(int argc, char **argv)
{
    static const struct option known[] = {{"lab", required_argument, NULL, 'l'},
                                          {"author", required_argument, NULL, 'a'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"case", required_argument, NULL, 'c'},
                                          {"runners", required_argument, NULL, 'r'},
                                          {"root", required_argument, NULL, 'o'},
                                          {0}};
    Options o = {.only_case = -1, .author = "student", .runners = "build/runners", .root = "."};
    if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
        o.seed = (uint64_t)time(NULL);
    o.seed %= 1000000;
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'l')
            o.lab = (int)number(optarg, "--lab");
        else if (option == 's')
            o.seed = number(optarg, "--seed");
        else if (option == 'c')
            o.only_case = (int)number(optarg, "--case");
        else if (option == 'a')
            o.author = optarg;
        else if (option == 'r')
            o.runners = optarg;
        else if (option == 'o')
            o.root = optarg;
        else
            usage("unknown option");
    }
    if (optind < argc)
        usage("too many arguments");
    if (o.lab && !lab_of(o.lab)) {
        Problem problem;
        problem_set(&problem, NULL, "the labs are numbered from 1; make help lists the commands",
                    "there is no lab %d", o.lab);
        give_up(&problem);
    }
    return o;
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

static bool is_untouched(LabResult *result, const Options *o)
{
    char start[600], file[600];
    const Lab *lab = result->lab;
    if (!lab->starts_working || strcmp(o->author, "student"))
        return false;
    snprintf(start, sizeof start, "%s/build/start/%s/%s", o->root, lab->folder, lab->file);
    snprintf(file, sizeof file, "%s/labs/%s/%s", o->root, lab->folder, lab->file);
    if (!same_tokens(start, file))
        return false;
    result->state = NOT_STARTED_YET;
    snprintf(result->remark, sizeof result->remark,
             "%s is as it was at the start: it works, but nothing is split yet", lab->file);
    return true;
}

static void judge_lab(LabResult *result, const Options *o, const char *runner)
{
    Case cases[MAX_CASES];
    Problem problem;
    int count = lab_cases(result->lab, o->seed, cases), first = 0;
    if (o->only_case >= count) {
        problem_set(&problem, NULL, "leave CASE out to run them all", "lab %d has cases 0 to %d",
                    result->lab->number, count - 1);
        give_up(&problem);
    }
    if (o->only_case >= 0) {
        first = o->only_case;
        count = first + 1;
    }
    Runs *runs = run_cases(runner, lab_largest_world(result->lab), cases + first, count - first, &problem);
    if (!runs)
        give_up(&problem);
    for (int i = first; i < count && result->state == GRADED; i++)
        judge_case(result, &cases[i], i, run_outcome(runs, i - first));
    runs_free(runs);
    result->cases = count - first;
}

static void grade_lab(LabResult *result, const Options *o)
{
    char runner[512];
    double begin = now();
    snprintf(runner, sizeof runner, "%s/%02d-%s", o->runners, result->lab->number, o->author);
    lines_of(runner);
    for (int check = 0; check < CHECKS; check++)
        result->of += lab_points(result->lab, (Check)check);
    if (!failed_to_build(result, runner) && !is_untouched(result, o))
        judge_lab(result, o, runner);
    for (int check = 0; check < CHECKS; check++)
        if (result->state == GRADED && result->check[check].looked_at && !result->check[check].failed)
            result->points += lab_points(result->lab, (Check)check);
    result->seconds = now() - begin;
}

int main(int argc, char **argv)
{
    static LabResult results[MAX_LABS];
    Options o = options_of(argc, argv);
    bool colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR"), full = true;
    int count = 0;
    for (int i = 0; i < lab_count(); i++) {
        if (o.lab && lab_at(i)->number != o.lab)
            continue;
        char repeat[128];
        LabResult *result = &results[count++];
        *result = (LabResult){.lab = lab_at(i), .seed = o.seed};
        grade_lab(result, &o);
        snprintf(repeat, sizeof repeat, "make grade LAB=%d SEED=%llu%s", result->lab->number,
                 (unsigned long long)o.seed, strcmp(o.author, "solution") ? "" : " SOLUTION=1");
        report_lab(result, colour, repeat);
        full = full && result->points == result->of;
        fflush(stdout);
    }
    printf("%sseed %llu\n", count > 1 ? "\n" : "", (unsigned long long)o.seed);
    report_total(results, count, colour);
    return full ? 0 : 1;
}
