/* Reads submissions in separate, limited processes, so that a malicious archive can damage only its
 * own reader. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/language.h"
#include "grader/gradebook/book.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/output.h"
#include "grader/judge/report/verdict.h"

void source_place(const Book *book, int submission, int lab, char place[PLACE_SIZE])
{
    if (submission < 0)
        snprintf(place, PLACE_SIZE, "solutions/%s/%s", lab_at(lab)->folder, lab_at(lab)->file);
    else
        place_in(book->state, place, "in/%d/%d.c", submission, lab_at(lab)->number);
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static const char submissions_hint[] =
    N_("DIR is a folder with one .zip, .tar.gz or folder per student");

/* The table and the reports of this gradebook may be beside the submissions. */
static bool is_written_here(const Book *book, const char *entry)
{
    const char *const written[] = {book->out, book->reports};
    char place[PLACE_SIZE];
    struct stat own, other;
    place_in(book->folder, place, "%s", entry);
    for (int i = 0; i < 2; i++)
        if (stat(written[i], &own) == 0 && lstat(place, &other) == 0 &&
            own.st_dev == other.st_dev && own.st_ino == other.st_ino)
            return true;
    return false;
}

void list_submissions(Book *book)
{
    struct dirent **entries;
    int count = scandir(book->folder, &entries, is_shown, alphasort);
    if (count <= 0 || count > MOST_SUBMISSIONS)
        give_up_at(book->folder, submissions_hint,
                   count < 0   ? N_("the submissions cannot be read: %s")
                   : count > 0 ? N_("there are too many submissions%s")
                               : N_("there are no submissions%s"),
                   count < 0 ? strerror(errno) : "");
    book->submissions = calloc((size_t)count, sizeof *book->submissions);
    for (int i = 0; i < count; i++)
        if (!is_written_here(book, entries[i]->d_name))
            book->submissions[book->count++].entry = strdup(entries[i]->d_name);
    if (book->count == 0)
        give_up_at(book->folder, submissions_hint, N_("there are no submissions%s"), "");
}

/* ---- in the separate process */

/* Course platforms put each student's archive into a folder. Returns how many archives this folder
 * contains, or 0 if it also contains other files. `one` gets the path of the last. */
static int archives_alone_in(const char *folder, char one[PLACE_SIZE])
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_shown, alphasort), archives = 0;
    for (int i = 0; i < count; i++) {
        archives += archive_end(entries[i]->d_name) > 0;
        snprintf(one, PLACE_SIZE, "%.2000s/%s", folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free((void *)entries);
    return archives == count ? archives : 0;
}

static bool read_submission(const char *path, Files *files, Problem *problem)
{
    struct stat found;
    char inside[PLACE_SIZE];
    if (lstat(path, &found) != 0)
        return problem_set(problem, NULL, "", "it cannot be read: %s", strerror(errno));
    if (S_ISDIR(found.st_mode)) {
        int archives = archives_alone_in(path, inside);
        if (archives > 1)
            return problem_set(problem, NULL, "",
                               "it is a folder of %d archives: keep only the one to grade",
                               archives);
        if (archives == 0)
            return read_files(path, true, files, problem);
        path = inside;
        if (lstat(path, &found) != 0)
            return problem_set(problem, NULL, "", "it cannot be read: %s", strerror(errno));
    }
    if (S_ISLNK(found.st_mode))
        return problem_set(problem, NULL, "", "it is a link");
    if (!S_ISREG(found.st_mode))
        return problem_set(problem, NULL, "", "it is neither a file nor a folder");
    if (!archive_end(path))
        return problem_set(problem, NULL, "", "it is not a .zip, .tar.gz or folder");
    if (found.st_size == 0)
        return problem_set(problem, NULL, "", "it is an empty file");
    if (found.st_size > MOST_BYTES)
        return problem_set(problem, NULL, "", "it is larger than %d MB", MOST_BYTES >> 20);
    return read_files(path, false, files, problem);
}

static void keep_source(const Book *book, int submission, int lab, const File *file)
{
    char place[PLACE_SIZE];
    source_place(book, submission, lab, place);
    FILE *out = fopen(place, "wx");
    if (!out || fwrite(file->bytes ? file->bytes : "", 1, file->size, out) != file->size ||
        fclose(out) != 0)
        _exit(3);
}

static bool is_utf_16(const File *file)
{
    const char *bytes = file->bytes;
    return bytes && file->size > 1 &&
           (!memcmp(bytes, "\xFF\xFE", 2) || !memcmp(bytes, "\xFE\xFF", 2) ||
            !bytes[0] != !bytes[1]);
}

/* Says what is wrong with the labs' files, after what is wrong with the manifest. */
static void examine_labs(const Layout *layout, Manifest *manifest)
{
    for (int i = 0; i < lab_count(); i++) {
        const Lab *lab = lab_at(i);
        char *remark = manifest->remark;
        if (layout->elsewhere[i])
            append(remark, sizeof manifest->remark, _("%sexpected labs/%s/%s, found %s: rename it"),
                   *remark ? _("; ") : "", lab->folder, lab->file,
                   clean_name(layout->elsewhere[i]->path).text);
        if (layout->lab[i] && is_utf_16(layout->lab[i]))
            append(remark, sizeof manifest->remark, _("%slab %d is in UTF-16: save it as UTF-8"),
                   *remark ? _("; ") : "", lab->number);
    }
}

static json_t *examine(const Book *book, int submission)
{
    static Files files;
    char path[2 * PLACE_SIZE];
    Layout layout;
    Problem problem;
    snprintf(path, sizeof path, "%s/%s", book->folder, book->submissions[submission].entry);
    if (!read_submission(path, &files, &problem) || !find_labs(&files, &layout, &problem)) {
        clean_text(problem.what);
        return json_pack("{s:b, s:s, s:s}", "refused", true, "remark", problem.what, "name", "");
    }
    for (int i = 0; i < lab_count(); i++)
        if (layout.lab[i])
            keep_source(book, submission, i, layout.lab[i]);
    Manifest manifest = manifest_of(&files, layout.root);
    examine_labs(&layout, &manifest);
    clean_text(manifest.remark); /* a long one may end within a character */
    return json_pack("{s:b, s:s, s:s, s:s, s:s}", "refused", false, "remark", manifest.remark,
                     "name", manifest.name, "created", manifest.created, "predictions",
                     manifest.predictions);
}

static void limit(int what, rlim_t most)
{
    setrlimit(what, &(struct rlimit){most, most});
}

static _Noreturn void examine_alone(const Book *book, int submission, const char *result)
{
    Problem problem;
    limit(RLIMIT_CPU, 30);
    limit(RLIMIT_AS, (rlim_t)1 << 30);
    limit(RLIMIT_FSIZE, MOST_SOURCE + (64 << 10));
    limit(RLIMIT_CORE, 0);
    json_t *json = examine(book, submission);
    char *text = json ? json_dumps(json, 0) : NULL;
    _exit(text && write_file(result, NULL, text, &problem) ? 0 : 3);
}

/* ---- */

/* The name without an archive's extension or Moodle's suffix: "Ada
 * Lovelace_1234_assignsubmission_file_". */
static void name_after_entry(Submission *submission)
{
    size_t length = strlen(submission->entry) - archive_end(submission->entry);
    if (strstr(submission->entry, "_assignsubmission_file"))
        length = strcspn(submission->entry, "_");
    snprintf(submission->student, sizeof submission->student, "%.*s", (int)length,
             submission->entry);
    make_line(submission->student);
}

static void take_result(Submission *submission, const char *place, int status)
{
    json_t *json =
        WIFEXITED(status) && WEXITSTATUS(status) == 0 ? json_load_file(place, 0, NULL) : NULL;
    const char *name = "", *remark = "", *created = "", *predictions = "";
    int refused = true;
    json_unpack(json, "{s:b, s:s, s:s, s?s, s?s}", "refused", &refused, "remark", &remark, "name",
                &name, "created", &created, "predictions", &predictions);
    name_after_entry(submission);
    if (*name)
        snprintf(submission->student, sizeof submission->student, "%s", name);
    snprintf(submission->created, sizeof submission->created, "%s", created);
    make_line(submission->created);
    snprintf(submission->predictions, sizeof submission->predictions, "%s", predictions);
    make_line(submission->predictions);
    submission->refused = refused;
    if (!json)
        add_remark(
            submission, "%s",
            _("it could not be unpacked within the time and memory that a submission may use"));
    else if (*remark)
        add_remark(submission, "%s", remark);
    json_decref(json);
}

static void tell_of_twins(Book *book)
{
    for (int i = 0; i < book->count; i++)
        for (int k = 0; k < book->count; k++)
            if (i != k && !strcmp(book->submissions[i].student, book->submissions[k].student))
                add_remark(&book->submissions[i], _("%.100s has the same name"),
                           book->submissions[k].entry);
}

void take_in(Book *book)
{
    char place[PLACE_SIZE];
    for (int i = 0; i < book->count; i++) {
        int status = 0;
        place_in(book->state, place, "in/%d/intake.json", i);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            examine_alone(book, i, place);
        if (child < 0 || waitpid(child, &status, 0) != child)
            status = -1;
        take_result(&book->submissions[i], place, status);
    }
    tell_of_twins(book);
}

/* ---- units: labs with their sources, and existing verdicts */

/* Fills in the checksums: of the file, and of everything that the verdict depends on. Lab 9 starts
 * from the student's own lab 1. */
static bool key_of(const Book *book, int submission, int lab, Unit *unit)
{
    char place[PLACE_SIZE], *text = NULL;
    size_t size = 0;
    FILE *all = open_memstream(&text, &size);
    fprintf(all, "%s|%s|%llu|%d|", book->kit, book->language, (unsigned long long)book->seed,
            lab_at(lab)->number);
    source_place(book, submission, lab, place);
    fflush(all);
    const size_t begin = size;
    bool found = put_contents(all, place) >= 0;
    fflush(all);
    checksum_of(text + begin, size - begin, unit->source);
    for (int from = 0; from < lab_count(); from++)
        if (lab_at(from)->number == lab_at(lab)->starts_from) {
            source_place(book, submission, from, place);
            fputc('|', all);
            put_contents(all, place);
        }
    fputc('|', all);
    if (book->cases)
        put_contents(all, book->cases);
    fclose(all);
    checksum_of(text, size, unit->key);
    free(text);
    return found;
}

bool find_verdict(const Book *book, Unit *unit)
{
    char place[PLACE_SIZE];
    place_in(book->state, place, "verdicts/%s.json", unit->key);
    json_t *json = json_load_file(place, 0, NULL);
    const char *isolation = json_string_value(json_object_get(json, "isolation"));
    snprintf(unit->isolation, sizeof unit->isolation, "%s", isolation ? isolation : "");
    const bool will_do =
        book->sandbox != SANDBOX_DEMANDED ||
        (!strstr(unit->isolation, "no sandbox") && !strstr(unit->isolation, _("no sandbox")));
    if (json_is_true(json_object_get(json, "complete")) && will_do)
        unit->lab_verdict = json_incref(json_array_get(json_object_get(json, "labs"), 0));
    json_decref(json);
    return unit->lab_verdict != NULL;
}

static int unit_of(Book *book, int submission, int lab)
{
    Unit *unit = &book->units[book->unit_count];
    *unit = (Unit){.lab = lab, .submission = submission};
    if (!key_of(book, submission, lab, unit))
        return -1;
    for (int i = 0; i < book->unit_count; i++)
        if (!strcmp(book->units[i].key, unit->key))
            return i;
    find_verdict(book, unit);
    return book->unit_count++;
}

void make_units(Book *book)
{
    book->units = /* with training runs, see make_training_runs() */
        calloc((size_t)(book->count + 1) * (size_t)(lab_count() + 1), sizeof *book->units);
    for (int i = 0; i < book->count; i++) {
        Submission *submission = &book->submissions[i];
        submission->training = -1;
        for (int lab = (int)book->labs.begin; lab < book->labs.end; lab++) {
            submission->unit[lab] = submission->refused ? -1 : unit_of(book, i, lab);
            submission->pending +=
                submission->unit[lab] >= 0 && !book->units[submission->unit[lab]].lab_verdict;
        }
    }
}
