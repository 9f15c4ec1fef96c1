#include "grader/gradebook/files.h"

#include <stdlib.h>
#include <string.h>

#include "grader/gradebook/manifest.h"
#include "grader/judge/diagnose/result.h"
#include "grader/judge/report/verdict.h"

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool is_wanted(const char *path)
{
    bool wanted = !strcmp(base_of(path), MANIFEST_NAME);
    for (int i = 0; i < lab_count() && !wanted; i++)
        wanted = !strcmp(base_of(path), lab_at(i)->file);
    return wanted;
}

/* Copies the path without "." and doubled slashes. A backslash is a slash: some archives come from Windows. */
static bool clean_path(const char *path, char clean[PATH_SIZE], Problem *problem)
{
    char shown[PATH_SIZE], *to = clean;
    snprintf(shown, sizeof shown, "%.80s", path);
    clean_text(shown);
    if (strlen(path) >= PATH_SIZE)
        return problem_set(problem, NULL, "", "an entry has a name that is too long: %s...", shown);
    if (*path == '/' || *path == '\\' || (path[0] && path[1] == ':'))
        return problem_set(problem, NULL, "", "an entry leads outside: %s", shown);
    while (*path) {
        size_t length = strcspn(path, "/\\");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            return problem_set(problem, NULL, "", "an entry leads outside: %s", shown);
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

File *add_file(Files *files, const char *path, Problem *problem)
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
