/* Reads what was handed in, and searches it for labs. */
#include "grader/gradebook/files.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/language.h"
#include "grader/gradebook/manifest.h"
#include "grader/judge/report/verdict.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Are the contents of a file with this name needed? */
static bool is_wanted(const char *path)
{
    bool wanted = !strcmp(base_of(path), MANIFEST_NAME);
    for (int i = 0; i < lab_count() && !wanted; i++)
        wanted = !strcmp(base_of(path), lab_at(i)->file);
    return wanted;
}

/* Copies the path without "." and double slashes. Backslashes become slashes, because some archives
 * come from Windows. */
static bool clean_path(const char *path, char clean[PATH_SIZE], Problem *problem)
{
    char shown[PATH_SIZE], *to = clean;
    snprintf(shown, sizeof shown, "%.80s", path);
    clean_text(shown);
    if (strlen(path) >= PATH_SIZE)
        return problem_set(problem, NULL, "", "an entry has a name that is too long: %s...", shown);
    if (*path == '/' || *path == '\\' || (path[0] && path[1] == ':'))
        return problem_set(problem, NULL, "", "an entry leads outside the archive: %s", shown);
    while (*path) {
        size_t length = strcspn(path, "/\\");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            return problem_set(problem, NULL, "", "an entry leads outside the archive: %s", shown);
        if (length > 0 && !(length == 1 && *path == '.')) {
            if (to > clean)
                *to++ = '/';
            memcpy(to, path, length);
            to += length;
        }
        path += length + (path[length] != '\0');
    }
    *to = '\0';
    return true;
}

/* Appends a file, unless its path, which comes from the submission, is invalid. The caller fills in
 * its contents. */
static File *add_file(Files *files, const char *path, Problem *problem)
{
    char clean[PATH_SIZE];
    if (!clean_path(path, clean, problem))
        return NULL;
    if (files->count == MOST_FILES) {
        problem_set(problem, NULL, "", "it has more than %d files", MOST_FILES);
        return NULL;
    }
    for (int i = 0; is_wanted(clean) && i < files->count; i++)
        if (!strcmp(files->file[i].path, clean)) {
            clean_text(clean);
            problem_set(problem, NULL, "", "it has %s twice", clean);
            return NULL;
        }
    File *file = &files->file[files->count++];
    *file = (File){.path = strdup(clean)};
    return file;
}

/* ---- reading -------------------------------------------------------------------------------------------------------- */

/* The input, read with libarchive: an archive, or a folder treated as one. */
typedef struct Source {
    struct archive *archive;
    const char *folder; /* NULL for an archive */
    Files *files;
} Source;

static bool cannot_be_read(const Source *source, Problem *problem)
{
    const char *why = archive_error_string(source->archive);
    char shown[200];
    snprintf(shown, sizeof shown, "%s", why ? why : _("it is damaged"));
    clean_text(shown);
    return problem_set(problem, NULL, "",
                       source->folder ? N_("the folder cannot be read: %s")
                                      : N_("the archive cannot be read: %s"),
                       shown);
}

/* Reads the data, whatever size the archive claims; keeps it in `file` if it is wanted. */
static bool read_data(const Source *source, File *file, bool wanted, Problem *problem)
{
    static char buffer[1 << 16];
    la_ssize_t length;
    while ((length = archive_read_data(source->archive, buffer, sizeof buffer)) > 0) {
        source->files->bytes += (size_t)length;
        if (source->files->bytes > MOST_BYTES)
            return problem_set(problem, NULL, "", "it is larger than %d MB when unpacked",
                               MOST_BYTES >> 20);
        if (!wanted)
            continue;
        if (file->size + (size_t)length > MOST_SOURCE)
            return problem_set(problem, NULL, "", "%s is larger than %d KB", file->path,
                               MOST_SOURCE >> 10);
        file->bytes = realloc(file->bytes, file->size + (size_t)length);
        memcpy(file->bytes + file->size, buffer, (size_t)length);
        file->size += (size_t)length;
    }
    return length == 0 || cannot_be_read(source, problem);
}

static bool read_entry(const Source *source, struct archive_entry *entry, const char *path,
                       Problem *problem)
{
    const __LA_MODE_T type = archive_entry_filetype(entry);
    char shown[96];
    snprintf(shown, sizeof shown, "%.80s", path);
    clean_text(shown);
    if (archive_entry_hardlink(entry) || type == AE_IFLNK)
        return problem_set(problem, NULL, "", "an entry is a link: %s", shown);
    if (type != AE_IFREG && type != AE_IFDIR)
        return problem_set(problem, NULL, "", "an entry is neither a file nor a folder: %s", shown);
    File *file = add_file(source->files, path, problem);
    if (!file)
        return false;
    if (type == AE_IFDIR) {
        free(file->path);
        source->files->count--;
        return true;
    }
    const bool wanted = is_wanted(file->path);
    if (!wanted && source->folder)
        return true;
    if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > MOST_BYTES)
        return problem_set(problem, NULL, "", "it is larger than %d MB when unpacked",
                           MOST_BYTES >> 20);
    return read_data(source, file, wanted, problem);
}

/* In a folder, hidden and built files are not labs. */
static bool read_in_folder(const Source *source, struct archive_entry *entry, const char *path,
                           Problem *problem)
{
    enum { DEEPEST = 16 };
    int depth = 1;
    path += strlen(source->folder);
    path += strspn(path, "/");
    for (const char *at = path; (at = strchr(at, '/')); at++)
        depth++;
    if (*path && (*base_of(path) == '.' || !strcmp(base_of(path), "build")))
        return true;
    if (archive_read_disk_can_descend(source->archive)) {
        if (depth > DEEPEST)
            return problem_set(problem, NULL, "", "its folders are nested too deep");
        archive_read_disk_descend(source->archive);
        return true;
    }
    return read_entry(source, entry, path, problem);
}

static bool read_source(const Source *source, Problem *problem)
{
    struct archive_entry *entry;
    for (int entries = 0;; entries++) {
        const int status = archive_read_next_header(source->archive, &entry);
        if (status == ARCHIVE_EOF)
            return true;
        if (entries == MOST_FILES)
            return problem_set(problem, NULL, "", "it has more than %d files", MOST_FILES);
        if (status < ARCHIVE_WARN)
            return cannot_be_read(source, problem);
        const char *path = archive_entry_pathname_utf8(entry);
        if (!path)
            path = archive_entry_pathname(entry);
        if (!path)
            path = _("a file whose name cannot be read");
        if (source->folder ? !read_in_folder(source, entry, path, problem)
                           : !read_entry(source, entry, path, problem))
            return false;
    }
}

size_t archive_end(const char *name)
{
    static const char *const ends[] = {".zip", ".tar.gz", ".tgz", ".tar"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t all = strlen(name), end = strlen(ends[i]);
        if (all > end && !strcasecmp(name + all - end, ends[i]))
            return end;
    }
    return 0;
}

bool read_files(const char *path, bool is_folder, Files *files, Problem *problem)
{
    Source source = {.folder = is_folder ? path : NULL, .files = files};
    int status;
    if (is_folder) {
        source.archive = archive_read_disk_new();
        archive_read_disk_set_symlink_physical(source.archive);
        archive_read_disk_set_behavior(source.archive, ARCHIVE_READDISK_NO_ACL |
                                                           ARCHIVE_READDISK_NO_XATTR |
                                                           ARCHIVE_READDISK_NO_FFLAGS);
        status = archive_read_disk_open(source.archive, path);
    } else {
        source.archive = archive_read_new();
        archive_read_support_filter_gzip(source.archive);
        archive_read_support_format_tar(source.archive);
        archive_read_support_format_zip(source.archive);
        status = archive_read_open_filename(source.archive, path, 1 << 16);
    }
    const bool good =
        status == ARCHIVE_OK ? read_source(&source, problem) : cannot_be_read(&source, problem);
    archive_read_free(source.archive);
    return good;
}

/* ---- where the labs are --------------------------------------------------------------------------------------------- */

/* The lab to which this file belongs, or -1, if names are compared like this; `prefix` gets the part
 * before NN-slug: "labs/", "ada/labs/", "". */
static int lab_of_path(const char *path, char prefix[PATH_SIZE],
                       int (*compare)(const char *, const char *))
{
    for (int i = 0; i < lab_count(); i++) {
        char end[PATH_SIZE];
        const Lab *lab = lab_at(i);
        snprintf(end, sizeof end, "%s/%s", lab->folder, lab->file);
        size_t all = strlen(path), tail = strlen(end);
        if (all < tail || compare(path + all - tail, end) ||
            (all > tail && path[all - tail - 1] != '/'))
            continue;
        snprintf(prefix, PATH_SIZE, "%.*s", (int)(all - tail), path);
        return i;
    }
    return -1;
}

static bool is_labs(const char *prefix)
{
    size_t length = strlen(prefix);
    return length >= 5 && !strcmp(prefix + length - 5, "labs/") &&
           (length == 5 || prefix[length - 6] == '/');
}

/* Files that macOS adds, which contain no labs. */
static bool is_junk(const char *path)
{
    return !strncmp(path, "__MACOSX/", 9) || strstr(path, "/__MACOSX/") || strstr(path, "/.") ||
           path[0] == '.';
}

/* The one folder that contains the labs; prefers one called labs. */
static bool choose_prefix(const Files *files, char chosen[PATH_SIZE], Problem *problem)
{
    char prefix[PATH_SIZE];
    int found = 0;
    for (int pass = 0; pass < 2 && !found; pass++)
        for (int i = 0; i < files->count; i++) {
            const char *path = files->file[i].path;
            if (is_junk(path) || lab_of_path(path, prefix, strcmp) < 0 ||
                (pass == 0 && !is_labs(prefix)))
                continue;
            if (found && strcmp(prefix, chosen)) {
                clean_text(prefix);
                clean_text(chosen);
                return problem_set(
                    problem, NULL, "",
                    "there are labs in more than one folder: in %.120s and in %.120s",
                    *chosen ? chosen : _("the top one"), *prefix ? prefix : _("the top one"));
            }
            memcpy(chosen, prefix, PATH_SIZE);
            found++;
        }
    return found > 0;
}

/* The lab whose file has this name, or -1. */
static int lab_of_file(const char *path)
{
    for (int i = 0; i < lab_count(); i++)
        if (!strcasecmp(base_of(path), lab_at(i)->file))
            return i;
    return -1;
}

/* Says what was found instead: a lab's file, and where it belongs, or else an archive, or else any C
 * file. */
static bool none_found(const Files *files, Problem *problem)
{
    const char *misplaced = NULL, *archive = NULL, *other = NULL;
    char shown[120], prefix[PATH_SIZE];
    for (int i = 0; i < files->count; i++) {
        const char *path = files->file[i].path, *name = base_of(path);
        const bool is_c = strstr(name, ".c") || strstr(name, ".C");
        if (is_junk(path))
            continue;
        if (lab_of_file(path) >= 0)
            misplaced = path;
        else if (archive_end(path))
            archive = path;
        else if (is_c)
            other = path;
    }
    const int lab = misplaced ? lab_of_file(misplaced) : 0;
    const bool other_case = misplaced && lab_of_path(misplaced, prefix, strcasecmp) >= 0;
    const char *found = misplaced ? misplaced : archive ? archive : other ? other : "";
    snprintf(shown, sizeof shown, "%.100s", found);
    clean_text(shown);
    return problem_set(
        problem, NULL, "",
        other_case  ? N_("it has no lab by its name: expected labs/%s/%s, found %s, which differs "
                          "in upper and lower case: rename it")
        : misplaced ? N_("it has no lab in its place: expected labs/%s/%s, found %s")
        : archive
            ? N_("it contains an archive: expected labs/%s/%s, found the archive %s: unpack it")
        : other        ? N_("it contains no lab: expected labs/%s/%s, found %s")
        : files->count ? N_("it contains no lab: expected labs/%s/%s%s")
                       : N_("it is empty: expected labs/%s/%s%s"),
        lab_at(lab)->folder, lab_at(lab)->file, shown);
}

bool find_labs(const Files *files, Layout *layout, Problem *problem)
{
    char chosen[PATH_SIZE] = "", prefix[PATH_SIZE];
    *layout = (Layout){0};
    problem->what[0] = '\0';
    if (!choose_prefix(files, chosen, problem))
        return problem->what[0] ? false : none_found(files, problem);
    for (int i = 0; i < files->count; i++) {
        int lab = lab_of_path(files->file[i].path, prefix, strcmp);
        if (lab >= 0 && !strcmp(prefix, chosen))
            layout->lab[lab] = &files->file[i];
    }
    for (int i = 0; i < files->count; i++) {
        int lab = lab_of_file(files->file[i].path);
        if (lab >= 0 && !layout->lab[lab] && !is_junk(files->file[i].path))
            layout->elsewhere[lab] = &files->file[i];
    }
    size_t root = strlen(chosen) - (is_labs(chosen) ? 5 : 0);
    snprintf(layout->root, sizeof layout->root, "%.*s", (int)root, chosen);
    return true;
}
