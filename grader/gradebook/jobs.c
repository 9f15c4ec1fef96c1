/* Grades the units without a verdict, several at a time. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/language.h"
#include "base/replacement.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/verdict.h"

/* ---- progress -------------------------------------------------------------------------------------------------------- */

enum { BAR = 30 };

static bool has_bar(void)
{
    return isatty(STDOUT_FILENO);
}

/* Shows progress: a bar on a terminal, otherwise one line per student. */
static void tell_progress(int units_done, int units_to_do)
{
    static time_t begin;
    char bar[BAR + 1];
    if (!begin)
        begin = time(NULL);
    if (!has_bar() || units_to_do == 0)
        return;
    int filled = units_done * BAR / units_to_do;
    for (int i = 0; i < BAR; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR] = '\0';
    printf("\r[%s] ", bar);
    printf(_("%d of %d labs"), units_done, units_to_do);
    if (units_done > 0) {
        long left = (long)(time(NULL) - begin) * (units_to_do - units_done) / units_done;
        printf(_(", %ld:%02ld left "), left / 60, left % 60);
    }
    printf("\033[K");
    fflush(stdout);
}

/* Prints a line for a submission whose units have all ended; `done` is the number of such
 * submissions so far. */
static void tell_student_done(const Book *book, int submission, int done)
{
    const Submission *s = &book->submissions[submission];
    if (has_bar())
        return;
    printf("%d/%d  ", done, book->count);
    if (book->names)
        printf(_("%s: "), s->student);
    if (s->refused)
        fputs(_("not graded"), stdout);
    else
        printf(_("%d points"), s->points);
    printf("%s%s\n", *s->remark ? _("; ") : "", s->remark);
    fflush(stdout);
}

static void end_progress(void)
{
    if (has_bar())
        printf("\r\033[K");
}

/* ---- one process per unit ------------------------------------------------------------------------------------------- */

/* The exit status of `timeout` in grade-one.sh. */
enum { TOO_LONG = 124, KILLED = 137 };

typedef struct Job {
    pid_t pid;
    int unit;
} Job;

/* Copies a file, possibly between disks. Returns the number of bytes, or -1. */
static int64_t copy_file(const char *from, const char *to)
{
    Problem problem;
    Replacement *copy = replacement_begin(to, NULL, "", "%s", &problem);
    if (!copy)
        return -1;
    const int64_t bytes = put_contents(copy->stream, from);
    if (bytes < 0)
        replacement_drop(copy);
    return bytes >= 0 && replacement_end(copy, "", "%s", &problem) ? bytes : -1;
}

/* Fills a unit's build area: puts the student's file where the kit has it. */
static bool lay_out(const Book *book, const Unit *unit, char area[PLACE_SIZE])
{
    char from[PLACE_SIZE], to[PLACE_SIZE];
    bool good = true;
    for (int lab = 0; lab <= unit->lab; lab++) {
        bool needed = lab == unit->lab || lab_at(lab)->number == lab_at(unit->lab)->starts_from ||
                      (unit->trains && is_trained(lab));
        if (!needed)
            continue;
        source_place(book, unit->submission, lab, from);
        place_in(book->work, to, "%s/labs/%s/%s", unit->key, lab_at(lab)->folder,
                 lab_at(lab)->file);
        good = (copy_file(from, to) >= 0 || lab != unit->lab) && good;
    }
    place_in(book->work, area, "%s", unit->key);
    return good;
}

static _Noreturn void become_grader(const Book *book, const Unit *unit, const char *area,
                                    pid_t parent)
{
    const char *const sandbox[] = {"auto", "off", "on"};
    char number[16], seed[32];
    setpgid(0, 0);
    signal(SIGXFSZ, SIG_DFL); /* stops a compiler at its limit */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    snprintf(number, sizeof number, "%d", lab_at(unit->lab)->number);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)book->seed);
    execl("grader/gradebook/grade-one.sh", "grade-one.sh", book->build, number, area, seed,
          sandbox[book->sandbox], book->cases ? book->cases : "",
          unit->trains ? lab_at(unit->lab)->needs : (char *)NULL, (char *)NULL);
    _exit(126);
}

static Job start(const Book *book, int number)
{
    char area[PLACE_SIZE];
    Unit *unit = &book->units[number];
    Job job = {.unit = number};
    if (!lay_out(book, unit, area)) {
        snprintf(unit->trouble, sizeof unit->trouble, _("its files could not be written: %s"),
                 strerror(errno));
        return job;
    }
    pid_t parent = getpid();
    fflush(NULL);
    job.pid = fork();
    if (job.pid == 0)
        become_grader(book, unit, area, parent);
    if (job.pid < 0) {
        snprintf(unit->trouble, sizeof unit->trouble, "%s", _("no process could be started"));
        job.pid = 0;
    }
    return job;
}

/* Reads the first error that the grader printed; without one, says how the grader ended. */
static void read_trouble(const Book *book, const Job *job, int status)
{
    char place[PLACE_SIZE], line[256];
    Unit *unit = &book->units[job->unit];
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    const char *why = code == TOO_LONG || code == KILLED ? _("it took longer than half an hour")
                      : WIFSIGNALED(status)              ? _("the grader was stopped")
                                                         : _("the grader gave no verdict");
    snprintf(unit->trouble, sizeof unit->trouble, "%s", why);
    place_in(book->work, place, "%s/errors", unit->key);
    FILE *file = fopen(place, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, _("error: "), strlen(_("error: ")))) {
            const char *what = line + strlen(_("error: "));
            snprintf(unit->trouble, sizeof unit->trouble, "%.*s", (int)strcspn(what, "\n"), what);
            break;
        }
    if (file)
        fclose(file);
    clean_text(unit->trouble);
}

/* Copies the report before the verdict, so that every verdict has its report. */
static void finish(const Book *book, const Job *job, int status)
{
    char from[PLACE_SIZE], to[PLACE_SIZE];
    Unit *unit = &book->units[job->unit];
    bool good = WIFEXITED(status) && WEXITSTATUS(status) <= 1;
    place_in(book->work, from, "%s/report.txt", unit->key);
    place_in(book->state, to, "verdicts/%s.txt", unit->key);
    good = good && copy_file(from, to) > 0;
    place_in(book->work, from, "%s/verdict.json", unit->key);
    place_in(book->state, to, "verdicts/%s.json", unit->key);
    if (!good || copy_file(from, to) <= 0 || !find_verdict(book, unit))
        read_trouble(book, job, status);
    place_in(book->work, from, "%s/again", unit->key);
    if (access(from, F_OK) == 0) /* the next gradebook tries again */
        remove(to);
    place_in(book->work, from, "%s", unit->key);
    remove_tree(from);
}

static void submission_ended(Book *book, int number, int *students_done)
{
    add_up(book, &book->submissions[number]);
    if (!book->board)
        write_report(book, number);
    tell_student_done(book, number, ++*students_done);
}

static void unit_ended(Book *book, int unit, int *students_done)
{
    for (int i = 0; i < book->count; i++) {
        Submission *submission = &book->submissions[i];
        for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++)
            if (submission->unit[lab] == unit && --submission->pending == 0)
                submission_ended(book, i, students_done);
    }
}

static volatile sig_atomic_t interrupted;

static void take_note(int signal)
{
    interrupted = signal;
}

static void heed_interruptions(void)
{
    struct sigaction action = {.sa_handler = take_note}, before;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

/* Ends the running jobs and removes their files; keeps the verdicts of finished jobs. */
static _Noreturn void end_early(const Book *book, const Job *jobs, int running)
{
    int graded = 0;
    for (int i = 0; i < running; i++)
        kill(-jobs[i].pid, SIGTERM);
    for (int i = 0; i < running; i++)
        waitpid(jobs[i].pid, NULL, 0);
    remove_tree(book->work);
    for (int i = 0; i < book->unit_count; i++)
        graded += book->units[i].lab_verdict != NULL;
    end_progress();
    fprintf(stderr,
            _("stopped after %d of %d labs; there is no table yet\n  HINT: the same command "
              "continues from there\n"),
            graded, book->unit_count);
    exit(128 + interrupted);
}

/* Waits until one of the jobs ends, and removes it from the list. */
static Job wait_for_one(const Book *book, Job *jobs, int *running, int *status)
{
    for (;;) {
        if (interrupted)
            end_early(book, jobs, *running);
        pid_t pid = waitpid(-1, status, WNOHANG);
        for (int i = 0; pid > 0 && i < *running; i++)
            if (jobs[i].pid == pid) {
                Job ended = jobs[i];
                jobs[i] = jobs[--*running];
                return ended;
            }
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    }
}

void run_units(Book *book, int first, int most)
{
    Job jobs[MOST_JOBS];
    int running = 0, next = first, done = 0, students = 0, to_do = 0, status = 0;
    heed_interruptions();
    for (int i = first; i < book->unit_count; i++)
        to_do += !book->units[i].lab_verdict;
    for (int i = 0; i < book->count && first == 0; i++)
        if (book->submissions[i].pending == 0)
            submission_ended(book, i, &students);
    while (done < to_do) {
        tell_progress(done, to_do);
        while (running < most && next < book->unit_count) {
            if (book->units[next++].lab_verdict)
                continue;
            jobs[running] = start(book, next - 1);
            if (jobs[running].pid > 0) {
                running++;
            } else {
                done++;
                unit_ended(book, next - 1, &students);
            }
        }
        if (running == 0)
            continue;
        Job ended = wait_for_one(book, jobs, &running, &status);
        finish(book, &ended, status);
        done++;
        unit_ended(book, ended.unit, &students);
    }
    tell_progress(done, to_do);
    end_progress();
}
