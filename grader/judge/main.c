/* build/grade: judges labs that make has built. Exit status: 0 full marks, 1 less, 2 it could not grade. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "grader/judge/grade.h"

enum { MAX_LABS = 16 };

void give_up(const Problem *problem)
{
    fflush(stdout);
    problem_print(stderr, problem);
    exit(CANNOT_GRADE);
}

static _Noreturn void usage(const char *what)
{
    Problem problem;
    problem_set(&problem, NULL, "make grade [LAB=n] [SEED=n] [CASE=n] [SOLUTION=1] [STACK=mine]", "%s", what);
    give_up(&problem);
}

static uint64_t number(const char *text, const char *option, uint64_t largest)
{
    char *end, what[128];
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || value > largest) {
        snprintf(what, sizeof what, "%s takes a number up to %llu, not '%.60s'", option,
                 (unsigned long long)largest, text);
        usage(what);
    }
    return value;
}

static Options defaults(void)
{
    Options o = {.only_case = -1,
                 .author = "student",
                 .runners = "build/runners",
                 .start = "build/start",
                 .labs = "labs",
                 .own = ""};
    if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
        o.seed = (uint64_t)time(NULL);
    o.seed %= 1000000;
    return o;
}

static void must_be_a_lab(int number)
{
    Problem problem;
    if (lab_of(number))
        return;
    problem_set(&problem, NULL, "choose one of the labs there are, or leave LAB out to grade them all",
                "there is no lab %d: they are numbered from %d to %d", number, lab_at(0)->number,
                lab_at(lab_count() - 1)->number);
    give_up(&problem);
}

static void set_option(Options *o, int option, const char *value)
{
    switch (option) {
    case 'l':
        o->lab = (int)number(value, "LAB", 1000000);
        must_be_a_lab(o->lab);
        break;
    case 's':
        o->seed = number(value, "SEED", UINT64_MAX);
        break;
    case 'c':
        o->only_case = (int)number(value, "CASE", 1000000);
        break;
    case 'u':
        o->cpu_limit = (double)number(value, "--cpu-limit", 3600);
        break;
    case 'm':
        o->margins = true;
        break;
    case '?':
        usage("unknown option");
    default:
        *(option == 'a'   ? &o->author
          : option == 'r' ? &o->runners
          : option == 't' ? &o->start
          : option == 'f' ? &o->labs
                          : &o->own) = value;
    }
}

static Options options_of(int argc, char **argv)
{
    static const struct option known[] = {{"lab", required_argument, NULL, 'l'},
                                          {"author", required_argument, NULL, 'a'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"case", required_argument, NULL, 'c'},
                                          {"runners", required_argument, NULL, 'r'},
                                          {"start", required_argument, NULL, 't'},
                                          {"labs", required_argument, NULL, 'f'},
                                          {"own", required_argument, NULL, 'w'},
                                          {"cpu-limit", required_argument, NULL, 'u'},
                                          {"margins", no_argument, NULL, 'm'},
                                          {0}};
    Options o = defaults();
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
        set_option(&o, option, optarg);
    if (optind < argc)
        usage("too many arguments");
    return o;
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
        LabResult *result = &results[count];
        *result = (LabResult){.lab = lab_at(i), .seed = o.seed};
        grade_lab(result, &o);
        tell_what_it_stands_on(result, &o, results, count++);
        snprintf(repeat, sizeof repeat, "make grade LAB=%d SEED=%llu%s", result->lab->number,
                 (unsigned long long)o.seed,
                 !strcmp(o.author, "solution") ? " SOLUTION=1"
                 : !strcmp(o.author, "mine")   ? " STACK=mine"
                                               : "");
        report_lab(result, colour, repeat);
        if (o.margins)
            report_margins(result);
        full = full && result->points == result->of;
        fflush(stdout);
    }
    printf("%sseed %llu\n", count > 1 ? "\n" : "", (unsigned long long)o.seed);
    report_total(results, count, colour);
    return full ? 0 : 1;
}
