/* build/grade: judges labs that make has built. Exit status: 0 for full marks, 1 for less (with
 * --make, that of make), 2 if it could not grade. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <malloc.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "grader/judge/commands.h"
#include "base/clock.h"
#include "grader/judge/report/formats/formats.h"
#include "grader/judge/report/output.h"

static _Noreturn void usage(const char *what)
{
    give_up_with(N_("make grade [LAB=n] [SEED=n] [CASE=n] [STACK=mine] [FORMAT=name OUT=file]"),
                 "%s", what);
}

static uint64_t number(const char *text, const char *option, uint64_t largest)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value > largest)
        give_up_with(N_("choose such a number, or leave it out"),
                     _("%s takes a number up to %llu, not '%.60s'"), option,
                     (unsigned long long)largest, text);
    return value;
}

static void wish_for(Sandbox *sandbox, const char *word)
{
    sandbox->wish = !strcmp(word, "off") ? SANDBOX_OFF : SANDBOX_DEMANDED;
    if (strcmp(word, "off") != 0 && strcmp(word, "on") != 0)
        usage(_("SANDBOX=on grades only in a sandbox, SANDBOX=off only without one; by default "
                "there is one where the system allows it"));
}

static Options defaults(void)
{
    static Sandbox sandbox;
    Options o = {.part = 1,
                 .only_case = -1,
                 .debug = -1,
                 .tape = -1,
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

static int part_named(const char *text)
{
    char *end;
    long part = strtol(text, &end, 10);
    const Range labs = labs_of_part(part > 0 && part < lab_count() ? (int)part : 0);
    if (*end || labs.begin == labs.end)
        give_up_with(N_("labs 1 to 11 are part 1, the others part 2"),
                     _("the course has no part %.60s"), text);
    return (int)part;
}

static int lab_named(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && number <= INT_MAX && lab_of((int)number))
        return (int)number;
    give_up_with(
        N_("choose an existing lab, or omit LAB to grade all of part 1 (PART=2: all of part 2)"),
        _("there is no lab %.60s: labs are numbered from %d to %d"), text, lab_at(0)->number,
        lab_at(lab_count() - 1)->number);
}

static void add_output(const char *list[MAX_OUTPUTS], int *count, const char *value)
{
    if (*count == MAX_OUTPUTS)
        usage(_("too many outputs"));
    list[(*count)++] = value;
}

static void read_option(Options *o, char letter, const char *value)
{
    if (letter == 'l')
        o->lab = lab_named(value);
    else if (letter == 'p')
        o->part = part_named(value);
    else if (letter == 's')
        o->seed = number(value, "SEED", UINT64_MAX);
    else if (letter == 'c')
        o->only_case = (int)number(value, "CASE", 1000000);
    else if (letter == 'u')
        o->cpu_limit = (double)number(value, "--cpu-limit", 3600);
    else if (letter == 'k')
        add_output(o->format, &o->formats, value);
    else if (letter == 'o')
        add_output(o->out, &o->outs, value);
    else if (letter == 'n')
        o->since = atof(value);
    else if (letter == 'b')
        wish_for(o->sandbox, value);
    else if (letter == 't')
        o->tape = (int)number(value, "RANK", MAX_RANKS - 1);
    else if (letter == 'e')
        keep_expected(value);
    else
        o->debug = (int)number(value, "RANK", MAX_RANKS - 1);
}

static Options options_of(int argc, char **argv)
{
    Options o = defaults();
    /* An option is read by its letter, or sets a string or a switch in Options. */
    const struct {
        const char *name;
        char letter;
        const char **text;
        bool *on;
    } choices[] = {{"lab", .letter = 'l'},
                   {"part", .letter = 'p'},
                   {"seed", .letter = 's'},
                   {"case", .letter = 'c'},
                   {"cpu-limit", .letter = 'u'},
                   {"format", .letter = 'k'},
                   {"out", .letter = 'o'},
                   {"since", .letter = 'n'},
                   {"sandbox", .letter = 'b'},
                   {"expected", .letter = 'e'},
                   {"debug", .letter = 'd'},
                   {"tape", .letter = 't'},
                   {"author", .text = &o.author},
                   {"runners", .text = &o.runners},
                   {"labs", .text = &o.labs},
                   {"own", .text = &o.own},
                   {"cases", .text = &o.cases},
                   {"report", .text = &o.picture},
                   {"stops", .text = &o.stops},
                   {"cluster", .text = &o.cluster},
                   {"may-send", .text = &o.may_send},
                   {"make", .text = &o.make},
                   {"margins", .on = &o.margins},
                   {"trace", .on = &o.trace},
                   {"measure", .on = &o.measure},
                   {"throughput", .on = &o.throughput},
                   {"list", .on = &o.list},
                   {"short-lived", .on = &o.short_lived},
                   {"sanitized", .on = &o.sandbox->sanitized},
                   {"gpu", .on = &o.sandbox->gpu}};
    enum { CHOICES = sizeof choices / sizeof *choices };
    struct option known[CHOICES + 1] = {0};
    for (int i = 0; i < CHOICES; i++)
        known[i] = (struct option){choices[i].name, choices[i].on ? no_argument : required_argument,
                                   NULL, i};
    for (int i; (i = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (i == '?')
            usage(_("unknown option"));
        if (choices[i].text)
            *choices[i].text = optarg;
        else if (choices[i].on)
            *choices[i].on = true;
        else
            read_option(&o, choices[i].letter, optarg);
    }
    if (optind < argc)
        usage(_("too many arguments"));
    if ((o.trace || o.measure || o.picture || o.tape >= 0 || o.debug >= 0 || o.may_send) && !o.lab)
        give_up_with(o.trace        ? "make trace LAB=6"
                     : o.measure    ? "make measure LAB=6"
                     : o.picture    ? "make report LAB=6"
                     : o.tape >= 0  ? "make tape LAB=6 RANK=1"
                     : o.debug >= 0 ? "make debug LAB=6 RANK=1"
                                    : "--lab 6 --may-send 'n=4 B=8 S=128 OUT=768 H=768'",
                     _("LAB is missing"));
    return o;
}

static void must_have_outputs(const Options *o, const Format *formats[MAX_OUTPUTS])
{
    Problem problem;
    if (o->formats != o->outs)
        give_up_with("FORMAT=junit OUT=grades.xml",
                     o->formats < o->outs ? _("OUT needs a FORMAT")
                                          : _("FORMAT needs an output file: set OUT"));
    for (int i = 0; i < o->formats; i++)
        if (!(formats[i] = format_of(o->format[i], &problem)))
            give_up(&problem);
}

/* Writes the files; call it before the first lab and after each lab. However the grader ends, they
 * then hold everything that was graded. */
static void keep(const Format *const formats[MAX_OUTPUTS], const Options *o, Verdict *verdict,
                 double begin)
{
    Problem problem;
    verdict->seconds = clock_now() - begin;
    for (int i = 0; i < o->formats; i++) {
        char *text = formats[i]->writer(verdict);
        bool written = write_file(o->out[i], &formats[i]->kind, text, &problem);
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
    if (o.tape >= 0)
        return tape_lab(&o);
    if (o.measure)
        return measure_lab(&o);
    if (o.throughput)
        return time_training(&o);
    if (o.picture)
        return picture_lab(&o);
    if (o.debug >= 0)
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
