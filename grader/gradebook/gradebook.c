/* build/gradebook: grades a folder of submissions into a table or, with --board, for the page of
 * make board. Exit status: 0 if every lab was graded, 1 if some could not be, 2 if there is no
 * table. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/launch/launcher.h"
#include "grader/judge/local.h"

static bool for_board;

static _Noreturn void usage(const char *what)
{
    give_up_at(NULL,
               for_board
                   ? N_("make board DIR=submissions [NAMES=1] [JOBS=2] [SEED=7] [SANDBOX=on|off]")
                   : N_("make gradebook DIR=submissions OUT=grades.csv [JOBS=2] [SEED=7] "
                        "[SANDBOX=on|off]"),
               "%s", what);
}

static uint64_t number(const char *text, const char *name, uint64_t least, uint64_t most)
{
    char *end, what[160];
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < least || value > most) {
        snprintf(what, sizeof what, _("%s must be a number from %llu to %llu, not '%.40s'"), name,
                 (unsigned long long)least, (unsigned long long)most, text);
        usage(what);
    }
    return value;
}

/* Half of the cores, because a lab's ranks run side by side, but often wait. */
static int usual_jobs(void)
{
    const Cores usable = cores_usable();
    const int cores = cores_count(&usable);
    return cores < 4 ? 1 : cores / 2 > MOST_JOBS ? MOST_JOBS : cores / 2;
}

/* Verdicts are in the reader's language, so they depend on the catalogue too, whose header is the
 * translation of "". */
static void read_kit(Book *book)
{
    checksum_of(gettext(""), strlen(gettext("")), book->language);
    char path[PLACE_SIZE];
    snprintf(path, sizeof path, "%.3000s/generated/kit.txt", book->build);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%65s", book->kit) != 1)
        give_up_at(path, N_("make gradebook writes it"), N_("the version of the kit is unknown"));
    fclose(file);
}

/* The instructor's points apply to the table too, and a mistake in them should be reported only
 * once. */
static void read_cases(const Book *book)
{
    static Local local;
    Problem problem;
    if (book->cases && !local_read(book->cases, &local, &problem))
        give_up(&problem);
}

static Book options_of(int argc, char **argv)
{
    enum { FOLDER, OUT, JOBS, SEED, BUILD, CASES, SANDBOX, PART, BOARD, NAMES, OPTIONS };
    static const struct option known[] = {{"dir", required_argument, NULL, FOLDER},
                                          {"out", required_argument, NULL, OUT},
                                          {"jobs", required_argument, NULL, JOBS},
                                          {"seed", required_argument, NULL, SEED},
                                          {"build", required_argument, NULL, BUILD},
                                          {"cases", required_argument, NULL, CASES},
                                          {"sandbox", required_argument, NULL, SANDBOX},
                                          {"part", required_argument, NULL, PART},
                                          {"board", no_argument, NULL, BOARD},
                                          {"names", no_argument, NULL, NAMES},
                                          {0}};
    const char *given[OPTIONS] = {[BUILD] = "build", [SANDBOX] = "", [PART] = "1"};
    int option;
    bool names = false;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?')
            usage(_("unknown option"));
        given[option] = optarg;
        for_board |= option == BOARD;
        names |= option == NAMES;
    }
    Book book = {
        .folder = given[FOLDER],
        .labs = for_board ? (Range){0, lab_count()}
                          : labs_of_part((int)number(given[PART], "PART", 1, 2)),
        .board = for_board,
        .names = names || !for_board,
        .out = given[OUT],
        .jobs = given[JOBS] ? (int)number(given[JOBS], "JOBS", 1, MOST_JOBS) : usual_jobs(),
        .seed = given[SEED] ? number(given[SEED], "SEED", 0, UINT64_MAX) : 0,
        .has_seed = given[SEED] != NULL,
        .build = given[BUILD],
        .cases = given[CASES],
        .sandbox = given[SANDBOX],
    };
    if (optind < argc)
        usage(_("too many arguments"));
    if (!book.folder || !*book.folder)
        usage(_("DIR is missing: the folder with the submissions"));
    if (!book.out || !*book.out)
        usage(_("OUT is missing: the CSV file for the grades"));
    if (*book.sandbox && strcmp(book.sandbox, "on") != 0 && strcmp(book.sandbox, "off") != 0)
        usage(_("SANDBOX=on grades only in a sandbox, SANDBOX=off only without one; by default "
                "there is one where the system allows it"));
    return book;
}

/* Checks for a sandbox before the first submission runs, not after the last. */
static void look_for_sandbox(const Book *book)
{
    char why[256];
    if (!strcmp(book->sandbox, "off") || sandbox_works(why, sizeof why))
        return;
    if (!strcmp(book->sandbox, "on"))
        give_up_at(
            NULL,
            N_("make doctor shows what is missing; without SANDBOX=on, only the resource limits apply"),
            N_("there is no sandbox here (%s)"), why);
    fprintf(stderr,
            _("warning: no sandbox here (%s): submissions run with resource limits only, as user "
              "%u\n  HINT: SANDBOX=on grades only in one; make doctor shows what is missing\n"),
            why, (unsigned)geteuid());
}

/* Lowers the number of jobs to the number of launches for which the folder of shared files has
 * room, because a rank crashes if its file cannot grow. */
static void limit_jobs(Book *book)
{
    const char *folder;
    const int fit = launches_with_room(&folder);
    if (book->jobs <= fit)
        return;
    fprintf(stderr, _("warning: JOBS=%d instead of %d: %s has no room for more labs at a time\n"),
            fit, book->jobs, folder);
    book->jobs = fit;
}

static bool all_graded(const Book *book)
{
    for (int i = 0; i < book->unit_count; i++)
        if (!book->units[i].lab_verdict)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    language_begin();
    problem_if_output_is_lost();
    signal(SIGXFSZ, SIG_IGN);       /* exceeding a file size limit must only fail the write */
    setlocale(LC_CTYPE, "C.UTF-8"); /* names in archives */
    Book book = options_of(argc, argv);
    read_kit(&book);
    read_cases(&book);
    limit_jobs(&book);
    look_for_sandbox(&book);
    name_reports(&book);
    list_submissions(&book);
    open_book(&book);
    printf("%s %llu\n", _("seed"), (unsigned long long)book.seed);
    take_in(&book);
    make_units(&book);
    run_units(&book, 0, book.jobs);
    if (book.board) {
        const int graded = book.unit_count;
        make_training_runs(&book);
        run_units(&book, graded, 1); /* one at a time, because others would slow it down */
        write_board(&book);
    } else {
        find_pieces(&book);
        write_table(&book);
        remove_old_reports(&book);
        write_summary(&book);
        printf(book.count == 1 ? _("\n%s: %d row; individual reports in %s\n")
                               : _("\n%s: %d rows; individual reports in %s\n"),
               book.out, book.count, book.reports);
    }
    return all_graded(&book) ? 0 : 1;
}
