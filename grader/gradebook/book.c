/* A gradebook's folders, lock and seed. */
#include "grader/gradebook/book.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/verdict.h"

void give_up_at(const char *where, const char *hint, const char *format, ...)
{
    char what[sizeof(Problem)];
    Problem problem;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, _(format), args);
    va_end(args);
    problem_set(&problem, where, hint, "%s", what);
    give_up(&problem);
}

void add_remark(Submission *submission, const char *format, ...)
{
    va_list args;
    size_t used = strlen(submission->remark);
    if (used > 0 && used + 3 < REMARK_SIZE)
        used += (size_t)snprintf(submission->remark + used, REMARK_SIZE - used, "%s", _("; "));
    va_start(args, format);
    vsnprintf(submission->remark + used, REMARK_SIZE - used, format, args);
    va_end(args);
    make_line(submission->remark);
}

void make_line(char *text)
{
    clean_text(text);
    for (; *text; text++)
        if (*text == '\n' || *text == '\t')
            *text = ' ';
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        give_up_at(path, N_("name a file in an existing, writable folder"),
                   N_("the folder cannot be created: %s"), strerror(errno));
}

void place_in(const char *folder, char place[PLACE_SIZE], const char *format, ...)
{
    char inner[PLACE_SIZE / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(inner, sizeof inner, format, args);
    va_end(args);
    snprintf(place, PLACE_SIZE, "%.*s/%s", PLACE_SIZE / 2 - 2, folder, inner);
    for (char *slash = place + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        make_folder(place);
        *slash = '/';
    }
}

int64_t put_contents(FILE *out, const char *path)
{
    static char buffer[1 << 16];
    int64_t count = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    for (size_t length; (length = fread(buffer, 1, sizeof buffer, file)) > 0;
         count += (int64_t)length)
        fwrite(buffer, 1, length, out);
    fclose(file);
    return count;
}

void write_or_give_up(const char *path, const OutputKind *kind, const char *text)
{
    Problem problem;
    if (!write_file(path, kind, text, &problem))
        give_up(&problem);
}

static int remove_one(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found, (void)kind, (void)at;
    return remove(path);
}

void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Only one process at a time may use an OUT. The lock ends with the process. */
static void take_lock(const Book *book)
{
    char place[PLACE_SIZE];
    place_in(book->state, place, "lock");
    int lock = open(place, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0)
        give_up_at(book->reports,
                   book->board ? N_("wait for it") : N_("wait for it, or choose another OUT"), "%s",
                   errno != EWOULDBLOCK ? strerror(errno)
                   : book->board        ? _("another make board is running")
                                        : _("another make gradebook is using this OUT"));
}

static void settle_seed(Book *book)
{
    char place[PLACE_SIZE], text[64];
    unsigned long long kept;
    place_in(book->state, place, "seed");
    FILE *file = fopen(place, "r");
    bool found = file && fscanf(file, "%llu", &kept) == 1;
    if (file)
        fclose(file);
    if (!book->has_seed && found)
        book->seed = kept;
    else if (!book->has_seed && getrandom(&book->seed, sizeof book->seed, 0) == sizeof book->seed)
        book->seed %= 1000000;
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)book->seed);
    write_or_give_up(place, NULL, text);
}

/* One work folder per OUT, however its path is written. */
static void name_work_folder(Book *book)
{
    char whole[PATH_MAX], checksum[CHECKSUM_SIZE];
    if (!realpath(book->reports, whole))
        snprintf(whole, sizeof whole, "%.4000s", book->reports);
    checksum_of(whole, strlen(whole), checksum);
    snprintf(book->work, sizeof book->work, "%.3000s/gradebook-work", book->build);
    make_folder(book->work);
    snprintf(book->work, sizeof book->work, "%.3000s/gradebook-work/%.16s", book->build, checksum);
}

void name_reports(Book *book)
{
    const char *ending = book->board ? ".json" : ".csv";
    size_t length = strlen(book->out);
    if (length > PLACE_SIZE / 4)
        give_up_at(NULL, N_("choose a shorter one"), N_("the name of OUT is too long"));
    if (length > strlen(ending) && !strcmp(book->out + length - strlen(ending), ending))
        length -= strlen(ending);
    snprintf(book->reports, sizeof book->reports, "%.*s-reports", (int)length, book->out);
    snprintf(book->state, sizeof book->state, "%.*s-reports/.state", (int)length, book->out);
}

void open_book(Book *book)
{
    char place[PLACE_SIZE];
    struct stat found;
    if (stat(book->out, &found) == 0 && !S_ISREG(found.st_mode))
        give_up_at(book->out, N_("OUT is the name of a CSV file"),
                   N_("the table cannot be written there"));
    Problem problem;
    if (!output_may_replace(book->out, book->board ? NULL : &table_kind, &problem))
        give_up(&problem);
    make_folder(book->reports);
    name_work_folder(book);
    make_folder(book->state);
    take_lock(book);
    settle_seed(book);
    place_in(book->state, place, "in");
    remove_tree(place);
    remove_tree(book->work);
    make_folder(book->work);
}
