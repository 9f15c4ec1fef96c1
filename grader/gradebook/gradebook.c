/* build/gradebook: grades a folder of submissions into a table or, with --board, for the page of
 * make board. Exit status: 0 if every lab was graded, 1 if some could not be, 2 if there is no
 * table. */
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/language.h"
#include "base/options.h"
#include "grader/gradebook/book.h"
#include "grader/judge/launch/launcher.h"
#include "grader/judge/local.h"

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
    Book book = {.build = "build", .seed = UINT64_MAX};
    int part = 1;
    bool names = false;
    const Option known[] = {
        TEXT_OPTION("dir", &book.folder),
        TEXT_OPTION("out", &book.out),
        NUMBER_OPTION("jobs", &book.jobs, 1, MOST_JOBS),
        NUMBER_OPTION("seed", &book.seed, 0, 0x1p53),
        TEXT_OPTION("build", &book.build),
        TEXT_OPTION("cases", &book.cases),
        WORD_OPTION("sandbox", &book.sandbox, "auto|off|on"),
        NUMBER_OPTION("part", &part, 1, 2),
        FLAG_OPTION("board", &book.board),
        FLAG_OPTION("names", &names),
        {0},
    };
    const char *hint = N_("make help class lists the settings of make gradebook and make board");
    Problem problem;
    if (!options_read(known, argc, argv, hint, &problem))
        give_up(&problem);
    if (!book.folder || !*book.folder)
        give_up_at(NULL, hint, N_("DIR is missing: the folder with the submissions"));
    if (!book.out || !*book.out)
        give_up_at(NULL, hint, N_("OUT is missing: the CSV file for the grades"));
    book.has_seed = book.seed != UINT64_MAX;
    book.seed = book.has_seed ? book.seed : 0;
    book.labs = book.board ? (Range){0, lab_count()} : labs_of_part(part);
    book.names = names || !book.board;
    book.jobs = book.jobs ? book.jobs : usual_jobs();
    return book;
}

/* Checks for a sandbox before the first submission runs, not after the last. */
static void look_for_sandbox(const Book *book)
{
    char why[256];
    if (book->sandbox == SANDBOX_OFF || sandbox_works(why, sizeof why))
        return;
    if (book->sandbox == SANDBOX_DEMANDED)
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
