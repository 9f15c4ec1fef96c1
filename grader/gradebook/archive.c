#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "base/language.h"
#include "grader/gradebook/files.h"
#include "grader/judge/report/verdict.h"

static bool cannot_be_read(struct archive *archive, Problem *problem)
{
    const char *why = archive_error_string(archive);
    char shown[200];
    snprintf(shown, sizeof shown, "%s", why ? why : _("it is damaged"));
    clean_text(shown);
    return problem_set(problem, NULL, "", "the archive cannot be read: %s", shown);
}

/* Reads the data, whatever size was claimed; keeps it where `file` wants it. */
static bool read_data(struct archive *archive, Files *files, File *file, bool wanted,
                      Problem *problem)
{
    static char buffer[1 << 16];
    la_ssize_t length;
    while ((length = archive_read_data(archive, buffer, sizeof buffer)) > 0) {
        files->bytes += (size_t)length;
        if (files->bytes > MOST_BYTES)
            return problem_set(problem, NULL, "", "unpacked it is larger than %d MB",
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
    return length == 0 || cannot_be_read(archive, problem);
}

static bool read_entry(struct archive *archive, struct archive_entry *entry, Files *files,
                       Problem *problem)
{
    const char *path = archive_entry_pathname_utf8(entry);
    char shown[96];
    if (!path)
        path = archive_entry_pathname(entry);
    if (!path)
        path = _("a file whose name cannot be read");
    snprintf(shown, sizeof shown, "%.80s", path);
    clean_text(shown);
    if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) == AE_IFLNK)
        return problem_set(problem, NULL, "", "an entry is a link: %s", shown);
    if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != AE_IFDIR)
        return problem_set(problem, NULL, "", "an entry is neither a file nor a folder: %s", shown);
    if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > MOST_BYTES)
        return problem_set(problem, NULL, "", "unpacked it is larger than %d MB", MOST_BYTES >> 20);
    File *file = add_file(files, path, problem);
    if (!file)
        return false;
    if (archive_entry_filetype(entry) == AE_IFDIR) {
        free(file->path);
        files->count--;
        return true;
    }
    return read_data(archive, files, file, is_wanted(file->path), problem);
}

bool read_archive(const char *path, Files *files, Problem *problem)
{
    struct archive *archive = archive_read_new();
    struct archive_entry *entry;
    int status = ARCHIVE_OK;
    bool good = true;
    archive_read_support_filter_gzip(archive);
    archive_read_support_format_tar(archive);
    archive_read_support_format_zip(archive);
    if (archive_read_open_filename(archive, path, 1 << 16) != ARCHIVE_OK)
        good = cannot_be_read(archive, problem);
    for (int entries = 0; good; entries++) {
        status = archive_read_next_header(archive, &entry);
        if (status == ARCHIVE_EOF)
            break;
        if (entries == MOST_FILES)
            good = problem_set(problem, NULL, "", "it has more than %d files", MOST_FILES);
        else
            good = status >= ARCHIVE_WARN ? read_entry(archive, entry, files, problem)
                                          : cannot_be_read(archive, problem);
    }
    archive_read_free(archive);
    return good;
}
