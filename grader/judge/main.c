/* build/grade: judges labs that make has built. Exit status: 0 for full marks, 1 for less (with
 * --make, that of make), 2 if it could not grade. */
#include <limits.h>
#include <malloc.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "grader/judge/commands.h"
#include "base/clock.h"
#include "base/options.h"
#include "grader/judge/report/formats/formats.h"
#include "grader/judge/report/output.h"

static const char *const how_to_grade =
    N_("make grade [LAB=n] [SEED=n] [CASE=n] [STACK=mine] [FORMAT=name OUT=file]");

static Options defaults(void)
{
    static Sandbox sandbox;
    Options o = {.part = 1,
                 .only_case = -1,
                 .stops = "",
                 .author = "student",
                 .runners = "build/runners",
                 .start = "grader/start",
                 .labs = "labs",
                 .own = "",
                 .sandbox = &sandbox};
    if (getrandom(&o.seed, sizeof o.seed, 0) != sizeof o.seed)
        o.seed = (uint64_t)time(NULL);
    o.seed %= 1000000000000; /* a lab cannot try so many seeds to derive other keys */
    return o;
}

static bool read_part(const char *value, void *part, Problem *problem)
{
    const long number = strtol(value, &(char *){0}, 10);
    const Range labs = labs_of_part(number > 0 && number < lab_count() ? (int)number : 0);
    *(int *)part = (int)number;
    return (labs.begin < labs.end && strspn(value, "0123456789") == strlen(value)) ||
           problem_set(problem, NULL, "labs 1 to 11 are part 1, the others part 2",
                       "the course has no part %.60s", value);
}

static bool read_lab(const char *value, void *lab, Problem *problem)
{
    const long number = strtol(value, &(char *){0}, 10);
    *(int *)lab = (int)number;
    return (*value && strspn(value, "0123456789") == strlen(value) && number <= INT_MAX &&
            lab_of((int)number)) ||
           problem_set(problem, NULL,
                       "choose an existing lab, or omit LAB to grade all of part 1 (PART=2: all of "
                       "part 2)",
                       "there is no lab %.60s: labs are numbered from %d to %d", value,
                       lab_at(0)->number, lab_at(lab_count() - 1)->number);
}

static bool read_output(const char *value, void *outputs, Problem *problem)
{
    Outputs *all = outputs;
    return (all->count < MAX_OUTPUTS && (all->name[all->count++] = value)) ||
           problem_set(problem, NULL, how_to_grade, "too many outputs");
}

static bool read_expected(const char *value, void *nothing, Problem *problem)
{
    keep_expected(value);
    return true;
}

static Options options_of(int argc, char **argv)
{
    Options o = defaults();
    const Option known[] = {
        READ_OPTION("lab", &o.lab, read_lab),
        READ_OPTION("part", &o.part, read_part),
        NUMBER_OPTION("seed", &o.seed, 0, 0x1p53),
        NUMBER_OPTION("case", &o.only_case, 0, 1e6),
        NUMBER_OPTION("cpu-limit", &o.cpu_limit, 0, 3600),
        NUMBER_OPTION("since", &o.since, 0, 1e12),
        NUMBER_OPTION("rank", &o.rank, 0, MAX_RANKS - 1),
        READ_OPTION("format", &o.formats, read_output),
        READ_OPTION("out", &o.outs, read_output),
        READ_OPTION("expected", NULL, read_expected),
        WORD_OPTION("sandbox", &o.sandbox->wish, "auto|off|on"),
        TEXT_OPTION("author", &o.author),
        TEXT_OPTION("runners", &o.runners),
        TEXT_OPTION("labs", &o.labs),
        TEXT_OPTION("own", &o.own),
        TEXT_OPTION("cases", &o.cases),
        TEXT_OPTION("report", &o.picture),
        TEXT_OPTION("stops", &o.stops),
        TEXT_OPTION("cluster", &o.cluster),
        TEXT_OPTION("may-send", &o.may_send),
        TEXT_OPTION("make", &o.make),
        FLAG_OPTION("margins", &o.margins),
        FLAG_OPTION("trace", &o.trace),
        FLAG_OPTION("tape", &o.tape),
        FLAG_OPTION("debug", &o.debug),
        FLAG_OPTION("measure", &o.measure),
        FLAG_OPTION("throughput", &o.throughput),
        FLAG_OPTION("list", &o.list),
        FLAG_OPTION("short-lived", &o.short_lived),
        FLAG_OPTION("sanitized", &o.sandbox->sanitized),
        FLAG_OPTION("gpu", &o.sandbox->gpu),
        {0},
    };
    Problem problem;
    if (!options_read(known, argc, argv, how_to_grade, &problem))
        give_up(&problem);
    if ((o.trace || o.measure || o.picture || o.tape || o.debug || o.may_send) && !o.lab)
        give_up_with(o.trace     ? "make trace LAB=6"
                     : o.measure ? "make measure LAB=6"
                     : o.picture ? "make report LAB=6"
                     : o.tape    ? "make tape LAB=6 RANK=1"
                     : o.debug   ? "make debug LAB=6 RANK=1"
                                 : "--lab 6 --may-send 'n=4 B=8 S=128 OUT=768 H=768'",
                     _("LAB is missing"));
    return o;
}

static void must_have_outputs(const Options *o, const Format *formats[MAX_OUTPUTS])
{
    Problem problem;
    if (o->formats.count != o->outs.count)
        give_up_with("FORMAT=junit OUT=grades.xml",
                     o->formats.count < o->outs.count ? _("OUT needs a FORMAT")
                                                      : _("FORMAT needs an output file: set OUT"));
    for (int i = 0; i < o->formats.count; i++)
        if (!(formats[i] = format_of(o->formats.name[i], &problem)))
            give_up(&problem);
}

/* Writes the files; call it before the first lab and after each lab. However the grader ends, they
 * then hold everything that was graded. */
static void keep(const Format *const formats[MAX_OUTPUTS], const Options *o, Verdict *verdict,
                 double begin)
{
    Problem problem;
    verdict->seconds = clock_now() - begin;
    for (int i = 0; i < o->formats.count; i++) {
        char *text = formats[i]->writer(verdict);
        bool written = write_file(o->outs.name[i], &formats[i]->kind, text, &problem);
        free(text);
        if (!written)
            give_up(&problem);
    }
}

static double calendar_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int choose_labs(LabResult *results, const Options *o)
{
    int count = 0;
    for (int i = 0; i < lab_count(); i++) {
        const Lab *lab = lab_at(i);
        if (o->lab ? lab->number == o->lab : lab->part == o->part)
            results[count++] = (LabResult){
                .lab = lab, .state = NOT_GRADED_YET, .of = lab_worth(lab), .seed = o->seed};
    }
    return count;
}

/* Scenarios allocate and free the same memory again and again. If it went back to the system, the
 * system would clear it each time. */
static void keep_memory(void)
{
    enum { MOST = 1 << 30 };
    mallopt(M_MMAP_THRESHOLD, MOST);
    mallopt(M_TRIM_THRESHOLD, MOST);
}

int main(int argc, char **argv)
{
    language_begin();
    problem_if_output_is_lost();
    Options o = options_of(argc, argv);
    omp_set_num_threads(1); /* threads that spin before the next loop take cores from the ranks */
    keep_memory();
    const Format *formats[MAX_OUTPUTS];
    Problem problem;
    if (o.list || o.may_send) {
        if (o.list)
            list_labs(stdout);
        else if (!list_sent(stdout, lab_of(o.lab), o.may_send, &problem))
            give_up(&problem);
        return 0;
    }
    if (o.cases && !local_read(o.cases, &o.local, &problem))
        give_up(&problem);
    if (o.trace)
        return trace_lab(&o);
    if (o.tape)
        return tape_lab(&o);
    if (o.measure)
        return measure_lab(&o);
    if (o.throughput)
        return time_training(&o);
    if (o.picture)
        return picture_lab(&o);
    if (o.debug)
        return debug_lab(&o);

    LabResult *results = calloc((size_t)lab_count(), sizeof *results);
    Page page = page_of(stdout);
    double begin = clock_now(), built = o.since > 0 ? calendar_now() - o.since : 0;
    Verdict verdict = {results, choose_labs(results, &o), o.seed, o.author, 0, o.sandbox};
    for (int i = 0; i < verdict.count; i++)
        must_have_case(results[i].lab, &o);
    must_have_outputs(&o, formats);
    keep(formats, &o, &verdict, begin);
    for (int i = 0; i < verdict.count; i++) {
        results[i].state = GRADED;
        grade_lab(&results[i], &o);
        tell_what_it_stands_on(&results[i], &o, results, i);
        report_lab(stdout, &verdict, &results[i], page);
        if (o.margins)
            report_margins(stdout, &results[i]);
        fflush(stdout);
        keep(formats, &o, &verdict, begin);
    }
    printf("%s%s %llu", verdict.count > 1 ? "\n" : "", _("seed"), (unsigned long long)o.seed);
    if (o.cases)
        printf(_(", and the cases in %s"), o.cases);
    printf("\n");
    if (o.since > 0)
        report_times(stdout, &verdict, built);
    report_total(stdout, &verdict, page);
    return verdict_is_full(&verdict) || end_make(o.make) ? 0 : 1;
}
