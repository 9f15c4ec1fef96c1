#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grader/gradebook/files.h"
#include "grader/judge/report/verdict.h"

enum { DEEPEST = 16 };

static bool read_tree(int folder, const char *prefix, int depth, Files *files, Problem *problem);

static bool read_file(int folder, const char *name, File *file, Problem *problem)
{
    int source = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found;
    if (source < 0 || fstat(source, &found) != 0 || !S_ISREG(found.st_mode))
        return problem_set(problem, NULL, "", "%s cannot be read: %s", file->path, strerror(errno));
    if (found.st_size > MOST_SOURCE) {
        close(source);
        return problem_set(problem, NULL, "", "%s is larger than %d KB", file->path,
                           MOST_SOURCE >> 10);
    }
    file->bytes = malloc((size_t)found.st_size + 1);
    ssize_t length = read(source, file->bytes, (size_t)found.st_size);
    file->size = length > 0 ? (size_t)length : 0;
    close(source);
    return length == found.st_size ||
           problem_set(problem, NULL, "", "%s cannot be read", file->path);
}

static bool read_one(int folder, const char *name, const char *prefix, int depth, Files *files,
                     Problem *problem)
{
    char path[PATH_SIZE], shown[PATH_SIZE];
    struct stat found;
    if (snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "/" : "", name) >= (int)sizeof path)
        return problem_set(problem, NULL, "", "an entry has a name that is too long: %.80s...",
                           prefix);
    snprintf(shown, sizeof shown, "%s", path);
    clean_text(shown);
    if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
        return problem_set(problem, NULL, "", "%s cannot be read: %s", shown, strerror(errno));
    if (S_ISLNK(found.st_mode))
        return problem_set(problem, NULL, "", "an entry is a link: %s", shown);
    if (S_ISDIR(found.st_mode)) {
        int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            return problem_set(problem, NULL, "", "%s cannot be read: %s", shown, strerror(errno));
        return read_tree(inner, path, depth + 1, files, problem);
    }
    if (!S_ISREG(found.st_mode))
        return problem_set(problem, NULL, "", "an entry is neither a file nor a folder: %s", shown);
    File *file = add_file(files, path, problem);
    return file && (!is_wanted(path) || read_file(folder, name, file, problem));
}

/* Closes `folder`. What is hidden or was built is nobody's lab. */
static bool read_tree(int folder, const char *prefix, int depth, Files *files, Problem *problem)
{
    DIR *stream = fdopendir(folder);
    struct dirent *entry;
    bool good =
        depth <= DEEPEST || problem_set(problem, NULL, "", "its folders are nested too deep");
    while (good && (entry = readdir(stream)))
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "build"))
            good = read_one(folder, entry->d_name, prefix, depth, files, problem);
    closedir(stream);
    return good;
}

bool read_folder(const char *path, Files *files, Problem *problem)
{
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return problem_set(problem, NULL, "", "the folder cannot be read: %s", strerror(errno));
    return read_tree(folder, "", 0, files, problem);
}
